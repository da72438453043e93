"""What all-reduces took, as nccl-tests print it, and the latency and bandwidths that explain it best.

With N nodes of g ranks, an all-reduce of S bytes takes, as everywhere in compression,

    t = (2 (g - 1) + 2 (N - 1)) latency + 2 (g - 1)/g S / intra + 2 (N - 1)/N S / inter

which is a line in S for each run. Latency and the two inverse bandwidths are fitted to all runs of the text together,
by least squares of relative errors and none below 0. A single run on several nodes cannot tell the two bandwidths
apart: that within nodes then is the cluster's.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from ddlopt.instances.clusters.file import Cluster, Network, Servers, load
from ddlopt.instances.readers.text_files import text_of
from ddlopt.instances.workloads.compression.costs import INTRA_BYTES_PER_S
from ddlopt.instances.workloads.training import ACCELERATORS, GIGABIT_PER_S
from ddlopt.models.errors import InstanceError

# Definitions.
_MICRO, _GIGA = 1e-6, 1e9
_FEWEST = 3
"""Sizes for a line: with two, there is nothing to see of how well it fits."""
# Bandwidths are printed with two digits behind the point.
_ROUNDED = 0.05
_RANK = re.compile(r"#\s*Rank\s+(\d+)\s.*?\bon\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s*(.*)")
_PREFIX = re.compile(r"^\s*\[\d+,\d+\]<\w+>:\s?")
"""With which mpirun tags lines."""


@dataclass(frozen=True)
class Run:
    """One run of ``all_reduce_perf``.

    Parameters
    ----------
    nodes, ranks_per_node : int
    accelerator : str
        As the driver calls it.
    sizes_bytes, times_s : (k,) array
    """

    nodes: int
    ranks_per_node: int
    accelerator: str
    sizes_bytes: npt.NDArray[np.float64]
    times_s: npt.NDArray[np.float64]

    @property
    def coefficients(self) -> npt.NDArray[np.float64]:
        """(k, 3): what latency and the inverse bandwidths within and between nodes are multiplied by."""
        g, n = self.ranks_per_node, self.nodes
        steps = np.full_like(self.sizes_bytes, 2 * (g - 1) + 2 * (n - 1))
        return np.column_stack([steps, 2 * (g - 1) / g * self.sizes_bytes, 2 * (n - 1) / n * self.sizes_bytes])


@dataclass(frozen=True)
class Fit:
    """What explains the runs best.

    Parameters
    ----------
    cluster : Cluster
    runs : tuple of Run
    fitted_s : tuple of array
        Times of each run by the fit.
    """

    cluster: Cluster
    runs: tuple[Run, ...]
    fitted_s: tuple[npt.NDArray[np.float64], ...]

    @property
    def residuals(self) -> tuple[npt.NDArray[np.float64], ...]:
        """Fitted over measured, less 1, of each run."""
        return tuple(fitted / run.times_s - 1 for run, fitted in zip(self.runs, self.fitted_s, strict=True))

    def lines(self) -> Iterator[str]:
        """A table of measured and fitted times, and how far apart they are."""
        for run, fitted, off in zip(self.runs, self.fitted_s, self.residuals, strict=True):
            yield f"all-reduce on {run.nodes} x {run.ranks_per_node} ranks: bytes, measured ms, fitted ms, off by"
            for size, time_s, by_fit, part in zip(run.sizes_bytes, run.times_s, fitted, off, strict=True):
                yield f"{size:14.0f} {1e3 * time_s:12.4g} {1e3 * by_fit:12.4g} {part:+8.1%}"
            yield f"off by {np.abs(off).max():.1%} at most, {np.sqrt((off**2).mean()):.1%} in the root mean square"


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
    runs = runs_of(Path(path))
    base = _servers(Path(path), runs[-1]) if cluster is None else load(cluster)
    intra = _intra(base)
    figures, fitted = _fit(Path(path), runs, 1 / intra)
    latency_s, within, between = (float(each) for each in figures)
    servers = [each.model_dump() for each in base.servers]
    if any(run.ranks_per_node > 1 for run in runs):
        for each in servers:
            each["intra_gigabytes_per_s"] = _short(1 / within / _GIGA)
    network = base.network
    if any(run.nodes > 1 for run in runs):
        network = Network(gigabit_per_s=_short(1 / between / GIGABIT_PER_S), latency_us=_short(latency_s / _MICRO))
    elif network is not None:
        network = network.model_copy(update={"latency_us": _short(latency_s / _MICRO)})
    measured_as = f"all-reduces measured by nccl-tests ({Path(path).name})"
    own = {
        "servers": tuple(Servers.model_validate(each) for each in servers),
        "network": network,
        "source": f"{base.source}; {measured_as}" if base.source else measured_as,
        "confirm": (),
    }
    return Fit(base.model_copy(update=own), tuple(runs), tuple(fitted))


def runs_of(path: Path) -> list[Run]:
    """All runs of a text."""
    found: list[Run] = []
    hosts: list[tuple[str, str]] = []
    rows: list[tuple[float, float, float]] = []
    header: list[str] = []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        text = _PREFIX.sub("", line).strip()
        rank = _RANK.match(text)
        if rank:
            if int(rank[1]) == 0 and rows:
                found.append(_run(path, hosts, rows))
                rows = []
            hosts = [] if int(rank[1]) == 0 else hosts
            hosts.append((rank[2], rank[3].strip()))
        elif text.startswith("#") and {"size", "time", "busbw"} <= set(text[1:].split()):
            header = text[1:].split()
        elif header and text[:1].isdigit():
            rows.append(_row(path, number, text.split(), header))
    if rows:
        found.append(_run(path, hosts, rows))
    if not found:
        raise InstanceError(f"{path}: there are no results in it; expected what all_reduce_perf of nccl-tests prints")
    return found


def _row(path: Path, number: int, words: Sequence[str], header: Sequence[str]) -> tuple[float, float, float]:
    """Size, time and ratio of bus and algorithm bandwidth of a line, out of place."""
    at = f"{path}: line {number}"
    places = {name: header.index(name) for name in ("size", "time", "algbw", "busbw")}
    try:
        size, time_us, algorithm, bus = (float(words[place]) for place in places.values())
        if len(words) != len(header):
            raise IndexError
    except (IndexError, ValueError):
        raise InstanceError(
            f"{at}: expected {', '.join(header[: places['busbw'] + 1])}, got '{' '.join(words)}'"
        ) from None
    if not (np.isfinite([size, time_us]).all() and size >= 0 and time_us > 0):
        raise InstanceError(f"{at}: {size:g} bytes in {time_us:g} us; expected positive figures")
    wrong = words[places["busbw"] + 1] if len(words) > places["busbw"] + 1 else "0"
    if wrong not in ("N/A", "0") and float(wrong) >= 1:
        raise InstanceError(f"{at}: {wrong} results were wrong; nothing is read of such a run")
    return size, time_us, bus / algorithm if algorithm >= 1 else np.nan


def _run(path: Path, hosts: Sequence[tuple[str, str]], rows: Sequence[tuple[float, float, float]]) -> Run:
    if len(hosts) < 2:
        raise InstanceError(f"{path}: it names {len(hosts)} ranks; an all-reduce has at least two lines '# Rank …'")
    counts = Counter(host for host, _ in hosts)
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{host}: {count}" for host, count in counts.items())
        raise InstanceError(f"{path}: nodes have different numbers of ranks ({told}); servers must be alike")
    ratios = [ratio for *_, ratio in rows if np.isfinite(ratio)]
    expected = 2 * (len(hosts) - 1) / len(hosts)
    if ratios and abs(np.median(ratios) / expected - 1) > _ROUNDED:
        raise InstanceError(
            f"{path}: bus bandwidths are {np.median(ratios):.3g} times the algorithm's, of an all-reduce on "
            f"{len(hosts)} ranks {expected:.3g} times; give what all_reduce_perf prints"
        )
    sizes, times_us = np.array([(size, time_us) for size, time_us, _ in rows if size > 0]).reshape(-1, 2).T
    if len(set(sizes.tolist())) < _FEWEST:
        raise InstanceError(f"{path}: {len(sizes)} sizes; a line needs at least {_FEWEST}")
    return Run(len(counts), len(hosts) // len(counts), hosts[0][1], sizes, _MICRO * times_us)


def _fit(
    path: Path, runs: Sequence[Run], intra_s_per_byte: float
) -> tuple[npt.NDArray[np.float64], list[npt.NDArray[np.float64]]]:
    """Latency and inverse bandwidths, and the times that they make."""
    coefficients = np.vstack([run.coefficients for run in runs])
    times_s = np.concatenate([run.times_s for run in runs])
    scale = np.maximum(np.abs(coefficients).max(axis=0), 1)
    figures = np.zeros(3)
    used = [column for column in range(3) if coefficients[:, column].any()]
    if np.linalg.matrix_rank(coefficients[:, used] / scale[used]) < len(used):
        figures[1], used = intra_s_per_byte, [0, 2]
    left_s = times_s - coefficients @ figures
    relative = coefficients[:, used] / scale[used] / times_s[:, np.newaxis]
    solution, _ = nnls(relative, left_s / times_s)
    figures[used] = solution / scale[used]
    for column, where in ((1, "within nodes"), (2, "between nodes")):
        if coefficients[:, column].any() and not figures[column] > 0:
            raise InstanceError(
                f"{path}: no bandwidth {where} explains these times; give a cluster whose intra_gigabytes_per_s "
                "is what a run on one node shows"
            )
    return figures, [run.coefficients @ figures for run in runs]


def _servers(path: Path, run: Run) -> Cluster:
    """A cluster with the servers of a run."""
    words = run.accelerator.lower()
    known = next((name for name in ACCELERATORS if name in words.replace(" ", "")), None)
    if known is None:
        raise InstanceError(
            f"{path}: it is not known what a '{run.accelerator}' sustains; give a cluster that says so (--cluster FILE)"
        )
    return Cluster(
        name=path.stem, servers=(Servers(count=run.nodes, accelerators=run.ranks_per_node, accelerator=known),)
    )


def _intra(cluster: Cluster) -> float:
    own = cluster.servers[0].intra_gigabytes_per_s
    return INTRA_BYTES_PER_S[cluster.servers[0].intra] if own is None else _GIGA * own


def _short(figure: float) -> float:
    return float(f"{figure:.4g}")
