"""Lower bounds on the objective of every plan, without a solver; those of levels are the same ones."""

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.levels.instance import LevelInstance
from ddlopt.models.compression.timeline.choices import Choices, choices_of
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.compression.timeline.lane_bounds import longest_way_s, mixtures_of

Floats = npt.NDArray[np.float64]


def timeline_bound(instance: CompressionInstance) -> float:
    r"""The larger of a closed form and of :func:`~ddlopt.frontier.compression.timeline.dual.bound.dual_bound`.

    The closed form has the cheapest of everything: the time is at least the largest over :math:`i \le n` of

    .. math:: R_i + \sum_{k < i} \min e_k + \min (e_i + c_i) + \sum_{k > i} \min c_k,

    where launching is left out of c if gradients may be fused. With goal ``error``: the smallest sum of errors. With
    lanes the best of what is so for each of them and for mixtures, see
    :func:`~ddlopt.models.compression.timeline.lane_bounds.mixtures_of`.

    Raises
    ------
    InfeasibleError
        If nothing keeps the time budget.
    """
    if instance.lanes:
        return _of_lanes(instance)
    choices = choices_of(instance)
    wire = choices.wire_s if instance.fusion else choices.occupation_s
    sharp = dual_of(choices, instance, instance.fusion, instance.largest_bucket_bytes)
    return max(sharp, instance.least_error if instance.goal == "error" else closed_form(choices, wire))


def _of_lanes(instance: CompressionInstance) -> float:
    # What may be fused matters through the launching alone, which is left out of these.
    duals = [dual_of(choices, instance) for choices in mixtures_of(instance)]
    return max(*duals, instance.least_error if instance.goal == "error" else longest_way_s(instance))


def dual_of(
    choices: Choices, instance: CompressionInstance | LevelInstance, fusion: bool = False, largest: float | None = None
) -> float:
    """The bound by prices of both lanes and of the error."""
    # Here, because it brings Numba.
    from ddlopt.frontier.compression.timeline.dual.bound import dual_bound

    budget = instance.error_budget if instance.goal == "time" else instance.time_budget_s
    return dual_bound(choices, instance.goal, budget, fusion, largest).value


def closed_form(choices: Choices, wire: Floats) -> float:
    """The time with the cheapest of everything; ``wire`` is what each option takes of it, in seconds."""
    encode, both = choices.encode_s.min(axis=1), (choices.encode_s + wire).min(axis=1)
    before = np.concatenate(([0.0], np.cumsum(encode)[:-1]))
    after = np.concatenate((np.cumsum(wire.min(axis=1)[::-1])[::-1][1:], [0.0]))
    return float((choices.ready_s + before + both + after).max())
