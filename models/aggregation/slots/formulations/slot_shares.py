"""Rates and slots of jobs that share switches, as a conic program."""

from dataclasses import dataclass
from typing import ClassVar

import cvxpy as cp
import numpy as np

from ddlopt.models.aggregation.slots.arrays import Floats, SlotArrays
from ddlopt.models.aggregation.slots.instance import SlotsInstance
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import Covering
from ddlopt.models.errors import SolverError
from ddlopt.models.units import unit_of


@dataclass(frozen=True)
class SlotShares(Covering):
    r"""Slots that need not be whole, and jobs that may fall back in part.

    As :math:`x_{js} = \lambda_j \mathrm{RTT}_j / p_s`, memory is a row that is linear in the rates, like links and
    aggregation rates; with ``delivery`` the expected holding time stands for RTT. With rates :math:`z_j` in parts of
    their caps :math:`u_j`, rows :math:`B_{kj} = a_{kj} u_j / b_k` (one for each largest set of jobs that share it at
    the same time, where they come and go), the part :math:`y_j` that falls back, and :math:`\alpha_j = W_j g_j / u_j`,

    .. math::
        \min \sum_j \alpha_j t_j + \frac{W_j g_j}{f_j} y_j \quad\text{s.t.}\quad
        t_j z_j \ge (1 - y_j)^2, \quad \sum_j B_{kj} z_j \le 1, \quad z + y \le 1, \quad z, y \ge 0,

    with y = 0 for jobs that cannot fall back: the cones are second-order ones. The perspective :math:`(1-y)^2/z` makes
    the relaxation of the choice as tight as it can be for each job by itself: at a given rate its cost is the largest
    convex function below that of both. With buckets, :math:`\alpha_j t_j` is the largest of :math:`\alpha_{jk} t_j -
    W_j (c_j - r_{jk}) (1 - y_j)` and 0. For goal ``slowest`` the largest of :math:`W_j c_j` plus the job's term is
    minimised. Times are counted in the sum of what jobs take at least, see :func:`unit_s`.

    Without fallback and with ``whole`` false the optimum is that of the instance. The multiplier of a row is the price
    of its resource: of all slots of a switch, of a link's bandwidth (:meth:`prices`);
    :func:`~ddlopt.models.aggregation.slots.prices.price_bound` makes a bound of any such prices.

    Ports
    -----
    ``part``
        Variable: :math:`z_j`.
    ``back``
        Variable: :math:`y_j`.
    ``inverse``
        Variable: :math:`t_j`.
    ``constraints[0]``
        The rows: memory of every switch, links, aggregation rates.
    ``objective``
        Weighted communication time, for goal ``slowest`` with computation, in units; to be minimised.

    References
    ----------
    Without switches, minimum potential delay of L. Massoulié and J. Roberts, "Bandwidth sharing: objectives and
    algorithms", INFOCOM 1999; completion time as a function of switch memory: INAlloc, INFOCOM 2023. The perspective:
    O. Günlük and J. Linderoth, "Perspective reformulations of mixed integer nonlinear programs with indicator
    variables", Mathematical Programming 124, 2010.
    """

    covers: ClassVar[type[Instance]] = SlotsInstance

    def problem(self, instance: SlotsInstance) -> cp.Problem:
        """The program; see the class for its ports."""
        return shares(SlotArrays(instance), instance.goal == "slowest")

    def read(self, problem: cp.Problem, instance: SlotsInstance) -> Floats:
        """(n,) rates of a solved ``problem``, shrunk together where a row is passed by a solver's tolerance."""
        return rates_of(problem, SlotArrays(instance))

    def value(self, problem: cp.Problem, instance: SlotsInstance) -> float:
        """The objective of a solved ``problem`` in seconds, right up to the solver's tolerances."""
        arrays = SlotArrays(instance)
        constant = 0.0 if instance.goal == "slowest" else arrays.compute_total_s
        return float(problem.value) * unit_s(arrays) + constant

    def prices(self, problem: cp.Problem, instance: SlotsInstance) -> Floats:
        """(k,) seconds that one more slot, or byte per second of a link, would save; zeros if unsolved."""
        return prices_of(problem, SlotArrays(instance))


def shares(arrays: SlotArrays, slowest: bool = False) -> cp.Problem:
    """The program of some jobs and rows; see :class:`SlotShares`."""
    count, unit = arrays.count, unit_s(arrays)
    part, inverse = cp.Variable(count, name="part"), cp.Variable(count, name="inverse")
    back = cp.Variable(count, name="back")
    may = arrays.fallback > 0
    falling = np.where(may, arrays.lost_back, 0.0) / unit
    rows = arrays.rows * arrays.cap / arrays.limits[:, None]
    constraints = [
        rows @ part <= 1,
        part >= 0,
        part + back <= 1,
        back >= 0,
        back <= may.astype(float),
        cp.SOC(inverse + part, cp.vstack([inverse - part, 2 * (1 - back)])),
    ]
    # One after each bucket that may decide; at least the computation, which has neither bytes nor anything hidden.
    sending = [
        cp.multiply(costs / arrays.cap / unit, inverse) - cp.multiply(hidden / unit, 1 - back)
        for costs, hidden in zip(arrays.costs, arrays.hidden, strict=True)
    ]
    lost = (cp.maximum(*sending) if len(sending) > 1 else sending[0]) + cp.multiply(falling, back)
    if slowest:
        return cp.Problem(cp.Minimize(cp.max(lost + arrays.weight * arrays.compute_s / unit)), constraints)
    return cp.Problem(cp.Minimize(cp.sum(lost)), constraints)


def rates_of(problem: cp.Problem, arrays: SlotArrays) -> Floats:
    """See :meth:`SlotShares.read`."""
    value = problem.var_dict["part"].value
    if value is None:
        raise SolverError("the problem has no values; solve it first")
    # A solver may end at 0 or just below, where the time has no value.
    rates: Floats = np.clip(np.nan_to_num(value), 1e-9, 1.0) * arrays.cap
    used = arrays.rows @ rates / arrays.limits
    return rates / max(1.0, float(used.max(initial=0.0)))


def prices_of(problem: cp.Problem, arrays: SlotArrays) -> Floats:
    """See :meth:`SlotShares.prices`."""
    found = problem.constraints[0].dual_value
    if found is None:
        return np.zeros(len(arrays.limits))
    prices: Floats = np.maximum(0.0, np.nan_to_num(found)) * unit_s(arrays) / arrays.limits
    return prices


def unit_s(arrays: SlotArrays) -> float:
    """Time in which models count: near the sum of what jobs send at least, at their caps or by their servers."""
    back = np.divide(arrays.cost, arrays.fallback, out=np.full(arrays.count, np.inf), where=arrays.fallback > 0)
    return unit_of(float(np.minimum(arrays.cost / arrays.cap, back).sum()), parts=1)
