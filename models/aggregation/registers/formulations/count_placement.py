"""Placement in register arrays as an integer program that counts each batch's parameters in each array."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from ddlopt.models.aggregation.registers.batches import Merged, heat, merged
from ddlopt.models.aggregation.registers.instance import Placement, RegisterInstance, refusal
from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import INTEGRALITY_TOL

Terms = list[tuple[float, Any]]


class Twins(NamedTuple):
    """Parameters that are in the same batches, and whether any of these matters."""

    parameters: tuple[int, ...]
    touched: bool


@dataclass(frozen=True)
class CountPlacement:
    r"""Packets or pairs by counts.

    With :math:`x_{ir} = 1` if parameter i is in array r, batches :math:`S_t` of weight :math:`w_t`, and
    :math:`f_t` packets or pairs that batch t cannot do without,

    .. math::
        \min \sum_t w_t z_t \quad\text{s.t.}\quad \sum_r x_{ir} = 1, \quad \sum_i x_{ir} \le C_r, \quad z_t \ge f_t,

    and, for packets and for collisions, where :math:`p_{tr}` are the pairs of batch t in array r,

    .. math::
        z_t \ge \sum_{i \in S_t} x_{ir}, \qquad\qquad
        z_t = \sum_r p_{tr}, \quad p_{tr} \ge k \sum_{i \in S_t} x_{ir} - \frac{k (k + 1)}{2}, \quad k = 0, 1, \ldots

    Equal batches are one; a batch that no placement can make dearer is left out. Parameters in the same batches
    (*twins*) are one whole variable for each array, and those in none are placed in the end, where there is room.

    Arrays of equal capacity are alike. They are numbered as parameters, the hottest first, come to use them:
    :math:`x_{ir} = 0` where fewer than r + 1 parameters have come up to i, and i uses r only if a parameter up to i
    uses r - 1 (the column inequalities of partitioning orbitopes).

    Without that the relaxation is at the floors: with x = 1/R every batch is spread evenly.

    Parameters
    ----------
    symmetry : {"none", "fixing", "columns"}
        Nothing; fixed variables; both.

    Ports
    -----
    ``held[g, r]``
        Parameters of the twins g in array r, x; twins as in :func:`twins_of`.
    ``cost[t]``
        z, packets or pairs of the batches of :func:`~ddlopt.models.aggregation.registers.batches.merged`.
    ``objective``
        Packets or weighted pairs, with what the batches left out take; to be minimised.

    References
    ----------
    V. Kaibel, M. Pfetsch, "Packing and partitioning orbitopes", Mathematical Programming 114, 2008, for the columns.
    The program is ours.
    """

    symmetry: Literal["none", "fixing", "columns"] = "columns"

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: Any) -> str | None:
        """Other problems."""
        return refusal(instance)

    def scope(self, instance: RegisterInstance) -> str | None:
        """All placements."""
        return None

    def build(self, block: pyo.Block, instance: RegisterInstance) -> None:
        """Fill ``block``."""
        batches = merged(instance)
        twins = [each for each in twins_of(instance, batches) if each.touched]
        block.TWINS, block.ARRAYS = pyo.Set(initialize=range(len(twins))), pyo.RangeSet(0, instance.arrays - 1)
        block.BATCHES = pyo.Set(initialize=range(len(batches.batches)))

        def most(_: Any, g: int, r: int) -> tuple[int, int]:
            return 0, min(len(twins[g].parameters), instance.capacities[r])

        block.held = pyo.Var(block.TWINS, block.ARRAYS, domain=pyo.Integers, bounds=most, doc="parameters in the array")

        @block.Constraint(block.TWINS, doc="every parameter is in an array")
        def parameters_are_placed(b: Any, g: int) -> Any:
            count = len(twins[g].parameters)
            return count, _sum([(1.0, b.held[g, r]) for r in b.ARRAYS]), count

        if len(twins):

            @block.Constraint(block.ARRAYS, doc="no array holds too much")
            def arrays_have_room(b: Any, r: int) -> Any:
                return None, _sum([(1.0, b.held[g, r]) for g in b.TWINS]), instance.capacities[r]

        if self.symmetry != "none":
            _number_arrays(block, instance, twins, self.symmetry == "columns")
        _add_costs(block, instance, batches, _counts(block, batches, twins))

    def start(self, block: pyo.Block, instance: RegisterInstance, solution: Placement) -> None:
        """Set ``held``, with arrays numbered as parameters come to use them; the rest follows."""
        twins = [each for each in twins_of(instance, merged(instance)) if each.touched]
        number = {array: array for array in range(instance.arrays)}
        if self.symmetry != "none":
            number = _in_order_of_use([i for each in twins for i in each.parameters], instance, solution)
        for variable in block.held.values():
            variable.set_value(0)
        for g, each in enumerate(twins):
            for i in each.parameters:
                variable = block.held[g, number[solution.arrays[i]]]
                variable.set_value(variable.value + 1)

    def read(self, block: pyo.Block, instance: RegisterInstance) -> Placement:
        """The array of each parameter.

        Raises
        ------
        SolverError
            If a parameter is in an array in part.
        """
        groups = twins_of(instance, merged(instance))
        arrays, left = [-1] * instance.parameters, list(instance.capacities)
        for g, each in enumerate(each for each in groups if each.touched):
            waiting = list(each.parameters)
            for r in range(instance.arrays):
                value = block.held[g, r].value or 0.0
                if abs(value - round(value)) > INTEGRALITY_TOL:
                    raise SolverError(f"'{instance.name}': array {r} holds {value:g} of parameters {each.parameters}")
                for _ in range(round(value)):
                    arrays[waiting.pop()] = r
                    left[r] -= 1
        for i in (i for each in groups if not each.touched for i in each.parameters):
            arrays[i] = max(range(instance.arrays), key=lambda r: left[r])
            left[arrays[i]] -= 1
        return Placement(instance=instance.name, arrays=tuple(arrays))

    def objective_value(self, instance: RegisterInstance, value: float) -> float:
        """As it is."""
        return value


def twins_of(instance: RegisterInstance, batches: Merged) -> list[Twins]:
    """Parameters that are in the same batches, the hottest first."""
    met: list[list[int]] = [[] for _ in range(instance.parameters)]
    for place, batch in enumerate(batches.batches):
        for parameter in batch:
            met[parameter].append(place)
    found: dict[tuple[int, ...], list[int]] = {}
    for parameter, places in enumerate(met):
        found.setdefault(tuple(places), []).append(parameter)
    hot = heat(instance)
    twins = [Twins(tuple(parameters), bool(places)) for places, parameters in found.items()]
    return sorted(twins, key=lambda each: -float(hot[list(each.parameters)].max()))


def _counts(block: pyo.Block, batches: Merged, twins: list[Twins]) -> list[list[int]]:
    """Twins in each batch; all of them are, or none."""
    place = {each.parameters[0]: g for g, each in enumerate(twins)}
    return [[place[i] for i in batch if i in place] for batch in batches.batches]


def _number_arrays(block: pyo.Block, instance: RegisterInstance, twins: list[Twins], columns: bool) -> None:
    """Arrays of equal capacity are used in the order of their numbers."""
    seen = 0
    place: dict[int, int] = {}
    for r, capacity in enumerate(instance.capacities):
        place[r] = sum(1 for other in instance.capacities[:r] if other == capacity)
    for g, each in enumerate(twins):
        seen += len(each.parameters)
        for r in range(instance.arrays):
            if place[r] >= seen:
                block.held[g, r].fix(0)
    if not columns:
        return
    before = {
        r: max(other for other in range(r) if instance.capacities[other] == capacity)
        for r, capacity in enumerate(instance.capacities)
        if place[r]
    }
    rows = [(g, r) for g, each in enumerate(twins) for r in before if not block.held[g, r].fixed]

    @block.Constraint(range(len(rows)), doc="an array is used after those before it")
    def arrays_are_in_order(b: Any, row: int) -> Any:
        g, r = rows[row]
        count = len(twins[g].parameters)
        earlier = range(g) if count == 1 else range(g + 1)
        terms = [(1.0, b.held[g, r])]
        return None, _sum(terms + [(-float(count), b.held[other, before[r]]) for other in earlier]), 0


def _in_order_of_use(order: list[int], instance: RegisterInstance, solution: Placement) -> dict[int, int]:
    """New number of each array, among those of its capacity."""
    used = list(dict.fromkeys([solution.arrays[i] for i in order] + list(range(instance.arrays))))
    number: dict[int, int] = {}
    for capacity in set(instance.capacities):
        alike = [r for r in range(instance.arrays) if instance.capacities[r] == capacity]
        number.update(zip([r for r in used if instance.capacities[r] == capacity], alike, strict=True))
    return number


def _add_costs(block: pyo.Block, instance: RegisterInstance, batches: Merged, counts: list[list[int]]) -> None:
    floors = batches.floors.tolist()
    block.cost = pyo.Var(block.BATCHES, bounds=lambda _, t: (floors[t], None), doc="packets or pairs of the batch")
    terms = list(zip(batches.weights.tolist(), block.cost.values(), strict=True))
    block.objective = pyo.Expression(expr=_sum(terms, batches.constant))

    def count(t: int, r: int, factor: float) -> Terms:
        return [(factor, block.held[g, r]) for g in counts[t]]

    if instance.goal == "packets":

        @block.Constraint(block.BATCHES, block.ARRAYS, doc="a packet has one parameter of an array")
        def packets_suffice(b: Any, t: int, r: int) -> Any:
            return 0, _sum([(1.0, b.cost[t]), *count(t, r, -1.0)]), None

        return
    block.pairs = pyo.Var(block.BATCHES, block.ARRAYS, bounds=(0, None), doc="pairs of the batch in the array")
    lines = [
        (t, r, k)
        for t in block.BATCHES
        for r in block.ARRAYS
        for k in range(1, min(instance.capacities[r], len(batches.batches[t])))
    ]

    @block.Constraint(range(len(lines)), doc="pairs lie above their lines")
    def pairs_are_counted(b: Any, row: int) -> Any:
        t, r, k = lines[row]
        return -math.comb(k + 1, 2), _sum([(1.0, b.pairs[t, r]), *count(t, r, -float(k))]), None

    @block.Constraint(block.BATCHES, doc="pairs of all arrays count")
    def arrays_add_up(b: Any, t: int) -> Any:
        return 0, _sum([(1.0, b.cost[t]), *((-1.0, b.pairs[t, r]) for r in b.ARRAYS)]), None


def _sum(terms: Terms, constant: float = 0.0) -> LinearExpression:
    return LinearExpression(
        constant=constant, linear_coefs=[value for value, _ in terms], linear_vars=[variable for _, variable in terms]
    )
