"""The same rank, number of bits or density for every gradient."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ddlopt.models.compression import LevelInstance, LevelPlan
from ddlopt.models.compression.levels.arrays import arrays_of
from ddlopt.models.compression.levels.uniform import uniform_coordinates, uniform_places
from ddlopt.solvers.compression.levels.rounding import plan
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class UniformLevels(Heuristic, uses=()):
    """What practitioners do: one rank, one number of bits, one part of the entries for all gradients.

    A gradient whose levels do not go as far stays at its last one. The number is the smallest that keeps a budget of
    error, or the largest that keeps one of time. With several compressors in an instance each is at the same part of
    the largest rank, number or part that any of its gradients has
    (:func:`~ddlopt.models.compression.levels.uniform.uniform_coordinates`).

    Details: ``part``, of the largest.
    """

    covers: ClassVar[type[LevelInstance]] = LevelInstance

    proves_infeasible: ClassVar[bool] = True

    name = "uniform"

    def answer(self, instance: LevelInstance, seed: int, clock: Clock, start: LevelPlan | None) -> Answer[LevelPlan]:
        """See :class:`~ddlopt.solvers.heuristic.Heuristic`."""
        arrays = arrays_of(instance)
        table = uniform_coordinates(instance)
        parts = np.unique(table)
        by_time = arrays.goal == "time"
        low, high = 0, len(parts) - 1
        while low < high:  # more is less error and more time
            middle = (low + high) // 2 if by_time else (low + high + 1) // 2
            places = uniform_places(arrays, table, float(parts[middle]))
            time, error = arrays.time_s(arrays.levels_at(places)), float(arrays.errors_at(places).sum())
            if by_time:
                low, high = (low, middle) if arrays.fits(error) else (middle + 1, high)
            else:
                low, high = (middle, high) if arrays.fits(time) else (low, middle - 1)
        places = uniform_places(arrays, table, float(parts[low]))
        return plan(instance, arrays, places), {"part": float(parts[low])}
