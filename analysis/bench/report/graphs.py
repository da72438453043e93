"""The charts of a report, from summaries and curves."""

from collections.abc import Iterable, Mapping

import numpy as np

from ddlopt.analysis.bench.figures.profiles import Profile
from ddlopt.analysis.bench.report.charts import COLOURS, DASHES, Axis, Chart, Line, percent, seconds
from ddlopt.analysis.bench.report.contents import Overview
from ddlopt.analysis.bench.report.curves import Curves, Mean
from ddlopt.analysis.bench.report.summary import Summary
from ddlopt.analysis.tables import gap_text

_TOLD = 5
"""Of how many methods a chart says in words how they do."""

# The default gap of methods: what is less counts as none.
_SMALLEST_GAP = 1e-4

Styles = Mapping[str, int]
"""Colour and dashes of each method, as :attr:`.charts.Line.style`."""


def styles_of(pairs: Iterable[tuple[str, str]]) -> dict[str, int]:
    """A style for each method, the same wherever it is drawn; of (family, method), which are on one page.

    No two methods of a family share one, and no two at all as long as there are enough.
    """
    families: dict[str, set[str]] = {}
    for family, method in pairs:
        families.setdefault(method, set()).add(family)
    order = sorted(families, key=lambda method: (-len(families[method]), method))
    if len(order) <= COLOURS * len(DASHES):
        return {method: style for style, method in enumerate(order)}
    taken: dict[str, set[int]] = {family: set() for each in families.values() for family in each}
    styles = {}
    for method in order:
        used = set().union(*(taken[family] for family in families[method]))
        styles[method] = next(style for style in range(len(used) + 1) if style not in used)
        for family in families[method]:
            taken[family].add(styles[method])
    return styles


def convergence(curves: Curves, styles: Styles) -> Chart | None:
    """Mean primal gaps of the methods on one instance over time, and the best dual gap; None if there are none."""
    if not curves.primal:
        return None
    order = _by_mean(curves.primal)
    lines = [Line(label, curves.at_s, curves.primal[label].curve, style=styles[label]) for label in order]
    bound = np.min([mean.curve for mean in curves.dual.values()], axis=0)
    lines.append(Line("best bound of all (dual gap)", curves.at_s, bound, quiet=True))
    told = f"At the end of the time: {_at_end(lines[:-1])}; the dual gap is {gap_text(float(bound[-1]))}."
    time = seconds("time", curves.at_s[0], curves.at_s[-1])
    return Chart("convergence", "Mean primal gap over time", told, lines, time, percent("primal gap"))


def profiles(summary: Summary, curves: Curves, target: float, styles: Styles) -> list[Chart]:
    """The charts of a family."""
    labels = list(summary.methods["method"])
    reached = f"a gap of {100 * target:g} % to the best known"
    share = percent("part of the instances")
    times = seconds("time", curves.at_s[0], curves.at_s[-1])
    drawn = [label for label in labels if label in curves.primal]
    any_time = [Line(label, curves.at_s, curves.primal[label].curve, style=styles[label]) for label in drawn]
    ratio = Axis("time over that of the fastest", 1.0, 1e4, True)
    charts = [
        quality("quality", "Gap profile: instances within a gap to the best known", summary, styles),
        Chart(
            "performance", f"Performance profile (Dolan and Moré): time to {reached}",
            _told(labels, summary.time.share[:, 0], "is the fastest on"),
            _lines(labels, summary.time, styles), ratio, share,
        ),
        Chart(
            "data", f"Data profile (after Moré and Wild): instances brought to {reached} within a time",
            _told(labels, summary.budget.share[:, -1], "gets there on"),
            _lines(labels, summary.budget, styles), times, share,
        ),
    ]  # fmt: skip
    if any_time:
        told = f"At the end of the time: {_at_end(any_time)}."
        title = "Any-time: mean primal gap over all instances"
        charts.append(Chart("any-time", title, told, any_time, times, percent("primal gap")))
    return charts


def quality(name: str, title: str, summary: Summary, styles: Styles) -> Chart:
    """The part of the instances on which a method's answer is within a gap to the best known."""
    labels, profile = list(summary.methods["method"]), summary.quality
    axis = Axis("gap to the best known", _SMALLEST_GAP, 10.0, True, lambda gap: f"{100 * gap:g} %")
    told = _told(labels, profile.share[:, 0], "meets the best known on")
    return Chart(name, title, told, _lines(labels, profile, styles), axis, percent("part of the instances"))


def overview(overviews: "Iterable[Overview]", styles: Styles) -> list[Chart]:
    """A gap profile a family."""
    shown = ((place, each.family, each.summary) for place, each in enumerate(overviews))
    return [
        quality(f"quality-{place}", f"{family}: instances within a gap to the best known", summary, styles)
        for place, family, summary in shown
        if summary is not None
    ]


def _lines(labels: list[str], profile: Profile, styles: Styles) -> list[Line]:
    rows = zip(labels, profile.share, profile.low, profile.high, strict=True)
    return [Line(label, profile.at, share, low, high, style=styles[label]) for label, share, low, high in rows]


def _told(labels: list[str], shares: np.ndarray, does: str) -> str:
    """The best few in words."""
    order = np.argsort(-shares, kind="stable")[:_TOLD]
    return "; ".join(f"{labels[k]} {does} {100 * shares[k]:.0f} %" for k in order) + "."


def _at_end(lines: list[Line]) -> str:
    ordered = sorted(lines, key=lambda line: float(line.y[-1]))[:_TOLD]
    return "; ".join(f"{line.label} {gap_text(float(line.y[-1]))}" for line in ordered)


def _by_mean(curves: dict[str, Mean]) -> list[str]:
    return sorted(curves, key=lambda label: (float(curves[label].curve.mean()), label))
