"""Iteration-time parameters from measured synchronisation times.

Plain least squares gives negative bandwidths or latencies here: (w-1)/w and w-1 are almost collinear over the few
numbers of workers that anybody measures. Non-negative least squares keeps every parameter a time.
"""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from ddlopt.models.errors import InstanceError
from ddlopt.models.reading import UnreadableError, read_text
from ddlopt.models.scheduling.timing import PolluxTiming, RingTiming

_FASTEST_BYTES_PER_S = 1e18
"""Stands for a bandwidth without limit, where the fit finds that bytes take no time."""


class Measurement(NamedTuple):
    """Seconds that synchronising ``gradient_bytes`` over ``workers`` workers took in one iteration."""

    workers: int
    gradient_bytes: float
    sync_s: float


@dataclass(frozen=True)
class Fit:
    """How well parameters fit: what each measurement exceeds the model by, and the part of the variance explained.

    Parameters
    ----------
    r_squared : float
        1 for a perfect fit; may be negative, as the parameters may not.
    residuals_s : tuple of float
        Measured less modelled, in the order of the measurements.
    """

    r_squared: float
    residuals_s: tuple[float, ...]


@dataclass(frozen=True)
class RingFit(Fit):
    r"""Parameters of :math:`\gamma + \frac{2(w-1)}{w} \frac{m}{b} + 2 (w-1) \alpha`.

    Adding up what arrives, m/G, has the same shape as sending it, so that b includes it: 1/b stands for 1/b + 1/(2G).

    Parameters
    ----------
    overhead_s, latency_s : float
        gamma, alpha.
    bandwidth_bytes_per_s : float
        b; infinity where the bytes make no difference.
    """

    overhead_s: float
    bandwidth_bytes_per_s: float
    latency_s: float

    def timing(
        self, gradient_bytes: float, forward_s_per_sample: float, batch_samples: float = 1.0, backward_s: float = 0.0
    ) -> RingTiming:
        """The ring timing of a job with these gradients and this computation."""
        return RingTiming(
            gradient_bytes=gradient_bytes,
            bandwidth_bytes_per_s=min(self.bandwidth_bytes_per_s, _FASTEST_BYTES_PER_S),
            forward_s_per_sample=forward_s_per_sample,
            batch_samples=batch_samples,
            backward_s=backward_s,
            overhead_s=self.overhead_s,
            latency_s=self.latency_s,
        )


@dataclass(frozen=True)
class PolluxFit(Fit):
    r"""Parameters of :math:`\alpha_n + \beta_n (w - 2)`, for two and more workers.

    Parameters
    ----------
    sync_s, sync_s_per_worker : float
        alpha_n, beta_n.
    """

    sync_s: float
    sync_s_per_worker: float

    def timing(
        self,
        compute_s: float,
        compute_s_per_sample: float = 0.0,
        batch_samples: float = 1.0,
        overlap: float = 1.0,
    ) -> PolluxTiming:
        """The timing of a job with this computation, overlapped by this norm."""
        return PolluxTiming(
            compute_s=compute_s,
            compute_s_per_sample=compute_s_per_sample,
            batch_samples=batch_samples,
            sync_s=self.sync_s,
            sync_s_per_worker=self.sync_s_per_worker,
            overlap=overlap,
        )


def fit_ring(measurements: Sequence[Measurement], latency: bool = True) -> RingFit:
    """The ring's parameters by non-negative least squares.

    Parameters
    ----------
    latency : bool
        Whether there is a time for each step of the ring, whatever it sends.

    Raises
    ------
    InstanceError
        If the measurements have fewer than two numbers of workers and of bytes.
    """
    workers, sent, sync_s = _columns(measurements)
    if len(set(zip(workers, sent, strict=True))) < 2:
        raise InstanceError("a fit needs measurements with different numbers of workers, or of bytes")
    table = np.column_stack([np.ones(len(workers)), 2 * (workers - 1) / workers * sent, 2 * (workers - 1)])
    found, quality = _fit(table[:, : 3 if latency else 2], sync_s)
    slowness = float(found[1])
    return RingFit(
        overhead_s=float(found[0]),
        bandwidth_bytes_per_s=1 / slowness if slowness > 0 else math.inf,
        latency_s=float(found[2]) if latency else 0.0,
        r_squared=quality.r_squared,
        residuals_s=quality.residuals_s,
    )


