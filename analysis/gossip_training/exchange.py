"""What a policy of exchange is: it sees all models after a step of SGD, moves them, and says what was sent."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import OptionError
from ddlopt.models.gossip.network import Network

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Sent(NamedTuple):
    """What each worker sent in a step.

    ``messages``: (n,) their number. ``models``: (n,) models' worth of numbers. ``links``: (n, n) models' worth from
    each to each, to a server on the diagonal; none where it goes round a ring. ``together``: whether it is an
    all-reduce, which nobody has before all have begun.
    """

    messages: Floats
    models: Floats
    links: Floats
    together: bool = False


Exchange = Callable[[Floats, int, float], Sent]
"""Moves models (n, d) in place after the given step, whose learning rate is the last argument."""


@dataclass(frozen=True)
class Place:
    """Where a policy works.

    Parameters
    ----------
    network : Network
    first : (n, d) array
        The models at the beginning.
    tensors : tuple of slice
        Of a model.
    rng : Generator
        For all that the policy draws.
    """

    network: Network
    first: Floats
    tensors: tuple[slice, ...]
    rng: np.random.Generator

    @property
    def workers(self) -> int:
        """Their number."""
        return len(self.first)

    def nothing(self) -> Sent:
        """No message."""
        n = self.workers
        return Sent(np.zeros(n), np.zeros(n), np.zeros((n, n)))

    @cached_property
    def adjacency(self) -> Floats:
        """(n, n) 1 for neighbours."""
        found = np.zeros((self.workers, self.workers))
        a, b = self.network.ends.T
        found[a, b] = found[b, a] = 1.0
        return found

    def to_neighbours(self, messages: Floats, models: Floats) -> Sent:
        """(n,) messages with (n,) models' worth in all, as much for each neighbour."""
        return Sent(messages, models, self.adjacency * (models / self.network.degrees)[:, None])

    @cached_property
    def _neighbours(self) -> Ints:
        """(n, largest degree) neighbours of each worker, in order; the places beyond its degree are unused."""
        network = self.network
        found = np.zeros((network.nodes, int(network.degrees.max())), dtype=np.int64)
        for node in range(network.nodes):
            near = sorted(network.graph[node])
            found[node, : len(near)] = near
        return found

    def peers(self) -> Ints:
        """(n,) a random neighbour of each worker."""
        degrees = self.network.degrees
        drawn = (self.rng.random(self.workers) * degrees).astype(np.int64)
        return self._neighbours[np.arange(self.workers), drawn]


@dataclass(frozen=True)
class Policy(ABC):
    """When who sends what to whom; fields are its options."""

    name: ClassVar[str]
    main: ClassVar[str | None] = None
    """The option whose name need not be written; by default the first."""

    @abstractmethod
    def begin(self, place: Place) -> Exchange:
        """The exchange of one training."""

    def _at_least(self, name: str, low: float) -> None:
        if not getattr(self, name) >= low:
            raise OptionError(f"{self.name}: {name} is {getattr(self, name):g}; expected at least {low:g}")

    def _within(self, name: str, low: float, high: float) -> None:
        if not low < getattr(self, name) <= high:
            raise OptionError(
                f"{self.name}: {name} is {getattr(self, name):g}; expected above {low:g}, at most {high:g}"
            )

    def _one_of(self, name: str, known: tuple[str, ...]) -> None:
        if getattr(self, name) not in known:
            raise OptionError(f"{self.name}: {name} is '{getattr(self, name)}'; expected one of {', '.join(known)}")
