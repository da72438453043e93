"""Water-filling: one price of error for all gradients, where nothing overlaps."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ddlopt.models.compression import LevelInstance, LevelPlan
from ddlopt.models.compression.levels.arrays import Floats, LevelArrays, arrays_of
from ddlopt.models.compression.levels.prices import PricedLevels, price_bound, sharpest_prices
from ddlopt.solvers.compression.levels.rounding import Rounding, places_of, plan, price_details, rounding_gap
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class WaterFilling(Heuristic, uses=("start",)):
    r"""Levels at which a second buys the same error everywhere, rounded.

    Where all gradients are ready at once and none is encoded, the time is :math:`R + \sum_i (b_i + b'_i l_i)`, and the
    optimum over real levels has one price :math:`\mu` of error. On an exponential curve :math:`s_i 4^{-l}`

    .. math:: l_i = \log_4 \frac{\mu\, s_i \ln 4}{b'_i}

    within its range: what gradients are left with, :math:`s_i 4^{-l_i}`, is in proportion to :math:`b'_i`, as in
    reverse water-filling over Gaussian sources. On a curve of points it is the point at which the slope passes
    :math:`b'_i / \mu`, and where it is equal the gradient may be anywhere on the piece. :math:`\mu` is found by
    bisection, without a solver (:meth:`~ddlopt.models.compression.levels.prices.PricedLevels.fill`). The bound is that
    of the prices over whole levels. Rounding: :class:`~ddlopt.solvers.compression.levels.rounding.Rounding`.

    Details: ``relaxation``, the optimum over real levels; ``rounding_gap``, what the answer is above it, relative to
    the answer; ``price_of_error`` in seconds, or ``price_of_time`` in error for a second.

    References
    ----------
    T. M. Cover and J. A. Thomas, "Elements of Information Theory", 2nd ed., Wiley 2006 (reverse water-filling).
    """

    covers: ClassVar[type[LevelInstance]] = LevelInstance

    proves_infeasible: ClassVar[bool] = True

    name = "water-filling"

    def refuses(self, instance: LevelInstance) -> str | None:
        """Gradients that are encoded or not ready at the same time."""
        if any(each.encode_s or each.encode_s_per_level for each in instance.gradients):
            return "its gradients are encoded, and water-filling knows no lane but the wire"
        if instance.gradients[0].ready_s != instance.gradients[-1].ready_s:
            return "its gradients are ready one after the other, and water-filling knows no overlap"
        return None

    def answer(self, instance: LevelInstance, seed: int, clock: Clock, start: LevelPlan | None) -> Answer[LevelPlan]:
        """See :class:`~ddlopt.solvers.heuristic.Heuristic`; the time limit stops the exchanges of the rounding."""
        arrays = arrays_of(instance)
        filling = PricedLevels(arrays, _first_row(arrays)).fill(whole=False)
        rounding = Rounding(arrays, _first_row(arrays), clock)
        starts = rounding.starts(filling.levels)
        if start is not None:
            starts.append(places_of(instance, arrays, start))
        places = rounding.best(starts)
        value = optimum(arrays, filling.levels)
        gap = rounding_gap(rounding.objective(places), value)
        details = {"relaxation": value, "rounding_gap": gap, **price_details(arrays.goal, filling.prices)}
        return plan(instance, arrays, places), details

    def certificate(self, instance: LevelInstance, solution: LevelPlan, clock: Clock) -> float:
        """The bound of the prices over whole levels."""
        arrays = LevelArrays(instance)
        return price_bound(arrays, sharpest_prices(arrays, _first_row(arrays)))


def _first_row(arrays: LevelArrays) -> Floats:
    """(n,) all weight on the row of the gradient that is sent first: everything is sent from there on."""
    rows = np.zeros(len(arrays.counts))
    rows[0] = 1.0
    return rows


def optimum(arrays: LevelArrays, levels: Floats) -> float:
    """Objective of (n,) real levels."""
    return arrays.time_s(levels) if arrays.goal == "time" else float(arrays.error_of(levels).sum())
