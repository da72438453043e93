"""Operators duplicated or not one by one: what each change costs, and greedy passes that respect budgets."""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression import SfbInstance
from ddlopt.solvers.compression.sfb.costs import CostGraph, Costs

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def budgets_of(instance: SfbInstance) -> tuple[Floats, Floats]:
    """(k, n) what duplicating an operator takes of each budget there is, and (k,) the budgets: memory, computation."""
    memory = np.array([each.memory_bytes for each in instance.operators])
    both = ((memory, instance.memory_budget_bytes), (instance.extra_s, instance.compute_budget_s))
    given = [(use, limit) for use, limit in both if limit is not None]
    return np.array([use for use, _ in given]).reshape(-1, instance.size), np.array(
        [float(limit) for _, limit in given]
    )


class Moves:
    """A selection that changes by one operator at a time, and the room that it leaves in the budgets.

    Parameters
    ----------
    graph : CostGraph
    costs : Costs
    duplicated : (n,) bool array
        Where to begin; it is not changed.
    use, limits : (k, n) and (k,) float arrays
        What duplicating an operator takes of each budget, and the budgets.
    """

    def __init__(self, graph: CostGraph, costs: Costs, duplicated: Bools, use: Floats, limits: Floats) -> None:
        self._graph = graph
        self._extra, self._sync, self._broadcast = (each.tolist() for each in costs)
        self._once = graph.instance.broadcast == "per_tensor"
        tensor, consumer = graph.instance.edges
        self._wanting = np.bincount(tensor, duplicated[consumer], len(graph.instance.producers)).astype(int).tolist()
        self._use, self._limits = use, limits
        self._duplicated: list[bool] = duplicated.tolist()
        self._room = limits - use @ duplicated

    @property
    def duplicated(self) -> Bools:
        """(n,) the selection."""
        return np.array(self._duplicated)

    def drop(self) -> None:
        """Duplicate fewer operators until budgets hold, those first that cost least for what they free.

        What they free is measured in parts of what is too much. Operators that this makes a waste go too.
        """
        with np.errstate(divide="ignore"):
            shares = np.where(self._room < 0, -1 / self._room, 0.0)
        freed = shares @ self._use

        def rank(node: int) -> float | None:
            if not self._duplicated[node]:
                return None
            change = self.change(node)
            if change < 0:
                return change
            return change / freed[node] if freed[node] > 0 and (self._room < 0).any() else None

        self._pass(rank)

    def fill(self) -> None:
        """Duplicate more operators that save something and fit, those first that save most for what they take."""
        with np.errstate(divide="ignore"):
            shares = np.where(self._room > 0, 1 / self._room, 0.0)
        taken = shares @ self._use + 1 / len(self._duplicated)
        eligible = self._graph.instance.eligible

        def rank(node: int) -> float | None:
            if self._duplicated[node] or not eligible[node] or (self._use[:, node] > self._room).any():
                return None
            change = self.change(node)
            return change / taken[node] if change < 0 else None

        self._pass(rank)

    def change(self, node: int) -> float:
        """What it costs more to duplicate the operator, or to duplicate it no longer."""
        there = self._duplicated[node]
        more: float = self._extra[node] - self._sync[node]
        for tensor in self._graph.reads[node]:
            if not self._duplicated[self._graph.instance.producers[tensor]] and not (
                self._once and self._wanting[tensor] > there
            ):
                more += self._broadcast[tensor]
        for tensor in self._graph.writes[node]:
            wanting = self._wanting[tensor]
            more -= self._broadcast[tensor] * (min(wanting, 1) if self._once else wanting)
        return -more if there else more

    def flip(self, node: int) -> None:
        """Duplicate the operator, or no longer."""
        there = self._duplicated[node]
        self._duplicated[node] = not there
        self._room += self._use[:, node] if there else -self._use[:, node]
        for tensor in self._graph.reads[node]:
            self._wanting[tensor] += -1 if there else 1

    def _pass(self, rank: Callable[[int], float | None]) -> None:
        """Flip operators, always that of the least rank, until none has a rank; once each at most."""
        heap = [(value, node) for node in range(len(self._duplicated)) if (value := rank(node)) is not None]
        heapify(heap)
        while heap:
            value, node = heappop(heap)
            if rank(node) != value:
                continue
            self.flip(node)
            for other in self._touched(node):
                if other != node and (fresh := rank(other)) is not None:
                    heappush(heap, (fresh, other))

    def _touched(self, node: int) -> Iterator[int]:
        """Operators whose change is another one after a flip of this."""
        tensors = self._graph.instance.tensors
        for tensor in self._graph.reads[node]:
            yield tensors[tensor].producer
            yield from tensors[tensor].consumers
        for tensor in self._graph.writes[node]:
            yield from tensors[tensor].consumers
