"""Profiles of networks as PipeDream's profiler writes them (``graph.txt``).

A line for each layer, ``node7 -- Conv2d(…) -- forward_compute_time=1.2, backward_compute_time=2.3,
activation_size=4096.000, parameter_size=512.000`` (milliseconds and bytes; several activations stand in brackets,
divided by semicolons), and one for each edge, ``node7 -- node8`` after a tab. What PipeDream's optimizer writes has the
stage that it chose behind each layer, `` -- stage_id=3``, which is passed over. See msr-fiddle/pipedream (MIT).
"""

import math
import re
from pathlib import Path
from typing import Any

from ddlopt.instances.options import at_least, checked, one_of, positive
from ddlopt.instances.readers.text_files import text_of
from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.models.errors import InstanceError

_FIELDS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
_EDGE = re.compile(r"(\S+) -- (\S+)")
_STAGE = re.compile(r"\s+--\s+stage_id=\d+\s*$")


@checked
def read_pipedream(
    path: str | Path,
    *,
    accelerators: int = 4,
    processors: int = 0,
    slowdown: float = 10.0,
    memory_bytes: float = 16e9,
    bandwidth_bytes_per_s: float = 12e9,
    training: bool = True,
    goal: str = "throughput",
    contiguous: bool = False,
    name: str | None = None,
) -> PartitionInstance:
    """A profile as a graph to be partitioned.

    A layer needs memory for its parameters and its activations. In training it has a twin in the backward pass, on the
    same device, which needs memory for the gradients of the parameters, and sends as much back as the layer fetches.

    Parameters
    ----------
    path : str or Path
    accelerators, processors : int
        Devices that there are of each.
    slowdown : float
        Times on a processor, relative to those of the profile.
    memory_bytes : float
        Of each accelerator.
    bandwidth_bytes_per_s : float
        Between an accelerator and main memory.
    training : bool
        Whether backward passes are there too.
    goal : {"throughput", "latency"}
        Latency is that of inference.
    contiguous : bool
        Whether a device has a contiguous part of the network.
    name : str, optional
        None: that of the file's folder.

    Raises
    ------
    InstanceError
        If the file cannot be read or is no such profile.
    OptionError
        If an option is out of range.
    """
    at_least("accelerators", accelerators, 0)
    at_least("processors", processors, 0)
    one_of("goal", goal, ("throughput", "latency"))
    for option, value in (
        ("slowdown", slowdown),
        ("memory_bytes", memory_bytes),
        ("bandwidth_bytes_per_s", bandwidth_bytes_per_s),
    ):
        positive(option, value)
    path = Path(path)
    layers, edges = _parsed(path)
    places = {layer: place for place, layer in enumerate(layers)}
    count, both = len(layers), training and goal == "throughput"
    pairs = [(places[maker], places[user]) for maker, user in edges]
    fetched = [0.0] * count
    for maker, user in pairs:
        fetched[user] += list(layers.values())[maker]["activation_size"]

    def node(layer: str, place: int, backward: bool) -> dict[str, Any]:
        figures = layers[layer]
        time_s = 1e-3 * figures["backward_compute_time" if backward else "forward_compute_time"]
        moved = fetched[place] if backward else figures["activation_size"]
        return {
            "name": f"{layer}.backward" if backward else layer,
            "accelerator_s": time_s,
            "processor_s": slowdown * time_s,
            "transfer_s": moved / bandwidth_bytes_per_s,
            "memory_bytes": figures["parameter_size"] + (0.0 if backward else figures["activation_size"]),
            "backward": backward,
            "colour": place if both else None,
        }

    nodes = [node(layer, place, False) for layer, place in places.items()]
    if both:
        nodes += [node(layer, place, True) for layer, place in places.items()]
        pairs += [(count + user, count + maker) for maker, user in pairs] + [(v, count + v) for v in range(count)]
    kind = "training" if both else "inference"
    return PartitionInstance.from_data(
        {
            "name": name or f"{path.resolve().parent.name}-{kind}-k{accelerators}",
            "source": f"{path.name}, a profile of PipeDream; {bandwidth_bytes_per_s:g} bytes/s, "
            f"processors {slowdown:g} times as slow",
            "nodes": nodes,
            "edges": pairs,
            "accelerators": accelerators,
            "processors": processors,
            "memory_bytes": memory_bytes,
            "goal": goal,
            "contiguous": contiguous,
        },
        str(path),
    )


def _parsed(path: Path) -> tuple[dict[str, dict[str, float]], list[tuple[str, str]]]:
    """Figures of layers by name, and edges."""
    lines = text_of(path).splitlines()
    layers: dict[str, dict[str, float]] = {}
    edges = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        if line.startswith("\t"):
            found = _EDGE.fullmatch(line.strip())
            if found is None:
                raise InstanceError(f"{where}: expected 'node -- node', got {line.strip()[:60]!r}")
            edges.append((found[1], found[2]))
            continue
        parts = _STAGE.sub("", line).split(" -- ")
        if len(parts) < 3:
            raise InstanceError(f"{where}: expected 'node -- layer -- figures', got {line[:60]!r}")
        if parts[0] in layers:
            raise InstanceError(f"{where}: {parts[0]} is there twice")
        layers[parts[0]] = _figures(where, parts[-1])
    for maker, user in edges:
        for end in (maker, user):
            if end not in layers:
                raise InstanceError(f"{path}: an edge names {end}, which has no line of its own; is the file whole?")
    if not layers:
        raise InstanceError(f"{path}: has no layers; expected a profile of PipeDream")
    return layers, edges


def _figures(where: str, text: str) -> dict[str, float]:
    figures = {}
    for field in _FIELDS:
        found = re.search(rf"{field}=(\[[^\]]*\]|[^,\s]+)", text)
        if found is None:
            raise InstanceError(f"{where}: has no {field}; is the line whole?")
        try:
            value = sum(float(part) for part in found[1].strip("[]").split(";"))
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise InstanceError(f"{where}: {field} is {found[1]!r}; expected a number that is not negative")
        figures[field] = value
    return figures
