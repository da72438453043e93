"""The unit in which models of the problem ``forward`` measure times."""

from ddlopt.models.compression.forward.bounds import priority_timeline
from ddlopt.models.compression.forward.instance import ForwardInstance
from ddlopt.models.compression.timeline.bounds import closed_form
from ddlopt.models.compression.timeline.choices import choices_of
from ddlopt.models.compression.timeline.units import most_s, simple_s
from ddlopt.models.remembered import remembered
from ddlopt.models.units import between, unit_of


@remembered
def forward_unit_s(instance: ForwardInstance) -> float:
    """Seconds of a unit, of which the time is about a thousand.

    Between the closed form with the cheapest of everything and the time of a simple plan in one part each, in which the
    forward pass waits for all.
    """
    choices, timeline = choices_of(priority_timeline(instance)), instance.timeline
    simple = simple_s(choices, exact_errors=timeline.error_budget is not None)
    return unit_of(between(closed_form(choices, choices.occupation_s), simple), most_s(timeline), instance.tails_s[-1])
