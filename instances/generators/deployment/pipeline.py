"""Networks for plans of pipelines: chains of blocks as language models are, and drawn graphs."""

import itertools
from typing import Any

import numpy as np

from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.models.deployment.pipeline.instance import PipelineInstance

_EFFICIENCY = 0.9
"""What a further doubling of the tensor-parallel degree leaves of the speed, an assumption."""
_AGAIN = 4 / 3
"""A forward pass more."""
_STATE = 8.0
"""Bytes of state for each byte of a weight: Adam with weights in 16 bits, and a gradient in as many."""


def blocks(
    rng: np.random.Generator,
    *,
    layers: int = 12,
    shape: str = "chain",
    devices: int = 16,
    tensors: tuple[int, ...] = (1, 2, 4),
    micro_batches: int = 64,
    memory: float = 0.5,
    gigabytes_per_s: float = 25.0,
    alike: bool = True,
    width: int | None = None,
) -> PipelineInstance:
    """A network of an embedding, blocks and a head, each kept as it is or recomputed.

    A block takes 10 ms for a sample on one device, has 200 MB of weights and keeps 400 MB of activations, all within a
    fifth; recomputed it keeps its input of 16 MB and takes a third more. On t devices it takes as long as t·0.9^log₂ t
    of one, holds the t-th part, and sends its input once more. The embedding is a table: little time, many weights.

    Parameters
    ----------
    layers : int
        Blocks; the embedding and the head come besides.
    shape : {"chain", "branches", "random", "layered", "cells"}
        Blocks one behind another; chains side by side; each reading one or two of the four before it; ranks of blocks,
        each reading one or two of the rank before it; or cells one behind another, each of chains side by side.
    devices, micro_batches : int
    tensors : tuple of int
    memory : float
        Of a device, as a part of what all layers need with one sample in flight, over the devices, kept as they are.
    gigabytes_per_s : float
        Of a device to the others.
    alike : bool
        Whether all blocks are the same.
    width : int, optional
        Chains of branches and of a cell, and blocks of a rank; 2 if not said.
    """
    at_least("layers", layers, 1)
    one_of("shape", shape, ("chain", "branches", "random", "layered", "cells"))
    if width is not None:
        at_least("width", width, 1)
    at_least("devices", devices, 1)
    at_least("micro_batches", micro_batches, 1)
    positive("memory", memory)
    positive("gigabytes_per_s", gigabytes_per_s)
    for tensor in tensors:
        at_least("tensors", tensor, 1)
    edges = _edges(rng, layers, shape, 2 if width is None else width)
    menus = []
    usual = rng.uniform(0.8, 1.2, 3)
    for place in range(layers + 2):
        factors = usual if alike else rng.uniform(0.8, 1.2, 3)
        time, weights, kept = np.array([0.010, 200e6, 400e6]) * factors
        if place == 0:
            time, weights, kept = 0.001, 500e6, 16e6
        elif place == layers + 1:
            time, weights, kept = 0.008, 500e6, 100e6
        reads = [u for u, v in edges if v == place]
        handed = [v for u, v in edges if u == place]
        menus.append([_menu(t, float(time), float(weights), float(kept), reads, handed) for t in sorted(set(tensors))])
    names = ["embedding", *(f"block.{place}" for place in range(layers)), "head"]
    need = sum(each[0]["options"][0]["kept_bytes"] + each[0]["options"][0]["fixed_bytes"] for each in menus)
    return PipelineInstance.from_data(
        {
            "name": f"pipeline-{shape}-l{layers}-k{devices}",
            "source": f"{layers} blocks, {shape}, with assumed times and sizes of a block",
            "layers": [{"name": name, "menus": menu} for name, menu in zip(names, menus, strict=True)],
            "edges": [{"maker": u, "user": v, "size_bytes": _INPUT} for u, v in edges],
            "devices": devices,
            "memory_bytes": float(f"{max(memory * need * max(tensors) / devices, _LEAST * need):.4g}"),
            "bandwidth_bytes_per_s": gigabytes_per_s * 1e9,
            "micro_batches": micro_batches,
        }
    )


_INPUT = 16e6
"""Bytes of a block's input, for a sample."""
_LEAST = 0.02
"""Of what all layers need; less would hold no layer."""


def _edges(rng: np.random.Generator, layers: int, shape: str, width: int) -> list[tuple[int, int]]:
    if shape == "chain":
        return [(place, place + 1) for place in range(layers + 1)]
    if shape == "branches":
        return _side_by_side(0, layers, width)
    if shape == "cells":
        starts = [*range(0, layers, _DEPTH * width + 1), layers + 1]
        return sorted(
            pair for low, high in itertools.pairwise(starts) for pair in _side_by_side(low, high - low - 1, width)
        )
    if shape == "layered":
        return _ranks(rng, layers, width)
    found = set()
    for place in range(1, layers + 1):
        near = range(max(0, place - 4), place)
        found |= {
            (int(u), place) for u in rng.choice(near, size=min(len(near), int(rng.integers(1, 3))), replace=False)
        }
    last = [place for place in range(layers + 1) if all(u != place for u, _ in found)]
    return sorted(found | {(place, layers + 1) for place in last})


_DEPTH = 4
"""Blocks of a chain of a cell."""


def _side_by_side(first: int, count: int, width: int) -> list[tuple[int, int]]:
    """Chains of as many blocks each from one block to what comes behind all of them."""
    own, more = divmod(count, width)
    lines, low = [], first + 1
    for chain in range(width):
        high = low + own + (chain >= width - more)
        lines.append([first, *range(low, high), first + count + 1])
        low = high
    return sorted({pair for line in lines for pair in itertools.pairwise(line)})


def _ranks(rng: np.random.Generator, layers: int, width: int) -> list[tuple[int, int]]:
    """Ranks of blocks; what nobody reads is read by the next rank's first block, or by the head."""
    ranks = [
        [0],
        *(list(range(low, min(low + width, layers + 1))) for low in range(1, layers + 1, width)),
        [layers + 1],
    ]
    found = set()
    for before, rank in itertools.pairwise(ranks):
        for place in rank:
            read = rng.choice(before, size=min(len(before), int(rng.integers(1, 3))), replace=False)
            found |= {(int(each), place) for each in read}
        found |= {(each, rank[0]) for each in before if all(u != each for u, _ in found)}
    return sorted(found)


def _menu(tensor: int, time: float, weights: float, kept: float, reads: list[int], handed: list[int]) -> dict[str, Any]:
    speed = tensor * _EFFICIENCY ** np.log2(tensor)
    sent = _INPUT if tensor > 1 else 0.0
    options = []
    for name, factor, keeps in (("kept", 1.0, kept), ("recomputed", _AGAIN, min(kept, _INPUT))):
        options.append(
            {
                "name": name,
                "time_s": float(f"{time * factor / speed:.4g}"),
                "weight_bytes": float(f"{weights / tensor:.4g}"),
                "kept_bytes": float(f"{keeps / tensor:.4g}"),
                "fixed_bytes": float(f"{_STATE * weights / tensor:.4g}"),
                "gathered": [(layer, sent) for layer in reads] if sent else [],
                "scattered": [(layer, sent) for layer in handed] if sent else [],
            }
        )
    return {"tensor": tensor, "options": options}
