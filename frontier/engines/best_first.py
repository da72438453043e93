"""Best-first search: the open nodes of a branch and bound by their bounds, and the bound that all of them prove."""

import heapq
from collections.abc import Iterator
from math import inf
from typing import Generic, NamedTuple, TypeVar

Node = TypeVar("Node")


class Entry(NamedTuple, Generic[Node]):
    """A node with its bound; of equal bounds the one with the least number is first."""

    bound: float
    number: int
    node: Node


class OpenNodes(Generic[Node]):
    """Nodes of a minimisation that may hold something better, the one of least bound first.

    Nodes that are not searched any further without proof that they hold nothing better (leaves of a relaxation, or
    those within a gap) are put off: their bounds stay part of what is proven.

    Attributes
    ----------
    put_off_at : float
        The least bound of nodes that were put off.
    """

    def __init__(self) -> None:
        self._heap: list[Entry[Node]] = []
        self._pushed = 0
        self.put_off_at = inf

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Node]:
        """The nodes, in no particular order but for the first, which has the least bound."""
        return (entry.node for entry in self._heap)

    def push(self, bound: float, node: Node) -> None:
        """Open a node; of nodes with equal bounds the one that was opened first is first."""
        heapq.heappush(self._heap, Entry(bound, self._pushed, node))
        self._pushed += 1

    def pop(self) -> tuple[float, Node]:
        """Take the node of least bound out, with its bound."""
        bound, _, node = heapq.heappop(self._heap)
        return bound, node

    def first(self) -> tuple[float, Node]:
        """The node of least bound, which stays, and its bound."""
        bound, _, node = self._heap[0]
        return bound, node

    def raise_first(self, bound: float) -> None:
        """Give the node of least bound a larger one; it keeps its place among those of equal bound."""
        entry = self._heap[0]
        heapq.heapreplace(self._heap, Entry(bound, entry.number, entry.node))

    def put_off(self, bound: float) -> None:
        """Note that a node with this bound is not searched any further."""
        self.put_off_at = min(self.put_off_at, bound)

    @property
    def least(self) -> float:
        """The least bound of an open node; infinite if there is none."""
        return self._heap[0].bound if self._heap else inf

    @property
    def bound(self) -> float:
        """What is proven of all that is not searched: the least bound of nodes that are open or put off."""
        return min(self.least, self.put_off_at)
