"""Lower bounds that need no solver."""

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.family import CompressionProblem
from ddlopt.models.compression.levels.instance import ExponentialCurve, LevelInstance, PointCurve
from ddlopt.models.compression.sfb.cut_network import CutNetwork
from ddlopt.models.compression.sfb.instance import SfbInstance
from ddlopt.models.compression.timeline.choices import Choices, choices_of
from ddlopt.models.compression.timeline.instance import CompressionInstance

Floats = npt.NDArray[np.float64]

_MOST_FLOW = 5_000
"""Operators up to which a maximum flow takes less than a second, whatever the graph."""


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
    """Value of a maximum flow, which is the optimum without budgets; of large graphs :func:`sfb_closed_form`."""
    return CutNetwork(instance).cut().bound_s if instance.size <= _MOST_FLOW else sfb_closed_form(instance)


def sfb_closed_form(instance: SfbInstance) -> float:
    """Every gradient costs its all-reduce or the duplication of its operator, whichever is less."""
    duplicated = np.where(instance.eligible, instance.extra_s + instance.duplication_penalty_s, np.inf)
    return float(np.minimum(instance.sync_s, duplicated).sum())


def timeline_bound(instance: CompressionInstance) -> float:
    r"""The larger of a closed form and of :func:`~ddlopt.models.compression.timeline.dual.bound.dual_bound`.

    The closed form has the cheapest of everything: the time is at least the largest over :math:`i \le n` of

    .. math:: R_i + \sum_{k < i} \min e_k + \min (e_i + c_i) + \sum_{k > i} \min c_k,

    where launching is left out of c if gradients may be fused. With goal ``error``: the smallest sum of errors.

    Raises
    ------
    InfeasibleError
        If nothing keeps the time budget.
    """
    choices = choices_of(instance)
    wire = choices.wire_s if instance.fusion else choices.occupation_s
    sharp = _dual(choices, instance, instance.fusion, instance.largest_bucket_bytes)
    return max(sharp, instance.least_error if instance.goal == "error" else _closed_form(choices, wire))


def level_bound(instance: LevelInstance) -> float:
    """The same where every level is an option; the closed form has everything at its lowest level."""
    choices = _levels(instance)
    sharp = _dual(choices, instance)
    return max(sharp, instance.least_error if instance.goal == "error" else _closed_form(choices, choices.occupation_s))


def _dual(
    choices: Choices, instance: CompressionInstance | LevelInstance, fusion: bool = False, largest: float | None = None
) -> float:
    # Here, because it brings Numba.
    from ddlopt.models.compression.timeline.dual.bound import dual_bound

    budget = instance.error_budget if instance.goal == "time" else instance.time_budget_s
    return dual_bound(choices, instance.goal, budget, fusion, largest).value


def _closed_form(choices: Choices, wire: Floats) -> float:
    encode, both = choices.encode_s.min(axis=1), (choices.encode_s + wire).min(axis=1)
    before = np.concatenate(([0.0], np.cumsum(encode)[:-1]))
    after = np.concatenate((np.cumsum(wire.min(axis=1)[::-1])[::-1][1:], [0.0]))
    return float((choices.ready_s + before + both + after).max())


def _levels(instance: LevelInstance) -> Choices:
    """What ``choices_of(as_timeline(instance))`` is, without the objects in between."""
    allowed = [gradient.curve.allowed for gradient in instance.gradients]
    counts = np.array([len(levels) for levels in allowed])
    there = np.arange(counts.max()) < counts[:, None]
    figures = np.full((4, *there.shape), np.inf)
    levels = np.concatenate(allowed).astype(float)
    fields = ("encode_s", "encode_s_per_level", "wire_s_per_level", "launch_s")
    encode, encode_more, wire, launch = (
        np.repeat([getattr(gradient, field) for gradient in instance.gradients], counts) for field in fields
    )
    errors = np.concatenate([_errors(gradient.curve) for gradient in instance.gradients])
    figures[:, there] = encode + encode_more * levels, wire * levels, launch, errors
    ready = np.array([gradient.ready_s for gradient in instance.gradients])
    return Choices(
        ready, figures[0], figures[1], figures[2], figures[3], counts, np.where(there, 0, -1), np.zeros(len(counts))
    )


def _errors(curve: PointCurve | ExponentialCurve) -> Floats:
    if isinstance(curve, PointCurve):
        return np.array(curve.errors)
    return curve.scale * 4.0 ** -np.array(curve.allowed)
