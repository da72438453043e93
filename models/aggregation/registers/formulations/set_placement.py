"""Few collisions as a set partition: an integer program with a variable for whatever an array can hold."""

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.aggregation.registers.formulations.pair_placement import weight_unit, weights_of_pairs
from ddlopt.models.aggregation.registers.instance import Placement, RegisterInstance
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import Rows, linear, total
from ddlopt.models.tolerances import INTEGRALITY_TOL

# Its relaxation is solved in a second; with more sets building it takes longer than what it saves.
_MOST_SETS = 50_000


@dataclass(frozen=True)
class SetPlacement(FormulationBase):
    r"""Sets of parameters, each in one array.

    With the weight :math:`c_{ij}` of the batches that have both i and j, and :math:`\lambda_Q = 1` if some array has
    exactly the parameters Q,

    .. math::
        \min \sum_Q \lambda_Q \sum_{i<j \in Q} c_{ij} \quad\text{s.t.}\quad \sum_{Q \ni i} \lambda_Q = 1, \quad
        \sum_{|Q| > k} \lambda_Q \le |\{r : C_r > k\}|, \quad k = 0 \text{ and all } C_r .

    Q are all sets that fit into the largest array. Arrays have no numbers here, so that nothing is symmetric, and the
    relaxation sees whole arrays: it is far above that by counts, whose relaxation spreads every batch evenly.

    Ports
    -----
    ``chosen[q]``
        λ, of the set number q of :func:`sets_of`.
    ``objective``
        Weighted pairs in units of :func:`~.pair_placement.weight_unit`, to be minimised.
    """

    covers: ClassVar[type[Instance]] = RegisterInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: Any) -> str | None:
        """Goal ``packets``; too many sets."""
        if instance.goal != "collisions":
            return f"it is for few collisions, and the goal is {instance.goal}"
        largest = min(instance.parameters, max(instance.capacities))
        if sum(comb(instance.parameters, k) for k in range(1, largest + 1)) > _MOST_SETS:
            return f"more than {_MOST_SETS} sets fit into an array; use register-counts"
        return None

    def build(self, block: pyo.Block, instance: RegisterInstance) -> None:
        """Fill ``block``."""
        weights, sets = weights_of_pairs(instance), sets_of(instance)
        block.SETS = pyo.RangeSet(0, len(sets) - 1)
        block.chosen = pyo.Var(block.SETS, domain=pyo.Binary, doc="1 if an array has exactly these parameters")
        with_parameter: dict[int, list[int]] = {i: [] for i in range(instance.parameters)}
        for number, members in enumerate(sets):
            for i in members:
                with_parameter[i].append(number)
        rows = Rows()
        for i, numbers in with_parameter.items():
            rows["parameters_are_placed"][i] = total(block.chosen[q] for q in numbers) == 1
        for least in sorted({0, *instance.capacities}):
            arrays = sum(1 for capacity in instance.capacities if capacity > least)
            larger = [q for q, members in enumerate(sets) if len(members) > least]
            if larger:
                rows["arrays_are_enough"][least] = total(block.chosen[q] for q in larger) <= arrays
        rows.add_to(
            block,
            parameters_are_placed="every parameter is in an array",
            arrays_are_enough="sets that need as much room have an array each",
        )
        unit = weight_unit(instance)
        costs = [sum(weights.get(pair, 0.0) for pair in combinations(members, 2)) / unit for members in sets]
        block.objective = pyo.Expression(
            expr=linear([(cost, block.chosen[q]) for q, cost in enumerate(costs) if cost] or [(0.0, block.chosen[0])])
        )

    def start(self, block: pyo.Block, instance: RegisterInstance, solution: Placement) -> None:
        """Set ``chosen``."""
        held: dict[int, list[int]] = {}
        for i, r in enumerate(solution.arrays):
            held.setdefault(r, []).append(i)
        wanted = {tuple(members) for members in held.values()}
        for number, members in enumerate(sets_of(instance)):
            block.chosen[number].set_value(int(members in wanted))

    def read(self, block: pyo.Block, instance: RegisterInstance) -> Placement:
        """The array of each parameter; the largest sets are in the largest arrays.

        Raises
        ------
        SolverError
            If a set is chosen in part, or a parameter is in no array.
        """
        found = []
        for number, members in enumerate(sets_of(instance)):
            value = block.chosen[number].value or 0.0
            if INTEGRALITY_TOL < value < 1 - INTEGRALITY_TOL:
                raise SolverError(f"'{instance.name}': set {members} is in an array in part: {value:g}")
            if value > 0.5:
                found.append(members)
        arrays = [-1] * instance.parameters
        by_room = sorted(range(instance.arrays), key=lambda r: -instance.capacities[r])
        for r, members in zip(by_room, sorted(found, key=len, reverse=True), strict=False):
            for i in members:
                arrays[i] = r
        if -1 in arrays:
            raise SolverError(f"'{instance.name}': parameter {arrays.index(-1)} is in no array")
        return Placement(instance=instance.name, arrays=tuple(arrays))

    def objective_value(self, instance: RegisterInstance, value: float) -> float:
        """In the weights of the instance."""
        return value * weight_unit(instance)


def sets_of(instance: RegisterInstance) -> list[tuple[int, ...]]:
    """All sets of parameters that fit into the largest array, ascending, the smallest first."""
    largest = min(instance.parameters, max(instance.capacities))
    return [each for k in range(1, largest + 1) for each in combinations(range(instance.parameters), k)]
