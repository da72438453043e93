"""Numbers for how many messages of each group have been joined, as the kernels for trees want them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import mul

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class States:
    """All states of a job: numbers in mixed radix, with a digit for each group.

    Parameters
    ----------
    sizes : sequence of int
        Messages of each group.
    places : sequence of int
        Where those of each group start.
    workers : set of int
        Those of the places that are a worker themselves, which adds its own gradient without a message.
    """

    sizes: Sequence[int]
    places: Sequence[int]
    workers: frozenset[int]

    @property
    def pairs(self) -> int:
        """Pairs of a state and a part of it."""
        return math.prod((size + 1) * (size + 2) // 2 for size in self.sizes)

    @cached_property
    def digits(self) -> list[tuple[int, ...]]:
        """Messages of each group in each state; the first group counts fastest."""
        return [tuple(reversed(each)) for each in product(*(range(size + 1) for size in reversed(self.sizes)))]

    @cached_property
    def order(self) -> Ints:
        """States but the empty one, those with fewer messages first."""
        totals = np.array([sum(state) for state in self.digits])
        return np.argsort(totals, kind="stable")[1:].astype(np.int64)

    @cached_property
    def leading(self) -> tuple[Ints, Ints]:
        """Parts of each state with a message of its first group: where they begin, and all of them."""
        return self._listed(leading=True)

    @cached_property
    def parts(self) -> tuple[Ints, Ints]:
        """All parts of each state but the empty one, in the same form."""
        return self._listed(leading=False)

    def _listed(self, leading: bool) -> tuple[Ints, Ints]:
        strides = np.cumprod([1, *(size + 1 for size in self.sizes)])[:-1].tolist()
        at, found = [0], list[int]()
        for state in self.digits:
            first = next((g for g, number in enumerate(state) if number), None)
            if first is not None:
                ranges = [range(int(leading and g == first), number + 1) for g, number in enumerate(state)]
                numbers = (sum(map(mul, part, strides)) for part in product(*ranges))
                found += [number for number in numbers if number]
            at.append(len(found))
        return np.array(at, dtype=np.int64), np.array(found, dtype=np.int64)

    @cached_property
    def start(self) -> Ints:
        """Where a state of one message starts, -1 for the others."""
        alone = np.array([sum(state) == 1 for state in self.digits])
        found: Ints = np.where(alone, self.home, -1)
        return found

    @cached_property
    def home(self) -> Ints:
        """Where all messages of a state start, -1 if there are several such places, or no messages."""
        groups = [[g for g, number in enumerate(state) if number] for state in self.digits]
        return np.array([self.places[each[0]] if len(each) == 1 else -1 for each in groups], dtype=np.int64)

    @cached_property
    def own(self) -> Ints:
        """Of a state that is a worker itself, where that is; -1 for the others."""
        found: Ints = np.where(np.isin(self.start, sorted(self.workers)), self.start, -1)
        return found

    def local(self, ending: Floats) -> Floats:
        """(states,) cost of ending all messages of a state where they start, from (nodes,) costs of one."""
        costs = np.where(np.isin(self.home, sorted(self.workers)), 0.0, ending[self.home])
        found: Floats = costs * np.array([sum(state) for state in self.digits])
        return found
