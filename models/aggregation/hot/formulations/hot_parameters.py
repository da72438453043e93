"""The hot set as an integer program: a knapsack for each switch."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo

from ddlopt.models.aggregation.hot.instance import HotInstance, HotSet, Whole
from ddlopt.models.aggregation.hot.items import Items, items_of, registers_of
from ddlopt.models.aggregation.hot.prices import best_prices
from ddlopt.models.aggregation.hot.values import Group, groups_of
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import Rows, total, weighted
from ddlopt.models.tolerances import BOUND_MARGIN


class _Core(NamedTuple):
    """Items, which of their options are open, (N, S + 1), the last being none, and where items were decided on."""

    items: Items
    groups: list[Group]
    open: npt.NDArray[np.bool_]

    @property
    def decided(self) -> Whole:
        """Switch of each item with one option, -1 for none; -2 of the others."""
        only = np.where(self.open.sum(axis=1) == 1, self.open.argmax(axis=1), -2)
        return np.where(only == self.open.shape[1] - 1, -1, only)


@dataclass(frozen=True)
class HotParameters(FormulationBase):
    r"""Each parameter is on at most one switch; those on a switch fit into its registers.

    With :math:`x_{is} = 1` if parameter i (of some job) is on switch s, where it has value :math:`v_{is}`,

    .. math::
        \max \sum_{i,s} v_{is} x_{is}, \qquad \sum_s x_{is} \le 1, \qquad \sum_i s_i x_{is} \le M_s .

    Ours are two reductions that leave an optimum.

    *Prices* (``reduced``). At prices of registers with Lagrangian bound U, an answer worth V that does not give a
    parameter its best offer :math:`\max\{0, \max_s (v_{is} - s_i \lambda_s)\}` is worth at most U less the difference.
    So an option whose difference exceeds U - V, for the V of an answer that is known, is left out; the parameters with
    one option left are decided. V is ``worth``, or that of a greedy answer at these prices.

    *Order* (``ordered``; it seldom pays). In a group, i.e. a job and a width, hotter parameters are where more workers
    pass: for each number m of passing workers, and consecutive parameters i (hotter) and k of the group,

    .. math:: \sum_{s : m_s \ge m} x_{is} \ge \sum_{s : m_s \ge m} x_{ks} .

    *What a host must not couple to.* With ``reduced``, registers that it takes away or worth that it adds: parameters
    are decided that are best on some switch. With ``ordered``, which of equally hot parameters are on a switch.

    Ports
    -----
    ``on[j, i, s]``
        1 if parameter i of job j is on switch s: for what prices leave open, all without ``reduced``.
    ``used[s]``
        Registers that parameters take of switch s, decided ones included (an expression).
    ``objective``
        What is saved in a second, in units of the mean value of all that fit into a switch; to be maximised.

    References
    ----------
    A multiple knapsack problem: S. Martello, P. Toth, "Knapsack problems", Wiley 1990, chapter 6.

    Parameters
    ----------
    reduced, ordered : bool
    worth : float, optional
        What a known answer saves in a second.
    """

    reduced: bool = True
    ordered: bool = False
    worth: float | None = None

    covers: ClassVar[type[Instance]] = HotInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.aggregation.hot.kernels",)

    def build(self, block: pyo.Block, instance: HotInstance) -> None:
        """Fill ``block``."""
        core, unit = self._core(instance), _unit(instance)
        items, switches = core.items, len(instance.switches)
        decided = core.decided
        undecided = np.flatnonzero(decided == -2)
        keys = [
            (int(items.job[i]), int(items.parameter[i]), s)
            for i in undecided.tolist()
            for s in np.flatnonzero(core.open[i, :switches]).tolist()
        ]
        block.OPEN = pyo.Set(dimen=3, initialize=keys)
        block.on = pyo.Var(block.OPEN, domain=pyo.Binary, doc="1 if the parameter of the job is on the switch")
        on: dict[int, dict[int, Any]] = {i: {} for i in undecided.tolist()}
        place = iter(keys)
        for i in undecided.tolist():
            for s in np.flatnonzero(core.open[i, :switches]).tolist():
                on[i][s] = block.on[next(place)]

        rows = Rows()
        for i, own in on.items():
            if len(own) > 1:
                rows["parameters_are_once"][i] = total(own.values()) <= 1
        block.SWITCHES = pyo.RangeSet(0, switches - 1)
        used = {
            s: weighted((float(items.width[i]), on[i][s]) for i in on if s in on[i])
            + float(items.width[decided == s].sum())
            for s in range(switches)
        }
        block.used = pyo.Expression(
            block.SWITCHES, rule=lambda _, s: used[s].expression, doc="registers that parameters take"
        )
        for s, switch in enumerate(instance.switches):
            rows["registers_suffice"][s] = used[s] <= float(switch.registers)
        if self.ordered:
            _add_order(rows, core, on)
        rows.add_to(
            block,
            parameters_are_once="a parameter is on one switch at most",
            registers_suffice="registers suffice",
            order_is_kept="hotter parameters are where more workers pass",
        )
        saved = weighted((float(items.values[i, s]) / unit, x) for i in on for s, x in on[i].items())
        block.objective = pyo.Expression(expr=(saved + items.worth(np.maximum(decided, -1)) / unit).expression)

    def start(self, block: pyo.Block, instance: HotInstance, solution: HotSet) -> None:
        """Set ``on``."""
        places = {
            (j, i): s
            for s, own in enumerate(solution.placed)
            for j, parameters in enumerate(own)
            for i in parameters.tolist()
        }
        for (j, i, s), variable in block.on.items():
            variable.set_value(int(places.get((j, i)) == s))

    def read(self, block: pyo.Block, instance: HotInstance) -> HotSet:
        """What is decided, and the parameters whose variables are 1.

        Raises
        ------
        SolverError
            If a parameter is on a switch in part.
        """
        core = self._core(instance)
        placed = np.maximum(core.decided, -1)
        where = {
            (int(core.items.job[i]), int(core.items.parameter[i])): i
            for i in np.flatnonzero(core.decided == -2).tolist()
        }
        for (j, i, s), variable in block.on.items():
            value = 0.0 if variable.value is None else variable.value
            if min(value, 1 - value) > 1e-3 or not -1e-3 <= value <= 1 + 1e-3:
                raise SolverError(f"parameter {i} of job {j} is on switch {s} in part: {value:.6g}")
            if value > 0.5:
                placed[where[j, i]] = s
        return core.items.answer(instance, placed)

    def objective_value(self, instance: HotInstance, value: float) -> float:
        """Numbers in a second."""
        return value * _unit(instance)

    def _core(self, instance: HotInstance) -> _Core:
        groups = groups_of(instance)
        items = items_of(instance, groups)
        none = np.ones((len(items.width), 1), dtype=np.bool_)
        able = items.width[:, None] <= registers_of(instance)[None, :]
        open_options = np.concatenate([(items.values > 0) & able, none], axis=1)
        if self.reduced:
            prices, bound = best_prices(instance)
            worth = self.worth
            if worth is None:
                worth = max(items.worth(items.placed_by(instance, prices, order)) for order in items.orders(prices))
            gap = max(0.0, bound - worth) + BOUND_MARGIN * bound
            offers = np.concatenate([items.profits(prices), np.zeros_like(none, dtype=np.float64)], axis=1)
            open_options &= offers.max(axis=1, keepdims=True) - offers <= gap
        return _Core(items, groups, open_options)


def _unit(instance: HotInstance) -> float:
    """Mean value of all parameters that fit into a switch, or 1 where nothing is saved."""
    items = items_of(instance, groups_of(instance))
    able = items.width[:, None] <= registers_of(instance)[None, :]
    best = np.where(able, items.values, 0.0).max(axis=1, initial=0.0)
    return float(best[best > 0].mean()) if (best > 0).any() else 1.0


def _add_order(rows: Rows, core: _Core, on: dict[int, dict[int, Any]]) -> None:
    """Hotter parameters of a group are where more workers pass."""
    undecided: dict[int, list[int]] = {}
    for i in on:
        undecided.setdefault(int(core.items.group[i]), []).append(i)
    for number, members in undecided.items():
        group = core.groups[number]
        for level in range(len(group.levels)):
            enough = {s for s, own in enumerate(group.level_of) if own >= level}
            for hotter, colder in pairwise(members):
                high = [x for s, x in on[hotter].items() if s in enough]
                low = [x for s, x in on[colder].items() if s in enough]
                if low:
                    rows["order_is_kept"][hotter, colder, level] = total(high) >= total(low)
