"""What the pages on a family say: its methods one by one, in pairs, and as profiles."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ddlopt.analysis.bench.figures import pairs, profiles, statistics
from ddlopt.analysis.bench.figures.profiles import Profile
from ddlopt.analysis.bench.figures.statistics import Floats
from ddlopt.analysis.tables import gap_text, time_text

SHIFT_S, PAR_K = 1.0, 10.0
"""Shift of geometric means of times, and how often the limit a run counts that did not reach the target."""

WRITTEN: dict[str, Callable[[object], str]] = {
    "answered": lambda value: part_text(float(str(value))),
    "within target": lambda value: part_text(float(str(value))),
    "time (SGM)": lambda value: time_text(float(str(value)), digits=3),
    "time to target (PAR-10)": lambda value: time_text(float(str(value)), digits=3),
    "mean gap to best": lambda value: gap_or_infinite(float(str(value))),
    "mean gap to bound": lambda value: gap_or_infinite(float(str(value))),
    "primal integral": lambda value: part_text(float(str(value))),
    "dual integral": lambda value: part_text(float(str(value))),
    "p": lambda value: p_text(float(str(value))),
    "p (Holm)": lambda value: p_text(float(str(value))),
}
"""How the columns of the tables are written for people."""


def part_text(part: float) -> str:
    """A part in percent."""
    return f"{100 * part:.1f} %" if part < 1 else "100 %"


def gap_or_infinite(gap: float) -> str:
    """A gap in percent; NaN is none, and the best known may be 0."""
    return "∞" if gap == float("inf") else gap_text(None if gap != gap else gap)


def p_text(p_value: float) -> str:
    """A p-value."""
    return f"{p_value:.3f}" if p_value >= 0.001 else "<0.001"


@dataclass(frozen=True)
class Summary:
    """Of one family.

    Parameters
    ----------
    methods : DataFrame
        A row a method, the best first; columns as in ``WRITTEN``.
    pairs : DataFrame
        A row a method other than the baseline.
    baseline : str
    time, quality, budget : Profile
        Performance profiles of the time to the target and of 1 + the gap to the best known (by gap), and the data
        profile of the time to the target; methods in the order of ``methods``.
    """

    methods: pd.DataFrame
    pairs: pd.DataFrame
    baseline: str
    time: Profile
    quality: Profile
    budget: Profile


def summarise(runs: pd.DataFrame, target: float, baseline: str | None, at_s: Floats) -> Summary:
    """Sum up the runs of a family.

    Parameters
    ----------
    runs : DataFrame
        The ranked runs of :class:`.data.Data`, with what :func:`.curves.follow` adds.
    target : float
        Gap to the best known that counts as reached.
    baseline : str, optional
        A label; by default, and where the family has no such method, the one that is best most often.
    at_s : ndarray of float
        Budgets of the data profile.
    """
    labels = sorted(runs["label"].astype(str).unique())
    runs = runs.assign(cost=_gap_cost(runs))
    gaps = profiles.cube(runs, "cost", labels)
    typical = profiles.medians(gaps)
    won = dict(zip(labels, pairs.wins(typical), strict=True))
    table = methods_table(runs, target, won)
    labels = [str(label) for label in table["method"]]
    chosen = baseline if baseline is not None and baseline in labels else labels[0]
    times, gaps = profiles.cube(runs, "to_target_s", labels), profiles.cube(runs, "cost", labels)
    steps = np.concatenate([[0.0], np.geomspace(1e-4, 10.0, 46)])
    return Summary(
        methods=table,
        pairs=pairs_table(gaps, labels, chosen),
        baseline=chosen,
        time=profiles.performance_profile(times, np.geomspace(1.0, 1e4, 61)),
        quality=profiles.data_profile(gaps, steps),
        budget=profiles.data_profile(times, at_s),
    )


def _gap_cost(runs: pd.DataFrame) -> Floats:
    """The gap to the best known; 0 for a proof that there is no answer, infinite where there is none."""
    gap = np.where(runs["status"].isin(statistics.PROOFS), 0.0, runs["gap_to_best"].to_numpy(float))
    return np.where(runs["answered"].to_numpy(bool) & ~np.isnan(gap), gap, np.inf)


def methods_table(runs: pd.DataFrame, target: float, won: dict[str, int]) -> pd.DataFrame:
    """A row a method: what became of its runs, in the order of wins and then of gaps."""
    rows = []
    for label, own in runs.groupby(runs["label"].astype(str)):
        answered = own["answered"].to_numpy(bool)
        reached = np.isfinite(own["to_target_s"].to_numpy(float))
        times = statistics.penalised(own["runtime_s"], answered, own["time_limit_s"])
        rows.append({
            "method": label,
            "instances": own["instance_digest"].nunique(),
            "runs": len(own),
            "answered": float(answered.mean()),
            "within target": float(reached.mean()),
            "wins": int(won[str(label)]),
            "mean gap to best": own["gap_to_best"][answered].mean(),
            "mean gap to bound": own["gap_to_bound"][answered].mean(),
            "time (SGM)": statistics.shifted_geometric_mean(times, SHIFT_S),
            "time to target (PAR-10)": statistics.par(
                np.where(reached, own["to_target_s"], own["runtime_s"]), reached, own["time_limit_s"], PAR_K
            ),
            "primal integral": own["primal_part"].mean(),
            "dual integral": own["dual_part"].mean(),
        })  # fmt: skip
    table = pd.DataFrame(rows)
    order = table.sort_values(["wins", "mean gap to best", "method"], ascending=[False, True, True])
    return order.reset_index(drop=True)


def pairs_table(gaps: Floats, labels: list[str], baseline: str) -> pd.DataFrame:
    """A row a method against the baseline, on the instances that both were run on.

    Parameters
    ----------
    gaps : ndarray of float
        Instances × methods × seeds; compared by the median over the seeds.
    labels : list of str
    baseline : str
    """
    typical = np.where(np.isnan(gaps).all(axis=-1), np.nan, profiles.medians(gaps))
    base = typical[:, labels.index(baseline)]
    rows = []
    for place, label in enumerate(labels):
        if label != baseline:
            found = pairs.compare(typical[:, place], base)
            rows.append((label, found.wins, found.ties, found.losses, found.p_value))
    table = pd.DataFrame(rows, columns=["method", "wins", "ties", "losses", "p"])
    return table.assign(**{"p (Holm)": pairs.holm(table["p"].to_numpy(float))})
