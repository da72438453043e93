"""Where the figures of a report come from: versions, hosts, limits, seeds, commands."""

import json
import shlex
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

UNKNOWN = "not recorded"


class Sources:
    """What runs say of themselves."""

    def __init__(self, runs: pd.DataFrame) -> None:
        self._runs = runs

    @property
    def versions(self) -> list[tuple[str, int]]:
        """Sets of versions and how many runs have each."""
        return [
            (", ".join(f"{name} {version}" for name, version in json.loads(text or "{}").items()) or UNKNOWN, count)
            for text, count in self._counts("versions")
        ]

    @property
    def hosts(self) -> list[tuple[str, int]]:
        """Hosts and how many runs each did."""
        return self._counts("host")

    @property
    def machines(self) -> list[tuple[str, int]]:
        """What the hosts are and how many runs each kind did."""
        return [(_machine(json.loads(text or "{}")), count) for text, count in self._counts("machine")]

    @property
    def revisions(self) -> list[tuple[str, int]]:
        """Commits of ddlopt and how many runs each did."""
        return [(text or "none: an installed package", count) for text, count in self._counts("revision")]

    def _counts(self, column: str) -> list[tuple[str, int]]:
        return [(str(value), int(count)) for value, count in self._runs[column].value_counts().items() if count]

    @property
    def period(self) -> str:
        """From the first to the last finished run."""
        finished = self._runs["finished"].astype(str)
        return f"{finished.min()} to {finished.max()}"

    @property
    def seeds(self) -> str:
        """Seeds, such as ``0-4, 7``."""
        return ", ".join(_ranges(self._runs["seed"].astype(int).unique()))

    @property
    def limits(self) -> list[str]:
        """The sets of limits there are, one line each."""
        return [_limits(limits) for limits in self._by_limits()]

    def commands(self) -> list[str]:
        """Commands that do the same runs, one for each set of limits; instances and methods as products."""
        commands = []
        for limits, runs in self._by_limits().items():
            time_s, gap, threads, memory = limits
            names = (runs["family"].astype(str) + "/" + runs["instance"].astype(str)).unique()
            methods = ",".join(runs["method"].astype(str).unique())
            solvers = ",".join(solver for solver in runs["solver"].astype(str).unique() if solver)
            words = ["ddlopt", "bench", *names, "--store", "again.sqlite", "--methods", methods]
            words += ["--seeds", ",".join(_ranges(runs["seed"].astype(int).unique()))]
            words += ["--solvers", solvers] if solvers else []
            words += [] if np.isnan(time_s) else ["--time-limit", f"{time_s:g}"]
            words += ["--gap", f"{gap:g}", "--threads", f"{threads:g}"]
            words += [] if np.isnan(memory) else ["--memory", f"{memory / 1e9:g}"]
            commands.append(shlex.join(words))
        return commands

    def _by_limits(self) -> dict[tuple[float, float, float, float], pd.DataFrame]:
        names = ["time_limit_s", "gap_limit", "threads", "memory_limit_bytes"]
        grouped = self._runs.groupby(names, dropna=False)
        return {(key[0], key[1], key[2], key[3]): runs for key, runs in grouped}


def _machine(known: dict[str, Any]) -> str:
    """A machine in words."""
    if not known:
        return UNKNOWN
    cores = "1 core" if known["cores"] == 1 else f"{known['cores']} cores"
    return f"{known['cpu']}, {cores}, {known['memory_bytes'] / 1e9:.0f} GB, {known['system']}"


def _limits(limits: tuple[float, float, float, float]) -> str:
    time_s, gap, threads, memory = limits
    parts = ["no time limit" if np.isnan(time_s) else f"{time_s:g} s", f"gap {gap:g}"]
    parts.append("1 thread" if threads == 1 else f"{threads:g} threads")
    parts += [] if np.isnan(memory) else [f"{memory / 1e9:g} GB"]
    return ", ".join(parts)


def _ranges(numbers: Iterable[int]) -> list[str]:
    """Numbers as ranges: 0-4, 7."""
    ordered = sorted(int(number) for number in numbers)
    found: list[list[int]] = []
    for number in ordered:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in found]