def fit_pollux(measurements: Sequence[Measurement]) -> PolluxFit:
    """The synchronisation of AdaptDL's model by non-negative least squares; a single worker has none, and is left out.

    Raises
    ------
    InstanceError
        If no measurement has two or more workers, or they differ in bytes, which that model does not know.
    """
    several = [one for one in measurements if one.workers > 1]
    if not several:
        raise InstanceError("a fit of pollux timing needs measurements with two or more workers")
    workers, sent, sync_s = _columns(several)
    if np.ptp(sent) > 0:
        raise InstanceError(
            f"pollux timing has no bytes, but the measurements have {sent.min():.12g} to {sent.max():.12g} of them; "
            "fit each size apart, or a ring"
        )
    found, quality = _fit(np.column_stack([np.ones(len(workers)), workers - 2]), sync_s)
    return PolluxFit(quality.r_squared, quality.residuals_s, float(found[0]), float(found[1]))


def _columns(measurements: Iterable[Measurement]) -> tuple[npt.NDArray[np.float64], ...]:
    table = np.array([tuple(one) for one in measurements], dtype=np.float64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _fit(table: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], Fit]:
    """Non-negative coefficients; columns are scaled first, as they differ by a factor of bytes in a second."""
    scale = np.linalg.norm(table, axis=0)
    scale[scale == 0] = 1.0
    found = nnls(table / scale, wanted)[0] / scale
    residuals = wanted - table @ found
    spread = float(((wanted - wanted.mean()) ** 2).sum())
    missed = float((residuals**2).sum())
    # Squares of 1e-9: what is left of figures that have nine digits.
    rounding = 1e-18 * float((wanted**2).sum())
    quality = 1 - missed / spread if spread > rounding else float(missed <= rounding)
    return found, Fit(quality, tuple(residuals.tolist()))


def read_measurements(path: str | Path) -> list[Measurement]:
    """Measurements of a CSV file with columns ``workers``, ``bytes`` and ``sync_s``; others are ignored.

    Raises
    ------
    InstanceError
        With the line and the value, where the file cannot be read as such.
    """
    try:
        text = read_text(path)
    except UnreadableError as problem:
        raise InstanceError(f"{path}: cannot be read: {problem}") from None
    rows = csv.DictReader(text.splitlines())
    missing = [name for name in ("workers", "bytes", "sync_s") if name not in (rows.fieldnames or ())]
    if missing:
        has = ", ".join(rows.fieldnames or ()) or "none"
        raise InstanceError(f"{path}: there is no column '{missing[0]}'; expected workers, bytes, sync_s, got {has}")
    found = []
    for row in rows:
        where = f"{path}, line {rows.line_num}"
        workers = _number(row["workers"], f"{where}: workers")
        if workers < 1 or workers != int(workers):
            raise InstanceError(f"{where}: workers is {row['workers']}; expected an integer of at least 1")
        sent, sync_s = _number(row["bytes"], f"{where}: bytes"), _number(row["sync_s"], f"{where}: sync_s")
        found.append(Measurement(int(workers), sent, sync_s))
    if not found:
        raise InstanceError(f"{path}: has no measurements; expected rows of workers, bytes, sync_s")
    return found


def _number(text: str | None, what: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        raise InstanceError(f"{what} is {text!r}; expected a number") from None
    if not (math.isfinite(value) and value >= 0):
        raise InstanceError(f"{what} is {text}; it must be finite and at least 0")
    return value
