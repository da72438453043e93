"""Exchange times as a path: a program for short trajectories, on which other solvers can be tried."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.gossip.exchange.instance import ExchangeInstance, ExchangeTimes, staleness
from ddlopt.models.linear import Rows, linear, total
from ddlopt.models.units import in_units, unit_of

MOST_STEPS = 300
"""Beyond, there are more than 45 000 segments."""


@dataclass(frozen=True)
class ExchangePath(FormulationBase):
    r"""A path from step 0 to step T whose arcs are the segments between sends.

    With :math:`x_{se} = 1` where the model is sent at s and next at e (or never again: e = T), and the staleness c(s,
    e) of steps s…e−1,

    .. math::
        \min \sum_{s < e} c_{se} x_{se} \quad\text{so that}\quad
        \sum_e x_{se} - \sum_e x_{es} &= [s = 0] \quad \text{for } s = 0, \dots, T - 1 \\
        \sum_{s \ge 1, e} x_{se} &\le m .

    With a price for each send in place of the last row, the rows are those of a shortest path, and the relaxation is
    integral. With the row, its value is the bound by a price: what the convex hull of staleness over sends gives at m.

    A segment that costs more than 1e8 units, and four times what a simple plan does, counts as if it cost just that.

    Ports
    -----
    ``chosen[s, e]``
        x.
    ``sent[t]``
        Expression for t = 1…T−1: 1 if the model is sent at t.
    ``objective``
        Staleness, and what sends cost, in units of :func:`unit`; to be minimised.

    References
    ----------
    A shortest path with a bounded number of arcs is folklore; its use for exchange times is ours.
    """

    covers: ClassVar[type[Instance]] = ExchangeInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: Any) -> str | None:
        """Long trajectories."""
        if instance.size > MOST_STEPS:
            return f"it has a variable for each segment of {instance.size} steps, at most {MOST_STEPS}"
        return None

    def build(self, block: pyo.Block, instance: ExchangeInstance) -> None:
        """Fill ``block``."""
        steps = instance.size
        arcs = [(s, e) for s in range(steps) for e in range(s + 1, steps + 1)]
        block.SEGMENTS = pyo.Set(dimen=2, initialize=arcs)
        block.SENDS = pyo.RangeSet(1, steps - 1)
        block.chosen = pyo.Var(block.SEGMENTS, domain=pyo.Binary, doc="1 if these are two sends in succession")
        x, scale = block.chosen, unit(instance)
        out: list[list[Any]] = [[] for _ in range(steps + 1)]
        into: list[list[Any]] = [[] for _ in range(steps + 1)]
        for s, e in arcs:
            out[s].append(x[s, e])
            into[e].append(x[s, e])
        block.sent = pyo.Expression(
            block.SENDS, rule=lambda _, t: total(into[t]).expression, doc="1 if the model is sent at t"
        )
        rows = Rows()
        for t in range(steps):
            rows["path_is_connected"][t] = total(out[t]) - total(into[t]) == int(t == 0)
        if instance.sends is not None:
            sends = total(variable for t in range(1, steps) for variable in out[t])
            rows["budget_is_respected"][None] = sends <= float(instance.sends)
        rows.add_to(
            block,
            path_is_connected="a segment begins where another one ends",
            budget_is_respected="the number of sends is limited",
        )
        costs, simple = [], _simple(instance)
        for s in range(steps):
            own = np.cumsum(staleness(instance.points[s:], (), instance.plain))
            # What is far staler than a simple plan is in no optimum, and a cost of 1e25 is none for a solver.
            costs += in_units(own + (instance.send_cost or 0.0) * (s > 0), scale, simple).tolist()
        block.objective = pyo.Expression(expr=linear(zip(costs, (x[arc] for arc in arcs), strict=True)))

    def start(self, block: pyo.Block, instance: ExchangeInstance, solution: ExchangeTimes) -> None:
        """Set ``chosen``."""
        ends = (0, *solution.times, instance.size)
        on = set(pairwise(ends))
        for arc, variable in block.chosen.items():
            variable.set_value(int(arc in on))

    def read(self, block: pyo.Block, instance: ExchangeInstance) -> ExchangeTimes:
        """The times.

        Raises
        ------
        SolverError
            If the segments chosen are no path.
        """
        ends = {s: e for (s, e), variable in block.chosen.items() if (variable.value or 0.0) > 0.5}
        place, times = 0, []
        while place < instance.size:
            if place not in ends:
                raise SolverError(f"no segment begins at step {place} of '{instance.name}'")
            place = ends[place]
            times.append(place)
        return ExchangeTimes(instance=instance.name, times=tuple(times[:-1]))

    def objective_value(self, instance: ExchangeInstance, value: float) -> float:
        """Staleness and cost of sends."""
        return value * unit(instance)


def unit(instance: ExchangeInstance) -> float:
    """A power of two near what steps are stale by at least, so that a point far off does not count.

    With at most m sends it is the sum of the T - 1 - m least distances of a point from those before; with a price of a
    send, the sum of these where they are less than the price, and else the price. Where that is 0, it is near the mean
    staleness without any send.
    """
    near = [float(staleness(instance.points[[s, t]], (), instance.plain)[1]) for s, t in _nearest(instance)]
    if instance.sends is not None:
        least = sum(sorted(near)[: max(0, len(near) - instance.sends)])
    else:
        least = sum(min(each, instance.send_cost or 0.0) for each in near)
    return unit_of(least, float(staleness(instance.points, (), instance.plain).mean()), parts=1)


def _simple(instance: ExchangeInstance) -> float:
    """The objective of sends where the way from the step before is longest, or longer than what a send costs."""
    jumps = [float(staleness(instance.points[t - 1 : t + 1], (), instance.plain)[1]) for t in range(1, instance.size)]
    first = sorted(range(1, instance.size), key=lambda t: (-jumps[t - 1], t))
    if instance.sends is not None:
        times = first[: instance.sends]
    else:
        times = [t for t in first if jumps[t - 1] > (instance.send_cost or 0.0)]
    stale = float(staleness(instance.points, tuple(sorted(times)), instance.plain).sum())
    return stale + (instance.send_cost or 0.0) * len(times)


def _nearest(instance: ExchangeInstance) -> list[tuple[int, int]]:
    """Every later step, with the step before it whose point is nearest."""
    points, found = instance.points, []
    for t in range(1, len(points)):
        found.append((int(((points[:t] - points[t]) ** 2).sum(axis=1).argmin()), t))
    return found
