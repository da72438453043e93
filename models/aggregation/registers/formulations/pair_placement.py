"""Few collisions as a minimum partition of a graph: an integer program with a variable for every pair."""

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.aggregation.registers.batches import hottest_first, merged, pairs, spread_counts
from ddlopt.models.aggregation.registers.instance import Placement, RegisterInstance
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import Rows, linear, term, total
from ddlopt.models.tolerances import INTEGRALITY_TOL
from ddlopt.models.units import unit_of

# The model is too large to get anywhere beyond it, and ``register-counts`` is smaller.
_MOST_ROWS = 100_000


@dataclass(frozen=True)
class PairPlacement(FormulationBase):
    r"""Pairs of parameters that share a batch, and whether they share an array.

    With :math:`c_{ij}` the weight of the batches that have both i and j, R arrays, and :math:`x_{ir} = 1` if i is in
    array r,

    .. math::
        \min \sum_{i<j} c_{ij} y_{ij} \quad\text{s.t.}\quad \sum_r x_{ir} = 1, \quad \sum_i x_{ir} \le C_r, \quad
        y_{ij} \ge x_{ir} + x_{jr} - 1 .

    The relaxation of this alone is 0. For sets Q any two parameters of which share a batch, pairs are at least those of
    :math:`|Q|` parameters spread evenly over the arrays:

    .. math:: \sum_{i < j \in Q} y_{ij} \ge \sum_r \binom{|Q_r|}{2}, \qquad |Q_r| = \lfloor |Q| / R \rfloor \text{ or }
              \lceil |Q| / R \rceil ;

    Q are the batches with more than R parameters, and cliques of R + 1 that are found greedily, one through each pair.
    Array r has no parameter before the r-th hottest, where all arrays are identical.

    *What a host must not couple to.* With ``symmetry``, which of equal arrays is which.

    Parameters
    ----------
    cliques : bool
        With the rows for sets Q.
    symmetry : bool
        Whether equal arrays are numbered by their hottest parameters.

    Ports
    -----
    ``on[i, r]``
        x.
    ``together[i, j]``
        y, for pairs that share a batch, i < j.
    ``objective``
        Weighted pairs in units of :func:`weight_unit`, to be minimised.

    References
    ----------
    S. Chopra, M. Rao, "The partition problem", Mathematical Programming 59, 1993, for the rows of cliques.
    """

    cliques: bool = True
    symmetry: bool = True

    covers: ClassVar[type[Instance]] = RegisterInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: Any) -> str | None:
        """Goal ``packets``; graphs with too many pairs."""
        if instance.goal != "collisions":
            return f"it is for few collisions, and the goal is {instance.goal}"
        rows = len(weights_of_pairs(instance)) * instance.arrays
        if rows > _MOST_ROWS:
            return f"pairs times arrays are {rows}, more than {_MOST_ROWS}; use register-counts"
        return None

    def build(self, block: pyo.Block, instance: RegisterInstance) -> None:
        """Fill ``block``."""
        weights = weights_of_pairs(instance)
        block.PARAMETERS = pyo.RangeSet(0, instance.parameters - 1)
        block.ARRAYS = pyo.RangeSet(0, instance.arrays - 1)
        block.PAIRS = pyo.Set(dimen=2, initialize=list(weights))
        block.on = pyo.Var(block.PARAMETERS, block.ARRAYS, domain=pyo.Binary, doc="1 if the parameter is in the array")
        block.together = pyo.Var(block.PAIRS, bounds=(0, 1), doc="1 if both are in one array")
        if self._numbered(instance):
            for place, i in enumerate(hottest_first(instance)[: instance.arrays]):
                for r in range(place + 1, instance.arrays):
                    block.on[i, r].fix(0)

        on, together = block.on, block.together
        rows = Rows()
        for i in block.PARAMETERS:
            rows["parameters_are_placed"][i] = total(on[i, r] for r in block.ARRAYS) == 1
        for r in block.ARRAYS:
            rows["arrays_have_room"][r] = total(on[i, r] for i in block.PARAMETERS) <= instance.capacities[r]
        for i, j in weights:
            for r in block.ARRAYS:
                rows["pairs_are_noticed"][i, j, r] = term(together[i, j]) >= total((on[i, r], on[j, r])) - 1
        for place, (members, least) in enumerate(_sets(instance, weights) if self.cliques else []):
            pairs_of_set = total(together[pair] for pair in combinations(members, 2))
            rows["sets_have_pairs"][place] = pairs_of_set >= least
        rows.add_to(
            block,
            parameters_are_placed="every parameter is in an array",
            arrays_have_room="no array holds too much",
            pairs_are_noticed="what is in one array is together",
            sets_have_pairs="sets have at least the pairs of even counts",
        )
        unit = weight_unit(instance)
        block.objective = pyo.Expression(
            expr=linear([(weight / unit, block.together[pair]) for pair, weight in weights.items()])
        )

    def start(self, block: pyo.Block, instance: RegisterInstance, solution: Placement) -> None:
        """Set ``on``, with arrays numbered by their hottest parameter; the rest follows."""
        number = {r: r for r in range(instance.arrays)}
        if self._numbered(instance):
            used = [solution.arrays[i] for i in hottest_first(instance)]
            number = {r: place for place, r in enumerate(dict.fromkeys([*used, *range(instance.arrays)]))}
        for (i, r), variable in block.on.items():
            variable.set_value(int(number[solution.arrays[i]] == r))

    def read(self, block: pyo.Block, instance: RegisterInstance) -> Placement:
        """The array of each parameter.

        Raises
        ------
        SolverError
            If a parameter is in an array in part.
        """
        arrays = [-1] * instance.parameters
        for (i, r), variable in block.on.items():
            value = variable.value or 0.0
            if INTEGRALITY_TOL < value < 1 - INTEGRALITY_TOL:
                raise SolverError(f"'{instance.name}': parameter {i} is in array {r} in part: {value:g}")
            if value > 0.5:
                arrays[i] = r
        if -1 in arrays:
            raise SolverError(f"'{instance.name}': parameter {arrays.index(-1)} is in no array")
        return Placement(instance=instance.name, arrays=tuple(arrays))

    def objective_value(self, instance: RegisterInstance, value: float) -> float:
        """In the weights of the instance."""
        return value * weight_unit(instance)

    def _numbered(self, instance: RegisterInstance) -> bool:
        return self.symmetry and len(set(instance.capacities)) == 1


