"""Training jobs as the script of ``ddlopt profile-script`` measured them, to be cut into stages."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from ddlopt.instances.options import at_least, checked, positive
from ddlopt.instances.readers.models.profile import data_of, profile_from
from ddlopt.instances.workloads.networks.layers import BYTES_PER_NUMBER
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.models.errors import InstanceError, OptionError

# A definition.
_GIGA = 1e9
_STATE = 16
"""Bytes a parameter: weight, gradient and two moments of Adam in 32 bits."""
_MICRO_BATCHES = 64
"""Of a step, an assumption."""
_TOLD = 2
"""The objective counts four times what is told of weights, and an all-reduce sends its bytes twice."""


@checked
def read_profile_pipeline(
    path: str | Path,
    *,
    global_batch: int | None = None,
    servers: int = 2,
    gpus_per_server: int = 8,
    memory_gigabytes: float = 80.0,
    network_gigabit_per_s: float = 400.0,
    depth: int | None = None,
    name: str | None = None,
) -> PipelineInstance:
    """Stages and replicas of a measured job.

    A layer is a module, or what lies next to each other in one; modules follow each other in the order in which they
    ran, and each hands on what it gives. What ran between modules is spread over them by their times. A layer keeps
    what its modules give, or only what it hands on, and then runs forward once more. State is 16 bytes a parameter.

    Parameters
    ----------
    path : str or Path
        As ``profile_job.py`` writes it; the batch that it measured is a micro-batch.
    global_batch : int
        Samples of a step, a multiple of those measured; by default 64 times as many.
    servers, gpus_per_server : int
    memory_gigabytes : float
        Of an accelerator, in 10⁹ bytes.
    network_gigabit_per_s : float
        Of a server; every accelerator has its part.
    depth : int, optional
        Modules whose names have this number of words in common are a layer: 2 makes one of ``block.0.first`` and
        ``block.0.then``. By default each by itself.
    name : str, optional

    Raises
    ------
    InstanceError
        If the file is no profile, or does not say what modules give.
    OptionError
        If an option is out of range.
    """
    at_least("servers", servers, 1)
    at_least("gpus_per_server", gpus_per_server, 1)
    positive("memory_gigabytes", memory_gigabytes)
    positive("network_gigabit_per_s", network_gigabit_per_s)
    if depth is not None:
        at_least("depth", depth, 1)
    data = data_of(Path(path))
    profile = profile_from(Path(path), data)
    if global_batch is None:
        global_batch = _MICRO_BATCHES * profile.samples
    at_least("global_batch", global_batch, 1)
    if global_batch % profile.samples:
        raise OptionError(
            f"global_batch is {global_batch}, no multiple of the {profile.samples} samples that were measured, which "
            "are a micro-batch"
        )
    layers = _layers(Path(path), data, profile.forward_s, profile.backward_s, depth)
    devices = servers * gpus_per_server
    return PipelineInstance.from_data(
        {
            "name": name or f"{profile.name}-pipeline-k{devices}",
            "source": f"{profile.told}; {global_batch} samples a step in micro-batches of {profile.samples}",
            "layers": [{"name": each.name, "menus": [{"tensor": 1, "options": each.options()}]} for each in layers],
            "edges": [
                {"maker": place, "user": place + 1, "size_bytes": each.handed_bytes}
                for place, each in enumerate(layers[:-1])
            ],
            "devices": devices,
            "memory_bytes": memory_gigabytes * _GIGA,
            "bandwidth_bytes_per_s": network_gigabit_per_s * GIGABIT_PER_S / gpus_per_server,
            "micro_batches": global_batch // profile.samples,
        },
        str(path),
    )


@dataclass(frozen=True)
class _Layer:
    """Modules one behind another.

    Parameters
    ----------
    name : str
    forward_s, backward_s : float
    given_bytes : tuple of float
        By each of its modules.
    parameters : int
    """

    name: str
    forward_s: float
    backward_s: float
    given_bytes: tuple[float, ...]
    parameters: int

    @property
    def handed_bytes(self) -> float:
        """By the last one."""
        return self.given_bytes[-1]

    def options(self) -> list[dict[str, Any]]:
        """Kept, or made again."""
        state, given = _STATE * self.parameters, sum(self.given_bytes)
        kept: dict[str, Any] = {
            "name": "kept",
            "time_s": self.forward_s + self.backward_s,
            "weight_bytes": BYTES_PER_NUMBER * self.parameters / _TOLD,
            "kept_bytes": given,
            "fixed_bytes": state,
        }
        if len(self.given_bytes) == 1:
            return [kept]
        inside = given - self.handed_bytes
        again = {"name": "recomputed", "time_s": kept["time_s"] + self.forward_s}
        return [kept, kept | again | {"kept_bytes": self.handed_bytes, "fixed_bytes": state + inside}]


def _layers(
    path: Path, data: Mapping[str, Any], forward_s: float, backward_s: float, depth: int | None
) -> list[_Layer]:
    modules: list[Mapping[str, Any]] = data["layers"]
    if not modules:
        raise InstanceError(f"{path}: layers is empty: no module was measured by itself, so there are no stages")
    for place, module in enumerate(modules):
        given = module.get("output_bytes")
        if not isinstance(given, int | float) or isinstance(given, bool) or not 0 <= given < math.inf:
            told = "is missing; measure with the script as it is now (ddlopt profile-script)"
            raise InstanceError(
                f"{path}: layers[{place}].output_bytes ('{module['name']}') "
                + (told if given is None else f"is {given!r}; expected bytes, at least 0")
            )
    names = {module["name"] for module in modules}
    parameters: dict[str, int] = defaultdict(int)
    for gradient in data["gradients"]:
        # What no module ran with by itself is of the module in whose name it is, or of the first.
        owner = gradient.get("layer")
        parameters[owner if owner in names else _nearest(gradient["name"], modules)] += math.prod(gradient["shape"])
    factors = [
        whole / total if (total := sum(module[field] for module in modules)) else 1.0
        for field, whole in (("forward_s", forward_s), ("backward_s", backward_s))
    ]
    groups = groupby(modules, key=lambda module: _part(module["name"], depth))
    found: list[_Layer] = []
    for part, each in groups:
        own = list(each)
        count = sum(layer.name.partition("#")[0] == part for layer in found)
        found.append(
            _Layer(
                f"{part}#{count + 1}" if count else part,
                factors[0] * sum(module["forward_s"] for module in own),
                factors[1] * sum(module["backward_s"] for module in own),
                tuple(float(module["output_bytes"]) for module in own),
                sum(parameters[module["name"]] for module in own),
            )
        )
    return found


def _part(name: str, depth: int | None) -> str:
    return name if depth is None else ".".join(name.split(".")[:depth])


def _nearest(parameter: str, modules: list[Mapping[str, Any]]) -> str:
    """The module whose name has most words in common with a parameter's, the first of these."""
    words = parameter.split(".")

    def common(module: Mapping[str, Any]) -> int:
        pairs = zip(words, str(module["name"]).split("."), strict=False)
        return next((place for place, (one, other) in enumerate(pairs) if one != other), len(words))

    return str(max(modules, key=common)["name"])
