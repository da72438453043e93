"""Trees job by job: nearest worker first, and by the rates that are left."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.models.contracts import Solution
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.solvers.aggregation.graph.arrays import Case, case_of
from ddlopt.solvers.aggregation.graph.kernels import forest as kernels
from ddlopt.solvers.aggregation.graph.kernels.forest import Forest
from ddlopt.solvers.aggregation.graph.kernels.messages import Prices
from ddlopt.solvers.aggregation.graph.search import first_trees, nearest_first
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

_SHARPNESS = 8
"""Power of 1 / rate that an arc costs: the slowest one decides, shorter ways count among equals."""


@dataclass(frozen=True)
class TakahashiMatsuyama(Heuristic, uses=("seed",)):
    """Of every job the Steiner tree of Takahashi and Matsuyama: the nearest worker first, each to the nearest node.

    A message may join where a switch aggregates, or has a free slot to begin; where it meets the tree elsewhere, it
    pays for the rest of its way too. Distances are seconds for a byte, whatever other jobs send. Jobs follow one
    another, the heaviest first.

    References
    ----------
    H. Takahashi, A. Matsuyama, "An approximate solution for the Steiner problem in graphs", Math. Japonica 24, 1980.
    """

    name: ClassVar[str] = "takahashi-matsuyama"
    covers: ClassVar[type[GraphInstance]] = GraphInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.aggregation.graph.kernels.forest",)

    def answer(self, instance: GraphInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """A tree for every job; other orders of jobs and workers where one is left without."""
        case = case_of(instance)
        return case.answer(first_trees(case, np.random.default_rng(seed), clock, sharpness=0.0)), {}


@dataclass(frozen=True)
class WaterFilling(Heuristic, uses=("seed",)):
    """For the goal *rates*: every job takes the widest tree beside the others' max-min rates; then each again.

    On an arc or in a switch, a job can count on what the others leave, or on an equal share with them if that is
    more. Its tree is one of cheap arcs, at prices that the smallest of these rates governs. After all jobs have one,
    each is taken out and sent anew, for as long as that raises the sum of rates (ours; with the water-filling by which
    INARouting compares routes).

    Parameters
    ----------
    passes : int
        Over all jobs, at most.
    """

    passes: int = 10

    name: ClassVar[str] = "water-filling"
    covers: ClassVar[type[GraphInstance]] = GraphInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.aggregation.graph.kernels.forest",)

    def refuses(self, instance: Any) -> str | None:
        """Other problems and goals."""
        reason = super().refuses(instance)
        if reason is None and instance.goal != "rates":
            return f"it raises rates, and the goal is {instance.goal}"
        return reason

    def answer(self, instance: GraphInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The trees after the last pass."""
        case, rng = case_of(instance), np.random.default_rng(seed)
        forest, order = case.forest(), case.heaviest_first()
        if not all(_widest(case, forest, j, rng) for j in order):
            forest = first_trees(case, rng, clock)
        best = kernels.objective(case.net, case.demand, forest)
        for _ in range(self.passes):
            before = best
            for j in order:
                if clock.expired:
                    break
                kept = case.forest(1)
                kernels.copy_job(forest, j, kept, 0)
                kernels.remove_job(case.net, case.demand, forest, j)
                if _widest(case, forest, j, rng):
                    value = kernels.objective(case.net, case.demand, forest)
                    if value < best - IMPROVEMENT_TOL * abs(best):
                        best = value
                        clock.report(-best)
                        continue
                    kernels.remove_job(case.net, case.demand, forest, j)
                kernels.copy_job(kept, 0, forest, j)
                kernels.insert_job(case.net, case.demand, forest, j)
            if best == before or clock.expired:
                break
        return case.answer(forest), {}


def _widest(case: Case, forest: Forest, j: int, rng: np.random.Generator) -> bool:
    """Send a job that is not in the network; whether there is a way."""
    arcs, switches = _left_over(case, forest)
    fastest = float(arcs.max())
    prices = case.prices(forest, j, 0.0, None, 0.0)
    ending = np.where(case.net.switch_s > 0, (fastest / switches) ** _SHARPNESS, 0.0)
    widest = Prices((fastest / arcs) ** _SHARPNESS, ending, prices.opening)
    for hub in (-1.0, *rng.random(4)):
        draw = nearest_first(case, j) if hub < 0 else rng.random(case.most_workers)
        if kernels.route_job(case.net, case.demand, case.rules, forest, j, widest, draw, hub):
            return True
    return False


def _left_over(case: Case, forest: Forest) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Rates that one more message could have on every arc, (m,), and one more job in every switch, (n,)."""
    rates = max_min(case, forest)
    counts = np.hstack([forest.messages, (forest.ended > 0) & (case.net.switch_s > 0)]).astype(float)
    with np.errstate(divide="ignore"):
        capacity = 1 / np.concatenate([case.net.link_s, case.net.switch_s])
    free = np.where(np.isfinite(capacity), capacity - rates @ counts, np.inf)
    share = capacity / (counts.sum(axis=0) + 1)
    left = np.maximum(free, share)
    return left[: len(case.net.link_s)], left[len(case.net.link_s) :]


def max_min(case: Case, forest: Forest) -> npt.NDArray[np.float64]:
    """Rate of each job where all grow together until a link or a switch on their way is full; 0 of those not sent."""
    counts = np.hstack([forest.messages, (forest.ended > 0) & (case.net.switch_s > 0)]).astype(float)
    with np.errstate(divide="ignore"):
        capacity = 1 / np.concatenate([case.net.link_s, case.net.switch_s])
    used = np.isfinite(capacity) & (counts.sum(axis=0) > 0)
    counts, left = counts[:, used], capacity[used]
    rates = np.zeros(len(counts))
    growing = counts.any(axis=1)
    while growing.any():
        load = counts[growing].sum(axis=0)
        growth = np.divide(left, load, out=np.full(len(left), np.inf), where=load > 0)
        level = growth.min()
        full = counts[:, growth <= level * (1 + IMPROVEMENT_TOL)].any(axis=1) & growing
        rates[full] = level
        left = left - level * counts[full].sum(axis=0)
        growing &= ~full
    return rates