def weight_unit(instance: RegisterInstance) -> float:
    """A power of two near the largest weight of a pair that shares a batch."""
    return unit_of(max(weights_of_pairs(instance).values(), default=0.0), parts=1)


def weights_of_pairs(instance: RegisterInstance) -> dict[tuple[int, int], float]:
    """Weight of the batches that have both parameters of a pair i < j, where there is one."""
    found: dict[tuple[int, int], float] = {}
    for batch, weight in zip(instance.batches, instance.batch_weights, strict=True):
        for pair in combinations(sorted(batch), 2):
            found[pair] = found.get(pair, 0.0) + weight
    return dict(sorted(found.items()))


def _sets(instance: RegisterInstance, weights: dict[tuple[int, int], float]) -> list[tuple[tuple[int, ...], int]]:
    """Sets whose pairs all share batches, and how many pairs are in one array at least."""
    room = [capacity for capacity in instance.capacities if capacity]
    found = {batch for batch in merged(instance).batches if len(batch) > len(room)}
    near: dict[int, set[int]] = {i: set() for i in range(instance.parameters)}
    for i, j in weights:
        near[i].add(j)
        near[j].add(i)
    shared: Counter[int] = Counter()
    for i, j in weights:
        clique, open_ = [i, j], near[i] & near[j]
        while open_ and len(clique) <= len(room):
            chosen = max(open_, key=lambda k: (len(near[k] & open_), -shared[k], -k))
            clique.append(chosen)
            open_ &= near[chosen]
        if len(clique) > len(room):
            shared.update(clique)
            found.add(tuple(sorted(clique)))
    return [(members, sum(map(pairs, spread_counts(len(members), room)))) for members in sorted(found)]
