"""Places as tables: where each gang is, and what is left of each leaf."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, label, listed, name, section
from ddlopt.models.cluster.placement.instance import GangPlaces, PlacementInstance


def table(instance: PlacementInstance, solution: GangPlaces) -> Iterator[Section]:
    """Sections of an answer."""
    used = [0] * len(instance.leaves)
    rows = []
    for place, (gang, runs) in enumerate(zip(instance.gangs, solution.places, strict=True)):
        for leaf, count in runs:
            used[leaf] += count
        where = listed(f"{name(instance.leaves[leaf].name)} ({count})" for leaf, count in runs) if runs else "left out"
        rows.append((label(place, gang.name), gang.hosts, name(gang.within), where))
    yield section("Gangs, ranks one after the other", ("gang", "hosts", "within", "places"), rows)
    left = [
        (label(place, leaf.name), listed(map(name, leaf.inside)) or "-", leaf.hosts, leaf.hosts - used[place])
        for place, leaf in enumerate(instance.leaves)
    ]
    yield section("Leaves", ("leaf", "inside", "free before", "free after"), left)
