"""Pictures of periods: the time to the target over the period."""

from math import isfinite
from typing import Any

import numpy as np

from ddlopt.models.gossip import evaluate
from ddlopt.models.gossip.period.instance import PeriodInstance
from ddlopt.models.gossip.period.time_to_target import TimeToTarget

_LINE, _PLAN = "#1f6fb4", "#d95f02"


def draw(axes: Any, instance: PeriodInstance, solution: Any) -> None:
    """Time with the best step size at each period, and with the plan's; mixing as the plan has it."""
    found = evaluate(instance, solution)
    if found.objective is None:
        axes.set_title("the plan does not reach the target", fontsize=9)
        return
    times = TimeToTarget.of(instance)
    communication_s, mixing = float(found.details["communication_s"]), float(found.details["mixing"])
    periods = np.geomspace(1.0, max(8.0, 6.0 * solution.period), 300)
    seconds = np.array([times.seconds(float(period), communication_s, mixing) for period in periods])
    shown = np.isfinite(seconds)
    label = "step size as given" if instance.step_size is not None else "best step size at each period"
    axes.plot(periods[shown], seconds[shown], color=_LINE, label=label)
    if instance.whole:
        whole = np.arange(1.0, periods[-1])
        at = [times.seconds(float(period), communication_s, mixing) for period in whole]
        axes.plot(whole, [value if isfinite(value) else np.nan for value in at], ".", color=_LINE, ms=4)
    axes.plot([solution.period], [float(found.objective)], "o", color=_PLAN, label=f"τ = {solution.period:.4g}")
    axes.set_xscale("log")
    axes.set_ylim(0.9 * seconds.min(), min(seconds[shown].max() * 1.05, 4.0 * seconds.min()))
    axes.set_xlabel("period τ (steps)")
    axes.set_ylabel("time to the target (s)")
    axes.set_title(f"ρ = {mixing:.4g}, C = {communication_s:.4g} s", fontsize=9)
    axes.legend(fontsize=7, frameon=False)
