"""Whole slots and jobs that fall back, as an integer program with tangents of the times."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.aggregation.slots.arrays import Floats, SlotArrays
from ddlopt.models.aggregation.slots.formulations.slot_shares import unit_s
from ddlopt.models.aggregation.slots.instance import SlotPlan, SlotsInstance
from ddlopt.models.aggregation.slots.prices import price_bound
from ddlopt.models.contracts import Instance, Sense
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import Rows, linear, notable, term, total, weighted
from ddlopt.models.tolerances import BOUND_MARGIN, INTEGRALITY_TOL, NEGLIGIBLE_COEFFICIENT

# Forty halvings of a logarithm are exact to twelve digits.
_BISECTIONS = 40
_WIDEST = 1e3
"""Between the largest and the least rate with a tangent, where no plan is known."""
_ROWS = {
    "times_are_taken": "times are above their tangents",
    "rates_need_switches": "who falls back sends nothing through switches",
    "slots_suffice": "slots hold what is in flight",
    "memory_suffices": "switches have the slots",
    "one_slot": "who is aggregated has a slot",
    "rows_hold": "links and aggregation rates suffice",
}


@dataclass(frozen=True)
class SlotTangents(FormulationBase):
    r"""Integer numbers of slots, and times above tangents of :math:`1 / \lambda`.

    With rates :math:`z_j` in parts of their caps :math:`u_j`, slots :math:`x_{js}` (integer if whole) that give
    :math:`r_{js} = p_s / H_{js}` each (H is the expected holding time, RTT where all packets are on time), binary
    :math:`y_j` where job j may fall back, and tangents at points :math:`\zeta`,

    .. math::
        \min\ & \textstyle\sum_j \tau_j + \frac{W_j g_j}{f_j} y_j \\
        & \tau_j \ge \frac{W_j g_j}{u_j} \Bigl[ \frac{2}{\zeta} (1 - y_j) - \frac{z_j}{\zeta^2} \Bigr]
          && \text{for every point} \\
        & z_j \le 1 - y_j, \qquad x_{js} \ge \frac{u_j}{r_{js}} z_j, \qquad x_{js} \ge 1 - y_j
          \ \text{(whole)} \\
        & \textstyle\sum_j x_{js} \le M_s, \qquad \sum_j a_{kj} u_j z_j \le b_k .

    Each tangent is multiplied by 1 - y (its perspective), so no big-M is needed. A job with buckets has tangents to the
    time after the bucket that decides at :math:`\zeta`, less what is hidden behind its computation, and to two where
    another becomes the one that decides; :math:`g_j / f_j` is then what it takes on its server beyond computation.
    Points are so dense that times are right up to ``tolerance``, which makes the model an outer approximation: its
    bound holds, and the rates read are as good up to that. Where jobs come and go, the last two rows are there for
    every largest set of jobs that share a switch or a link at the same time. Points lie where the rate of a better plan
    can be: with ``prices``, a rate at which the job by itself takes the bound of the prices above ``limit_s`` is of no
    use.

    Parameters
    ----------
    tolerance : float
        Largest relative error of a time between two tangents.
    limit_s : float, optional
        Objective of a plan that is known.
    prices : tuple of float
        Of the rows of :class:`~ddlopt.models.aggregation.slots.arrays.SlotArrays`; none: all 0.

    Ports
    -----
    ``rate[j]``
        :math:`z_j`.
    ``slots[j, s]``
        :math:`x_{js}`, of the switches that aggregate for job j.
    ``back[j]``
        :math:`y_j`, of jobs that may fall back.
    ``time[j]``
        :math:`\tau_j` in units of :func:`~ddlopt.models.aggregation.slots.formulations.slot_shares.unit_s`.
    ``objective``
        Weighted communication time in these units.

    References
    ----------
    See :class:`~ddlopt.models.aggregation.slots.formulations.slot_shares.SlotShares`.
    """

    covers: ClassVar[type[Instance]] = SlotsInstance
    sense: ClassVar[Sense] = "minimize"
    outer: ClassVar[bool] = True

    # A tenth of the relative gap at which solvers stop by default.
    tolerance: float = 1e-5
    limit_s: float | None = None
    prices: tuple[float, ...] = ()

    def refuses(self, instance: SlotsInstance) -> str | None:
        """Goal ``slowest``, whose optimum takes no model."""
        return None if instance.goal == "total" else "it covers goal 'total'; 'slowest' is solved by bisection"

    def build(self, block: pyo.Block, instance: SlotsInstance) -> None:
        """See :class:`~ddlopt.models.contracts.Formulation`."""
        arrays = SlotArrays(instance)
        unit, may = unit_s(arrays), np.flatnonzero(arrays.fallback > 0).tolist()
        pairs = [(j, s) for j, job in enumerate(instance.jobs) for s in job.switches]
        block.JOBS = pyo.Set(initialize=range(arrays.count))
        block.PAIRS = pyo.Set(dimen=2, initialize=pairs)
        block.rate = pyo.Var(block.JOBS, bounds=(0, 1), doc="part of the largest rate")
        domain = pyo.NonNegativeIntegers if instance.whole else pyo.NonNegativeReals
        block.slots = pyo.Var(block.PAIRS, domain=domain, doc="slots of the job at the switch")
        block.FALLING = pyo.Set(dimen=1, initialize=may)
        block.back = pyo.Var(block.FALLING, domain=pyo.Binary, doc="1 if the job falls back on its server")
        block.time = pyo.Var(block.JOBS, bounds=(0, None), doc="weighted time of communication through switches")
        rows = Rows()
        self._add_times(rows, block, arrays, unit)
        self._add_memory(rows, block, arrays)
        for k in range(len(arrays.slots), len(arrays.limits)):
            used = (arrays.rows[k] * arrays.cap / arrays.limits[k]).tolist()
            rows["rows_hold"][k] = notable(weighted((a, block.rate[j]) for j, a in enumerate(used) if a)) <= 1.0
        rows.add_to(block, **_ROWS)
        terms = [(1.0, time) for time in block.time.values()]
        terms += [(float(arrays.lost_back[j] / unit), block.back[j]) for j in may]
        block.objective = pyo.Expression(expr=linear(terms))

    def _add_times(self, rows: Rows, block: pyo.Block, arrays: SlotArrays, unit: float) -> None:
        for j, points in enumerate(self.points(arrays)):
            time, rate = term(block.time[j]), term(block.rate[j])
            sends = 1 - term(block.back[j]) if j in block.back else 1
            for place, (point, k) in enumerate(_with_kinks(arrays, j, points)):
                weight = float(arrays.costs[k, j] / arrays.cap[j] / unit)
                at_none = 2 * weight / point - float(arrays.hidden[k, j]) / unit
                # A tangent that is negligible at rate 0 is so everywhere.
                if at_none > NEGLIGIBLE_COEFFICIENT:
                    rows["times_are_taken"][j, place] = time >= at_none * sends - weight / point**2 * rate
            if j in block.back:
                rows["rates_need_switches"][j] = rate <= sends

    def _add_memory(self, rows: Rows, block: pyo.Block, arrays: SlotArrays) -> None:
        for j, s in block.PAIRS:
            row = arrays.rows_of(j, s)[0]
            slots, needed = term(block.slots[j, s]), float(arrays.cap[j] * arrays.memory[row, j])
            rows["slots_suffice"][j, s] = slots >= notable(needed * term(block.rate[j]))
            if arrays.instance.whole:
                rows["one_slot"][j, s] = slots >= 1 - (term(block.back[j]) if j in block.back else 0)
        for row, (s, limit) in enumerate(zip(arrays.switch_of.tolist(), arrays.slots.tolist(), strict=True)):
            own = total(block.slots[j, s] for j in np.flatnonzero(arrays.per_slot[row]).tolist())
            rows["memory_suffices"][row] = own <= limit

    def points(self, arrays: SlotArrays) -> list[list[float]]:
        """Where tangents are, of each job, in parts of its cap."""
        low, high = self._range(arrays)
        # Between tangents at z and qz the error is (1 - q)^2 / (1 + q)^2 of the time.
        root = math.sqrt(self.tolerance)
        step = math.log((1 + root) / (1 - root))
        found = []
        for a, b in zip((low / arrays.cap).tolist(), (high / arrays.cap).tolist(), strict=True):
            count = 1 + math.ceil(math.log(b / a) / step)
            found.append(np.geomspace(a, b, count).tolist() if count > 1 else [b])
        return found

    def _range(self, arrays: SlotArrays) -> tuple[Floats, Floats]:
        """(n,) rates between which those of better plans are: where the price of rates and times is not too high."""
        prices = np.zeros(len(arrays.limits))
        prices[: len(self.prices)] = np.maximum(0.0, self.prices)
        limit_s = math.inf if self.limit_s is None else self.limit_s
        asked = prices @ arrays.rows
        best = arrays.best_rates(asked)
        least = arrays.lost(best) + asked * best
        room = max(0.0, limit_s - price_bound(arrays, prices, whole=False)) * (1 + BOUND_MARGIN) + BOUND_MARGIN * least
        if math.isinf(limit_s):
            return arrays.cap / _WIDEST, arrays.cap
        worst = np.minimum(least, arrays.lost_back) + room

        def end(outside: Floats) -> Floats:
            """Where the job begins to be too dear, between its best rate and one that is."""
            inside = best
            for _ in range(_BISECTIONS):
                middle = np.sqrt(inside * outside)
                dear = arrays.lost(middle) + asked * middle > worst
                inside, outside = np.where(dear, inside, middle), np.where(dear, middle, outside)
            return outside

        return end(np.minimum(arrays.cap / _WIDEST**2, best)), end(arrays.cap)

    def start(self, block: pyo.Block, instance: SlotsInstance, solution: SlotPlan) -> None:
        """Set slots, rates and who falls back."""
        arrays = SlotArrays(instance)
        for j, (job, rate) in enumerate(zip(instance.jobs, solution.rates_bytes_per_s, strict=True)):
            block.rate[j].set_value(0.0 if rate is None else rate / float(arrays.cap[j]))
            if j in block.back:
                block.back[j].set_value(int(rate is None))
            for s, slots in zip(job.switches, solution.slots[j], strict=True):
                block.slots[j, s].set_value(0 if rate is None else slots)

    def read(self, block: pyo.Block, instance: SlotsInstance) -> SlotPlan:
        """Slots, and the rates that they and the rows allow.

        Raises
        ------
        SolverError
            If a job falls back in part.
        """
        arrays = SlotArrays(instance)
        aggregated = np.ones(arrays.count, dtype=bool)
        for j, variable in block.back.items():
            value = pyo.value(variable)
            if abs(value - round(value)) > INTEGRALITY_TOL:
                raise SolverError(f"job {j} falls back in part: {value:.6g}")
            aggregated[j] = round(value) == 0
        # A solver may end at 0 or just below, where the time has no value.
        rates = np.array([max(pyo.value(block.rate[j]), 1e-12) for j in range(arrays.count)]) * arrays.cap
        given = np.zeros_like(arrays.per_slot)
        for (j, s), variable in block.slots.items():
            value = pyo.value(variable)
            given[arrays.rows_of(j, s), j] = round(value) if instance.whole else value
        if instance.whole:
            held = np.where(arrays.per_slot > 0, arrays.per_slot * np.maximum(given, 1.0), np.inf).min(axis=0)
            rates = np.minimum(rates, held)
            given = arrays.slots_for(rates)
        used = arrays.rows @ np.where(aggregated, rates, 0.0) / arrays.limits
        rates = rates / max(1.0, float(used.max()))
        return arrays.plan(rates, aggregated, given if instance.whole else None)

    def objective_value(self, instance: SlotsInstance, value: float) -> float:
        """Weighted seconds, computation included."""
        arrays = SlotArrays(instance)
        return value * unit_s(arrays) + arrays.compute_total_s


def _with_kinks(arrays: SlotArrays, j: int, points: list[float]) -> list[tuple[float, int]]:
    """Points of a job with the bucket that decides there, and points where another begins to, with both."""
    begins = (arrays.begins[:, j] / arrays.cap[j]).tolist()
    found = []
    for k, begin in enumerate(begins):
        end = begins[k + 1] if k + 1 < len(begins) else math.inf
        if arrays.costs[k, j]:
            kinks = {each for each in (begin, end) if points[0] < each < points[-1]}
            own = {point for point in points if begin <= point < end}
            found += [(point, k) for point in sorted(own | kinks)]
    return found
