"""Random layered networks to be partitioned over accelerators and processors: kind ``layered``."""

from typing import Any

import numpy as np

from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.models.errors import OptionError

# A unit: a node computes a millisecond in the mean.
_MEAN_S = 1e-3
# A unit: a node holds 100 megabytes in the mean.
_MEAN_BYTES = 1e8


def layered(
    rng: np.random.Generator,
    nodes: int = 40,
    residual: float = 0.4,
    branched: float = 0.3,
    training: bool = False,
    accelerators: int = 4,
    processors: int = 1,
    memory: float = 3.0,
    communication: float = 0.2,
    slowdown: float = 10.0,
    unsupported: float = 0.0,
    goal: str = "throughput",
    contiguous: bool = False,
    separate_passes: bool = False,
    subgraphs: int = 1,
) -> PartitionInstance:
    """A chain of modules: single layers, residual blocks, and branches that meet again.

    Parameters
    ----------
    rng : numpy.random.Generator
    nodes : int
        Of the forward pass, at least; the last module is completed.
    residual, branched : float
        Parts of modules that are residual blocks, and that are branches.
    training : bool
        Whether each node has a twin in the backward pass, of its colour, with twice its time.
    accelerators, processors : int
    memory : float
        Of all accelerators together, relative to what all nodes need.
    communication : float
        Mean time of a transfer, relative to that of a node on an accelerator.
    slowdown : float
        Time on a processor, relative to that on an accelerator, on average.
    unsupported : float
        Part of the nodes that cannot run on accelerators.
    goal : {"throughput", "latency"}
    contiguous, separate_passes, subgraphs
        Fields of the instance.

    Returns
    -------
    PartitionInstance
    """
    for option, value, least in (
        ("nodes", nodes, 1), ("accelerators", accelerators, 0), ("processors", processors, 0),
        ("communication", communication, 0), ("subgraphs", subgraphs, 1), ("residual", residual, 0),
        ("branched", branched, 0), ("unsupported", unsupported, 0),
    ):  # fmt: skip
        at_least(option, value, least)
    positive("slowdown", slowdown)
    positive("memory", memory)
    one_of("goal", goal, ("throughput", "latency"))
    if residual + branched > 1:
        raise OptionError(f"residual and branched are {residual:g} and {branched:g}; together they must be at most 1")
    if unsupported > 1:
        raise OptionError(f"unsupported is {unsupported:g}; it must be at most 1")
    names, edges = _forward(rng, nodes, residual, branched)
    drawn = [_node(rng, name, communication, slowdown, unsupported) for name in names]
    count = len(drawn)
    if training:
        for place in range(count):
            drawn[place]["colour"] = place
        for place in reversed(range(count)):
            drawn.append(_twin(rng, drawn[place], communication))
        twin = {place: 2 * count - 1 - place for place in range(count)}
        edges += [(twin[user], twin[maker]) for maker, user in edges] + [(place, twin[place]) for place in range(count)]
    need = sum(node["memory_bytes"] for node in drawn)
    largest = max(node["memory_bytes"] for node in drawn)
    return PartitionInstance.from_data(
        {
            "name": f"layered-{'training' if training else 'inference'}-n{nodes}-k{accelerators}",
            "nodes": drawn,
            "edges": edges,
            "accelerators": accelerators,
            "processors": processors,
            "memory_bytes": _rounded(max(largest * (2 if training else 1), memory * need / max(1, accelerators))),
            "goal": goal,
            "contiguous": contiguous,
            "separate_passes": separate_passes,
            "subgraphs": subgraphs,
        }
    )


def _forward(
    rng: np.random.Generator, nodes: int, residual: float, branched: float
) -> tuple[list[str], list[tuple[int, int]]]:
    """Names and edges, node by node in a topological order."""
    names = ["input"]
    edges: list[tuple[int, int]] = []

    def add(name: str, *makers: int) -> int:
        names.append(name)
        edges.extend((maker, len(names) - 1) for maker in makers)
        return len(names) - 1

    end, module = 0, 0
    while len(names) < nodes:
        module += 1
        kind = rng.random()
        if kind < residual:
            inner = end
            for number in range(int(rng.integers(2, 4))):
                inner = add(f"residual{module}.{number}", inner)
            end = add(f"add{module}", inner, end)
        elif kind < residual + branched:
            ends = []
            for branch in range(int(rng.integers(2, 5))):
                inner = end
                for number in range(int(rng.integers(1, 4))):
                    inner = add(f"branch{module}.{branch}.{number}", inner)
                ends.append(inner)
            end = add(f"concatenate{module}", *ends)
        else:
            end = add(f"layer{module}", end)
    return names, edges


def _node(
    rng: np.random.Generator, name: str, communication: float, slowdown: float, unsupported: float
) -> dict[str, Any]:
    light = name.startswith(("input", "add", "concatenate"))
    time_s = 0.05 * _MEAN_S * rng.exponential() if light else _MEAN_S * rng.gamma(4, 0.25)
    runs = name == "input" or rng.random() >= unsupported
    return {
        "name": name,
        "accelerator_s": _rounded(time_s) if runs else None,
        "processor_s": _rounded(time_s * slowdown * rng.uniform(0.6, 1.4)),
        "transfer_s": _rounded(communication * _MEAN_S * rng.exponential()),
        "memory_bytes": _rounded(_MEAN_BYTES * rng.exponential() * (0.1 if light else 1.0)),
    }


def _twin(rng: np.random.Generator, node: dict[str, Any], communication: float) -> dict[str, Any]:
    factor = rng.uniform(1.6, 2.4)
    return {
        "name": f"{node['name']}.backward",
        "accelerator_s": None if node["accelerator_s"] is None else _rounded(factor * node["accelerator_s"]),
        "processor_s": _rounded(factor * node["processor_s"]),
        "transfer_s": _rounded(communication * _MEAN_S * rng.exponential()),
        "memory_bytes": node["memory_bytes"],
        "backward": True,
        "colour": node["colour"],
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
