"""Where the figures of a report come from: versions, hosts, limits, seeds, commands."""

import json
import shlex
from collections.abc import Iterable

import numpy as np
import pandas as pd


class Sources:
    """What runs say of themselves."""

    def __init__(self, runs: pd.DataFrame) -> None:
        self._runs = runs

    @property
    def versions(self) -> list[tuple[str, int]]:
        """Sets of versions and how many runs have each."""
        counts = self._runs["versions"].value_counts()
        written = [
            (", ".join(f"{name} {version}" for name, version in json.loads(str(text) or "{}").items()), int(count))
            for text, count in counts.items()
        ]
        return [(text or "not recorded", count) for text, count in written if count]

    @property
    def hosts(self) -> list[tuple[str, int]]:
        """Hosts and how many runs each did."""
        return [(str(host), int(count)) for host, count in self._runs["host"].value_counts().items() if count]

    @property
    def commit(self) -> str:
        """Commits that the runs' versions name."""
        found = {json.loads(str(text) or "{}").get("commit") for text in self._runs["versions"].unique()}
        return ", ".join(sorted(str(commit) for commit in found if commit)) or "not recorded"

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
