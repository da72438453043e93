"""Picture of a hot set: every job's parameters from hot to cold, and the switch that each is on."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation import HotInstance, HotJob, HotSet, evaluate

MOST_LINES = 1500
"""Parameters of a job that are drawn; of more, some at even distances on the log scale."""

_NONE = "#d0d0d0"
# Of a row of height 1, so that rows do not touch.
_HEIGHT = 0.9


def draw(axes: Any, instance: HotInstance, solution: HotSet) -> None:
    """Draw a lane for each job, with a line for each parameter, as high as its frequency on a log scale.

    The line has the colour of the parameter's switch, and is grey where it is on none.
    """
    import matplotlib as mpl

    colours = mpl.colormaps["tab10"]
    touched = [job.frequencies[job.frequencies > 0] for job in instance.jobs]
    coldest = min((float(each.min()) for each in touched if each.size), default=1.0)
    decades = max(1.0, -math.log10(coldest))
    for number, job in enumerate(instance.jobs):
        lane = len(instance.jobs) - 1 - number
        parameters, ranks = _ranked(job)
        heights = _HEIGHT * np.maximum(0.02, 1 + np.log10(job.frequencies[parameters]) / decades)
        switch = np.full(len(job.frequencies), -1)
        for s, own in enumerate(solution.placed):
            switch[own[number]] = s
        for s in range(-1, len(instance.switches)):
            mine = switch[parameters] == s
            colour = _NONE if s < 0 else colours(s % 10)
            axes.vlines(ranks[mine], lane, lane + heights[mine], color=colour, linewidth=1.2)
    for s, each in enumerate(instance.switches):
        axes.plot([], [], color=colours(s % 10), linewidth=3, label=f"on {each.name} ({each.registers} registers)")
    share = evaluate(instance, solution).details.get("ingress_share")
    if share is not None:
        axes.set_title(f"{100 * float(share):.1f} % of what servers receive is saved", fontsize=10)
    axes.set_xscale("log")
    axes.set_ylim(-0.05, len(instance.jobs))
    axes.set_yticks(range(len(instance.jobs)), [job.name for job in reversed(instance.jobs)])
    axes.set_xlabel(f"parameter, by rank (height: frequency, 1 down to {coldest:.0e} on a log scale)")
    axes.legend(fontsize=7, framealpha=0.9, edgecolor="none", loc="upper right")


def _ranked(job: HotJob) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Parameters that are drawn, the hottest first, and their ranks from 1."""
    order = np.argsort(-job.frequencies, kind="stable")
    order = order[job.frequencies[order] > 0]
    ranks = np.arange(1, len(order) + 1)
    if len(order) > MOST_LINES:
        ranks = np.unique(np.geomspace(1, len(order), MOST_LINES).astype(np.int64))
    return order[ranks - 1], ranks
