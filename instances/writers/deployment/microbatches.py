"""Orders of micro-batches as tables: what each device runs, one row a device, and how much it holds and waits."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, seconds, section, size
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.microbatches.simple_order import starts_of
from ddlopt.models.deployment.microbatches.solution import MicroBatchOrder
from ddlopt.models.deployment.microbatches.ticks import F, exact_ticks, words_of


def table(instance: MicroBatchInstance, solution: MicroBatchOrder) -> Iterator[Section]:
    """Sections of an order."""
    ticks = exact_ticks(instance)
    words = words_of(ticks, solution)
    unit_s = float(ticks.unit_s)
    devices, passes = [], []
    starts = starts_of(ticks, words)
    for device, (word, own) in enumerate(zip(words, starts, strict=True)):
        taken, most = 0, 0
        for kind in word:
            taken += ticks.cells[kind] if kind[1] == F else -ticks.cells[kind]
            most = max(most, taken)
        held = most / ticks.room[device] * instance.memory_bytes[device] if ticks.room[device] else 0.0
        begin, end = own[0] * unit_s, (own[-1] + ticks.time[word[-1]]) * unit_s
        busy = ticks.work[device] * unit_s
        devices.append((device, seconds(begin), seconds(end), seconds(busy), seconds(end - begin - busy), size(held)))
        for kind, name, start in zip(word, solution.orders[device], own, strict=True):
            passes.append((device, name, seconds(start * unit_s), seconds((start + ticks.time[kind]) * unit_s)))
    yield section("Devices", ("device", "begins", "ends", "busy", "waits", "memory"), devices)
    yield section("Passes", ("device", "pass", "begins", "ends"), passes)
