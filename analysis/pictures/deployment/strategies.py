"""Pictures of assignments of strategies: memory over time."""

from typing import Any

import numpy as np

from ddlopt.analysis.pictures.deployment.colours import BACKWARD
from ddlopt.models.deployment import StrategyAssignment, StrategyInstance


def draw(axes: Any, instance: StrategyInstance, solution: StrategyAssignment) -> None:
    """Draw the memory that all nodes keep, between any two moments at which it changes, and its limit."""
    used = np.array([instance.usages[node][strategy] for node, strategy in enumerate(solution.strategies)], dtype=float)
    first, last = instance.intervals.T
    alive = last > first
    moments = np.unique(np.concatenate([first[alive], last[alive]]))
    change = np.zeros(len(moments))
    np.add.at(change, np.searchsorted(moments, first[alive]), used[alive])
    np.add.at(change, np.searchsorted(moments, last[alive]), -used[alive])
    axes.fill_between(moments, np.cumsum(change), step="post", color=BACKWARD, linewidth=0)
    if instance.usage_limit is not None:
        axes.axhline(instance.usage_limit, color="black", linewidth=1)
        axes.text(moments[0], instance.usage_limit, "limit", fontsize=8, va="bottom")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("step of the schedule", fontsize=8)
    axes.set_ylabel("memory in use", fontsize=8)
    axes.tick_params(labelsize=7)
