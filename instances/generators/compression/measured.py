"""Compression instances with the errors of a real training run: handwritten digits on data-parallel workers.

Times are those of :mod:`ddlopt.instances.workloads.compression.costs` for nodes of one GPU, and of a backward pass at
an assumed rate; errors are measured (:mod:`ddlopt.instances.workloads.compression.measured`): parts of the squared norm
of the whole mean gradient. Needs scikit-learn.
"""

import math

import numpy as np

from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.instances.workloads.compression.compressors import Compression
from ddlopt.instances.workloads.compression.costs import LATENCY_S, menu
from ddlopt.instances.workloads.compression.measured import Sample, mean_error, samples, spectral_tails, tail_energies
from ddlopt.instances.workloads.compression.numpy_compressors import Setting
from ddlopt.instances.workloads.digits import WIDTHS, Training
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.compression import (
    Cluster,
    CompressionInstance,
    GradedGradient,
    Gradient,
    LevelInstance,
    Option,
    PointCurve,
)

COMPRESSORS = (
    "fp16",
    "top_k:0.1",
    "top_k:0.01",
    "dgc:0.01",
    "random_k:0.1",
    "qsgd:127",
    "qsgd:15",
    "sign",
    "powersgd:1",
    "powersgd:4",
    "powersgd:16",
)
BACKWARD_FLOPS_PER_S = 20e9
"""Of a worker: an assumption, that of a few CPU cores."""
FIRST, COUNT, EVERY = 40, 5, 4
"""Steps of training of which gradients are measured: a few, after the loss has begun to fall."""


def timeline(
    rng: np.random.Generator,
    workers: int = 8,
    batch: int = 16,
    network_gigabit_per_s: float = 10.0,
    error_budget_part: float | None = 0.25,
) -> CompressionInstance:
    """Which compressor for which gradient of the perceptron.

    Parameters
    ----------
    workers, batch : int
        Workers, and images of each in a step.
    network_gigabit_per_s : float
        Of each worker's link.
    error_budget_part : float, optional
        Part of the gradient's squared norm that may be lost; None: any.
    """
    taken = _taken(rng, workers, batch)
    cluster = _cluster(workers, network_gigabit_per_s)
    wanted = [Compression.from_words(words) for words in COMPRESSORS]
    gradients, menus = [], []
    for place, (name, shape, ready_s) in enumerate(_gradients(batch)):
        options = menu(shape, cluster, wanted)
        menus.append(tuple(_measured(option, shape, place, taken) for option in options))
        gradients.append(Gradient(name=name, shape=shape, ready_s=ready_s, menu=place))
    data = {
        "name": f"measured-digits-w{workers}-{network_gigabit_per_s:g}g",
        "source": _SOURCE,
        "gradients": gradients,
        "menus": menus,
        "cluster": cluster,
        "error_budget": error_budget_part,
    }
    return CompressionInstance.from_data(data)


def levels(
    rng: np.random.Generator,
    compressor: str = "powersgd",
    workers: int = 8,
    batch: int = 16,
    network_gigabit_per_s: float = 10.0,
    error_budget_part: float = 0.1,
    points: int = 40,
) -> LevelInstance:
    """How far to compress each weight of the perceptron; biases, which are small, are left out.

    Parameters
    ----------
    compressor : {"powersgd", "top_k"}
        Errors of powersgd are the energies of the singular values left out, which its iteration does not quite reach;
        those of top_k are means over the workers, which the error of the mean does not exceed.
    workers, batch, network_gigabit_per_s, error_budget_part
        As of :func:`timeline`.
    points : int
        Most levels of a gradient.
    """
    one_of("compressor", compressor, ("powersgd", "top_k"))
    positive("error_budget_part", error_budget_part)
    at_least("points", points, 2)
    taken = _taken(rng, workers, batch)
    bandwidth = _cluster(workers, network_gigabit_per_s).inter_bandwidth_bytes_per_s
    ring = LATENCY_S * (workers - 1)
    graded = []
    for place, (name, shape, ready_s) in enumerate(_gradients(batch)):
        if len(shape) < 2:
            continue
        if compressor == "powersgd":
            tails, highest = spectral_tails(place, taken), min(min(shape), math.prod(shape) // sum(shape))
            launch_s, per_level_s = 4 * ring, 8 * sum(shape) * (workers - 1) / workers / bandwidth
        else:
            tails, highest = tail_energies(place, taken), math.prod(shape) // workers
            launch_s, per_level_s = ring, 8 * (workers - 1) / bandwidth
        grid = np.unique(np.geomspace(1, highest, points).round().astype(int)).tolist()
        curve = PointCurve(levels=tuple(grid), errors=tuple(float(tails[level]) for level in grid))
        graded.append(
            GradedGradient(
                name=name,
                shape=shape,
                compressor=compressor,  # type: ignore[arg-type]
                ready_s=ready_s,
                curve=curve,
                launch_s=launch_s,
                wire_s_per_level=per_level_s,
            )
        )
    data = {
        "name": f"levels-measured-digits-{compressor.replace('_', '-')}",
        "source": _SOURCE,
        "gradients": graded,
        "error_budget": error_budget_part,
    }
    return LevelInstance.from_data(data)


_SOURCE = (
    "perceptron of 64-1024-512-256-10 on scikit-learn's digits (UCI optical recognition of handwritten digits); errors "
    f"measured at {COUNT} steps from step {FIRST} of training, as parts of the squared norm of the whole mean gradient"
)


def _taken(rng: np.random.Generator, workers: int, batch: int) -> list[Sample]:
    at_least("workers", workers, 2)
    at_least("batch", batch, 1)
    training = Training(workers=workers, batch=batch, seed=int(rng.integers(2**31)))
    return samples(training, FIRST, COUNT, EVERY)


def _cluster(workers: int, gigabit_per_s: float) -> Cluster:
    positive("network_gigabit_per_s", gigabit_per_s)
    rate = gigabit_per_s * GIGABIT_PER_S
    return Cluster(
        nodes=workers, intra_bandwidth_bytes_per_s=rate, inter_bandwidth_bytes_per_s=rate, latency_s=LATENCY_S
    )


def _gradients(batch: int) -> list[tuple[str, tuple[int, ...], float]]:
    """Name, shape and ready time in backward order; each layer takes a product for its weight, one for its input."""
    found: list[tuple[str, tuple[int, ...], float]] = []
    clock = 0.0
    for layer in reversed(range(len(WIDTHS) - 1)):
        inputs, outputs = WIDTHS[layer], WIDTHS[layer + 1]
        product_s = 2 * inputs * outputs * batch / BACKWARD_FLOPS_PER_S
        clock += product_s
        found += [
            (f"layer{layer}.bias", (outputs,), float(f"{clock:.6g}")),
            (f"layer{layer}.weight", (outputs, inputs), float(f"{clock:.6g}")),
        ]
        clock += product_s
    return found


def _measured(option: Option, shape: tuple[int, ...], place: int, taken: list[Sample]) -> Option:
    """The option with the error that was measured of it, four significant digits."""
    setting = setting_of(option)
    return option.model_copy(update={"error": float(f"{mean_error(setting, place, taken):.4g}")})


def setting_of(option: Option) -> Setting:
    """What to run of an option for real."""
    return Setting(option.compressor, option.ratio, option.rank, option.levels)
