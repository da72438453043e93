"""Placement in register arrays as an integer program that counts each batch's parameters in each array."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import pyomo.environ as pyo

from ddlopt.models.aggregation.registers.batches import Merged, heat, merged
from ddlopt.models.aggregation.registers.instance import Placement, RegisterInstance
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import Rows, linear, term, total
from ddlopt.models.tolerances import INTEGRALITY_TOL

Terms = list[tuple[float, Any]]


class Twins(NamedTuple):
    """Parameters that are in the same batches, and whether any of these matters."""

    parameters: tuple[int, ...]
    touched: bool


@dataclass(frozen=True)
class CountPlacement(FormulationBase):
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

    Arrays of equal capacity are interchangeable. They are numbered as parameters, the hottest first, come to use them:
    :math:`x_{ir} = 0` where fewer than r + 1 parameters have come up to i, and i uses r only if a parameter up to i
    uses r - 1 (the column inequalities of partitioning orbitopes).

    Without that the relaxation is at the floors: with x = 1/R every batch is spread evenly.

    What a batch takes is a whole number where counts are, and is said to be one: where weights are whole, too, bounds
    are rounded up to the next whole number.

    *What a host must not couple to.* With ``symmetry``, which of equal arrays is which. Always which of twins is in an
    array, and the room of arrays: parameters in no batch take some, and are placed in the end.

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
        Weighted packets or pairs, with what the batches left out take, in units of :attr:`.Merged.unit`; to be
        minimised.

    References
    ----------
    V. Kaibel, M. Pfetsch, "Packing and partitioning orbitopes", Mathematical Programming 114, 2008, for the columns.
    The program is ours.
    """

    symmetry: Literal["none", "fixing", "columns"] = "columns"

    covers: ClassVar[type[Instance]] = RegisterInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def build(self, block: pyo.Block, instance: RegisterInstance) -> None:
        """Fill ``block``."""
        batches = merged(instance)
        twins = [each for each in twins_of(instance, batches) if each.touched]
        block.TWINS, block.ARRAYS = pyo.Set(initialize=range(len(twins))), pyo.RangeSet(0, instance.arrays - 1)
        block.BATCHES = pyo.Set(initialize=range(len(batches.batches)))

        def most(_: Any, g: int, r: int) -> tuple[int, int]:
            return 0, min(len(twins[g].parameters), instance.capacities[r])

        block.held = pyo.Var(block.TWINS, block.ARRAYS, domain=pyo.Integers, bounds=most, doc="parameters in the array")

        rows, held = Rows(), block.held
        for g, each in enumerate(twins):
            rows["parameters_are_placed"][g] = total(held[g, r] for r in block.ARRAYS) == len(each.parameters)
        for r in block.ARRAYS:
            rows["arrays_have_room"][r] = total(held[g, r] for g in block.TWINS) <= instance.capacities[r]
        if self.symmetry != "none":
            _number_arrays(rows, block, instance, twins, self.symmetry == "columns")
        _add_costs(rows, block, instance, batches, _counts(block, batches, twins))
        rows.add_to(block, **_ROWS)

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
        """In the weights of the instance."""
        return value * merged(instance).unit


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


def _number_arrays(rows: Rows, block: pyo.Block, instance: RegisterInstance, twins: list[Twins], columns: bool) -> None:
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
    for g, each in enumerate(twins):
        count = len(each.parameters)
        earlier = range(g) if count == 1 else range(g + 1)
        for r in before:
            if not block.held[g, r].fixed:
                used_before = total(block.held[other, before[r]] for other in earlier)
                rows["arrays_are_in_order"][g, r] = term(block.held[g, r]) <= float(count) * used_before


def _in_order_of_use(order: list[int], instance: RegisterInstance, solution: Placement) -> dict[int, int]:
    """New number of each array, among those of its capacity."""
    used = list(dict.fromkeys([solution.arrays[i] for i in order] + list(range(instance.arrays))))
    number: dict[int, int] = {}
    for capacity in set(instance.capacities):
        equal = [r for r in range(instance.arrays) if instance.capacities[r] == capacity]
        number.update(zip([r for r in used if instance.capacities[r] == capacity], equal, strict=True))
    return number


_ROWS = {
    "parameters_are_placed": "every parameter is in an array",
    "arrays_have_room": "no array holds too much",
    "arrays_are_in_order": "an array is used after those before it",
    "packets_suffice": "a packet has one parameter of an array",
    "pairs_are_counted": "pairs lie above their lines",
    "arrays_add_up": "pairs of all arrays count",
}


def _add_costs(
    rows: Rows, block: pyo.Block, instance: RegisterInstance, batches: Merged, counts: list[list[int]]
) -> None:
    floors = batches.floors.tolist()
    block.cost = pyo.Var(
        block.BATCHES,
        domain=pyo.Integers,
        bounds=lambda _, t: (floors[t], None),
        doc="packets or pairs of the batch",
    )
    terms = list(zip((batches.weights / batches.unit).tolist(), block.cost.values(), strict=True))
    block.objective = pyo.Expression(expr=linear(terms, batches.constant / batches.unit))

    count = {(t, r): total(block.held[g, r] for g in counts[t]) for t in block.BATCHES for r in block.ARRAYS}
    if instance.goal == "packets":
        for (t, r), parameters in count.items():
            rows["packets_suffice"][t, r] = term(block.cost[t]) >= parameters
        return
    block.pairs = pyo.Var(block.BATCHES, block.ARRAYS, bounds=(0, None), doc="pairs of the batch in the array")
    for (t, r), parameters in count.items():
        for k in range(1, min(instance.capacities[r], len(batches.batches[t]))):
            rows["pairs_are_counted"][t, r, k] = term(block.pairs[t, r]) >= float(k) * parameters - math.comb(k + 1, 2)
    for t in block.BATCHES:
        rows["arrays_add_up"][t] = term(block.cost[t]) >= total(block.pairs[t, r] for r in block.ARRAYS)
