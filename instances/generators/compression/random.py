"""Gradients and their options drawn at random, at any size, with costs such as compressors have."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.instances.options import at_least, one_of, part, positive
from ddlopt.instances.workloads.compression.compressors import Compression
from ddlopt.instances.workloads.compression.costs import INTRA_BYTES_PER_S, LATENCY_S, menu
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.compression import Cluster, CompressionInstance, Option
from ddlopt.models.errors import OptionError

_WORDS = (
    *("fp16", *(f"powersgd:{rank}" for rank in (1, 2, 4, 8))),
    *(f"{each}{scope}" for scope in ("/inter", "/all") for each in ("dgc:0.01", "dgc:0.001", "sign", "qsgd:127")),
    *(f"{each}{scope}" for scope in ("/inter", "/all") for each in ("random_k:0.01", "top_k:0.1", "onebit", "qsgd:7")),
)
_RANKS = 4
"""Of powersgd, which makes no sense for every shape."""
MOST_OPTIONS = len(_WORDS) + 1
# Widths of layers that networks have.
_SIDES = (16, 32, 64, 128, 256, 512, 768, 1024, 2048, 3072, 4096)
# Sides of convolutions that networks have.
_KERNELS = (1, 3, 5, 7)
# About the share of biases and norms among the gradients of a network: an assumption.
_VECTORS = 0.4
_CONVOLUTIONS = 0.3
"""Parts of the gradients; the others are matrices."""


def random_timeline(
    rng: np.random.Generator,
    gradients: int = 60,
    options: int = 8,
    nodes: int = 8,
    gpus_per_node: int = 1,
    intra: str = "nvlink",
    network_gigabit_per_s: float = 25.0,
    spread: float = 0.3,
    backward_part: float = 0.5,
    error_budget_part: float | None = None,
    goal: str = "time",
    time_budget_part: float = 0.5,
    fusion: bool = False,
    largest_bucket_bytes: float | None = None,
) -> CompressionInstance:
    """A backward pass of gradients of any shapes: vectors, convolutions and matrices; see the module on costs.

    Parameters
    ----------
    rng : numpy.random.Generator
    gradients : int
    options : int
        Of a gradient, with no compression: as many as there are of those drawn that make sense for its shape.
    nodes, gpus_per_node : int
    intra : {"nvlink", "pcie"}
    network_gigabit_per_s : float
        Of a node.
    spread : float
        Standard deviation of the logarithm of factors by which an option's times and a gradient's energy differ from
        the formulas of :mod:`ddlopt.instances.workloads.compression.costs` and from its elements.
    backward_part : float
        Length of the backward pass, as a part of what the wire needs for everything without compression.
    error_budget_part : float, optional
        0: the least error that there is; 1: the largest.
    goal : {"time", "error"}
    time_budget_part : float
        With goal ``error``. 0: the time that the options with the least encoding and occupation take; 1: without
        compression.
    fusion : bool
    largest_bucket_bytes : float, optional

    Raises
    ------
    OptionError
        If an option is out of its range.
    """
    one_of("intra", intra, tuple(INTRA_BYTES_PER_S))
    one_of("goal", goal, ("time", "error"))
    for option, given in (("gradients", gradients), ("options", options), ("gpus_per_node", gpus_per_node)):
        at_least(option, given, 1)
    at_least("nodes", nodes, 2)
    if options > MOST_OPTIONS:
        raise OptionError(f"options is {options}; there are {MOST_OPTIONS}, no compression included")
    positive("network_gigabit_per_s", network_gigabit_per_s)
    at_least("spread", spread, 0)
    at_least("backward_part", backward_part, 0)
    part("time_budget_part", time_budget_part)
    cluster = Cluster(
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        intra="pcie" if intra == "pcie" else "nvlink",
        intra_bandwidth_bytes_per_s=INTRA_BYTES_PER_S[intra],
        inter_bandwidth_bytes_per_s=network_gigabit_per_s * GIGABIT_PER_S,
        latency_s=LATENCY_S,
    )
    shapes = [_shape(rng) for _ in range(gradients)]
    menus = _menus(rng, shapes, cluster, options, spread)
    backward_s = backward_part * math.fsum(each[0].occupation_s for each in menus)
    ready = np.sort(rng.random(gradients)) * backward_s
    data: dict[str, Any] = {
        "name": f"random-g{gradients}-o{options}",
        "source": "Shapes, energies and ready times drawn; costs derived, with factors drawn",
        "gradients": [
            {"name": f"g{place}", "shape": shape, "ready_s": _short(when), "menu": place}
            for place, (shape, when) in enumerate(zip(shapes, ready.tolist(), strict=True))
        ],
        "menus": menus,
        "cluster": cluster,
        "fusion": fusion,
        "largest_bucket_bytes": largest_bucket_bytes,
    }
    if error_budget_part is not None:
        part("error_budget_part", error_budget_part)
        least, most = (math.fsum(pick(o.error for o in each) for each in menus) for pick in (min, max))
        data["error_budget"] = least + error_budget_part * (most - least)
    if goal == "error":
        data |= {"goal": goal, "time_budget_s": _time_budget(ready, menus, time_budget_part)}
    return CompressionInstance.from_data(data)


def _shape(rng: np.random.Generator) -> tuple[int, ...]:
    rows, columns = (int(each) for each in rng.choice(_SIDES, 2))
    kernel, kind = int(rng.choice(_KERNELS)), rng.random()
    if kind < _VECTORS:
        return (rows,)
    if kind < _VECTORS + _CONVOLUTIONS:
        return (min(rows, 512), min(columns, 512), kernel, kernel)
    return (rows, columns)


def _menus(
    rng: np.random.Generator, shapes: list[tuple[int, ...]], cluster: Cluster, options: int, spread: float
) -> list[tuple[Option, ...]]:
    """The same compressors for all, in the same order, less those that make no sense for a shape."""
    known = [words for words in _WORDS if cluster.gpus_per_node > 1 or not words.endswith("/inter")]
    drawn = [Compression.from_words(str(words)) for words in rng.permutation(known)[: options - 1 + _RANKS]]
    energies = np.array([math.prod(shape) for shape in shapes]) * np.exp(spread * rng.normal(size=len(shapes)))
    energies /= energies.sum()
    menus = []
    for shape, energy in zip(shapes, energies.tolist(), strict=True):
        offered = menu(shape, cluster, drawn, energy=energy)[:options]
        factors = np.exp(spread * rng.normal(size=(len(offered), 3)))
        factors[0] = 1.0
        menus.append(tuple(_scaled(each, *row) for each, row in zip(offered, factors.tolist(), strict=True)))
    return menus


def _scaled(option: Option, encode: float, wire: float, decode: float) -> Option:
    times = {
        "encode_s": _short(option.encode_s * encode),
        "wire_s": _short(option.wire_s * wire),
        "decode_s": _short(option.decode_s * decode),
    }
    return option.model_copy(update=times)


def _time_budget(ready: npt.NDArray[np.float64], menus: list[tuple[Option, ...]], fast_part: float) -> float:
    plain = [each[0] for each in menus]
    quick = [min(each, key=lambda option: option.encode_s + option.occupation_s) for each in menus]
    least, most = sorted(_time(ready, each) for each in (quick, plain))
    return least + fast_part * (most - least)


def _time(ready: npt.NDArray[np.float64], options: list[Option]) -> float:
    free, delay = 0.0, 0.0
    for when, option in zip(ready.tolist(), options, strict=True):
        delay += option.encode_s
        free = max(free, _short(when) + delay) + option.occupation_s
    return free


def _short(figure: float) -> float:
    """Six significant digits."""
    return float(f"{figure:.6g}")
