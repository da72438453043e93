"""What the traces of an instance's runs say: times to the target, integrals, and gaps over time."""

import json
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ddlopt.analysis.bench import anytime, statistics
from ddlopt.analysis.bench.statistics import Floats
from ddlopt.analysis.bench.store import Store

POINTS = 49


@dataclass
class Mean:
    """A mean of curves, one added at a time."""

    total: Floats
    count: int = 0

    def add(self, curve: Floats) -> None:
        """Add one curve."""
        self.total += curve
        self.count += 1

    @property
    def curve(self) -> Floats:
        """The mean."""
        return np.asarray(self.total / max(1, self.count), float)


@dataclass
class Curves:
    """Mean primal and dual gaps by method on a grid of times; ``primal`` and ``dual`` by label."""

    at_s: Floats
    primal: dict[str, Mean] = field(default_factory=dict)
    dual: dict[str, Mean] = field(default_factory=dict)

    def add(self, label: str, primal: Floats, dual: Floats) -> None:
        """Add the curves of one run."""
        for curves, curve in ((self.primal, primal), (self.dual, dual)):
            curves.setdefault(label, Mean(np.zeros(len(self.at_s)))).add(curve)


def grid(runs: pd.DataFrame) -> Floats:
    """Times at which curves are drawn: even on a logarithmic axis, from the shortest run to the longest limit."""
    horizon = float(np.nanmax(horizons(runs)))
    shortest = float(runs["runtime_s"].min())
    first = min(max(shortest, horizon / 1e6, 1e-4), horizon / 20)
    return np.geomspace(10.0 ** np.floor(np.log10(first)), horizon, POINTS)


def horizons(runs: pd.DataFrame) -> Floats:
    """Until when the integrals of runs go: their limit, or the longest time of all where there was none."""
    longest = max(float(runs["runtime_s"].max()), 1e-3)
    return runs["time_limit_s"].fillna(longest).to_numpy(float)


def follow(
    store: Store, runs: pd.DataFrame, until_s: Floats, family: Curves, target: float
) -> tuple[pd.DataFrame, Curves]:
    """Read the traces of one instance.

    Parameters
    ----------
    store : Store
    runs : DataFrame
        All runs of the instance, in the order of ``id``.
    until_s : ndarray of float
        Horizons of the runs.
    family : Curves
        What the curves of the ranked runs are added to, too.
    target : float
        Gap to the best known.

    Returns
    -------
    DataFrame
        With the index of ``runs``: ``message``; ``to_target_s``, infinite where the target was not reached;
        ``primal_part`` and ``dual_part``, the integrals as parts of the time there was, NaN where nothing is known to
        compare with.
    Curves
        Of the instance alone.
    """
    first = runs.iloc[0]
    best, maximise = float(first["best_objective"]), first["sense"] == "maximize"
    own = Curves(family.at_s)
    found: list[tuple[str, float, float, float]] = []
    rows = store.rows(
        ("message", "trace"),
        family=first["family"], instance=first["instance"], instance_digest=first["instance_digest"],
    )  # fmt: skip
    columns = zip(
        rows, runs["label"], runs["status"], runs["runtime_s"], runs["objective"], runs["bound"], runs["current"],
        runs["answered"], until_s, strict=True,
    )  # fmt: skip
    for (message, text), label, status, runtime_s, objective, bound, current, answered, horizon in columns:
        if np.isnan(best) or status == statistics.REFERENCE:
            done = runtime_s if answered and status in statistics.PROOFS else np.inf
            found.append((message, done, np.nan, np.nan))
            continue
        trace = json.loads(text)
        trace.append([runtime_s, _known(objective), _known(bound)])
        primal, dual = anytime.steps(trace, best), anytime.steps(trace, best, anytime.BOUND)
        reached = statistics.time_to_target(trace, best, target, maximise) if answered else np.inf
        areas = anytime.area(*primal, horizon), anytime.area(*dual, horizon)
        found.append((message, reached, areas[0] / horizon, areas[1] / horizon))
        if current:
            drawn = anytime.at_times(*primal, family.at_s), anytime.at_times(*dual, family.at_s)
            own.add(label, *drawn)
            family.add(label, *drawn)
    columns_found = ["message", "to_target_s", "primal_part", "dual_part"]
    return pd.DataFrame.from_records(found, columns=columns_found, index=runs.index), own


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
