"""Lower bounds on the objective of every plan, without a solver: the cheapest of everything."""

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.levels.instance import LevelInstance
from ddlopt.models.compression.timeline.choices import Choices, choices_of
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.compression.timeline.lane_bounds import longest_way_s
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import let_pass_at_most

Floats = npt.NDArray[np.float64]


def timeline_bound(instance: CompressionInstance) -> float:
    r"""The least time, with the cheapest of everything, or the least sum of errors.

    The time is at least the largest over :math:`i \le n` of

    .. math:: R_i + \sum_{k < i} \min e_k + \min (e_i + c_i) + \sum_{k > i} \min c_k,

    where launching is left out of c if gradients may be fused. With lanes every gradient is taken by itself: see
    :func:`~ddlopt.models.compression.timeline.lane_bounds.longest_way_s`.

    Raises
    ------
    InfeasibleError
        If nothing keeps the time budget.
    """
    if instance.lanes:
        return bound_of(instance, longest_way_s(instance))
    choices = choices_of(instance)
    return bound_of(instance, closed_form(choices, choices.wire_s if instance.fusion else choices.occupation_s))


def bound_of(instance: CompressionInstance | LevelInstance, least_s: float) -> float:
    """The bound of the instance's goal, where every choice takes at least so long.

    Raises
    ------
    InfeasibleError
        If that is more than the time budget.
    """
    if instance.goal == "time":
        return least_s
    budget = instance.time_budget_s
    if budget is not None and least_s > let_pass_at_most(budget):
        raise InfeasibleError(f"no choice keeps the time budget of {budget:.12g} s: all take at least {least_s:.12g} s")
    return instance.least_error


def closed_form(choices: Choices, wire: Floats) -> float:
    """The time with the cheapest of everything; ``wire`` is what each option takes of it, in seconds."""
    encode, both = choices.encode_s.min(axis=1), (choices.encode_s + wire).min(axis=1)
    before = np.concatenate(([0.0], np.cumsum(encode)[:-1]))
    after = np.concatenate((np.cumsum(wire.min(axis=1)[::-1])[::-1][1:], [0.0]))
    return float((choices.ready_s + before + both + after).max())
