"""What the traces of an instance's runs say: times to the target, integrals, and gaps over time."""

import json
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
import pandas as pd

from ddlopt.analysis.bench.figures import anytime, statistics
from ddlopt.analysis.bench.figures.statistics import Floats
from ddlopt.analysis.bench.store import Store
from ddlopt.analysis.tables import lost

# Eight a decade over the usual six decades of time, and the end.
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
    return np.asarray(runs["time_limit_s"].fillna(longest), float)


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
        With the index of ``runs``: ``message``; ``error``, what a plan of compression loses beside its time, else NaN;
        ``to_target_s``, infinite where the target was not reached;
        ``primal_part`` and ``dual_part``, the integrals as parts of the time there was, NaN where nothing is known to
        compare with.
    Curves
        Of the instance alone.
    """
    first = runs.iloc[0]
    best, maximise = float(first["best_objective"]), first["sense"] == "maximize"
    own = Curves(family.at_s)
    texts, errors, parts = _parts(store, runs)
    counts = np.array([len(part) for part in parts])
    points = np.array([point for part in parts for point in part], float).reshape(-1, 3)
    primal, dual = (anytime.primal_gap(points[:, of], best) for of in (anytime.INCUMBENT, anytime.BOUND))
    reached = statistics.within(statistics.gap_to_best(points[:, 1], best, maximise), target)
    ends = np.cumsum(counts)
    found: list[tuple[float, float, float]] = []
    columns = zip(
        ends - counts, ends, runs["label"], runs["status"], runs["runtime_s"], runs["current"], runs["answered"],
        until_s, strict=True,
    )  # fmt: skip
    for begin, end, label, status, runtime_s, current, answered, horizon in columns:
        if np.isnan(best) or status == statistics.REFERENCE:
            done = runtime_s if answered and status in statistics.PROOFS else np.inf
            found.append((done, np.nan, np.nan))
            continue
        times = points[begin:end, 0]
        gaps = [np.minimum.accumulate(gap[begin:end]) for gap in (primal, dual)]
        inside = times[reached[begin:end]]
        done = float(inside[0]) if answered and inside.size else np.inf
        found.append((done, *(anytime.area(times, gap, horizon) / horizon for gap in gaps)))
        if current:
            drawn = [anytime.at_times(times, gap, family.at_s) for gap in gaps]
            own.add(label, *drawn)
            family.add(label, *drawn)
    more = pd.DataFrame(found, columns=["to_target_s", "primal_part", "dual_part"], index=runs.index)
    return more.assign(message=texts, error=np.array(errors, float)), own


def _parts(store: Store, runs: pd.DataFrame) -> tuple[list[str], list[float | None], list[list[list[float | None]]]]:
    """Messages, errors and traces of an instance's runs; traces are in order of time, and end with the result."""
    first = runs.iloc[0]
    rows = store.rows(
        ("message", "details", "trace"),
        family=first["family"], instance=first["instance"], instance_digest=first["instance_digest"],
    )  # fmt: skip
    unit = str(store.instances()[str(first["instance_digest"])]["unit"])
    texts, errors, parts = [], [], []
    for (message, details, text), *last in zip(rows, runs["runtime_s"], runs["objective"], runs["bound"], strict=True):
        texts.append(message)
        errors.append(lost(str(first["family"]), unit, json.loads(details)))
        parts.append(sorted([*json.loads(text), last], key=itemgetter(0)))
    return texts, errors, parts
