"""The latency and bandwidths that explain best what all-reduces took, as nccl-tests print it.

With N nodes of g ranks, an all-reduce of S bytes takes, as everywhere in compression,

    t = (2 (g - 1) + 2 (N - 1)) latency + 2 (g - 1)/g S / intra + 2 (N - 1)/N S / inter

Both inverse bandwidths are fitted to the large messages of all runs together, by least squares of relative errors and
none below 0; then latency to the messages of which it is most of the time. Libraries change their protocol with the
size, so that small messages say nothing of bandwidths. A single run on several nodes cannot tell the two bandwidths
apart: that within nodes then is the cluster's.

Libraries also let the two phases overlap. Then t is less than the sum, and what the line leaves to one phase can be any
bandwidth above its own. So each bandwidth is known from two sides: *at least* what it is if its phase takes all of the
time, *at most* what it is if the phases follow one another. Where the two are far apart the file does not tell the
figure, and that is said.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from ddlopt.instances.clusters.file import Cluster, Network, Servers, load
from ddlopt.instances.clusters.nccl_text import FEWEST, Run, runs_of
from ddlopt.instances.workloads.accelerators import ACCELERATORS
from ddlopt.instances.workloads.compression.costs import INTRA_BYTES_PER_S
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.errors import InstanceError

# Definitions.
_MICRO, _GIGA = 1e-6, 1e9
_STEPS, _WITHIN, _BETWEEN = range(3)
"""Columns of a run's coefficients."""
_LARGE = 16
"""Messages down to a 16th of the largest are large: over a wider span protocols change, a narrower one is no line."""
_TOLD = 1.5
"""A bandwidth is given if it depends little on whether phases overlap: two figures differ by this factor at most."""
_FAINT = 1e-3
"""A phase that takes no more of the time than this has any bandwidth."""
_NOISE = 0.05
"""Of a time, by which a phase may take longer by the cluster's figure than the whole was measured to take."""


@dataclass(frozen=True)
class Fit:
    """What explains the runs best.

    Parameters
    ----------
    cluster : Cluster
    runs : tuple of Run
    fitted_s : tuple of array
        Times of each run by the fit.
    told : tuple of str
        What the file leaves open.
    """

    cluster: Cluster
    runs: tuple[Run, ...]
    fitted_s: tuple[npt.NDArray[np.float64], ...]
    told: tuple[str, ...] = ()

    @property
    def residuals(self) -> tuple[npt.NDArray[np.float64], ...]:
        """Fitted over measured, less 1, of each run."""
        return tuple(fitted / run.times_s - 1 for run, fitted in zip(self.runs, self.fitted_s, strict=True))

    def lines(self) -> Iterator[str]:
        """A table of measured and fitted times, how far apart they are, and what the file leaves open."""
        for run, fitted, off in zip(self.runs, self.fitted_s, self.residuals, strict=True):
            yield f"all-reduce on {run.nodes} x {run.ranks_per_node} ranks: bytes, measured ms, fitted ms, off by"
            for size, time_s, by_fit, part in zip(run.sizes_bytes, run.times_s, fitted, off, strict=True):
                yield f"{size:14.0f} {1e3 * time_s:12.4g} {1e3 * by_fit:12.4g} {part:+8.1%}"
            yield f"off by {np.abs(off).max():.1%} at most, {np.sqrt((off**2).mean()):.1%} in the root mean square"
        yield from self.told


@dataclass(frozen=True)
class _Known:
    """What the runs say of a bandwidth, in bytes per second, and what is taken for it.

    Parameters
    ----------
    least, most : float
        If its phase takes all of the time, and if phases follow one another.
    taken : float
    kept : bool
        Whether that is the cluster's figure.
    """

    least: float
    most: float
    taken: float
    kept: bool = False

    @classmethod
    def of(cls, least: float, most: float, sheet: float | None) -> "_Known":
        """Take what is told, else the least; but no more than the data sheet says, unless it is surely more."""
        told = most <= _TOLD * least
        if sheet is None or least > (1 + _NOISE) * sheet:
            return cls(least, most, most if told else least)
        taken = min(most, sheet)
        return cls(least, most, taken, kept=taken == sheet)

    @property
    def is_told(self) -> bool:
        return self.most <= _TOLD * self.least


