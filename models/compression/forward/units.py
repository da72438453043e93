"""The unit in which models of the problem ``forward`` measure times."""

from ddlopt.models.compression.forward.bounds import priority_timeline
from ddlopt.models.compression.forward.instance import ForwardInstance
from ddlopt.models.compression.timeline.choices import choices_of
from ddlopt.models.compression.timeline.units import LEAST_TIME, excess_room, least_s, most_s, simple_s
from ddlopt.models.remembered import remembered
from ddlopt.models.units import between, unit_of


@remembered
def forward_unit_s(instance: ForwardInstance) -> float:
    """Seconds of a unit, of which the time is about a thousand.

    Between the closed form with the cheapest of everything and the time of a simple plan in one part each, in which the
    forward pass waits for all.
    """
    moved = priority_timeline(instance)
    choices = choices_of(moved)
    low, simple = least_s(moved, choices), simple_s(choices, excess_room(moved))
    return unit_of(between(low, simple), most_s(instance.timeline), instance.tails_s[-1])


def counted(units: float) -> float:
    """Units of time, or 0 for what is negligible as a coefficient."""
    return units if units > LEAST_TIME else 0.0
