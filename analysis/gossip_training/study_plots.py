"""Pictures of a study of policies: accuracy over traffic, and over time."""

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ddlopt.analysis.gossip_training.policies import label_of
from ddlopt.analysis.gossip_training.pushes import Alone, Period
from ddlopt.analysis.gossip_training.study import Estimate, Study

_COLOURS = (
    *("#1f6fb4", "#d95f02", "#3a9d5d", "#8c4a9e", "#b8860b", "#5f6b76", "#c0392b"),
    *("#17a2b8", "#7f5f3f", "#e377c2", "#9acd32", "#1b1b1b", "#f4a582", "#4d4dff"),
)
_MARKERS = "osD^vPX*<>phd8"
_NONE, _BASE = label_of(Alone()), label_of(Period(1))
_LINES = ("period", "adaptive")


def over_traffic(study: Study) -> Figure:
    """Final accuracy of the mean of models, and of workers, over traffic; bars are 95 % confidence intervals.

    Where gossip in every step was run, accuracy is the difference from it, paired by seed.
    """
    figure = Figure(figsize=(9.6, 3.9), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, field, title in zip(
        panels, ("averaged", "worker"), ("mean of the workers' models", "workers' models, on average"), strict=True
    ):
        _traffic_panel(axes, study, field, title)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8, frameon=False)
    figure.suptitle(_title(study), fontsize=11)
    return figure


def _traffic_panel(axes: Axes, study: Study, field: str, title: str) -> None:
    kinds: dict[str, list[str]] = {}
    for label in study.runs:
        if label != _NONE:
            kinds.setdefault(_kind(label), []).append(label)
    styles = _styles(kinds)
    for kind, labels in kinds.items():
        points = sorted((study.row(label).traffic.mean, _accuracy(study, label, field)) for label in labels)
        axes.errorbar(
            [traffic for traffic, _ in points],
            [100 * value.mean for _, value in points],
            yerr=[100 * np.nan_to_num(value.half) for _, value in points],
            color=styles[kind][0], marker=styles[kind][1], markersize=5,
            linewidth=1.2 if kind.startswith(_LINES) else 0, elinewidth=0.8, capsize=2, label=kind,
        )  # fmt: skip
    if _BASE in study.runs:
        axes.axhline(0.0, color="#999999", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("models that a worker sends in a step")
    axes.set_ylabel("accuracy on held-out samples (%)")
    sign = ""
    if _BASE in study.runs:
        axes.set_ylabel("accuracy minus that of gossip in every step", fontsize=9)
        sign = "+"
    if _NONE in study.runs:
        title += f"; no exchange: {100 * _accuracy(study, _NONE, field).mean:{sign}.2f}"
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.3)


def _accuracy(study: Study, label: str, field: str) -> Estimate:
    found = study.comparison(label, _BASE) if _BASE in study.runs else study.row(label)
    value: Estimate = getattr(found, field)
    return value


def _kind(label: str) -> str:
    """Of policies that differ in their main option alone."""
    name, _, settings = label.partition(":")
    return ", ".join([name, *settings.split(",")[1:]])


def over_time(study: Study) -> Figure:
    """Accuracy of the mean of models as training goes on, over time by the model; one policy of each kind."""
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    chosen: dict[str, str] = {}
    for label in study.runs:
        if label != _NONE:
            chosen.setdefault(_kind(label), label)
    styles = _styles(chosen)
    for kind, label in chosen.items():
        runs = study.runs[label]
        # A step of gossip in every step takes 1 + ratio times its computation.
        whole = (1.0 + study.ratio) * runs[0].steps
        times = np.mean([[m.steps + study.ratio * m.models for m in run.moments] for run in runs], axis=0) / whole
        means = 100 * np.mean([[m.averaged for m in run.moments] for run in runs], axis=0)
        axes.plot(times, means, color=styles[kind][0], marker=styles[kind][1], markersize=3, linewidth=1, label=label)
    axes.set_xscale("log")
    axes.set_xlabel("time over that of all steps of gossip in every step, without waiting")
    axes.set_ylabel("accuracy of the mean of models (%)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, frameon=False)
    axes.set_title(_title(study), fontsize=10)
    return figure


def _title(study: Study) -> str:
    training, seeds = study.training, len(next(iter(study.runs.values())))
    network = training.network
    return (
        f"{training.data}, {training.shards} shards, {network.nodes} workers, {len(network.edges)} edges, "
        f"{training.steps} steps, {seeds} seed{'s' * (seeds > 1)}"
    )


def _styles(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    return {
        name: (_COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)]) for place, name in enumerate(names)
    }