def measured(path: str | Path, cluster: str | Path | Cluster | None = None) -> Fit:
    """Read a text of nccl-tests, and fit a cluster's latency and bandwidths to it.

    Parameters
    ----------
    path : str or Path
        What ``all_reduce_perf`` printed, once or several times one after the other.
    cluster : str, Path or Cluster, optional
        Whose other figures to keep; if not given, servers are those of the text.

    Raises
    ------
    InstanceError
        If the text has no all-reduces, results were wrong, or the cluster cannot explain it.
    """
    path = Path(path)
    runs = runs_of(path)
    base = _servers(path, runs[-1]) if cluster is None else load(cluster)
    fitting = _Fitting(path, runs, base)
    within, between = fitting.known(_WITHIN), fitting.known(_BETWEEN)
    open_ones = [name for name, each in (("within", within), ("between", between)) if each and not each.is_told]
    phases = [1 / each.taken if each else 0.0 for each in (within, between)]
    latency_s = fitting.latency_s(phases, bool(open_ones))
    servers = [each.model_dump() for each in base.servers]
    if within is not None:
        for each in servers:
            each["intra_gigabytes_per_s"] = _short(within.taken / _GIGA)
    network = base.network
    if between is not None:
        network = Network(gigabit_per_s=_short(between.taken / GIGABIT_PER_S), latency_us=_short(latency_s / _MICRO))
    elif network is not None:
        network = network.model_copy(update={"latency_us": _short(latency_s / _MICRO)})
    told = tuple(fitting.told(within, between))
    source = f"all-reduces measured by nccl-tests ({path.name})"
    source += f", which do not tell the bandwidth {' and '.join(open_ones)} nodes" if open_ones else ""
    own = {
        "servers": tuple(Servers.model_validate(each) for each in servers),
        "network": network,
        "source": f"{base.source}; {source}" if base.source else source,
        "confirm": (),
    }
    made = base.model_copy(update=own)
    made = made.model_copy(update={"confirm": made.doubtful()})
    return Fit(
        made, tuple(runs), tuple(latency_s * _steps(run) + _moving(run, phases, bool(open_ones)) for run in runs), told
    )


class _Fitting:
    """Runs and the cluster that they are to explain."""

    def __init__(self, path: Path, runs: Sequence[Run], base: Cluster) -> None:
        self.path, self.runs, self.base = path, runs, base
        self.large = [_large(run) for run in runs]
        self.slopes = [_slope(path, run, large) for run, large in zip(runs, self.large, strict=True)]
        given = base.servers[0].intra_gigabytes_per_s
        self.given = None if given is None else _GIGA * given
        self.fixed: float | None = None
        self.figures = self._joint()

    def least(self, column: int) -> float:
        """A bandwidth if its phase takes all of the time; 0 where there is no such phase."""
        return max(float(_per_byte(run)[column]) / slope for run, slope in zip(self.runs, self.slopes, strict=True))

    def known(self, column: int) -> _Known | None:
        """What there is to say of a bandwidth; None where nothing passes there."""
        least = self.least(column)
        if not least:
            return None
        if column == _WITHIN and self.fixed is not None:
            return _Known(self.fixed, self.fixed, self.fixed)
        inverse = float(self.figures[column])
        most = max(least, 1 / inverse) if inverse * least > _FAINT else math.inf
        network = self.base.network
        sheet = self.given if column == _WITHIN else None
        if column == _BETWEEN and network is not None:
            sheet = GIGABIT_PER_S * network.gigabit_per_s
        if column == _WITHIN and sheet is None and most > _TOLD * least:
            sheet = max(least, self._assumed)
        return _Known.of(least, most, sheet)

    def latency_s(self, phases: Sequence[float], overlap: bool) -> float:
        """Of a step, by the messages of which it is most of the time; where there are none, by all that are large."""
        above = below = 0.0
        for run in self.runs:
            part = _moving(run, phases, overlap) / run.times_s
            steps = (_steps(run) / run.times_s)[part <= 1 / 2]
            above += float(steps @ (1 - part[part <= 1 / 2]))
            below += float(steps @ steps)
        return above / below if below else float(self.figures[_STEPS])

    def told(self, within: _Known | None, between: _Known | None) -> Iterator[str]:
        """What the file leaves open, a line each."""
        if self.fixed is None and within is not None:
            yield from _told("intra_gigabytes_per_s", within, _GIGA)
        elif self.fixed is not None and self.given is None:
            assumed = _short(self._assumed / _GIGA)
            least = f"the least that explains the times, as {assumed:g} does not"
            yield (
                f"intra_gigabytes_per_s = {_short(self.fixed / _GIGA):g} is "
                f"{'assumed' if self.fixed == self._assumed else least}; a run on one node tells it: "
                "put it in front, or give a cluster with its figure (--cluster FILE)"
            )
        if between is not None and within is not None:
            yield from _told("gigabit_per_s", between, GIGABIT_PER_S)

    @property
    def _assumed(self) -> float:
        return INTRA_BYTES_PER_S[self.base.servers[0].intra]

    def _joint(self) -> npt.NDArray[np.float64]:
        """Latency and both inverse bandwidths, if phases follow one another."""
        coefficients = np.vstack([run.coefficients[large] for run, large in zip(self.runs, self.large, strict=True)])
        times_s = np.concatenate([run.times_s[large] for run, large in zip(self.runs, self.large, strict=True)])
        scale = np.maximum(np.abs(coefficients).max(axis=0), 1)
        figures = np.zeros(3)
        used = [column for column in range(3) if coefficients[:, column].any()]
        if np.linalg.matrix_rank(coefficients[:, used] / scale[used]) < len(used):
            self.fixed = self._within()
            figures[_WITHIN], used = 1 / self.fixed, [_STEPS, _BETWEEN]
        left_s = times_s - coefficients @ figures
        relative = coefficients[:, used] / scale[used] / times_s[:, np.newaxis]
        solution, _ = nnls(relative, left_s / times_s)
        figures[used] = solution / scale[used]
        return figures

    def _within(self) -> float:
        """The bandwidth within nodes where the runs do not tell it."""
        least = self.least(_WITHIN)
        if self.given is None:
            return max(least, self._assumed)
        if (1 + _NOISE) * self.given < least:
            raise InstanceError(
                f"{self.path}: by the cluster's intra_gigabytes_per_s = {self.given / _GIGA:g} the phase within nodes "
                f"would take longer than everything took; it is at least {least / _GIGA:.4g}: give what a run on one "
                "node shows"
            )
        return self.given


