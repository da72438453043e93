"""Rates where slots are given: fair ones, by rules, and those that cost least."""

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.slots.arrays import Floats, SlotArrays
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.aggregation.slots.interior_point import Rates, best_rates
from ddlopt.solvers.contracts import Limits, Status

Flags = npt.NDArray[np.bool_]


def max_min_rates(rows: Floats, limits: Floats, caps: Floats) -> Floats:
    """(n,) max-min fair rates: all grow together; whoever meets a full row or its cap stays where it is.

    Parameters
    ----------
    rows, limits : (k, n) and (k,) arrays
    caps : (n,) array
    """
    rates = np.zeros(len(caps))
    growing = caps > 0
    while growing.any():
        spare, asked = limits - rows @ rates, rows @ growing
        room = np.divide(spare, asked, out=np.full(len(limits), np.inf), where=asked > 0)
        own = np.where(growing, caps - rates, np.inf)
        step = max(0.0, min(float(room.min(initial=np.inf)), float(own.min())))
        rates = rates + step * growing
        full = room <= step * (1 + ROUNDING)
        growing = growing & (own > step * (1 + ROUNDING)) & ~((rows[full] > 0).any(axis=0))
    return rates


def held(arrays: SlotArrays, slots: Floats) -> Floats:
    """(n,) rates that (switches, n) slots allow, at most the caps."""
    each = np.where(arrays.per_slot > 0, arrays.per_slot * slots, np.inf)
    found: Floats = np.minimum(arrays.cap, each.min(axis=0))
    return found


def other_rows(arrays: SlotArrays) -> tuple[Floats, Floats]:
    """Rows and limits of links and aggregation rates."""
    first = len(arrays.slots)
    return arrays.rows[first:], arrays.limits[first:]


def cheapest_rates(arrays: SlotArrays, slots: Floats, aggregated: Flags) -> Floats:
    """(n,) rates of least total time with the slots given, 0 for jobs that fall back."""
    caps, (rows, limits) = held(arrays, slots), other_rows(arrays)
    rates = np.where(aggregated, caps, 0.0)
    if (rows @ rates <= limits).all():
        return rates
    rates[aggregated] = least_lost(arrays.only(aggregated, caps, rows, limits)).rates
    return rates


def least_lost(arrays: SlotArrays) -> Rates:
    """Rates and prices of the relaxation, by our method; of jobs that send while they compute, by a conic solver.

    What these lose has kinks, at which our method's steps would be no longer than the distance to the next.
    """
    if arrays.overlaps:
        return conic(arrays, "clarabel", Limits())[0]
    return best_rates(arrays.cost, arrays.cap, arrays.rows, arrays.limits, arrays.fallback)


def conic(arrays: SlotArrays, solver: str, limits: Limits) -> tuple[Rates, str]:
    """Rates and prices of the relaxation by a conic solver, and its version.

    Raises
    ------
    NoSolutionError
        If it breaks down.
    """
    from ddlopt.models.aggregation.slots.formulations.slot_shares import prices_of, rates_of, shares
    from ddlopt.solvers.backends.convex import Convex

    problem = shares(arrays)
    outcome = Convex(solver).solve(problem, limits)
    if outcome.status not in (Status.OPTIMAL, Status.FEASIBLE):
        raise NoSolutionError(outcome.message)
    return Rates(rates_of(problem, arrays), prices_of(problem, arrays)), outcome.solver


def whole_shares(shares: Floats, slots: float) -> Floats:
    """(n,) whole numbers near the shares, at least 1 each and together at most ``slots``; largest remainders first."""
    found: Floats = np.maximum(1.0, np.floor(shares))
    while found.sum() > slots:
        found[np.argmax(found)] -= 1
    spare = int(slots - found.sum())
    remainders = shares - found
    order = np.argsort(-remainders, kind="stable")[:spare]
    found[order[remainders[order] > 0]] += 1
    return found
