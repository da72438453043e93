"""Sufficient factor broadcasting as an integer program, whose relaxation is integral without budgets."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.compression.sfb.instance import SfbInstance, SfbSelection
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import linear, significant
from ddlopt.models.tolerances import INTEGRALITY_TOL, let_pass_at_most
from ddlopt.models.units import MOST_UNITS, between, in_units, unit_of

_FULL_BUDGET = 1e4
"""What a budget is in its row: an absolute tolerance of a solver is relative to it."""


@dataclass(frozen=True)
class SfbMilp(FormulationBase):
    r"""Which operators are duplicated, and which tensors are broadcast for that.

    With :math:`x_i = 1` if operator i is duplicated, :math:`b_t = 1` if tensor t, from operator p(t), is broadcast, and
    the costs of :class:`~ddlopt.models.compression.sfb.instance.SfbInstance`,

    .. math::
        \min\ & \textstyle\sum_i (e_i + \alpha) x_i + \sum_i s_i (1 - x_i) + \sum_t w_t b_t \\
        & b_t \ge x_j - x_{p(t)} && \text{for every consumer } j \text{ of } t \\
        & x_i \in \{0, 1\},\ 0 \le b_t \le 1, \quad x_i = 0 \text{ where } i \text{ cannot be duplicated} \\
        & \textstyle\sum_i m_i x_i \le K,\ \sum_i e_i x_i \le E \quad \text{if there are budgets.}

    With ``per_edge`` there is a :math:`b_{tj}` for every consumer: that is TAG's program (its ``lam`` is 1).
    b need not be declared integral: for integral x its least value is 0 or 1.

    **Theorem.** Without budgets the matrix is totally unimodular; so every vertex of the linear relaxation is integral.

    *Per edge.* A row has +1 at its b, -1 at j and +1 at p. The last two are the transpose of the incidence matrix of a
    directed graph, which is totally unimodular, and appending unit columns keeps that. *Per tensor.* Put
    :math:`y_t = x_{p(t)} + b_t`. Then the rows are :math:`y_t - x_j \ge \cdot`, bounds of b are
    :math:`\cdot \le y_t - x_{p(t)} \le \cdot`, bounds of x stay: differences and bounds, again the transpose of an
    incidence matrix with unit rows, so for any integers in place of the dots all vertices (x, y) are integral. The map
    from (x, b) to (x, y) is linear and one to one, for integral points too, so all vertices (x, b) are integral; and a
    matrix for which that is so whatever the integral sides and bounds is totally unimodular (Hoffman and Kruskal).
    Fixing x at 0 is a choice of bounds.

    A budget is a row of another kind; with it vertices are fractional, and the problem is NP-hard, as it contains the
    knapsack problem.

    Time is measured in units of which an operator takes about a hundred on average (:func:`unit_s`). Then the
    tolerances of solvers, about 1e-7 for each reduced cost, add up to a part of 1e-9 of the objective. What takes more
    than 1e8 units, and four times all all-reduces, counts as if it took just that. No selection is left out.

    Ports
    -----
    ``duplicated[i]``
        x, for every operator.
    ``broadcast[t]`` : broadcast ``per_tensor``
        b, for tensors that are read by operators that can be duplicated.
    ``broadcast[t, j]`` : broadcast ``per_edge``
        The same for each of these operators.
    ``objective``
        Time in units of :func:`unit_s`, to be minimised.

    References
    ----------
    S. Zhang et al., "Expediting distributed DNN training with device topology-aware graph deployment" (TAG), IEEE TPDS
    34(4), 2023, and its released code, for the program per edge (solved there as an integer one). The program per
    tensor and the theorem are ours. A. J. Hoffman, J. B. Kruskal, "Integral boundary points of convex polyhedra", in:
    Linear inequalities and related systems, Princeton 1956.
    """

    covers: ClassVar[type[Instance]] = SfbInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    # A search that stops at a gap may leave b above what x needs; the selection then costs less than the model says.
    outer: ClassVar[bool] = True

    def build(self, block: pyo.Block, instance: SfbInstance) -> None:
        """Fill ``block``."""
        unit, may = unit_s(instance), instance.eligible.tolist()
        block.OPERATORS = pyo.RangeSet(0, instance.size - 1)
        block.duplicated = pyo.Var(block.OPERATORS, domain=pyo.Binary, doc="1 if every replica computes it in full")
        x = list(block.duplicated.values())
        for variable, eligible in zip(x, may, strict=True):
            if not eligible:
                variable.fix(0)
        # What cannot be duplicated needs nothing broadcast.
        edges = [(t, j) for t, tensor in enumerate(instance.tensors) for j in tensor.consumers if may[j]]
        block.EDGES = pyo.Set(dimen=2, initialize=edges, doc="tensor and a consumer that can be duplicated")
        apart = instance.broadcast == "per_edge"
        if apart:
            block.broadcast = pyo.Var(block.EDGES, bounds=(0, 1), doc="1 if the tensor is broadcast for the consumer")
        else:
            block.TENSORS = pyo.Set(initialize=list(dict.fromkeys(t for t, _ in edges)), doc="tensors read by such")
            block.broadcast = pyo.Var(block.TENSORS, bounds=(0, 1), doc="1 if the tensor is broadcast")
        b = block.broadcast
        producers = instance.producers.tolist()

        @block.Constraint(block.EDGES, doc="what a duplicated operator reads is computed everywhere too, or broadcast")
        def inputs_are_there(_: Any, t: int, j: int) -> Any:
            terms = [(1.0, b[t, j] if apart else b[t]), (-1.0, x[j]), (1.0, x[producers[t]])]
            return 0, linear(terms), None

        simple = float(instance.sync_s.sum())
        synchronised = in_units(instance.sync_s, unit, simple)
        duplicated = in_units(instance.extra_s + instance.duplication_penalty_s, unit, simple)
        paid = in_units(instance.broadcast_s, unit, simple).tolist()
        # A difference would lose what is far less than an all-reduce: those by far the longest have a column.
        long = [i for i in block.OPERATORS if may[i] and synchronised[i] > MOST_UNITS]
        block.reduced = pyo.Var(long, bounds=(0, 1), doc="1 - x of operators with a long all-reduce")

        @block.Constraint(long, doc="an operator is duplicated or its gradient is reduced")
        def one_or_the_other(b: Any, i: int) -> Any:
            return 1, linear([(1.0, b.reduced[i]), (1.0, x[i])]), 1

        terms = [(synchronised[i], block.reduced[i]) for i in long]
        synchronised[long] = 0.0
        terms += [(duplicated[i] - synchronised[i], x[i]) for i in block.OPERATORS if may[i]]
        terms += [
            (paid[t], variable) for t, variable in zip((t for t, _ in edges) if apart else b, b.values(), strict=True)
        ]
        block.objective = pyo.Expression(expr=linear(terms, float(synchronised.sum())))
        self._add_budgets(block, instance)

    def _add_budgets(self, block: pyo.Block, instance: SfbInstance) -> None:
        memory = [operator.memory_bytes for operator in instance.operators]
        for name, weights, budget in (
            ("memory_budget_is_kept", memory, instance.memory_budget_bytes),
            ("compute_budget_is_kept", instance.extra_s.tolist(), instance.compute_budget_s),
        ):
            if budget is None:
                continue
            # What exceeds the budget by itself exceeds it as well if it is twice as much.
            parts = [min(weight / budget, 2.0) if budget else float(weight > 0) for weight in weights]
            terms = [(_FULL_BUDGET * part, block.duplicated[i]) for i, part in enumerate(parts)]
            # Presolve and cuts may leave out what is above by less than a solver's tolerance: the check lets it pass.
            full = let_pass_at_most(_FULL_BUDGET) if budget else 0.0
            block.add_component(name, pyo.Constraint(expr=(None, significant(terms), full)))

    def start(self, block: pyo.Block, instance: SfbInstance, solution: SfbSelection) -> None:
        """Set ``duplicated``; the broadcasts follow."""
        chosen = set(solution.duplicated)
        for i, variable in block.duplicated.items():
            if not variable.fixed:
                variable.set_value(int(i in chosen))

    def read(self, block: pyo.Block, instance: SfbInstance) -> SfbSelection:
        """The selection.

        Raises
        ------
        SolverError
            If an operator is duplicated in part.
        """
        values = np.array([variable.value for variable in block.duplicated.values()], dtype=np.float64)
        parts = np.abs(values - np.round(values))
        if not (parts <= INTEGRALITY_TOL).all():
            worst = int(np.nan_to_num(parts, nan=1.0).argmax())
            raise SolverError(f"operator {worst} of '{instance.name}' is duplicated in part: {values[worst]:g}")
        return SfbSelection(instance=instance.name, duplicated=tuple(np.flatnonzero(values > 0.5).tolist()))

    def objective_value(self, instance: SfbInstance, value: float) -> float:
        """Seconds."""
        return value * unit_s(instance)


def unit_s(instance: SfbInstance) -> float:
    """Seconds of the model's unit.

    Between the least that each gradient costs, by its all-reduce or by the duplication of its operator, and all
    all-reduces; what duplication and broadcasting take where both are 0.
    """
    duplicated = np.where(instance.eligible, instance.extra_s + instance.duplication_penalty_s, np.inf)
    low = float(np.minimum(instance.sync_s, duplicated).sum())
    more = float(instance.extra_s.sum()) + float(np.sum(instance.broadcast_s))
    return unit_of(between(low, float(instance.sync_s.sum())), more, parts=100.0 * instance.size)
