"""Profiles of PKU-DAIR/Hetu-Galvatron as training steps.

Three files in JSON, as its profilers write them. ``computation_profiling_…``: ``layertype_0_bsz2_seq2048`` is what the
forward pass of a block takes for a sample, in milliseconds, with a number of samples on a device; ``layertype_other_…``
all that is no block. ``memory_profiling_…``: by type of blocks the weights in 32 bits (``parameter_size``, MiB) and
what a sample keeps by tensor degree and ``checkpoint``-ed, and the same of the ends. ``allreduce_bandwidth_…``: GB/s of
a ring among devices next to each other (``allreduce_size_8_consec_1``), or far apart. How often something is sent and
how long a backward pass is follow its cost model.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ddlopt.instances.options import at_least, checked, positive
from ddlopt.instances.readers.text_files import object_of
from ddlopt.models.deployment.step.instance import FULL, StepInstance
from ddlopt.models.errors import InstanceError, OptionError

# Definitions.
_MEBIBYTE, _GIBIBYTE, _GIGA, _MS = 2**20, float(2**30), 1e9, 1e-3
_TIME = re.compile(r"layertype_(\d+|other)_bsz(\d+)_seq(\d+)")
_RING = re.compile(r"allreduce_size_(\d+)_consec_([01])")
_SERVERS = re.compile(r"(\d+)nodes_(\d+)gpus_per_node")
_BACKWARD = 2
"""Forward passes that a backward pass is, ``bct_fct_coe`` there."""
_EXCHANGES, _AGAIN = 6, 9
"""Gathers and scatters of a block that computing does not hide, and those of a block that is made again."""
_STATE = {"bf16": (2, 2, 12), "fp16": (2, 2, 12), "fp32": (4, 4, 8)}
"""Bytes of weights, gradients and the optimizer: 16 of a parameter in all."""
_PROFILED = 4
"""Bytes of a weight in ``parameter_size``."""


@checked
def read_galvatron(
    path: str | Path,
    *,
    memory: str | Path,
    bandwidth: str | Path,
    layers: list[int] | None = None,
    hidden: int | None = None,
    memory_gib: float | None = None,
    global_batch: int = 16,
    devices: int | None = None,
    gpus_per_server: int | None = None,
    sequence: int | None = None,
    precision: str | None = None,
    overlap: float = 1.0,
    interleaving: int = 1,
    sharding: list[int] | None = None,
    slower_inside: bool = False,
    name: str | None = None,
) -> StepInstance:
    """Plans for a measured network: times, memory and bandwidths are those of the profiles, latency is none.

    A micro-batch on t devices takes what was measured for the t-th part of its samples; what was not measured is on the
    line through all that was, as in its cost model. The head and the embedding take half of what is no block each.

    Parameters
    ----------
    path : str or Path
        ``computation_profiling_….json``.
    memory, bandwidth : str or Path
        ``memory_profiling_….json`` and ``allreduce_bandwidth_….json``.
    layers : list of int
        Blocks of each type; needed, as no profile says how many.
    hidden : int
        Of the network, needed likewise; what blocks send each other is as wide.
    memory_gib : float
        Of a device, in 2³⁰ bytes; needed.
    global_batch : int
        Samples of a step.
    devices : int, optional
        By default as many as the largest ring that was measured.
    gpus_per_server : int, optional
        By default what the name of ``bandwidth`` says (``2nodes_8gpus_per_node``), or all devices.
    sequence : int, optional
        Tokens of a sample; needed where several were measured.
    precision : {"fp32", "bf16", "fp16"}, optional
        By default what the name of the file says, or bf16.
    overlap : float
        Of computation, for messages of copies.
    interleaving : int
        The most chunks of a device.
    sharding : list of int, optional
        Levels; by default 0 to 3.
    slower_inside : bool
        That servers are slower inside than outside is meant so.
    name : str, optional

    Raises
    ------
    InstanceError
        If a file is no such profile, or lacks what was asked for.
    OptionError
        If an option is out of range.
    """
    at_least("global_batch", global_batch, 1)
    at_least("interleaving", interleaving, 1)
    told = precision or next((each for each in _STATE if each in Path(path).stem.split("_")), "bf16")
    if told not in _STATE:
        raise OptionError(f"precision is '{told}'; use one of: {', '.join(_STATE)}")
    times = _Times.of(Path(path), sequence)
    for option, value in (("layers", layers), ("hidden", hidden), ("memory_gib", memory_gib)):
        if value is None:
            raise OptionError(f"no profile of Galvatron says what {option} is; set it")
    assert layers is not None
    assert hidden is not None
    assert memory_gib is not None
    at_least("hidden", hidden, 1)
    positive("memory_gib", memory_gib)
    if not layers or min(layers) < 1:
        raise OptionError(f"layers is {layers}; list how many blocks there are of each type, at least 1")
    times.require(Path(path), len(layers))
    held = _Held(Path(memory), times.sequence)
    rings = _rings(Path(bandwidth))
    largest = max(size for size, _ in rings)
    total = largest if devices is None else devices
    at_least("devices", total, 1)
    found = _SERVERS.search(Path(bandwidth).name)
    server = gpus_per_server or min(int(found[2]) if found else total, total)
    at_least("gpus_per_server", server, 1)
    making = _Making(times, held, _STATE[told], hidden, server, global_batch)
    weight, gradient, optimizer = _STATE[told]
    return StepInstance.from_data(
        {
            "name": name or f"{Path(path).stem.removeprefix('computation_profiling_').replace('_', '-')}-k{total}",
            "source": f"profiles of Galvatron, {Path(path).name}, {Path(memory).name} and {Path(bandwidth).name}; "
            f"{global_batch} samples of {times.sequence} tokens a step, {told}",
            "embedding": making.end("first"),
            "blocks": [making.block(place, count) for place, count in enumerate(layers)],
            "head": making.end("last"),
            "devices": total,
            "memory_bytes": memory_gib * _GIBIBYTE,
            "tiers": _tiers(Path(bandwidth), rings, server, total),
            "global_batch": global_batch,
            "handed_bytes": float(making.passed_bytes),
            "weight_bytes": weight,
            "gradient_bytes": gradient,
            "optimizer_bytes": optimizer,
            "overlap": overlap,
            "interleaving": interleaving,
            "slower_inside": slower_inside,
            **({} if sharding is None else {"sharding": sharding}),
        },
        str(path),
    )


@dataclass(frozen=True)
class _Times:
    """Seconds of a forward pass by type and samples of a device, for one length of samples."""

    sequence: int
    measured: Mapping[str, Mapping[int, float]]

    @classmethod
    def of(cls, path: Path, sequence: int | None) -> "_Times":
        found: dict[int, dict[str, dict[int, float]]] = {}
        for key, value in object_of(path, "computation_profiling_….json of Galvatron").items():
            match = _TIME.fullmatch(key)
            if match:
                at = found.setdefault(int(match[3]), {}).setdefault(match[1], {})
                at[int(match[2])] = int(match[2]) * _MS * _figure(path, key, value)
        if not found:
            raise InstanceError(f"{path}: there is no layertype_0_bsz1_seq2048 or the like; it is no profile of times")
        if sequence is None and len(found) > 1:
            raise OptionError(f"{path} has samples of {', '.join(map(str, sorted(found)))} tokens; set sequence to one")
        length = sequence or next(iter(found))
        if length not in found:
            raise OptionError(f"sequence is {length}, and {path} has {', '.join(map(str, sorted(found)))} tokens")
        return cls(length, found[length])

    def require(self, path: Path, types: int) -> None:
        """Raise :class:`InstanceError` if this number of types of blocks, or the ends, were not measured."""
        for kind in (*map(str, range(types)), "other"):
            if kind not in self.measured:
                raise InstanceError(f"{path}: layertype_{kind} was not measured for {self.sequence} tokens")

    def seconds(self, kind: str, samples: float) -> float:
        """Of a forward pass with a number of samples, or a part of one."""
        known = self.measured[kind]
        if samples in known:
            return known[int(samples)]
        sizes, seconds = np.array(sorted(known)), np.array([known[size] for size in sorted(known)])
        slope, start = np.polyfit(sizes, seconds, 1) if len(known) > 1 else (seconds[0] / sizes[0], 0.0)
        least = samples / sizes[0] * seconds[0] / 2
        return float(max(slope * samples + start, least))


class _Held:
    """What the profile of memory says."""

    def __init__(self, path: Path, sequence: int) -> None:
        self.path, self.sequence = path, str(sequence)
        self.data = object_of(path, "memory_profiling_….json of Galvatron")
        self.shared = "layertype_0_sp" in self.data
        """Whether devices that share products share the sequence, too."""

    def of(self, *names: str) -> Mapping[str, Any]:
        """An object under a type, for this length of samples."""
        key = names[0] + ("_sp" if self.shared else "")
        found: Any = self.data
        for name in (key, self.sequence, *names[1:]):
            if not isinstance(found, Mapping) or name not in found:
                raise InstanceError(f"{self.path}: {'.'.join((key, self.sequence, *names[1:]))} is missing")
            found = found[name]
        if not isinstance(found, Mapping):
            raise InstanceError(f"{self.path}: {'.'.join((key, self.sequence, *names[1:]))} is no object")
        return found

    def bytes(self, figures: Mapping[str, Any], key: str) -> float:
        """A figure in MiB."""
        if key not in figures:
            raise InstanceError(f"{self.path}: no figure for '{key}', only for {', '.join(figures)}")
        return _figure(self.path, key, figures[key]) * _MEBIBYTE

    def degrees(self) -> list[int]:
        """Tensor degrees that were measured."""
        kept = self.of("layertype_0", "tp_activation_per_bsz_dict")
        return sorted(int(key) for key in kept if key.isdecimal())


class _Making:
    """Blocks of the instance."""

    def __init__(
        self, times: _Times, held: _Held, state: tuple[int, int, int], hidden: int, server: int, global_batch: int
    ) -> None:
        self.times, self.held, self.state = times, held, state
        self.degrees = [t for t in held.degrees() if t <= server]
        self.batches = [1 << place for place in range(global_batch.bit_length()) if global_batch % (1 << place) == 0]
        self.passed_bytes = times.sequence * hidden * state[0]
        """Of a sample, from block to block."""

    def block(self, place: int, count: int) -> dict[str, Any]:
        kind = f"layertype_{place}"
        kept, size = self.held.of(kind, "tp_activation_per_bsz_dict"), self.held.of(kind)
        parameters = self.held.bytes(size, "parameter_size") / _PROFILED
        ways = []
        for t in self.degrees:
            most = self.held.bytes(kept, str(t))
            least = self.held.bytes(kept, "checkpoint") / (t if self.held.shared else 1)
            for b in self.batches:
                forward = self.times.seconds(str(place), b / t)
                sent = b * self.passed_bytes * (t - 1) / t
                options = [
                    {
                        "name": option,
                        "forward_s": forward,
                        "backward_s": _BACKWARD * forward + again * forward,
                        "kept_bytes": b * (least if again else most),
                        "transient_bytes": b * max(0.0, most - least) if again else 0.0,
                        "tensor_bytes": (_AGAIN if again else _EXCHANGES) * sent,
                    }
                    for option, again in (("none", False), (FULL, True))
                ]
                ways.append(self._way(t, b, parameters / t, options))
        return {"name": f"type {place}", "count": count, "ways": ways}

    def end(self, which: str) -> dict[str, Any]:
        """The embedding, or the head: half of the time of both, a gather where devices share it."""
        kind = f"other_memory_pp_on_{which}"
        states, kept = self.held.of(kind, "model_states"), self.held.of(kind, "activation")
        ways = []
        for t in self.degrees:
            for b in self.batches:
                forward = self.times.seconds("other", b / t) / 2
                option = {
                    "name": "none",
                    "forward_s": forward,
                    "backward_s": _BACKWARD * forward,
                    "kept_bytes": b * self.held.bytes(kept, str(t)),
                    "tensor_bytes": b * self.passed_bytes * (t - 1) / t,
                }
                ways.append(self._way(t, b, self.held.bytes(states, str(t)) / sum(self.state), [option]))
        return {"name": "embedding" if which == "first" else "head", "ways": ways}

    def _way(self, tensor: int, batch: int, parameters: float, options: list[dict[str, Any]]) -> dict[str, Any]:
        shared = self.held.shared and tensor > 1
        return {
            "tensor": tensor,
            "micro_batch": batch,
            "sequence_parallel": shared,
            "parameters": parameters,
            "options": options,
        }


def _rings(path: Path) -> dict[tuple[int, bool], float]:
    """Bytes per second by number of devices, and whether these are next to each other."""
    found = {}
    for key, value in object_of(path, "allreduce_bandwidth_….json of Galvatron").items():
        match = _RING.fullmatch(key)
        if match:
            found[int(match[1]), match[2] == "1"] = _GIGA * _figure(path, key, value)
    if not found:
        raise InstanceError(
            f"{path}: there is no allreduce_size_8_consec_1 or the like; it is no profile of bandwidths"
        )
    return found


def _tiers(path: Path, rings: Mapping[tuple[int, bool], float], server: int, devices: int) -> list[dict[str, Any]]:
    """Inside a server a ring of all its devices; outside each device has its part of what a ring of all has."""

    def ring(size: int) -> float:
        near = [count for count, together in rings if together]
        if not near or max(near) < size:
            raise OptionError(
                f"devices is {devices} in servers of {server}, and {path} has no allreduce_size_{size}_consec_1"
            )
        return rings[min(count for count in near if count >= size), True]

    tiers = []
    if server > 1 or devices == 1:
        inside = ring(server) if server > 1 else max(rings.values())
        tiers.append({"name": "server", "size": server, "bandwidth_bytes_per_s": inside})
    if devices > server:
        outside = ring(devices) / server
        tiers.append({"name": "network", "size": server * -(-devices // server), "bandwidth_bytes_per_s": outside})
    return tiers


def _figure(path: Path, key: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise InstanceError(f"{path}: {key} is {value!r}; expected a number above 0")
    return float(value)
