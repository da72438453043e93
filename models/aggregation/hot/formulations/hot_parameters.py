"""The hot set as an integer program: a knapsack for each switch."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from ddlopt.models.aggregation.hot.instance import HotInstance, HotSet, Whole
from ddlopt.models.aggregation.hot.items import Items, items_of, registers_of
from ddlopt.models.aggregation.hot.prices import best_prices
from ddlopt.models.aggregation.hot.values import Group, groups_of, job_values
from ddlopt.models.errors import SolverError
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
class HotParameters:
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

    Ports
    -----
    ``on[j, i, s]``
        1 if parameter i of job j is on switch s: for what prices leave open, all without ``reduced``.
    ``used[s]``
        Registers that parameters take of switch s, decided ones included (an expression).
    ``objective``
        What is saved in a second, in units of the mean value of all parameters; to be maximised. A host model that
        takes registers away or adds worth needs ``reduced=False``.

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

    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.aggregation.hot.kernels",)

    def refuses(self, instance: Any) -> str | None:
        """Other problems."""
        return None if isinstance(instance, HotInstance) else "it places hot parameters on switches"

    def scope(self, instance: HotInstance) -> str | None:
        """All hot sets."""
        return None

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

        block.MANY = pyo.Set(initialize=[i for i in on if len(on[i]) > 1])

        @block.Constraint(block.MANY, doc="a parameter is on one switch at most")
        def parameters_are_once(b: Any, i: int) -> Any:
            own = list(on[i].values())
            return None, _sum([1.0] * len(own), own), 1

        block.SWITCHES = pyo.RangeSet(0, switches - 1)
        taken = [float(items.width[decided == s].sum()) for s in range(switches)]

        @block.Expression(block.SWITCHES, doc="registers that parameters take")
        def used(b: Any, s: int) -> Any:
            own = [i for i in on if s in on[i]]
            return _sum([float(items.width[i]) for i in own], [on[i][s] for i in own], taken[s])

        @block.Constraint(block.SWITCHES, doc="registers suffice")
        def registers_suffice(b: Any, s: int) -> Any:
            return None, b.used[s], float(instance.switches[s].registers)

        if self.ordered:
            _add_order(block, core, on)
        terms = [(float(items.values[i, s]) / unit, x) for i in on for s, x in on[i].items()]
        constant = items.worth(np.maximum(decided, -1)) / unit
        block.objective = pyo.Expression(expr=_sum([value for value, _ in terms], [x for _, x in terms], constant))

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
    """Mean value of all parameters where most workers pass, or 1 where nothing is saved."""
    passing = np.array(instance.passing).max(axis=0).tolist()
    total = sum(float(job_values(job, workers).sum()) for job, workers in zip(instance.jobs, passing, strict=True))
    return total / instance.size or 1.0


def _sum(coefficients: list[float], variables: list[Any], constant: float = 0.0) -> LinearExpression:
    return LinearExpression(constant=constant, linear_coefs=coefficients, linear_vars=variables)


def _add_order(block: pyo.Block, core: _Core, on: dict[int, dict[int, Any]]) -> None:
    """Hotter parameters of a group are where more workers pass."""
    rows = []
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
                    rows.append((high, low))

    @block.Constraint(range(len(rows)), doc="hotter parameters are where more workers pass")
    def order_is_kept(b: Any, row: int) -> Any:
        high, low = rows[row]
        return 0.0, _sum([1.0] * len(high) + [-1.0] * len(low), high + low), None
