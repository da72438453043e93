r"""Least congestion of a tree by states of subtrees, in whole numbers.

A state of a switch says for each job how many messages leave it, and how many pairs of job and switch aggregate at it
or below (in all, and of each job with a budget). Where an answer has congestion below t, its states are among those
that are found from the leaves up: of a switch, the sums of its children's, with or without aggregation for each set of
jobs that fits into its memory, without those whose link is busy for t or longer or that are beyond a budget. A state
that is nowhere below another one is left out: the rest of any answer does as well with the other. So where no state of
some switch is left, t is a bound. Rates and sizes are rounded down, which makes links no busier.
"""

from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.tree.instance import TreeInstance

_MOST_JOBS = 6
"""Whose sets are tried at each switch."""
_MOST_STATES = 200_000
"""Of a switch before those that are beaten are left out; with more, the limit is not excluded."""
_MOST_COMPARED = 1_500_000_000
"""Pairs of figures of states, in all tests together: some seconds."""
_TESTS = 40
"""Of limits."""
_NARROW = Fraction(1, 2**17)
"""Relative width of the interval with the bound in which limits are not tested further: a tenth of the usual gap."""
_BITS = 62
"""Of the whole numbers that are added up."""
_BLOCK = 256
"""States that are compared with all others at a time: arrays of some megabytes."""

Ints = npt.NDArray[np.int64]


class TreeStates:
    """Says of limits that no answer has less congestion."""

    def __init__(self, instance: TreeInstance) -> None:
        self.instance = instance
        self.left = _MOST_COMPARED
        """Comparisons until it gives up."""
        jobs = instance.jobs
        self._loads = np.array([job.loads for job in jobs], dtype=np.int64).T
        sizes = [Fraction(job.message_size) for job in jobs]
        most = sum(size * sum(job.loads) for size, job in zip(sizes, jobs, strict=True))
        self._unit = Fraction(2) ** (_BITS - 2 - int(most).bit_length())
        self._sizes = np.array([int(size * self._unit) for size in sizes], dtype=np.int64)
        limits = [(tuple(range(len(jobs))), instance.budget)]
        limits += [((j,), job.budget) for j, job in enumerate(jobs)]
        known = [(those, most) for those, most in limits if most is not None]
        self._counted = np.array([[j in those for those, _ in known] for j in range(len(jobs))], dtype=np.int64)
        pairs = len(jobs) * instance.size
        self._budgets = np.array([min(most, pairs) for _, most in known], dtype=np.int64)

    def excludes(self, limit: Fraction) -> bool:
        """Whether no answer is found to have less congestion than ``limit``."""
        waiting: dict[int, Ints] = {}
        jobs = len(self.instance.jobs)
        for node in reversed(self.instance.order):
            states = np.concatenate((self._loads[node], np.zeros(len(self._budgets), np.int64)))[np.newaxis]
            for child in self.instance.children[node]:
                others = waiting.pop(child)
                if len(states) * len(others) > _MOST_STATES:
                    return False
                states = (states[:, np.newaxis] + others).reshape(-1, states.shape[1])
                states = self._best(states[(states[:, jobs:] <= self._budgets).all(axis=1)])
            rate = Fraction(self.instance.seconds_per_message[node])
            room = min(-(-limit * self._unit // rate) - 1, 2**_BITS)
            sets = self._sets(node)
            if len(states) * len(sets) > _MOST_STATES:
                return False
            found = [self._kept(self._aggregated(states, chosen), room) for chosen in sets]
            states = self._best(np.concatenate(found))
            if not len(states):
                return True
            if self.left <= 0:
                return False
            waiting[node] = states
        return False

    def _sets(self, node: int) -> list[tuple[int, ...]]:
        """Jobs that fit into the memory of a switch together."""
        jobs, room = range(len(self.instance.jobs)), self.instance.room(node)
        needs = [job.memory for job in self.instance.jobs]
        every = (chosen for count in range(len(needs) + 1) for chosen in combinations(jobs, count))
        return [chosen for chosen in every if room is None or sum(needs[j] for j in chosen) <= room]

    def _aggregated(self, states: Ints, chosen: tuple[int, ...]) -> Ints:
        found = states.copy()
        jobs = len(self.instance.jobs)
        for j in chosen:
            found[:, j] = np.minimum(found[:, j], 1)
            found[:, jobs:] += self._counted[j]
        return found

    def _kept(self, states: Ints, room: int) -> Ints:
        """States within budgets whose link is not too busy."""
        jobs = len(self.instance.jobs)
        fits = (states[:, jobs:] <= self._budgets).all(axis=1) & (states[:, :jobs] @ self._sizes <= room)
        kept: Ints = states[fits]
        return kept

    def _best(self, states: Ints) -> Ints:
        """States that no other one is as good as."""
        states = np.unique(states, axis=0)
        # What beats a state has a smaller sum.
        states = states[np.argsort(states.sum(axis=1), kind="stable")]
        best = states[:0]
        for start in range(0, len(states), _BLOCK):
            block = states[start : start + _BLOCK]
            self.left -= (len(best) + len(block)) * block.size
            if self.left <= 0:
                return states
            block = block[~(best[:, np.newaxis] <= block).all(axis=2).any(axis=0)]
            beats: npt.NDArray[np.bool_] = np.all(block[:, np.newaxis] <= block, axis=2)
            np.fill_diagonal(beats, False)
            best = np.concatenate((best, block[~beats.any(axis=0)]))
        return best


def least_congestion(instance: TreeInstance, low: Fraction, high: Fraction) -> Fraction:
    """The largest bound found between ``low``, which is one, and ``high``, which an answer has."""
    if len(instance.jobs) > _MOST_JOBS:
        return low
    states = TreeStates(instance)
    for _ in range(_TESTS):
        if high - low <= _NARROW * low or states.left <= 0:
            break
        middle = Fraction(float(low + high) / 2)
        low, high = (middle, high) if states.excludes(middle) else (low, middle)
    return low
