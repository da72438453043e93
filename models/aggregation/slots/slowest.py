"""The longest time of jobs that share switches, to the last digit, whatever else is asked for."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.slots.arrays import Floats, SlotArrays


class Needed(NamedTuple):
    """(n,) rates that jobs need to be done in some time, and which of them need switches for it."""

    rates: Floats
    aggregated: npt.NDArray[np.bool_]


def needed_for(arrays: SlotArrays, time_s: float) -> Needed:
    """Rates of jobs that must not take longer than ``time_s``; infinite where no rate does."""
    left = time_s - arrays.weight * arrays.compute_s + arrays.hidden
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(left > 0, arrays.costs / np.where(left > 0, left, 1.0), np.inf)
    rates = np.where(arrays.costs > 0, each, np.where(left >= 0, 0.0, np.inf)).max(axis=0)
    return Needed(rates, rates > arrays.fallback)


def fits(arrays: SlotArrays, needed: Needed) -> bool:
    """Whether the rows hold; each asks for no more than the jobs need, so none depends on another."""
    if (needed.rates > arrays.cap)[needed.aggregated].any():
        return False
    rates = np.where(needed.aggregated, needed.rates, 0.0)
    slots = arrays.slots_for(rates).sum(axis=1)
    others = arrays.rows[len(arrays.slots) :] @ rates
    return bool((np.concatenate([slots, others]) <= arrays.limits).all())


def least_slowest_s(arrays: SlotArrays) -> tuple[float, float]:
    """Neighbouring floats between which the optimum is: a time that no plan reaches, and one that a plan does."""
    high = arrays.objective(arrays.cap, np.ones(arrays.count, dtype=bool))
    while not fits(arrays, needed_for(arrays, high)):
        high *= 2
    low = 0.0
    while low < (middle := (low + high) / 2) < high:
        if fits(arrays, needed_for(arrays, middle)):
            high = middle
        else:
            low = middle
    return low, high
