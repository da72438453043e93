"""Slots of switches as tables."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, label, number, rate, section
from ddlopt.models.aggregation.slots.instance import SlotPlan, SlotsInstance


def table(instance: SlotsInstance, solution: SlotPlan) -> Iterator[Section]:
    """Sections of a slot plan."""
    jobs, given = [], []
    used = [0.0] * len(instance.switches)
    for place, (job, slots, flow) in enumerate(
        zip(instance.jobs, solution.slots, solution.rates_bytes_per_s, strict=True)
    ):
        called = label(place, job.name)
        how = "on switches" if flow is not None else "by its parameter server"
        jobs.append((called, how, rate(job.fallback_bytes_per_s if flow is None else flow)))
        for switch, count in zip(job.switches, slots, strict=flow is not None):
            used[switch] += count
            given.append((label(switch, instance.switches[switch].name), called, number(count)))
    yield section("Jobs", ("job", "adds up", "rate"), jobs)
    yield section("Slots by switch and job", ("switch", "job", "slots"), given)
    total = [(label(place, each.name), number(used[place]), each.slots) for place, each in enumerate(instance.switches)]
    yield section("Switches", ("switch", "slots given", "of"), total)
