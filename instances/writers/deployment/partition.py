"""Partitions as tables: nodes by device."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, label, seconds, section, size
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance


def table(instance: PartitionInstance, solution: Partition) -> Iterator[Section]:
    """Sections of a partition."""
    subgraphs = solution.subgraphs or (0,) * len(instance.nodes)
    rows = []
    order = sorted(range(len(instance.nodes)), key=lambda node: (solution.devices[node], subgraphs[node], node))
    for node in order:
        device, of = solution.devices[node], instance.nodes[node]
        accelerator = device < instance.accelerators
        time = of.accelerator_s if accelerator else of.processor_s
        kind = f"accelerator {device}" if accelerator else f"processor {device - instance.accelerators}"
        pass_ = "backward" if of.backward else "forward"
        rows.append((kind, subgraphs[node], label(node, of.name), pass_, seconds(time), size(of.memory_bytes)))
    yield section("Nodes by device", ("device", "subgraph", "node", "pass", "time", "memory"), rows)
