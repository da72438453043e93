"""Gradient compressors in NumPy, to measure errors with: what all workers' compressed gradients average to.

A compressor takes the gradients of D workers, (D, …), and gives the array that every worker has in the end in
place of their mean. Nothing is packed into bits; only the loss is real.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import OptionError

Floats = npt.NDArray[np.float64]

BUCKET = 512
"""Numbers that share a norm in QSGD."""
_SAMPLE = 0.01
"""Part of a gradient from which DGC estimates its threshold, but at least as many as it keeps of 256 numbers."""


@dataclass(frozen=True)
class Setting:
    """A compressor with its parameter: ``ratio`` of the sparsifiers, ``rank`` of PowerSGD, ``levels`` of QSGD."""

    compressor: str
    ratio: float | None = None
    rank: int | None = None
    levels: int | None = None


def averaged(setting: Setting, gradients: Floats, rng: np.random.Generator) -> Floats:
    """What stands in for the mean of the workers' gradients.

    Parameters
    ----------
    setting : Setting
    gradients : (D, …) array
        One for each worker.
    rng : numpy.random.Generator
        Of what is random: QSGD's rounding, random-k's choice, DGC's sample, PowerSGD's first factor.

    Returns
    -------
    array of the gradient's shape

    Raises
    ------
    OptionError
        If there is no such compressor, or a vector is to have a rank.
    """
    if setting.compressor not in _COMPRESSORS:
        known = ", ".join(sorted(_COMPRESSORS))
        raise OptionError(f"there is no compressor '{setting.compressor}' to measure; there are: {known}")
    return _COMPRESSORS[setting.compressor](setting, gradients, rng)


def squared_error(setting: Setting, gradients: Floats, rng: np.random.Generator) -> float:
    """Squared distance of what the workers have from the mean that they wanted."""
    return float(((averaged(setting, gradients, rng) - gradients.mean(axis=0)) ** 2).sum())


def _none(setting: Setting, gradients: Floats, rng: np.random.Generator) -> Floats:
    mean: Floats = gradients.mean(axis=0)
    return mean


def _fp16(setting: Setting, gradients: Floats, rng: np.random.Generator) -> Floats:
    mean: Floats = gradients.astype(np.float16).astype(np.float64).mean(axis=0)
    return mean


def _kept(setting: Setting, size: int) -> int:
    if setting.ratio is None:
        raise OptionError(f"compressor '{setting.compressor}' needs a ratio")
    return max(1, min(size, round(setting.ratio * size)))


def _top_k(setting: Setting, gradients: Floats, rng: np.random.Generator) -> Floats:
    """The largest entries of each worker's gradient (Aji and Heafield 2017, arXiv:1704.05021)."""
    flat = gradients.reshape(len(gradients), -1)
    kept = _kept(setting, flat.shape[1])
    places = np.argpartition(np.abs(flat), flat.shape[1] - kept, axis=1)[:, flat.shape[1] - kept :]
    sparse = np.zeros_like(flat)
    np.put_along_axis(sparse, places, np.take_along_axis(flat, places, axis=1), axis=1)
    mean: Floats = sparse.mean(axis=0).reshape(gradients.shape[1:])
    return mean


def _dgc(setting: Setting, gradients: Floats, rng: np.random.Generator) -> Floats:
    """Entries above a threshold that a sample gives (Lin et al. 2018, arXiv:1712.01887), without its corrections."""
    flat = gradients.reshape(len(gradients), -1)
    size = flat.shape[1]
    ratio = _kept(setting, size) / size
    sample = np.abs(flat[:, rng.choice(size, min(size, max(256, round(_SAMPLE * size))), replace=False)])
    thresholds = np.quantile(sample, 1 - ratio, axis=1, keepdims=True)
    mean: Floats = np.where(np.abs(flat) >= thresholds, flat, 0.0).mean(axis=0).reshape(gradients.shape[1:])
    return mean


def _random_k(setting: Setting, gradients: Floats, rng: np.random.Generator) -> Floats:
    """The same random entries of all workers, not scaled up."""
    mean = gradients.mean(axis=0)
    chosen = np.zeros(mean.size, dtype=bool)
    chosen[rng.choice(mean.size, _kept(setting, mean.size), replace=False)] = True
    sparse: Floats = np.where(chosen.reshape(mean.shape), mean, 0.0)
    return sparse


def _qsgd(setting: Setting, gradients: Floats, rng: np.random.Generator) -> Floats:
    """Unbiased rounding to ``levels`` steps of a bucket's norm (Alistarh et al. 2017, arXiv:1610.02132)."""
    if setting.levels is None:
        raise OptionError("compressor 'qsgd' needs levels")
    size = gradients[0].size
    padded = np.zeros((len(gradients), -(-size // BUCKET) * BUCKET))
    padded[:, :size] = gradients.reshape(len(gradients), -1)
    buckets = padded.reshape(len(gradients), -1, BUCKET)
    norms = np.linalg.norm(buckets, axis=2, keepdims=True)
    steps = np.abs(buckets) / np.where(norms > 0, norms, 1.0) * setting.levels
    rounded = np.floor(steps + rng.random(steps.shape))
    values = np.sign(buckets) * rounded * norms / setting.levels
    mean: Floats = values.reshape(len(gradients), -1)[:, :size].mean(axis=0).reshape(gradients.shape[1:])
    return mean


def _sign(setting: Setting, gradients: Floats, rng: np.random.Generator) -> Floats:
    """Signs times the mean magnitude (EF-SignSGD, Karimireddy et al. 2019, arXiv:1901.09847)."""
    axes = tuple(range(1, gradients.ndim))
    mean: Floats = (np.sign(gradients) * np.abs(gradients).mean(axis=axes, keepdims=True)).mean(axis=0)
    return mean


def _onebit(setting: Setting, gradients: Floats, rng: np.random.Generator) -> Floats:
    """Signs times the mean of the entries of that sign (Seide et al., Interspeech 2014)."""
    flat = gradients.reshape(len(gradients), -1)
    positive = flat >= 0
    total = np.zeros(flat.shape[1])
    for row, up in zip(flat, positive, strict=True):
        above, below = (row[up].mean() if up.any() else 0.0), (row[~up].mean() if not up.all() else 0.0)
        total += np.where(up, above, below)
    mean: Floats = (total / len(flat)).reshape(gradients.shape[1:])
    return mean


def _powersgd(setting: Setting, gradients: Floats, rng: np.random.Generator) -> Floats:
    """Two steps of subspace iteration on the mean (Vogels et al. 2019, arXiv:1905.13727; there one, warm-started)."""
    if setting.rank is None or gradients.ndim < 3:
        raise OptionError(f"compressor 'powersgd' needs a rank and a matrix; rank is {setting.rank}")
    mean = gradients.mean(axis=0)
    matrix = mean.reshape(mean.shape[0], -1)
    factor = rng.standard_normal((matrix.shape[1], min(setting.rank, *matrix.shape)))
    for _ in range(2):
        basis, _ = np.linalg.qr(matrix @ factor)
        factor = matrix.T @ basis
    product: Floats = (basis @ factor.T).reshape(mean.shape)
    return product


_COMPRESSORS: Mapping[str, Callable[[Setting, Any, np.random.Generator], Floats]] = {
    "none": _none,
    "fp16": _fp16,
    "top_k": _top_k,
    "dgc": _dgc,
    "random_k": _random_k,
    "qsgd": _qsgd,
    "sign": _sign,
    "onebit": _onebit,
    "powersgd": _powersgd,
}
