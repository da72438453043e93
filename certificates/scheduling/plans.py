"""All plans of one job at given prices, in whole numbers: whether one is worth more than is said."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ddlopt.certificates.scheduling.relaxed import PARTS, Ints


@dataclass(frozen=True)
class Effort:
    """How much the checks of plans may take."""

    finest: int = 2**12
    """Steps of progress of the first, coarse look: finer ones prune hardly more."""
    coarsest: int = 2**6
    """Fewest steps: rounded up to fewer, progress in each slot looks like all of it, and nothing is pruned."""
    cells: int = 2**22
    """Of the table of that look: 32 MB."""
    labels: int = 300_000
    """Beginnings of plans in a slot: tens of megabytes."""


EFFORT = Effort()


class TooManyError(Exception):
    """More beginnings of plans than are kept."""


class Offers(NamedTuple):
    """What a job may choose from: one offer at most in each slot of its window.

    ``gains`` (O,): what each offer does, positive. ``costs`` (n, O): of each offer in each slot. ``worth``: of (m,)
    parts, not decreasing. ``ordered``: whether no offer costs less in a slot than in those before. A best plan then has
    an offer in each of the first slots, and none after. If not, slots are in the order of time, and a plan may leave
    out any.
    """

    gains: Ints
    costs: Ints
    worth: Callable[[Ints], Ints]
    ordered: bool


def beaten(offers: Offers, most: int) -> tuple[bool, int]:
    r"""Whether a plan has a worth less cost of more than ``most`` >= 0, and how many beginnings were looked at.

    Two looks are taken:

    * with progress rounded up to one of N steps, backwards over the slots,

      .. math::
          h_k(p) = \max\bigl(u(p), \max_o h_{k+1}(p + \lceil g_o \rceil) - c_{ko}\bigr),

      no less than what any plan is worth that has done p in the first k slots, further costs taken off; where slots
      may be left out, :math:`h_{k+1}(p)` takes the place of :math:`u(p)`;
    * forwards over pairs (progress, cost) as they are, of which those stay with :math:`h_k(p)` less cost above
      ``most`` and no other with as much progress at no more cost.

    Raises
    ------
    TooManyError
        If more pairs stay than are kept.
    """
    slots, count = offers.costs.shape
    if not count or not slots:
        return False, 0
    if offers.ordered:
        slots = min(slots, -(-PARTS // int(offers.gains.min())))
    steps = min(EFFORT.finest, max(EFFORT.coarsest, EFFORT.cells // slots))
    ahead = _ahead(offers, slots, steps)
    if ahead[0, 0] <= most:
        return False, 1
    parts, spent, cases = np.zeros(1, np.int64), np.zeros(1, np.int64), 0
    for k in range(slots):
        more, cost = (
            np.minimum(PARTS, parts[:, None] + offers.gains).ravel(),
            (spent[:, None] + offers.costs[k]).ravel(),
        )
        parts, spent = (more, cost) if offers.ordered else (np.append(parts, more), np.append(spent, cost))
        cases += len(parts)
        promising = ahead[k + 1, -(-parts * steps // PARTS)] - spent > most
        parts, spent = undominated(parts[promising], spent[promising])
        if not len(parts):
            break
        if len(parts) * count > EFFORT.labels:
            raise TooManyError
        if (offers.worth(parts) - spent > most).any():
            return True, cases
    return False, cases


def _ahead(offers: Offers, slots: int, steps: int) -> Ints:
    """(slots + 1, steps + 1) what progress before each slot may lead to at most."""
    places = np.arange(steps + 1)
    stopped = offers.worth(-(-places * PARTS // steps))
    after = [np.minimum(steps, places + -(-int(gain) * steps // PARTS)) for gain in offers.gains]
    ahead = np.empty((slots + 1, steps + 1), np.int64)
    ahead[slots] = stopped
    for k in reversed(range(slots)):
        ahead[k] = stopped if offers.ordered else ahead[k + 1]
        for place, cost in zip(after, offers.costs[k].tolist(), strict=True):
            np.maximum(ahead[k], ahead[k + 1, place] - cost, out=ahead[k])
    return ahead


def undominated(parts: Ints, spent: Ints) -> tuple[Ints, Ints]:
    """Pairs but those that another one beats, which has as much progress at no more cost."""
    order = np.lexsort((spent, -parts))
    parts, spent = parts[order], spent[order]
    cheaper = np.ones(len(spent), bool)
    cheaper[1:] = spent[1:] < np.minimum.accumulate(spent)[:-1]
    return parts[cheaper], spent[cheaper]
