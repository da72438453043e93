"""One switch after the other, the one that gains most."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.aggregation.tree.evaluate import messages
from ddlopt.models.aggregation.tree.instance import AggregatingSwitches, TreeInstance
from ddlopt.models.aggregation.tree.tables import TreeTables, tables
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.aggregation.tree.limits import Spans, least_congestion
from ddlopt.solvers.aggregation.tree.strategies import Filling, Pair
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class TreeGreedy(Heuristic, uses=()):
    r"""The pair of job and switch that gains most, again and again.

    *Utilization.* Where :math:`n_v` messages arrive at v, and a is the next switch above v that aggregates (or the
    destination), v gains :math:`(n_v - 1)(P_v - P_a)` times the message size. Neither factor grows when others
    aggregate, so what is saved is submodular: an old gain bounds a new one, and is calculated anew only for the pair on
    top. With a budget alone the greedy saves at least :math:`1 - 1/e` of the most that can be saved (Nemhauser,
    Wolsey, Fisher 1978). After the last step, the largest gains that are left bound what any answer saves, which is the
    bound it gives.

    *Congestion* is not like that: one switch seldom relieves all links that are busiest. So, for a limit found by
    bisection, links are brought below it from the leaves up, by the pair that takes most from the link; this is exact
    for one job where all switches may aggregate.

    References
    ----------
    G. L. Nemhauser, L. A. Wolsey, M. L. Fisher, "An analysis of approximations for maximizing submodular set functions
    I", Mathematical Programming 14 (1978). The use here is ours.
    """

    name: ClassVar[str] = "tree-greedy"
    covers: ClassVar[type[TreeInstance]] = TreeInstance

    def answer(self, instance: TreeInstance, seed: int, clock: Clock, start: Any) -> Answer[AggregatingSwitches]:
        """The switches."""
        figures = tables(instance)
        if instance.goal == "congestion":
            return least_congestion(Spans(instance, figures), clock).answer(), {}
        return Gains(instance, figures).fill(all_pairs(figures), clock).answer(), {}

    def certificate(self, instance: TreeInstance, solution: AggregatingSwitches, clock: Clock) -> float | None:
        """For utilization, what is left at most to be saved."""
        if instance.goal == "congestion":
            return None
        figures = tables(instance)
        gains = Gains(instance, figures, solution)
        left = np.sort([gains.gain(pair) for pair in all_pairs(figures)])[::-1]
        most = gains.pairs_at_most
        return max(0.0, (gains.value - float(left[:most].sum())) * (1 - ROUNDING))


def all_pairs(figures: TreeTables) -> list[Pair]:
    """Every useful pair of job and switch."""
    return [(job, node) for job, each in enumerate(figures.useful) for node in np.flatnonzero(each).tolist()]


class Gains(Filling):
    """A filling that knows its utilization, ``value``, and what each further pair gains."""

    def __init__(
        self, instance: TreeInstance, figures: TreeTables, solution: AggregatingSwitches | None = None
    ) -> None:
        super().__init__(instance, figures)
        self.pairs_at_most = self.left
        self._parents = figures.parents.tolist()
        self._path = figures.path_s.tolist()
        self._sizes = [job.message_size for job in instance.jobs]
        for job, nodes in enumerate(solution.switches if solution is not None else ()):
            for node in nodes:
                super().take((job, node))
        self._sent = [messages(instance, job, chosen) for job, chosen in enumerate(self.chosen)]
        self.value = float(np.array(self._sizes) @ np.array(self._sent) @ np.array(instance.seconds_per_message))

    def gain(self, pair: Pair) -> float:
        """Seconds that a pair saves; 0 for one that is taken."""
        job, node = pair
        if node in self.chosen[job]:
            return 0.0
        above = self._next(job, node)
        spared = self._path[node] - (0.0 if above < 0 else self._path[above])
        gained: float = self._sizes[job] * (self._sent[job][node] - 1) * spared
        return gained

    def fill(self, pairs: Iterable[Pair], clock: Clock | None = None) -> "Gains":
        """Take pairs, that of the largest gain first, as long as any fits and gains."""
        waiting = [(-self.gain(pair), pair) for pair in pairs]
        heapq.heapify(waiting)
        while waiting and self.left > 0 and not (clock is not None and clock.expired):
            _, pair = waiting[0]
            now = -self.gain(pair)
            if now == 0 or not self.fits(pair):
                heapq.heappop(waiting)
            elif len(waiting) > 1 and now > min(waiting[1:3])[0]:
                heapq.heapreplace(waiting, (now, pair))
            else:
                heapq.heappop(waiting)
                self.take(pair)
        return self

    def take(self, pair: Pair) -> None:
        """Take a pair that fits."""
        job, node = pair
        above, less = self._next(job, node), self._sent[job][node] - 1
        self.value -= self.gain(pair)
        super().take(pair)
        while node != above and node >= 0:
            self._sent[job][node] -= less
            node = self._parents[node]

    def _next(self, job: int, node: int) -> int:
        """The next switch above that aggregates for the job; -1 for the destination."""
        node = self._parents[node]
        while node >= 0 and node not in self.chosen[job]:
            node = self._parents[node]
        return node