def _told(name: str, known: _Known, unit: float) -> Iterator[str]:
    """Between what a bandwidth is, and why the figure was taken."""
    least, most, taken = (_short(each / unit) for each in (known.least, known.most, known.taken))
    if most <= least:
        return
    if known.is_told and not known.kept:
        yield f"{name} = {taken:g} if phases follow one another, and at least {least:g} if they overlap"
        return
    upper = "any figure above explains them, too" if math.isinf(most) else f"{most:g} if phases follow one another"
    why = "the cluster's is kept" if known.kept else "the least that explains the times is taken"
    yield f"{name} = {taken:g}: {why}; it is at least {least:g} if phases overlap, and {upper}"


def _steps(run: Run) -> npt.NDArray[np.float64]:
    steps: npt.NDArray[np.float64] = run.coefficients[:, _STEPS]
    return steps


def _moving(run: Run, phases: Sequence[float], overlap: bool) -> npt.NDArray[np.float64]:
    """Times without latency."""
    each = run.coefficients[:, _WITHIN:] * np.asarray(phases)
    times: npt.NDArray[np.float64] = each.max(axis=1) if overlap else each.sum(axis=1)
    return times


def _per_byte(run: Run) -> npt.NDArray[np.float64]:
    """Coefficients of one byte."""
    row: npt.NDArray[np.float64] = run.coefficients[0] / run.sizes_bytes[0]
    return row


def _large(run: Run) -> npt.NDArray[np.bool_]:
    """Which messages are large; always some, of different sizes."""
    sizes = np.unique(run.sizes_bytes)
    least = min(sizes[-1] / _LARGE, sizes[-FEWEST])
    large: npt.NDArray[np.bool_] = run.sizes_bytes >= least
    return large


def _slope(path: Path, run: Run, large: npt.NDArray[np.bool_]) -> float:
    """Seconds a byte of large messages."""
    sizes, times_s = run.sizes_bytes[large], run.times_s[large]
    scale = sizes.max()
    solution, _ = nnls(
        np.column_stack([np.ones_like(sizes), sizes / scale]) / times_s[:, np.newaxis], np.ones_like(sizes)
    )
    if not solution[1] > 0:
        raise InstanceError(
            f"{path}: no bandwidth explains the times on {run.nodes} x {run.ranks_per_node} ranks, which do not grow "
            "with the size"
        )
    return float(solution[1] / scale)


def _servers(path: Path, run: Run) -> Cluster:
    """A cluster with the servers of a run."""
    known = _accelerator(run.accelerator)
    if known is None:
        raise InstanceError(
            f"{path}: it is not known what a '{run.accelerator}' sustains; give a cluster that says so (--cluster FILE)"
        )
    return Cluster(
        name=path.stem, servers=(Servers(count=run.nodes, accelerators=run.ranks_per_node, accelerator=known),)
    )


def _accelerator(name: str) -> str | None:
    """The known accelerator whose name stands there, in whole words; slices of one sustain less than it."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    joined = {"".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1)}
    joined |= {word.removesuffix("gb") for word in words}  # a100-80 is one of 80GB
    found = [known for known in ACCELERATORS if joined.issuperset(known.split("-"))]
    return max(found, key=len) if found and "mig" not in words else None


def _short(figure: float) -> float:
    return float(f"{figure:.4g}")
