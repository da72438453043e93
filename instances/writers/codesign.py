"""Co-design plans as tables: the strategy of every layer, then the design for the job that they make."""

from collections.abc import Iterator

from ddlopt.instances.writers import topology
from ddlopt.instances.writers.layout import Section, listed, name, seconds, section
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.job import job_of
from ddlopt.models.codesign.solution import CodesignPlan


def table(instance: CodesignInstance, solution: CodesignPlan) -> Iterator[Section]:
    """Sections of a plan."""
    yield from layers(instance, solution)
    job = job_of(instance, solution.choices(instance))
    if job is None:
        yield topology.links(instance, solution.design)
    else:
        yield from topology.table(job, solution.design)


def layers(instance: CodesignInstance, solution: CodesignPlan) -> Iterator[Section]:
    """The strategy of every layer."""
    choices = solution.choices(instance)
    rows = []
    for place, (layer, choice) in enumerate(zip(instance.layers, choices, strict=True)):
        strategy = layer.strategies[choice]
        servers = listed(sorted(set(instance.layouts[strategy.writes].servers)))
        rows.append((name(layer.name), name(strategy.name), seconds(instance.compute_s(place, choice)), servers))
    yield section("Layers", ("layer", "strategy", "compute", "servers"), rows)
