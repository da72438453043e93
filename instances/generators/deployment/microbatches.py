"""Pipelines whose micro-batches are to be ordered: stages identical or not, chunks around, as a V, or both ways."""

import itertools
from typing import Any

import numpy as np

from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.errors import OptionError

_SHAPES = ("around", "v", "dual")


def pipeline(
    rng: np.random.Generator,
    *,
    stages: int = 4,
    micro_batches: int = 8,
    memory: float | None = None,
    objective: str = "makespan",
    chunks: int = 1,
    shape: str = "around",
    forward_s: float = 1.0,
    backward_s: float = 1.0,
    weights_s: float = 1.0,
    fused: bool = False,
    freed: float = 0.5,
    transfer_s: float = 0.0,
    first: float = 1.0,
    last: float = 1.0,
    uneven: float = 0.0,
    optimizer_s: float | None = None,
) -> MicroBatchInstance:
    """A pipeline of devices with chunks that take a time each; by default all take 1 s and hold a byte.

    Parameters
    ----------
    stages : int
        Devices.
    micro_batches : int
        In all; with ``dual`` half of them go each way.
    memory : float, optional
        Of a device, in micro-batches of a chunk. None: as many as there are stages, for each chunk of a device.
    objective : {"makespan", "span", "barrier"}
        The last end; the longest time from a device's first to its last work; or the last end with the optimizer
        after a barrier.
    chunks : int
        Of a device.
    shape : {"around", "v", "dual"}
        Chunks go around the devices again and again; or turn at both ends (a V for two of them); or there are two
        chains in opposite directions, with one chunk of each on every device.
    forward_s, backward_s, weights_s : float
        F, B and W of a chunk.
    fused : bool
        W within B.
    freed : float
        The part of the memory that B gives back; the rest is W's.
    transfer_s : float
        Between devices.
    first, last : float
        Times of the first and of the last chunk of a chain are that many times as long: embedding and head.
    uneven : float
        Times are drawn between 1 - uneven and 1 + uneven times what they are, in hundredths.
    optimizer_s : float, optional
        Of every device. None: as long as one F, with ``barrier``.
    """
    at_least("stages", stages, 1)
    at_least("micro_batches", micro_batches, 1)
    at_least("chunks", chunks, 1)
    one_of("objective", objective, ("makespan", "span", "barrier"))
    one_of("shape", shape, _SHAPES)
    for name, seconds in (("forward_s", forward_s), ("backward_s", backward_s), ("weights_s", weights_s)):
        positive(name, seconds)
    for name, factor in (("first", first), ("last", last)):
        positive(name, factor)
    for name, part, most in (("freed", freed, 1.0), ("uneven", uneven, 0.99)):
        if not 0 <= part <= most:
            raise OptionError(f"{name} is {part:g}; it must be 0 to {most:g}")
    if transfer_s < 0 or (optimizer_s or 0) < 0:
        raise OptionError(
            f"transfer_s and optimizer_s are {transfer_s:g} and {optimizer_s or 0:g}; they are at least 0"
        )
    chains = _chains(stages, chunks, shape)
    if shape == "dual" and micro_batches % 2:
        raise OptionError(f"micro_batches is {micro_batches}; with shape dual half of them go each way")
    each = len([device for chain in chains for device in chain if device == 0])
    least = 1 if shape == "dual" else each
    room = float(each * stages) if memory is None else memory
    if room < least:
        what = "one micro-batch" if least == 1 else f"one micro-batch on each of the {least} chunks of a device"
        raise OptionError(f"memory is {room:g}, less than {what}; it must be at least {least}")
    parts: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    for chain in chains:
        begin = len(parts)
        for place, device in enumerate(chain):
            factor = (first if place == 0 else 1.0) * (last if place == len(chain) - 1 else 1.0)
            drawn = [round(float(rng.uniform(1 - uneven, 1 + uneven)), 2) if uneven else 1.0 for _ in range(3)]
            f, b, w = (_seconds(t * factor * d) for t, d in zip((forward_s, backward_s, weights_s), drawn, strict=True))
            parts.append(
                {
                    "name": f"chunk.{len(parts)}",
                    "device": device,
                    "forward_s": f,
                    "backward_s": _seconds(b + w) if fused else b,
                    "weights_s": None if fused else w,
                    "held_bytes": 1.0,
                    "freed_bytes": freed,
                }
            )
        for maker, user in itertools.pairwise(range(begin, len(parts))):
            sent = transfer_s if parts[maker]["device"] != parts[user]["device"] else 0.0
            edges.append({"maker": maker, "user": user, "forward_s": sent, "backward_s": sent})
    given: dict[str, Any] = {}
    if objective == "barrier":
        given["optimizer_s"] = (forward_s if optimizer_s is None else optimizer_s,) * stages
    way = "" if chunks == 1 and shape == "around" else f"-{shape}{chunks if shape != 'dual' else ''}"
    return MicroBatchInstance.from_data(
        {
            "name": f"microbatches{way}-p{stages}-n{micro_batches}-{objective}",
            "source": "times of a chunk and memory as given",
            "chunks": parts,
            "edges": edges,
            "memory_bytes": (room,) * stages,
            "micro_batches": micro_batches // 2 if shape == "dual" else micro_batches,
            "objective": objective,
            **given,
        }
    )


def _chains(stages: int, chunks: int, shape: str) -> list[list[int]]:
    """Devices of every chain's chunks."""
    line = list(range(stages))
    if shape == "dual":
        if chunks != 1:
            raise OptionError(f"chunks is {chunks}; with shape dual a device has one of each chain, and chunks is 1")
        return [line, line[::-1]]
    turns = shape == "v"
    return [[device for turn in range(chunks) for device in (line[::-1] if turns and turn % 2 else line)]]


def _seconds(value: float) -> float:
    """Without the digits that products of decimals have behind them."""
    return float(f"{value:.9g}")
