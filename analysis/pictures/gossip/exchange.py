"""Pictures of exchange times: how stale the model that others have is in every step."""

from typing import Any

import numpy as np

from ddlopt.models.gossip import ExchangeInstance, ExchangeTimes, evaluate
from ddlopt.models.gossip.exchange.instance import staleness

_STALE, _LINE, _SENT = "#9ecae1", "#1f6fb4", "#d95f02"


def draw(axes: Any, instance: ExchangeInstance, solution: ExchangeTimes) -> None:
    """Staleness over steps, with a mark at each send."""
    parts = staleness(instance.points, solution.times, instance.plain)
    steps = np.arange(instance.size)
    axes.fill_between(steps, parts, step="mid", color=_STALE, linewidth=0)
    axes.step(steps, parts, where="mid", color=_LINE, linewidth=0.8, label="staleness")
    axes.plot(
        solution.times, np.zeros(len(solution.times)), "|", color=_SENT, markersize=9, clip_on=False, label="send"
    )
    axes.set_xlim(0, max(1, instance.size - 1))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("step", fontsize=8)
    axes.set_ylabel("distance from the model sent last" + ("" if instance.plain else ", squared"), fontsize=8)
    axes.tick_params(labelsize=7)
    objective = evaluate(instance, solution).objective
    sends = len(solution.times)
    if objective is not None:
        cost = "" if instance.send_cost is None else f", with {instance.send_cost:g} for each"
        axes.set_title(f"{sends} sends{cost}: {float(objective):.5g}", fontsize=9)
    axes.legend(fontsize=7, frameon=False, loc="upper right")
