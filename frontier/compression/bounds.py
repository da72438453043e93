"""Bounds by prices of both lanes and of the error, for timelines, levels and the forward pass that waits."""

from ddlopt.frontier.compression.timeline.dual.bound import dual_bound
from ddlopt.models.compression.forward.bounds import priority_timeline
from ddlopt.models.compression.forward.instance import ForwardInstance
from ddlopt.models.compression.levels.bounds import choices_of_levels
from ddlopt.models.compression.levels.instance import LevelInstance
from ddlopt.models.compression.timeline.choices import Choices, choices_of
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.compression.timeline.lane_bounds import mixtures_of

_DUAL = "ddlopt.frontier.compression.timeline.dual"


def timeline_prices(instance: CompressionInstance) -> float:
    """What :func:`~ddlopt.frontier.compression.timeline.dual.bound.dual_bound` proves.

    With lanes the best of what is so for each of them and for mixtures, see
    :func:`~ddlopt.models.compression.timeline.lane_bounds.mixtures_of`.

    Raises
    ------
    InfeasibleError
        If nothing keeps the time budget.
    """
    if instance.lanes:
        # What may be fused matters through the launching alone, which is left out of these.
        return max(_of(choices, instance) for choices in mixtures_of(instance))
    return _of(choices_of(instance), instance, instance.fusion, instance.largest_bucket_bytes)


def level_prices(instance: LevelInstance) -> float:
    """The same for levels: every level is an option."""
    return _of(choices_of_levels(instance), instance)


def forward_prices(instance: ForwardInstance) -> float:
    """The same for the wire that may be interrupted at will."""
    return timeline_prices(priority_timeline(instance))


def kernels_of_timelines(instance: CompressionInstance) -> tuple[str, ...]:
    """What :func:`timeline_prices` calls on an instance."""
    return (f"{_DUAL}.kernels", f"{_DUAL}.fusion") if instance.fusion else (f"{_DUAL}.kernels",)


def _of(
    choices: Choices, instance: CompressionInstance | LevelInstance, fusion: bool = False, largest: float | None = None
) -> float:
    budget = instance.error_budget if instance.goal == "time" else instance.time_budget_s
    return dual_bound(choices, instance.goal, budget, fusion, largest).value
