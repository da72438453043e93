"""What is sent before the last gradient and what after it: all that there is to say of an order."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.forward.instance import ForwardInstance, ForwardPlan
from ddlopt.models.compression.forward.schedule import plan, sent_by

_LABELS = 20_000
"""Sums of what is sent before that are kept apart for a gradient."""


class Sides(NamedTuple):
    """Of every gradient how many of its parts are sent before the last gradient, and the time of that order."""

    time_s: float
    before: tuple[int, ...]


def best_sides(instance: ForwardInstance, choices: Sequence[int], parts: Sequence[int], most: int = _LABELS) -> Sides:
    r"""The best order of given options and parts, up to equal sums.

    Heads and tails both grow with the gradient, so that the last gradient has the largest of either. In any plan, let S
    be when its first part starts. What is sent before S may as well be sent in the order of the backward pass, which
    ends no later and for which S is soon enough; what is sent after it is all encoded, so that the last gradient and
    then the longest tail is best (J. Jackson). With :math:`b_i` and :math:`a_i` the time on the wire of what gradient i
    sends before and after S,

    .. math::
        S = \max\Bigl(P_n, \max_{i < n} P_i + \sum_{i \le k < n} b_k\Bigr),\qquad
        T = S + c_n + \max\Bigl(q_n, \max_{j < n} q_j + \sum_{j \le k < n} a_k\Bigr).

    Labels have the sum of all b from a gradient on, S, and the last maximum. Of sums between two of ``most`` steps the
    label of the least time so far is kept, so that the order is the best one where sums are further apart.
    """
    sent, last = sent_by(instance, choices), instance.size - 1
    tails = instance.tails_s.tolist()
    each = [h + w / k for h, w, k in zip(sent.launch_s, sent.payload_s, parts, strict=True)]
    step = (sum(k * p for k, p in zip(parts, each, strict=True)) or 1.0) / most
    before, start, late = np.zeros(1), np.full(1, sent.encoded_s[last]), np.full(1, tails[last])
    whole, came = 0.0, list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]()
    for i in reversed(range(last)):
        whole += parts[i] * each[i]
        took = np.repeat(np.arange(parts[i] + 1), len(before))
        origin = np.tile(np.arange(len(before)), parts[i] + 1)
        before = before[origin] + took * each[i]
        start = np.maximum(start[origin], sent.encoded_s[i] + before)
        late = np.maximum(late[origin], tails[i] + whole - before)
        order = np.lexsort((start + late, np.rint(before / step)))
        kept = order[np.flatnonzero(np.diff(np.rint(before[order] / step), prepend=-1.0))]
        before, start, late = before[kept], start[kept], late[kept]
        came.append((origin[kept], took[kept]))
    best = int(np.argmin(start + late))
    time_s = float(start[best] + late[best]) + parts[last] * each[last]
    found = [parts[last]]
    for origin, took in reversed(came):
        found.append(int(took[best]))
        best = int(origin[best])
    return Sides(time_s, (*found[1:], found[0]))


def ordered(
    instance: ForwardInstance, choices: Sequence[int], parts: Sequence[int], before: Sequence[int]
) -> ForwardPlan:
    """The plan that sends a given number of parts of every gradient before the last one."""
    first = [i for i, count in enumerate(before) for _ in range(count)]
    behind = [i for i in reversed(range(instance.size)) for _ in range(parts[i] - before[i])]
    return plan(instance, choices, parts, [*first, *behind])
