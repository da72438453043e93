"""What the knapsack of widths takes of a cluster: the one resource that can run short, in whole parts."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.models.scheduling.pool import Pool
from ddlopt.models.tolerances import ROUNDING, let_pass


@dataclass(frozen=True)
class Effort:
    """How fine a table of the knapsack may be."""

    finest: int = 1000
    """Amounts are multiples of a part of the unit, a thousandth at the finest; odder ones come from measurements."""
    parts: int = 10**6
    """Of the capacity: a longer table takes seconds in every slot."""


_EFFORT = Effort()


def whole_costs(cluster: Pool) -> tuple[npt.NDArray[np.int64], int] | str:
    """What a worker of each job takes of the one resource that can run short, and its capacity, in whole parts.

    Resources that all jobs cannot use up together have to be left out of the pool beforehand; see
    :func:`scarce_resources`. Without any left, all jobs take 0.

    Returns
    -------
    ((I,) array, int) or str
        Or, in words, why there is no such form.
    """
    resources = len(cluster.capacity)
    if resources == 0:
        return np.zeros(len(cluster.demand), np.int64), 0
    if resources > 1:
        return f"{resources} resources can run short, and a knapsack has one capacity"
    each, place = np.unique(cluster.demand[:, 0], return_inverse=True)
    amounts = [Fraction(float(amount)).limit_denominator(_EFFORT.finest) for amount in each]
    parts = math.lcm(*(amount.denominator for amount in amounts))
    exact = all(math.isclose(amount, given) for amount, given in zip(amounts, each, strict=True))
    capacity = math.floor(let_pass(float(cluster.capacity[0])) * parts)
    if not exact or capacity > _EFFORT.parts:
        return "workers take amounts that are no multiples of a common part"
    return np.array([int(amount * parts) for amount in amounts], np.int64)[place], capacity


def scarce_resources(cluster: Pool, widest: npt.NDArray[np.int64]) -> Pool:
    """The pool without the resources that are not used up even if every job has its ``widest`` (I,) width."""
    scarce = widest @ cluster.demand > cluster.capacity * (1 + ROUNDING)
    return Pool(cluster.demand[:, scarce], cluster.capacity[scarce], cluster.exact)
