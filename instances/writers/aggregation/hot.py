"""Hot parameters as tables: what is on which switch."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, label, name, section
from ddlopt.models.aggregation.hot.instance import HotInstance, HotSet


def table(instance: HotInstance, solution: HotSet) -> Iterator[Section]:
    """Sections of a hot set."""
    used, rows = [], []
    for place, (switch, of_jobs) in enumerate(zip(instance.switches, solution.placed, strict=True)):
        registers = 0
        for number, (job, parameters) in enumerate(zip(instance.jobs, of_jobs, strict=True)):
            for parameter in map(int, parameters):
                width = int(job.widths[parameter])
                registers += width
                called = name(job.labels[parameter]) if job.labels else "-"
                row = label(place, switch.name), label(number, job.name), parameter, called, width
                rows.append((*row, f"{float(job.frequencies[parameter]):.6g}"))
        used.append((label(place, switch.name), registers, switch.registers))
    yield section("Registers of switches", ("switch", "used", "of"), used)
    yield section("Parameters on switches", ("switch", "job", "parameter", "name", "registers", "frequency"), rows)
