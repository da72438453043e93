"""Placements in register arrays as tables."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, name, section
from ddlopt.models.aggregation.registers.instance import Placement, RegisterInstance


def table(instance: RegisterInstance, solution: Placement) -> Iterator[Section]:
    """Sections of a placement."""
    count = [solution.arrays.count(array) for array in range(instance.arrays)]
    used = zip(range(instance.arrays), count, instance.capacities, strict=True)
    yield section("Register arrays", ("array", "used", "of"), used)
    order = sorted(range(instance.parameters), key=lambda parameter: (solution.arrays[parameter], parameter))
    labels = instance.labels
    rows = [(solution.arrays[each], each, name(labels[each]) if labels else "-") for each in order]
    yield section("Parameters by array", ("array", "parameter", "name"), rows)
