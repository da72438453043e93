"""What nccl-tests print, as runs: who took part, and what each size took.

Launchers and log collectors put labels and times of day before lines (``0: ``, ``[1,0]<stdout>:``, ``[pod/x/y] ``), and
some lose the ``#`` of what is no result. So nothing is asked of the beginning of a line: ranks, the header and results
are known by what they are made of.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ddlopt.instances.readers.text_files import text_of
from ddlopt.models.errors import InstanceError

# Definitions.
_MICRO, _GIGA = 1e-6, 1e9
_LARGEST = 1e18
"""Bytes and microseconds; beyond, and for times below the inverse, nothing was measured."""
FEWEST = 3
"""Sizes for a line: with two, there is nothing to see of how well it fits."""
# Bandwidths are printed with two digits behind the point.
_DIGITS_OFF = 0.006
_ROUNDED = 0.05
"""Of a bandwidth, by which rounded times and sizes that are cut to whole numbers may shift it."""
_RANK = re.compile(r"\bRank\s+(\d+)\s.*?\bon\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s*(.*)")
_HEADER = re.compile(r"\bsize\s+count\s+type\s.*\btime\s+algbw\s+busbw\b.*")
_RESULT = re.compile(r"(?:^|[^\w.,-])(\d+\s+\d+\s+(?:u?int|char|half|float|double|bf|f8|fp)\w*\s.*)")
"""Bytes, numbers, their type: no label and no time of day looks like that."""
_PROGRAM = re.compile(r"Collective test starting:\s*(\S+)")
_TIME_OF_DAY = "timestamp"
"""The last column of ``-S 1``; it has as many words as its format."""


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
class _Result:
    """A line of results, out of place."""

    size: float
    time_us: float
    bus: float


def runs_of(path: Path) -> list[Run]:
    """All runs of a text.

    Raises
    ------
    InstanceError
        If there are none, or one that is no all-reduce, was wrong, or has GPUs or nodes that are not identical.
    """
    found: list[Run] = []
    hosts: list[tuple[str, str]] = []
    rows: list[_Result] = []
    header: list[str] = []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        program = _PROGRAM.search(line)
        if program and program[1] != "all_reduce_perf":
            raise InstanceError(f"{path}: line {number}: it is {program[1]}'s; give what all_reduce_perf prints")
        if rank := _RANK.search(line):
            if int(rank[1]) == 0:
                found += [_run(path, hosts, rows)] if rows else []
                hosts, rows = [], []
            elif rows or int(rank[1]) != len(hosts):
                raise InstanceError(
                    f"{path}: line {number}: rank {rank[1]} comes where rank {0 if rows else len(hosts)} was to come; "
                    "give the lines of one run after those of another"
                )
            hosts.append((rank[2], rank[3].strip()))
        elif heading := _HEADER.search(line):
            header = heading[0].split()
        elif header and (result := _RESULT.search(line)):
            rows.append(_row(f"{path}: line {number}", result[1].split(), header))
    if rows:
        found.append(_run(path, hosts, rows))
    if not found:
        raise InstanceError(f"{path}: there are no results in it; expected what all_reduce_perf of nccl-tests prints")
    names = {run.accelerator for run in found}
    if len(names) > 1:
        raise InstanceError(f"{path}: its runs are on unlike GPUs ({', '.join(sorted(names))}); give those of one kind")
    return found


def _row(at: str, words: Sequence[str], header: Sequence[str]) -> _Result:
    """Size, time and bus bandwidth of a line, out of place."""
    places = {name: header.index(name) for name in ("size", "time", "busbw")}
    try:
        size, time_us, bus = (float(words[place]) for place in places.values())
        timed = header[-1] == _TIME_OF_DAY
        if len(words) < len(header) if timed else len(words) != len(header):
            raise IndexError
    except (IndexError, ValueError):
        raise InstanceError(
            f"{at}: expected {', '.join(header[: places['busbw'] + 1])}, got '{' '.join(words)}'"
        ) from None
    if not (0 <= size <= _LARGEST and 1 / _LARGEST <= time_us <= _LARGEST):
        raise InstanceError(f"{at}: {size:g} bytes in {time_us:g} us; expected positive figures, up to {_LARGEST:g}")
    _require_all_reduce(at, dict(zip(header[: places["time"]], words, strict=False)))
    wrong = words[places["busbw"] + 1] if len(words) > places["busbw"] + 1 else "0"
    if re.fullmatch(r"[\d.e+-]+", wrong) and float(wrong) >= 1:
        raise InstanceError(f"{at}: {wrong} results were wrong; nothing is read of such a run")
    return _Result(size, time_us, bus)


def _require_all_reduce(at: str, cells: Mapping[str, str]) -> None:
    """Raise unless numbers are combined, and no rank is the root."""
    if cells.get("redop", "sum") == "none":
        raise InstanceError(f"{at}: redop is none, so that it is no all-reduce; give what all_reduce_perf prints")
    if cells.get("root", "-1") != "-1":
        raise InstanceError(
            f"{at}: root is {cells['root']}, and an all-reduce has none; give what all_reduce_perf prints"
        )


def _run(path: Path, hosts: Sequence[tuple[str, str]], rows: Sequence[_Result]) -> Run:
    ranks = len(hosts)
    if ranks < 2:
        raise InstanceError(f"{path}: it names {ranks} ranks; an all-reduce has at least two lines '# Rank …'")
    counts = Counter(host for host, _ in hosts)
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{host}: {count}" for host, count in counts.items())
        raise InstanceError(f"{path}: nodes have different numbers of ranks ({told}); servers must be identical")
    gpus = Counter(gpu for _, gpu in hosts)
    if len(gpus) > 1:
        told = ", ".join(f"{count} {gpu}" for gpu, count in gpus.items())
        raise InstanceError(f"{path}: a run is on unlike GPUs ({told}); servers must be identical")
    expected = 2 * (ranks - 1) / ranks
    for row in rows:
        bandwidth = row.size / (_MICRO * row.time_us) / _GIGA
        if abs(row.bus - expected * bandwidth) > _ROUNDED * expected * bandwidth + _DIGITS_OFF:
            raise InstanceError(
                f"{path}: with {row.size:g} bytes bus bandwidth is {row.bus:g} GB/s, in an all-reduce on {ranks} ranks "
                f"{expected:.3g} times the algorithm's, {expected * bandwidth:.3g}; give what all_reduce_perf prints"
            )
    sizes, times_us = np.array([(row.size, row.time_us) for row in rows if row.size > 0]).reshape(-1, 2).T
    if len(set(sizes.tolist())) < FEWEST:
        raise InstanceError(f"{path}: {len(sizes)} sizes; a line needs at least {FEWEST}")
    return Run(len(counts), ranks // len(counts), hosts[0][1], sizes, _MICRO * times_us)
