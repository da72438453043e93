"""What budgets leave to decide: the operators that are not duplicated, or not all-reduced, in some optimum anyway."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression import SfbInstance, SfbSelection
from ddlopt.models.tolerances import FEASIBILITY_TOL
from ddlopt.solvers.compression.sfb.nested_cuts import Contraction, CostGraph, Costs, contract, costs_of

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def budgets_of(instance: SfbInstance) -> tuple[Floats, Floats]:
    """(k, n) what duplicating an operator takes of each budget there is, and (k,) the budgets: memory, computation."""
    memory = np.array([each.memory_bytes for each in instance.operators])
    both = ((memory, instance.memory_budget_bytes), (instance.extra_s, instance.compute_budget_s))
    given = [(use, limit) for use, limit in both if limit is not None]
    return np.array([use for use, _ in given]).reshape(-1, instance.size), np.array(
        [float(limit) for _, limit in given]
    )


@dataclass(frozen=True, eq=False)
class Kernel:
    """The operators of an instance that are left to decide, and one more for all that are not duplicated.

    Parameters
    ----------
    instance : SfbInstance
    contraction : Contraction
    duplicated : (n,) bool array
        Those that are duplicated for sure.
    costs : Costs
    use : (k, m) float array
        What duplicating an operator that is left takes of each budget.
    budgets : (k,) float array
    constant_s : float
        What the instance's costs are more than these.
    """

    instance: SfbInstance
    contraction: Contraction
    duplicated: Bools
    costs: Costs
    use: Floats
    budgets: Floats
    constant_s: float

    @property
    def graph(self) -> CostGraph:
        """The graph that is left."""
        return self.contraction.graph

    def restricted(self, selection: SfbSelection) -> Bools:
        """The part of a selection that is left to decide; completed again, it costs and takes no more."""
        chosen = np.isin(self.contraction.members, selection.duplicated)
        return np.append(chosen, False)

    def completed(self, duplicated: Bools) -> SfbSelection:
        """The selection of the whole instance."""
        chosen = self.duplicated.copy()
        chosen[self.contraction.members[duplicated[:-1]]] = True
        return SfbSelection(instance=self.instance.name, duplicated=tuple(np.flatnonzero(chosen).tolist()))


def kernel(instance: SfbInstance) -> Kernel:
    r"""Decide what two minimum cuts decide.

    Let S be optimal without budgets among the operators that fit each by itself, R optimal among the selections that
    take nothing of any budget, and X optimal under the budgets. Then :math:`(X \cap S) \cup R` is optimal as well. For
    costs are submodular, so that

    .. math:: F(X \cap S) \le F(X) + F(S) - F(X \cup S) \le F(X),

    and it takes no more; and :math:`F(Y \cup R) \le F(Y) + F(R) - F(Y \cap R) \le F(Y)` for every Y, while R takes
    nothing. So operators outside S need not be duplicated, those in R may be, and only S without R is left. Ours.
    """
    graph, costs = CostGraph(instance), costs_of(instance)
    use, budgets = budgets_of(instance)
    large: Bools = np.logical_or.reduce(use > budgets[:, None] * (1 + FEASIBILITY_TOL), axis=0)
    taking: Bools = np.logical_or.reduce(use > 0, axis=0)
    most = graph.cheapest(_without(costs, large)).duplicated
    least = graph.cheapest(_without(costs, large | taking)).duplicated & most
    contraction = contract(graph, most & ~least, least)
    own = contraction.costs(costs)
    nothing = np.zeros(contraction.graph.instance.size, dtype=np.bool_)
    constant = graph.cost(costs, least) - contraction.graph.cost(own, nothing)
    left = np.column_stack((use[:, contraction.members], np.zeros(len(budgets))))
    return Kernel(instance, contraction, least, own, left, budgets, constant)


def _without(costs: Costs, operators: Bools) -> Costs:
    return costs._replace(extra=np.where(operators, np.inf, costs.extra))
