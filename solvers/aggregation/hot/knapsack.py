"""The hot set of one switch, exactly, at a million parameters."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.hot.instance import HotInstance, Reals, Whole
from ddlopt.models.aggregation.hot.items import items_of
from ddlopt.models.aggregation.hot.values import groups_of
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class HotKnapsack(CertifiedMethod, uses=()):
    r"""A dynamic program over the few parameters near the break of the greedy order.

    Let x take parameters by value a register until the next one, of value :math:`\lambda` a register, does not fit. Let
    :math:`\Delta` be the largest width, after division by the greatest common divisor of all, and z an optimum that
    differs from x in as few parameters as possible: B = z \ x, A = x \ z. Put B into x and take A out one by one, in
    this way: while the registers used are at most those of x, something of B comes in, else something of A leaves,
    and at the end what remains. The change in registers stays within :math:`1 - \Delta \ldots \Delta` (were it less
    at the end, a parameter of A would fit into z again). If it had one value twice, the parameters moved between would
    be some of B and some of A with the same registers; as x has the better values a register, undoing these moves in z
    would lose nothing, against the choice of z. So :math:`|A| + |B| \le 2 \Delta - 1`: of each width, all but
    :math:`2 \Delta - 1` parameters on either side of the break are as in x. With all widths equal nothing is left to
    decide: the most valuable are the optimum, which for one job are those touched most.

    Of the others those are decided, too, that would lose more than the gap between Dantzig's bound and a greedy answer.
    The rest is a knapsack, by dynamic programming over registers.

    The same argument for any integer program: F. Eisenbrand, R. Weismantel, "Proximity results and faster algorithms
    for integer programming using the Steinitz lemma", ACM Transactions on Algorithms 16(1), 2020.

    Parameters
    ----------
    most_cells : int
        Of the dynamic program's table; where more are needed, the greedy answer is given with Dantzig's bound.
    """

    most_cells: int = 300_000_000

    name: ClassVar[str] = "hot-knapsack"
    covers: ClassVar[type[Any]] = HotInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.aggregation.hot.kernels",)

    def refuses(self, instance: Any) -> str | None:
        """Several switches."""
        if len(instance.switches) > 1:
            return f"it fills one switch, and there are {len(instance.switches)}; use milp"
        return None

    def find(self, instance: HotInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The optimum, with itself as bound."""
        items = items_of(instance, groups_of(instance))
        values = np.ascontiguousarray(items.values[:, 0])
        taken, core, cells = best_choice(items.width, values, instance.switches[0].registers, self.most_cells)
        solution = items.answer(instance, np.where(taken, 0, -1))
        proven = cells <= self.most_cells
        bound = float(values[taken].sum()) * (1 + ROUNDING) if proven else None
        details = {"core_parameters": float(core), "table_cells": float(cells)}
        return MethodOutput(
            solution, details, bound, message="" if proven else "too many cells for the dynamic program"
        )


def best_choice(widths: Whole, values: Reals, capacity: int, most_cells: int) -> tuple[npt.NDArray[np.bool_], int, int]:
    """Which items are taken, items that were left to the dynamic program, and cells of its table.

    With more cells than ``most_cells`` they are taken greedily; otherwise they are the best choice.
    """
    taken = np.zeros(len(widths), dtype=np.bool_)
    fitting = np.flatnonzero(widths <= capacity)
    if not fitting.size:
        return taken, 0, 0
    own = widths[fitting]
    divisor = int(np.gcd.reduce(own))
    own, capacity = own // divisor, capacity // divisor
    order = fitting[np.argsort(-values[fitting] / own, kind="stable")]
    own, worth = widths[order] // divisor, values[order]
    used = np.cumsum(own)
    fits = int(np.searchsorted(used, capacity, side="right"))
    taken[order[:fits]] = True
    if fits == len(order) or own.max() == 1:
        return taken, 0, 0
    left = capacity - int(used[fits - 1] if fits else 0)
    price = worth[fits] / own[fits]
    filled = _filled(own, fits, left)
    spare = price * left - worth[filled].sum() + ROUNDING * worth[:fits].sum()
    core = _near_the_break(own, fits, 2 * int(own.max()) - 1) & (np.abs(worth - price * own) <= spare)
    room = left + int(own[:fits][core[:fits]].sum())
    cells = int(core.sum()) * (room + 1)
    if cells > most_cells:
        taken[order[filled]] = True
        return taken, int(core.sum()), cells
    # Here, as compiling takes a moment.
    from ddlopt.models.aggregation.hot.kernels import knapsack

    taken[order[core]] = knapsack(own[core], worth[core], min(room, int(own[core].sum())))
    return taken, int(core.sum()), cells


def _filled(widths: Whole, fits: int, left: int) -> Whole:
    """Items after the break that still fit, one after the other."""
    found = []
    for i in range(fits + 1, len(widths)):
        if left == 0:
            break
        if widths[i] <= left:
            found.append(i)
            left -= int(widths[i])
    return np.array(found, dtype=np.int64)


def _near_the_break(widths: Whole, fits: int, reach: int) -> npt.NDArray[np.bool_]:
    """The last ``reach`` items of each width before the break, and the first ones after it."""
    near = np.zeros(len(widths), dtype=np.bool_)
    for width in np.unique(widths):
        own = np.flatnonzero(widths == width)
        middle = int(np.searchsorted(own, fits))
        near[own[max(0, middle - reach) : middle + reach]] = True
    return near
