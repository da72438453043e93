"""Solutions that are known while a solve runs, for whoever keeps them in case that it does not end by itself.

A method tells them with :meth:`~ddlopt.solvers.heuristic.Clock.report`; what passes the gate, also of a method that
another one asks, is told by the gate. Where nobody keeps them, telling costs nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from ddlopt.models.contracts import Solution

Told = Solution | Callable[[], Solution]
"""A solution, or what makes it where somebody wants it."""


class Keeper(Protocol):
    """Whoever keeps solutions; it looks itself whether they answer its instance."""

    def __call__(self, objective: float, solution: Told) -> None:
        """Keep the solution if it is better than what was kept."""


_keepers: list[Keeper] = []


@contextmanager
def kept_by(keeper: Keeper) -> Iterator[None]:
    """Tell of solutions meanwhile; of several keepers, one within the other, the last is told."""
    _keepers.append(keeper)
    try:
        yield
    finally:
        _keepers.remove(keeper)


def tell(objective: float, solution: Told) -> None:
    """Tell a solution and its objective, in the unit of its instance, to whoever keeps them."""
    if _keepers:
        _keepers[-1](objective, solution)
