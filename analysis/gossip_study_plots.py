"""Pictures of a study of policies: accuracy over traffic, and over time."""

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ddlopt.analysis.gossip_study import Row, Study

_COLOURS = (
    "#1f6fb4",
    "#d95f02",
    "#3a9d5d",
    "#8c4a9e",
    "#b8860b",
    "#5f6b76",
    "#c0392b",
    "#17a2b8",
    "#7f5f3f",
    "#e377c2",
)
_MARKERS = "osD^vPX*<>"
_NONE = "none"
_LINES = ("period", "adaptive")


def over_traffic(study: Study) -> Figure:
    """Final accuracy of the mean of models, and of workers, over traffic; bars are 95 % confidence intervals."""
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    panels = figure.subplots(1, 2)
    rows = study.rows()
    for axes, field, title in zip(
        panels, ("averaged", "worker"), ("mean of the workers' models", "workers' models, on average"), strict=True
    ):
        _traffic_panel(axes, rows, field)
        axes.set_title(title, fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8, frameon=False)
    figure.suptitle(_title(study), fontsize=11)
    return figure


def _traffic_panel(axes: Axes, rows: Iterable[Row], field: str) -> None:
    known: dict[str, list[Row]] = {}
    for row in rows:
        known.setdefault(_kind(row.policy), []).append(row)
    styles = _styles(name for name in known if name != _NONE)
    for name, members in known.items():
        if name == _NONE:
            level = getattr(members[0], field).mean
            axes.axhline(100 * level, color="#999999", linestyle=":", linewidth=1, label="no exchange")
            continue
        members = sorted(members, key=lambda row: row.traffic.mean)
        values = [getattr(row, field) for row in members]
        colour, marker = styles[name]
        axes.errorbar(
            [row.traffic.mean for row in members],
            [100 * value.mean for value in values],
            yerr=[100 * np.nan_to_num(value.half) for value in values],
            color=colour, marker=marker, markersize=5, linewidth=1.2 if name.startswith(_LINES) else 0,
            elinewidth=0.8, capsize=2, label=name,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlabel("models that a worker sends in a step")
    axes.set_ylabel("accuracy on held-out samples (%)")
    axes.grid(alpha=0.3)


def _kind(label: str) -> str:
    """Of policies that differ in their main option alone."""
    name, _, settings = label.partition(":")
    return ", ".join([name, *settings.split(",")[1:]])


def over_time(study: Study) -> Figure:
    """Accuracy of the mean of models as training goes on, over time by the model; one policy of each kind."""
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    chosen: dict[str, str] = {}
    for label, runs in study.runs.items():
        if label != _NONE:
            chosen.setdefault(runs[0].policy.name, label)
    adaptive = chosen.get("adaptive")
    chosen |= {label: label for label in study.controls.get(adaptive or "", ()) if label in study.runs}
    styles = _styles(chosen)
    for kind, label in chosen.items():
        runs = study.runs[label]
        # A step of gossip in every step takes 1 + ratio times its computation.
        whole = (1.0 + study.ratio) * runs[0].steps
        times = np.mean([[m.steps + study.ratio * m.models for m in run.moments] for run in runs], axis=0) / whole
        means = 100 * np.mean([[m.averaged for m in run.moments] for run in runs], axis=0)
        axes.plot(times, means, color=styles[kind][0], marker=styles[kind][1], markersize=3, linewidth=1, label=label)
    axes.set_xlabel("time over that of gossip in every step, without waiting")
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
