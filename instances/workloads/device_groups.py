"""Devices and links of clusters that papers on deployment measure or draw at random."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.instances.workloads.accelerators import ACCELERATORS, Accelerator
from ddlopt.models.errors import UnknownNameError

_GIBIBYTE = float(1 << 30)
# A definition.
_MEGABYTE_PER_S = 1e6


@dataclass(frozen=True)
class Devices:
    """Device groups and the bandwidths between them, as a deployment instance has them.

    Parameters
    ----------
    groups : tuple of dict
        Fields of :class:`~ddlopt.models.deployment.plan.instance.DeviceGroup`; types are names of ``accelerators``.
    bandwidth_bytes_per_s : (m, m) array
    source : str
    accelerators : dict of str to Accelerator
        By type; those that ddlopt knows if not given.
    latency_s : float, optional
        Of a transfer, if it is known.
    name : str
    """

    groups: tuple[dict[str, Any], ...]
    bandwidth_bytes_per_s: npt.NDArray[np.float64]
    source: str
    accelerators: Mapping[str, Accelerator] = field(default_factory=lambda: ACCELERATORS)
    latency_s: float | None = None
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.source

    @property
    def types(self) -> tuple[str, ...]:
        """Device types, each once."""
        return tuple(dict.fromkeys(group["type"] for group in self.groups))


def _group(kind: str, count: int, memory_gib: float, megabytes_per_s: float) -> dict[str, Any]:
    assert kind in ACCELERATORS
    return {
        "type": kind,
        "count": count,
        "memory_bytes": memory_gib * _GIBIBYTE,
        "bandwidth_bytes_per_s": megabytes_per_s * _MEGABYTE_PER_S,
    }


def _between(groups: tuple[dict[str, Any], ...], megabytes_per_s: float) -> npt.NDArray[np.float64]:
    matrix = np.full((len(groups), len(groups)), megabytes_per_s * _MEGABYTE_PER_S)
    np.fill_diagonal(matrix, 0)
    return matrix


def tag_testbed() -> Devices:
    """TAG's test-bed as its released code describes it: 4 V100, 8 GTX 1080 Ti and 4 P100 on 22.5 Gbit/s."""
    groups = (_group("v100", 4, 30, 8000), _group("1080ti", 8, 9, 3000), _group("p100", 4, 10, 3000))
    return Devices(groups, _between(groups, 2810), "devices of TAG's test-bed")


def two_machines() -> Devices:
    """Two machines with one V100 each, on which TAG tries sufficient factors."""
    groups = (_group("v100", 1, 14, 8000), _group("v100", 1, 14, 8000))
    return Devices(groups, _between(groups, 2810), "two machines with a V100 each")


def one_type(count: int = 4) -> Devices:
    """Machines of 4 V100 each."""
    groups = tuple(_group("v100", 4, 14, 20000) for _ in range(count))
    return Devices(groups, _between(groups, 2810), f"{count} machines of 4 V100")


def random_devices(rng: np.random.Generator, most_groups: int = 4) -> Devices:
    """Devices drawn as TAG's released code draws them: up to 4 groups, until there are 16 devices.

    The type is P100 (10 GiB), GTX 1080 Ti (9) or V100 (14), 2 to 8 devices a group, PCIe or NVLink within one, groups
    in the same rack or not; after two groups a coin decides whether to stop.
    """
    memory = {"p100": 10, "1080ti": 9, "v100": 14}
    groups: list[dict[str, Any]] = []
    while len(groups) < most_groups and sum(group["count"] for group in groups) < 16:
        if len(groups) >= 2 and rng.random() < 0.5:
            break
        kind = str(rng.choice(sorted(memory)))
        groups.append(_group(kind, int(rng.choice([2, 3, 4, 6, 8])), memory[kind], float(rng.choice([8000, 20000]))))
    size = len(groups)
    same_rack = np.triu(rng.random((size, size)) < 0.5, 1)
    matrix = np.where(same_rack | same_rack.T, 5000.0, 2810.0) * _MEGABYTE_PER_S
    np.fill_diagonal(matrix, 0)
    return Devices(tuple(groups), matrix, "devices at random, as TAG's released code draws them")


NAMES = ("testbed", "two-machines", "one-type", "random")
"""What :func:`devices` knows."""


def devices(name: str, rng: np.random.Generator) -> Devices:
    """Devices by name.

    Raises
    ------
    UnknownNameError
        If there are none of that name.
    """
    match name:
        case "testbed":
            return tag_testbed()
        case "two-machines":
            return two_machines()
        case "one-type":
            return one_type()
        case "random":
            return random_devices(rng)
    raise UnknownNameError(f"there are no devices '{name}'; there are: {', '.join(NAMES)}")
