"""Widths of jobs that are known for an interval, put into its slots."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import highspy
import numpy as np

from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.solvers.backends.silent_highs import SilentHighs
from ddlopt.solvers.scheduling.slot.knapsack_kernels import choose_widths
from ddlopt.solvers.scheduling.slot.oracles import PoolBound
from ddlopt.solvers.scheduling.slot.rates import Ints


@dataclass(frozen=True)
class Effort:
    """What an interval that is hard to pack may take."""

    packings: int = 30
    """Attempts of a randomized greedy, of milliseconds each."""
    exact_s: float = 5.0
    """Seconds for the exact program, which mostly takes a tenth of one."""
    largest: int = 20_000
    """Choices of a width in a slot up to which the exact program is asked."""


_EFFORT = Effort()


class Packer:
    """Puts given widths of jobs into the slots of an interval, a job once in each slot."""

    def __init__(self, instance: SchedulingInstance, rng: np.random.Generator) -> None:
        self._jobs = len(instance.jobs)
        bound = PoolBound(instance)
        self._costs, self._capacity = bound.costs[0], bound.capacities[0]
        self._rng = rng

    def pack(self, wanted: Mapping[int, list[int]], slots: int) -> Ints:
        """(slots, I) widths; those that the greedy does not place all are placed exactly, if that is possible."""
        fewest, best = math.inf, np.zeros((slots, self._jobs), dtype=np.int64)
        total = sum(map(sum, wanted.values()))
        for attempt in range(_EFFORT.packings):
            urgency = 0.5 if attempt == 0 else float(self._rng.uniform(0.1, 3.0))
            widths = self._attempt({job: sorted(some) for job, some in wanted.items()}, slots, urgency)
            missing = total - int(widths.sum())
            if missing < fewest:
                fewest, best = missing, widths
            if not missing:
                return best
        exact = self._exactly(wanted, slots)
        return best if exact is None else exact

    def _exactly(self, wanted: Mapping[int, list[int]], slots: int) -> Ints | None:
        """All widths in slots; None if that is impossible, or not found in time.

        A job that has the same width in all slots has it there, and each width of the others is in as many slots as it
        is wanted: at most one width of a job in a slot, no more workers than there is room for.
        """
        widths = np.zeros((slots, self._jobs), dtype=np.int64)
        counts = {job: Counter(some) for job, some in wanted.items()}
        for job in [job for job, count in counts.items() if slots in count.values()]:
            widths[:, job] = next(iter(counts.pop(job)))
        room = float(self._capacity - widths[0] @ self._costs)
        if slots * sum(map(len, counts.values())) > _EFFORT.largest:
            return None
        model = SilentHighs()
        for name, value in {"threads": 1, "time_limit": _EFFORT.exact_s}.items():
            model.setOptionValue(name, value)
        nothing = np.zeros(0, dtype=np.int32), np.zeros(0)

        def rows(count: int, low: float, high: float) -> int:
            first: int = model.getNumRow()
            for _ in range(count):
                model.addRow(low, high, 0, *nothing)
            return first

        rows(slots, -highspy.kHighsInf, room)
        placed: list[tuple[int, int, int]] = []
        for job, count in counts.items():
            once = rows(slots, 0.0, 1.0)
            for width, times in count.items():
                often = rows(1, times, times)
                for t in range(slots):
                    where = np.array([t, once + t, often], dtype=np.int32)
                    model.addCol(0.0, 0.0, 1.0, 3, where, np.array([width * self._costs[job], 1.0, 1.0]))
                    model.changeColIntegrality(len(placed), highspy.HighsVarType.kInteger)
                    placed.append((t, job, width))
        model.run()
        if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        for (t, job, width), value in zip(placed, model.getSolution().col_value, strict=True):
            if value > 0.5:
                widths[t, job] = width
        return widths

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
            starts = np.concatenate(([0], np.cumsum([len(row) for row in gains])))
            _, chosen = choose_widths(starts, np.concatenate(gains), self._costs[jobs], self._capacity)
            for job, width in zip(jobs, chosen.tolist(), strict=True):
                if width:
                    widths[t, job] = width
                    left[job].remove(width)
                    if not left[job]:
                        del left[job]
        return widths
