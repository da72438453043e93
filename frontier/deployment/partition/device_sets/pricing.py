"""Sets of blocks of the least value for one kind of device."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.certificates.deployment.partition.device_sets.cases import ONE, DeviceSets
from ddlopt.frontier.deployment.partition.device_sets import kernels

Floats = npt.NDArray[np.float64]

_CLIMB = 40
"""Rounds of steps along the axes."""
_MOST_SETS = 40
"""That one call returns."""


class Priced(NamedTuple):
    """Sets by their places of groups, the best first; no set, the empty one neither, has a value below ``least``."""

    least: float
    sets: list[tuple[int, ...]]
    complete: bool


class Pricing:
    """Finds sets that are worth more than a price, by labels along a walk.

    The multipliers of load and memory with which labels are given up are kept from call to call.
    """

    def __init__(self, sets: DeviceSets) -> None:
        walk, n = sets.walk, len(sets.walk.line)
        states = np.array([*map(len, walk.after), 1], dtype=np.int64)
        after, moved = np.full((n, states.max(), 2), -1), np.zeros((n, states.max(), 2), dtype=np.int64)
        for place in range(n):
            after[place, : states[place]] = walk.after[place]
            moved[place, : states[place]] = walk.moved[place]
        time = np.array([-1 if each is None else each for each in sets.time], dtype=np.int64)
        memory = np.array(sets.memory, dtype=np.int64)
        self._line = np.array(walk.line)
        self._sets = kernels.Sets(after, moved, states, time, memory, float(sets.counted), ONE)
        self.multipliers = 0.5, 0.0

    def better(self, prices: Floats, below: float, most: int) -> Priced:
        """Sets whose value is below ``below``, which is at most 0, of ``most`` labels at a place.

        Parameters
        ----------
        prices : (groups,) array
        """
        own = np.ascontiguousarray(prices[self._line])
        alpha, beta, bound = kernels.climb(self._sets, own, *self.multipliers, _CLIMB)
        self.multipliers = alpha, beta
        if bound >= below:
            return Priced(min(bound, 0.0), [], True)
        pairs = np.array([(alpha, beta), (0.0, 0.0), (2 * alpha, beta), (alpha, 2 * beta), (alpha / 2, beta / 2)])
        hopes = np.stack([kernels.hope(self._sets, own, a, b) for a, b in pairs])
        zero = np.zeros(1, dtype=np.int64)
        layers, complete = [kernels.Labels(np.zeros(1), *(zero,) * 5)], True
        for v in range(len(own)):
            following = np.ascontiguousarray(hopes[:, v + 1])
            labels = kernels.extended(self._sets, v, layers[-1], own[v], pairs, following, below)
            if len(labels.value) > most:
                complete = False
                promise = labels.value + following[0, labels.state] + alpha * labels.load + beta * labels.memory
                kept = np.argpartition(promise, most)[:most]
                labels = kernels.Labels(*(each[kept] for each in labels))
            layers.append(labels)
        value = layers[-1].value
        best = np.argsort(value, kind="stable")[:_MOST_SETS]
        least = bound if not complete else min(float(value.min(initial=0.0)), 0.0) if len(value) else below
        return Priced(min(least, 0.0), [self._traced(layers, int(each)) for each in best], complete)

    def _traced(self, layers: list[kernels.Labels], label: int) -> tuple[int, ...]:
        found = []
        for place in range(len(layers) - 1, 0, -1):
            if layers[place].inside[label]:
                found.append(int(self._line[place - 1]))
            label = layers[place].source[label]
        return tuple(sorted(found))
