"""Instances to train on: drawn networks and random graphs on drawn devices, none of which the library has."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ddlopt.instances.generators.deployment import generate
from ddlopt.instances.generators.deployment.network import deployed
from ddlopt.instances.workloads.device_groups import Devices
from ddlopt.instances.workloads.networks import network_graphs, published
from ddlopt.instances.workloads.networks.network_graphs import Step
from ddlopt.models.deployment import DeploymentInstance

_MEMORY_GIB = {"p100": (10,), "1080ti": (9,), "v100": (14, 30)}
"""As TAG's released code draws devices, and the larger of the two V100 as well."""
_GIBIBYTE = float(1 << 30)
# One instance in eight is a random graph.
_RANDOM = 8
_KINDS = {"bert": 0.3, "gpt2": 0.15, "transformer": 0.2, "vgg16": 0.15, "resnet50": 0.2}
"""Of networks, and how often; most have attention, whose plans are the hardest to say."""


def drawn_devices(rng: np.random.Generator) -> Devices:
    """Two to four device groups; links as in TAG's drawn topologies and its test-bed, devices from one on."""
    size = int(rng.integers(2, 5))
    groups: list[dict[str, Any]] = []
    for _ in range(size):
        kind = str(rng.choice(sorted(_MEMORY_GIB)))
        groups.append(
            {
                "type": kind,
                "count": int(rng.choice([1, 2, 3, 4, 6, 8])),
                "memory_bytes": float(rng.choice(_MEMORY_GIB[kind])) * _GIBIBYTE,
                "bandwidth_bytes_per_s": 1e6 * float(rng.choice([3000, 8000, 20000])),
            }
        )
    rack = np.triu(rng.random((size, size)) < 0.5, 1)
    matrix = np.where(rack | rack.T, 5000.0, 2810.0) * 1e6
    np.fill_diagonal(matrix, 0)
    return Devices(tuple(groups), matrix, "devices drawn to train on", name="drawn")


def drawn_network(rng: np.random.Generator) -> tuple[str, Step]:
    """A network of a usual kind with drawn sizes; lengths of sequences and depths are not those of TAG's six."""
    heads, sequence = int(rng.integers(4, 17)), int(rng.choice([64, 96, 192, 256, 384]))
    layers, hidden, vocabulary = int(rng.integers(2, 25)), 64 * heads, int(rng.integers(8000, 60000))
    kind = str(rng.choice(list(_KINDS), p=list(_KINDS.values())))
    match kind:
        case "bert":
            workload = published.bert(layers, hidden, sequence, 1, vocabulary)
            return f"bert-l{layers}-h{hidden}-s{sequence}", network_graphs.bert_step(workload, heads)
        case "gpt2":
            workload = published.gpt2(1, layers, hidden, sequence, vocabulary)
            return f"gpt2-l{layers}-h{hidden}-s{sequence}", network_graphs.gpt2_step(workload, heads)
        case "transformer":
            layers = 1 + layers // 3
            workload = published.transformer(1, layers, hidden, sequence, vocabulary)
            return f"transformer-l{layers}-h{hidden}-s{sequence}", network_graphs.transformer_step(workload, heads)
    image, classes = int(rng.choice([96, 160, 288])), int(rng.choice([10, 1000, 8000]))
    if kind == "vgg16":
        return f"vgg16-i{image}-c{classes}", network_graphs.vgg_step(published.vgg16(1, image, classes=classes))
    return f"resnet50-i{image}-c{classes}", network_graphs.resnet_step(published.resnet50(1, image, classes))


def instances(count: int, seed: int) -> Iterator[DeploymentInstance]:
    """As many, always the same for a seed."""
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        if number % _RANDOM == _RANDOM - 1:
            made = generate(
                "random",
                int(rng.integers(1 << 30)),
                groups=int(rng.integers(6, 20)),
                device_groups=int(rng.integers(2, 5)),
                most_devices=6,
                memory=4.0,
            )
            assert isinstance(made, DeploymentInstance)
            yield made
            continue
        name, step = drawn_network(rng)
        groups, batch = int(rng.choice([12, 24, 32, 40, 40])), int(rng.choice([6, 16, 32, 64, 96, 192]))
        separate = bool(rng.random() < 0.25)
        yield deployed(step, name, "Layers drawn to train on", rng, groups, batch, drawn_devices(rng), separate)
