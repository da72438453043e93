"""Widths of jobs that are known for an interval, put into its slots."""

import math
from collections.abc import Mapping

import numpy as np

from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.models.scheduling.prices.knapsack import best_widths
from ddlopt.solvers.scheduling.slot.oracles import PoolBound
from ddlopt.solvers.scheduling.slot.rates import Ints

# Attempts of a randomized greedy, of milliseconds each.
_PACKINGS = 30


class Packer:
    """Puts given widths of jobs into the slots of an interval, a job once in each slot."""

    def __init__(self, instance: SchedulingInstance, rng: np.random.Generator) -> None:
        self._jobs = len(instance.jobs)
        bound = PoolBound(instance)
        self._costs, self._capacity = bound.costs[0], bound.capacities[0]
        self._rng = rng

    def pack(self, wanted: Mapping[int, list[int]], slots: int) -> Ints:
        """(slots, I) widths."""
        fewest, best = math.inf, np.zeros((slots, self._jobs), dtype=np.int64)
        total = sum(map(sum, wanted.values()))
        for attempt in range(_PACKINGS):
            urgency = 0.5 if attempt == 0 else float(self._rng.uniform(0.1, 3.0))
            widths = self._attempt({job: sorted(some) for job, some in wanted.items()}, slots, urgency)
            missing = total - int(widths.sum())
            if missing < fewest:
                fewest, best = missing, widths
            if not missing:
                break
        return best

    def _attempt(self, left: dict[int, list[int]], slots: int, urgency: float) -> Ints:
        """Slot after slot the fullest knapsack, of jobs first that need most of the slots left."""
        widths = np.zeros((slots, self._jobs), dtype=np.int64)
        for t in range(slots):
            jobs = list(left)
            if not jobs:
                break
            gains = []
            for job in jobs:
                part = len(left[job]) / (slots - t)
                row = np.full(max(left[job]) + 1, -np.inf)
                row[0] = 0.0
                for width in set(left[job]):
                    row[width] = width * (1 + urgency * part) + (1000.0 if part >= 1 else 0.0)
                gains.append(row)
            _, chosen = best_widths(gains, self._costs[jobs], self._capacity)
            for job, width in zip(jobs, chosen.tolist(), strict=True):
                if width:
                    widths[t, job] = width
                    left[job].remove(width)
                    if not left[job]:
                        del left[job]
        return widths
