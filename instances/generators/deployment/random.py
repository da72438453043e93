"""Random layered training steps on random devices: kind ``random``."""

from typing import Any

import numpy as np

from ddlopt.instances.options import at_least
from ddlopt.models.deployment import DeploymentInstance

_SPEEDS = {"fast": 1.0, "slow": 2.0, "slower": 3.5}
# Halvings down to an eighth: times are interpolated between them.
_SHARES = (1.0, 0.5, 0.25, 0.125)


def random_plan(
    rng: np.random.Generator,
    groups: int = 4,
    device_groups: int = 2,
    most_devices: int = 3,
    skips: int = 1,
    communication: float = 1.0,
    memory: float = 2.0,
) -> DeploymentInstance:
    """A chain of layers with connections across, forward and back, one group a layer.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : int
        Layers; each has an operator of the forward and one of the backward pass.
    device_groups : int
    most_devices : int
        In a device group.
    skips : int
        Connections from a layer to one further on.
    communication : float
        Mean time of a tensor between device groups, relative to the mean time of an operator.
    memory : float
        Memory of all devices together, relative to what one copy of the model and its tensors needs.

    Returns
    -------
    DeploymentInstance
    """
    for option, value in (("groups", groups), ("device_groups", device_groups), ("most_devices", most_devices)):
        at_least(option, value, 1)
    at_least("skips", skips, 0)
    at_least("communication", communication, 0)
    at_least("memory", memory, 0.5)
    kinds = list(_SPEEDS)[: max(1, min(len(_SPEEDS), device_groups))]
    types = [kinds[int(rng.integers(len(kinds)))] for _ in range(device_groups)]
    counts = rng.integers(1, most_devices + 1, size=device_groups)
    bandwidth = 1e9
    mean_s = 1e-2
    sizes = rng.exponential(communication * mean_s * bandwidth, size=groups)
    weights = rng.exponential(communication * mean_s * bandwidth, size=groups)
    operators = [_operator(rng, role, layer, weights[layer], mean_s) for role, layer in _order(groups)]
    needed = 4 * weights.sum() + 2 * sizes.sum()
    least = 4 * float(weights.max()) + 2 * float(sizes.max())
    return DeploymentInstance.from_data(
        {
            "name": f"random-g{groups}-m{device_groups}",
            "operators": operators,
            "tensors": _tensors(rng, groups, skips, sizes),
            "device_groups": [
                {
                    "type": kind,
                    "count": int(count),
                    "memory_bytes": _rounded(max(memory * needed / counts.sum(), least)),
                    "bandwidth_bytes_per_s": _rounded(bandwidth * rng.uniform(2, 8)),
                }
                for kind, count in zip(types, counts, strict=True)
            ],
            "bandwidth_bytes_per_s": _bandwidths(rng, device_groups, bandwidth),
            "shares": _SHARES,
            "latency_s": 12e-6,
            "all_reduce": {
                "s_per_byte": [_rounded(0.5 / bandwidth), _rounded(1.5 / bandwidth)],
                "fixed_s": [2e-4, 1e-4],
                "at_bytes_per_s": bandwidth,
            },
        }
    )


def _order(groups: int) -> list[tuple[str, int]]:
    return [("forward", layer) for layer in range(groups)] + [("backward", layer) for layer in reversed(range(groups))]


def _operator(rng: np.random.Generator, role: str, layer: int, weight: float, mean_s: float) -> dict[str, Any]:
    """Time falls with the share of the batch, but for a fixed part."""
    whole = rng.exponential(mean_s) * (1 if role == "forward" else 2)
    fixed = rng.uniform(0, 0.3) * whole
    times = {
        kind: [_rounded(factor * (fixed + (whole - fixed) * share)) for share in _SHARES]
        for kind, factor in _SPEEDS.items()
    }
    backward = role == "backward"
    return {
        "name": f"{role}.{layer}",
        "group": layer,
        "times_s": times,
        "gradient_bytes": _rounded(weight) if backward else 0,
        "resident_bytes": _rounded(3 * weight) if backward else 0,
    }


def _tensors(rng: np.random.Generator, groups: int, skips: int, sizes: Any) -> list[dict[str, Any]]:
    """Every layer's output goes to the next one, to some further on, and to its own backward operator."""

    def backward(layer: int) -> int:
        return 2 * groups - 1 - layer

    readers = {layer: {layer + 1} if layer + 1 < groups else set() for layer in range(groups)}
    for _ in range(skips if groups > 2 else 0):
        first = int(rng.integers(groups - 2))
        readers[first].add(int(rng.integers(first + 2, groups)))
    tensors = [
        {"producer": layer, "consumers": sorted({*after, backward(layer)}), "size_bytes": _rounded(sizes[layer])}
        for layer, after in readers.items()
    ]
    errors: dict[int, list[int]] = {}
    for layer, after in readers.items():
        for reader in after:
            errors.setdefault(reader, []).append(layer)
    for reader, layers in sorted(errors.items()):
        size = sum(sizes[layer] for layer in layers) / len(layers)
        consumers = sorted(backward(layer) for layer in layers)
        tensors.append({"producer": backward(reader), "consumers": consumers, "size_bytes": _rounded(size)})
    return tensors


def _bandwidths(rng: np.random.Generator, size: int, bandwidth: float) -> list[list[float]]:
    draw = np.triu(rng.uniform(0.5, 1.5, size=(size, size)), 1) * bandwidth
    return [[_rounded(value) for value in row] for row in draw + draw.T]


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
