"""Aggregating switches of a tree as tables."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, label, section
from ddlopt.models.aggregation.tree.instance import AggregatingSwitches, TreeInstance


def table(instance: TreeInstance, solution: AggregatingSwitches) -> Iterator[Section]:
    """Sections of a set of switches."""
    rows = []
    for place, (job, switches) in enumerate(zip(instance.jobs, solution.switches, strict=True)):
        for switch in sorted(switches):
            parent = instance.parents[switch]
            to = "destination" if parent is None else _called(instance, parent)
            rows.append((label(place, job.name), _called(instance, switch), to, job.memory))
    yield section("Switches that aggregate", ("job", "switch", "sends to", "memory"), rows)


def _called(instance: TreeInstance, switch: int) -> str:
    return label(switch, instance.names[switch] if instance.names else "")
