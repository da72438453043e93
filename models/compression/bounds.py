"""Lower bounds that need no solver."""

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.levels import LevelInstance
from ddlopt.models.compression.problem import CompressionProblem
from ddlopt.models.compression.sfb import SfbInstance
from ddlopt.models.compression.timeline import CompressionInstance

Floats = npt.NDArray[np.float64]


def bound(instance: CompressionProblem) -> float | None:
    """A lower bound on the objective of every answer."""
    match instance:
        case SfbInstance():
            return sfb_bound(instance)
        case CompressionInstance():
            return timeline_bound(instance)
        case LevelInstance():
            return level_bound(instance)
    return None


def sfb_bound(instance: SfbInstance) -> float:
    """Every gradient costs its all-reduce or the duplication of its operator, whichever is less."""
    duplicated = np.where(instance.eligible, instance.extra_s + instance.duplication_penalty_s, np.inf)
    return float(np.minimum(instance.sync_s, duplicated).sum())


def timeline_bound(instance: CompressionInstance) -> float:
    r"""The closed form with the cheapest of everything.

    The time is the largest over :math:`i \le n` of

    .. math:: R_i + \sum_{k < i} \min e_k + \min (e_i + c_i) + \sum_{k > i} \min c_k,

    where launching is left out of c if gradients may be fused. With goal ``error``: the smallest sum of errors.
    """
    if instance.goal == "error":
        return instance.least_error
    encode, wire, both = [], [], []
    for menu in instance.menus:
        busy = [o.wire_s + o.decode_s + (0.0 if instance.fusion else o.launch_s) for o in menu]
        wire.append(min(busy))
        encode.append(min(o.encode_s for o in menu))
        both.append(min(o.encode_s + each for o, each in zip(menu, busy, strict=True)))
    menus = np.array([gradient.menu for gradient in instance.gradients])
    return _largest(instance.ready_s, *(np.array(each)[menus] for each in (encode, wire, both)))


def level_bound(instance: LevelInstance) -> float:
    """The same with everything at its lowest level; with goal ``error``: everything at its highest."""
    if instance.goal == "error":
        return instance.least_error
    lowest = np.array([gradient.curve.allowed[0] for gradient in instance.gradients])
    fields = {
        name: np.array([getattr(gradient, name) for gradient in instance.gradients])
        for name in ("ready_s", "encode_s", "encode_s_per_level", "launch_s", "wire_s_per_level")
    }
    encode = fields["encode_s"] + fields["encode_s_per_level"] * lowest
    wire = fields["launch_s"] + fields["wire_s_per_level"] * lowest
    return _largest(fields["ready_s"], encode, wire, encode + wire)


def _largest(ready: Floats, encode: Floats, wire: Floats, both: Floats) -> float:
    before = np.concatenate(([0.0], np.cumsum(encode)[:-1]))
    after = np.concatenate((np.cumsum(wire[::-1])[::-1][1:], [0.0]))
    return float((ready + before + both + after).max())
