"""Whole slots near rates that need parts of them."""

from typing import NamedTuple

import numpy as np

from ddlopt.models.aggregation.slots.arrays import Floats, SlotArrays
from ddlopt.models.tolerances import IMPROVEMENT_TOL, ROUNDING, TINY
from ddlopt.solvers.aggregation.slots.rates import Flags, cheapest_rates, held, other_rows
from ddlopt.solvers.heuristic import Clock


class Rounded(NamedTuple):
    """(n,) rates and (switches, n) whole slots."""

    rates: Floats
    slots: Floats


class Rounding:
    """Steps by one slot: down until everything fits, up while there is room, then from one job to another.

    Parameters
    ----------
    arrays : SlotArrays
    aggregated : (n,) array
    prices : (k,) array
        By which slots of different switches are compared.
    clock : Clock
    """

    def __init__(self, arrays: SlotArrays, aggregated: Flags, prices: Floats, clock: Clock) -> None:
        self._arrays, self._clock = arrays, clock
        self._on = (arrays.per_slot > 0) & aggregated
        self._aggregated = aggregated
        memory = prices[: len(arrays.slots)]
        # Memory without a price decides between what costs the same.
        self._price: Floats = memory + max(1e-6 * float(memory.max()), TINY)
        self._rows, self._limits = other_rows(arrays)

    def round(self, rates: Floats, exchange: bool = True) -> Rounded | None:
        """Slots near those that (n,) rates need; None if the jobs need more whole ones than there are."""
        if (self._on.sum(axis=1) > self._arrays.slots).any():
            return None
        rates = np.where(self._aggregated, rates, 0.0)
        slots = self._lowered(self._needed(rates))
        found = self._raised(Rounded(np.minimum(rates, held(self._arrays, slots)), slots))
        if exchange:
            found = self._exchanged(found)
        return Rounded(cheapest_rates(self._arrays, found.slots, self._aggregated), found.slots)

    def _needed(self, rates: Floats) -> Floats:
        needed: Floats = np.where(self._on, np.maximum(1.0, self._arrays.slots_for(rates)), 0.0)
        return needed

    def _lowered(self, slots: Floats) -> Floats:
        """Take slots, those that are missed least, until every switch has them."""
        arrays = self._arrays
        while (over := slots.sum(axis=1) > arrays.slots).any():
            s = int(np.argmax(over))
            can = self._on[s] & (slots[s] > 1)
            rates = np.where(can, held(arrays, slots), 1.0)
            fewer = np.where(can, np.minimum(rates, arrays.per_slot[s] * (slots[s] - 1)), 1.0)
            left = np.where(can, self._needed(fewer), slots)
            lost = arrays.lost(fewer) - arrays.lost(rates)
            worth = np.divide(lost, self._price @ (slots - left), out=np.full(arrays.count, np.inf), where=can)
            j = int(np.argmin(worth))
            slots = np.where(np.arange(arrays.count) == j, left, slots)
        return slots

    def _raised(self, start: Rounded, barred: int = -1) -> Rounded:
        """Give slots that are left, to whom they gain most, as far as links let it; the ``barred`` job gets none."""
        arrays, rates, slots = self._arrays, start.rates.copy(), start.slots
        able = self._aggregated & self._on.any(axis=0) & (np.arange(arrays.count) != barred)
        while not self._clock.expired:
            full = self._on & (arrays.per_slot * slots <= rates * (1 + IMPROVEMENT_TOL))
            target = np.minimum(held(arrays, slots + full), rates + self._room(rates))
            extra = np.where(self._on, np.maximum(self._needed(target) - slots, 0.0), 0.0)
            fits = (slots.sum(axis=1)[:, None] + extra <= arrays.slots[:, None]).all(axis=0)
            gains = able & fits & (target > rates * (1 + IMPROVEMENT_TOL))
            gain = arrays.lost(np.where(gains, rates, 1.0)) - arrays.lost(np.where(gains, target, 1.0))
            gains = gains & (gain > 0)
            if not gains.any():
                break
            with np.errstate(over="ignore"):  # next to nothing is asked, and infinitely much gained for it
                worth = np.where(gains, gain / (self._price @ extra + ROUNDING * self._price.min()), -np.inf)
            j = int(np.argmax(worth))
            rates[j], slots = target[j], slots + np.where(np.arange(arrays.count) == j, extra, 0.0)
        return Rounded(rates, slots)

    def _room(self, rates: Floats) -> Floats:
        """(n,) by how much links would let the rate of each job grow."""
        spare = np.maximum(0.0, self._limits - self._rows @ rates)
        each = np.divide(spare[:, None], self._rows, out=np.full(self._rows.shape, np.inf), where=self._rows > 0)
        room: Floats = each.min(axis=0, initial=np.inf)
        return room

    def _cost(self, rates: Floats) -> float:
        return float(self._arrays.lost(rates)[self._aggregated].sum())

    def _exchanged(self, start: Rounded) -> Rounded:
        """Take one step from a job and give what it frees to others, while that helps."""
        arrays, best = self._arrays, start
        improved = True
        while improved and not self._clock.expired:
            improved = False
            for j in np.flatnonzero(self._on.any(axis=0)).tolist():
                own = self._on[:, j]
                fewer = float((arrays.per_slot[own, j] * (best.slots[own, j] - 1)).min())
                if fewer <= 0 or self._clock.expired:
                    continue
                slots, rates = best.slots.copy(), best.rates.copy()
                rates[j] = min(rates[j], fewer)
                slots[own, j] = self._needed(rates)[own, j]
                trial = self._raised(Rounded(rates, slots), barred=j)
                if self._cost(trial.rates) < self._cost(best.rates) * (1 - ROUNDING):
                    best, improved = trial, True
        return best
