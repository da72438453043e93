"""Congestion of several jobs in a tree: links are brought below a limit, from the leaves up."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.aggregation.tree.instance import AggregatingSwitches, TreeInstance, refusal
from ddlopt.models.aggregation.tree.tables import TreeTables, tables
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.solvers.aggregation.tree.strategies import Filling
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    bisections: int = 30
    """Thirty halvings are a billionth of the range."""
    least_weight: float = 0.4
    """So that orders change, but the small gains do not come first; not tuned."""
    step: float = 1e-3
    """Least part by which a congestion is to become smaller at once."""


_EFFORT = Effort()


@dataclass(frozen=True)
class TreeLimits(Heuristic, uses=("seed",)):
    """The greedy for congestion, again and again with gains that are in part random.

    Each round looks for an answer that is better by a thousandth, and by twice as much after each that finds one.

    Parameters
    ----------
    rounds : int
    """

    rounds: int = 200

    name: ClassVar[str] = "tree-limits"
    covers: ClassVar[type[TreeInstance]] = TreeInstance

    def refuses(self, instance: Any) -> str | None:
        """Utilization."""
        return refusal(instance, "congestion")

    def answer(self, instance: TreeInstance, seed: int, clock: Clock, start: Any) -> Answer[AggregatingSwitches]:
        """The switches."""
        spans, rng = Spans(instance, tables(instance)), np.random.default_rng(seed)
        best = least_congestion(spans, clock)
        value, step = best.objective(), _EFFORT.step
        clock.report(value)
        for _ in range(self.rounds):
            if clock.expired:
                break
            found = spans.within(value * (1 - step), rng)
            if found is None:
                step = max(_EFFORT.step, step / 2)
            else:
                best, value, step = found, found.objective(), 2 * step
                clock.report(value)
        return best.answer(), {}


def least_congestion(spans: "Spans", clock: Clock) -> Filling:
    """The answer of the greedy for the least limit for which it finds one, by bisection."""
    best = Filling(spans.instance, spans.figures)
    high, low = best.objective(), 0.0
    for _ in range(_EFFORT.bisections):
        limit = (low + high) / 2
        found = spans.within(limit)
        if found is None:
            low = limit
        else:
            best, high = found, found.objective()
        if clock.expired or high - low <= IMPROVEMENT_TOL * high:
            break
    return best


class Spans:
    """Switches in preorder, where each subtree is a span."""

    def __init__(self, instance: TreeInstance, figures: TreeTables) -> None:
        self.instance, self.figures = instance, figures
        size = np.ones(instance.size, dtype=np.int64)
        for node in instance.order[:0:-1]:
            size[figures.parents[node]] += size[node]
        self._size, self._line = size, np.empty(instance.size, dtype=np.int64)
        self._place = np.zeros(instance.size, dtype=np.int64)
        for node in instance.order:
            after = self._place[node] + 1
            self._line[after - 1] = node
            for child in instance.children[node]:
                self._place[child] = after
                after += size[child]
        self._sizes = np.array([job.message_size for job in instance.jobs])

    def within(self, limit: float, rng: np.random.Generator | None = None) -> Filling | None:
        """Pairs with which no link is busy longer than the limit; None if not found.

        With ``rng`` the choices are those of gains that are each a random part of what they are.
        """
        instance, figures = self.instance, self.figures
        filling = Filling(instance, figures)
        sent = np.array([job.loads for job in instance.jobs], dtype=np.int64)
        hidden = ~figures.useful
        weights = np.ones(sent.shape) if rng is None else rng.uniform(_EFFORT.least_weight, 1.0, sent.shape)
        for node in reversed(instance.order):
            span = self._line[self._place[node] : self._place[node] + self._size[node]]
            while instance.seconds_per_message[node] * float(self._sizes @ sent[:, node]) > limit:
                gains = np.where(hidden[:, span], 0.0, self._sizes[:, None] * weights[:, span] * (sent[:, span] - 1))
                job, place = divmod(int(gains.argmax()), len(span))
                chosen = int(span[place])
                if gains[job, place] <= 0:
                    return None
                if not filling.fits((job, chosen)):
                    hidden[job, chosen] = True
                    continue
                filling.take((job, chosen))
                below = self._line[self._place[chosen] : self._place[chosen] + self._size[chosen]]
                hidden[job, below] = True
                less, up = sent[job, chosen] - 1, chosen
                while up != node:
                    sent[job, up] -= less
                    up = int(figures.parents[up])
                sent[job, node] -= less
            above = figures.parents[node]
            if above >= 0:
                sent[:, above] += sent[:, node]
        return filling
