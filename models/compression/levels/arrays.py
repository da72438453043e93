"""Problems of levels as arrays, where a level may also be a fraction: what relaxations, rounding and bounds share."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.levels.instance import ExponentialCurve, LevelInstance, error_at
from ddlopt.models.compression.timeline.choices import paths
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

_LOG4 = float(np.log(4.0))


class Affine(NamedTuple):
    """(n,) times at level 0, and what each level adds."""

    fixed: Floats
    rate: Floats

    def at(self, levels: Floats) -> Floats:
        """(n,) times in seconds."""
        return self.fixed + self.rate * levels


class LevelArrays:
    """The figures of n gradients; tables are padded to the m levels of the longest by repeating the last.

    Parameters
    ----------
    instance : LevelInstance
    """

    def __init__(self, instance: LevelInstance) -> None:
        gradients = instance.gradients
        names = ("ready_s", "encode_s", "encode_s_per_level", "launch_s", "wire_s_per_level")
        figures = np.array([[getattr(each, name) for each in gradients] for name in names])
        self.ready_s: Floats = figures[0]
        self.encode = Affine(figures[1], figures[2])
        self.wire = Affine(figures[3], figures[4])
        self.counts: Places = np.array([len(each.curve.allowed) for each in gradients])
        """(n,) how many levels are allowed."""
        size = int(self.counts.max())
        self.levels: Floats = np.array([_padded(each.curve.allowed, size) for each in gradients], dtype=np.float64)
        """(n, m) allowed levels, increasing."""
        self.errors: Floats = np.array(
            [_padded([error_at(each.curve, level) for level in each.curve.allowed], size) for each in gradients]
        )
        """(n, m) errors at them."""
        self.lowest: Floats = self.levels[:, 0]
        self.highest: Floats = self.levels[:, -1]
        self.scale: Floats = np.array(
            [each.curve.scale if isinstance(each.curve, ExponentialCurve) else np.nan for each in gradients]
        )
        """(n,) of exponential curves; not a number for others."""
        self.goal = instance.goal
        budget = instance.kept_time_s
        if instance.goal == "time":
            assert instance.error_budget is not None
            # The least error may be more, by what the check lets pass.
            budget = max(instance.error_budget, float(self.errors[:, -1].sum()))
        assert budget is not None
        self.budget: float = budget
        """Of the error, or in seconds where the error is minimised."""

    def rows_s(self, levels: Floats) -> Floats:
        """(n,) rows of the timeline, for (n,) levels: ready, encoded up to there, sent from there on."""
        return paths(self.ready_s, self.encode.at(levels), self.wire.at(levels))

    def time_s(self, levels: Floats) -> float:
        """The largest of the rows."""
        return float(self.rows_s(levels).max())

    def error_of(self, levels: Floats) -> Floats:
        """(n,) errors; points are joined by lines."""
        found = self.scale * np.exp(-_LOG4 * levels)
        for k in np.flatnonzero(np.isnan(self.scale)):
            count = self.counts[k]
            found[k] = np.interp(levels[k], self.levels[k, :count], self.errors[k, :count])
        return found

    def levels_at(self, places: Places) -> Floats:
        """(n,) levels at places of the table."""
        found: Floats = self.levels[np.arange(len(places)), places]
        return found

    def errors_at(self, places: Places) -> Floats:
        """(n,) errors at places of the table."""
        found: Floats = self.errors[np.arange(len(places)), places]
        return found

    def fits(self, used: float) -> bool:
        """Whether an error, or a time where the error is minimised, is within the budget."""
        return used <= self.budget * (1 + ROUNDING)

    def least_time_s(self) -> float:
        """The time with every level at its lowest; no choice takes less."""
        return self.time_s(self.lowest)


def _padded(values: Sequence[float], size: int) -> list[float]:
    return [*values, *[values[-1]] * (size - len(values))]


def arrays_of(instance: LevelInstance) -> LevelArrays:
    """The arrays of an instance that has an answer.

    Raises
    ------
    InfeasibleError
        If the time budget is less than the least time, which is named: that of the lowest levels, and
        times grow with the levels. An error budget is checked by the instance.
    """
    arrays = LevelArrays(instance)
    if instance.goal == "error" and not arrays.fits(arrays.least_time_s()):
        raise InfeasibleError(
            f"'{instance.name}': time_budget_s is {instance.time_budget_s:.12g}, but no choice of levels takes less "
            f"than {arrays.least_time_s()!r} s"
        )
    return arrays
