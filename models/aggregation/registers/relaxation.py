"""Placement in register arrays as a semidefinite program, and bounds that do not depend on how well it was solved."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.registers.batches import Merged, merged, packed_counts, pairs
from ddlopt.models.aggregation.registers.instance import RegisterInstance
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import Covering
from ddlopt.models.errors import SolverError

Floats = npt.NDArray[np.float64]
_ROUNDING = 100 * float(np.finfo(np.float64).eps)
"""Of an eigenvalue, relative to the norm of its matrix and for each row: far more than its calculation can be off."""


class RelaxationPrices(NamedTuple):
    """Multipliers of a placement's relaxation.

    ``pairs`` (T,) is what a pair of each batch costs, ``lowest`` (k,) belongs to the least inner products of the pairs,
    ``room`` (n,) to the rows of capacities, ``unit`` (n,) to the diagonal.
    """

    pairs: Floats
    lowest: Floats
    room: Floats
    unit: Floats


@dataclass(frozen=True)
class PlacementRelaxation(Covering):
    r"""Parameters as unit vectors, which point to the corners of a simplex if they are in arrays.

    The R corners have inner products :math:`-1/(R - 1)`; so with Y the inner products of the parameters' vectors,
    :math:`((R - 1) Y_{ij} + 1) / R` is 1 if i and j are in one array and 0 otherwise. Any vectors are allowed:

    .. math::
        \min \sum_t w_t q_t \quad\text{s.t.}\quad q_t = \sum_{i<j \in S_t} \frac{(R - 1) Y_{ij} + 1}{R}, \quad
        Y \succeq 0, \quad Y_{ii} = 1, \quad Y_{ij} \ge -\frac{1}{R - 1}, \quad
        \sum_j \frac{(R - 1) Y_{ij} + 1}{R} \le C,

    where :math:`Y_{ij}` is bounded for pairs that share a batch, and C is the largest capacity.

    For goal ``packets``, :math:`\sum_t w_t (f_t + e_t)` is minimised with :math:`e_t \ge 0` and

    .. math:: q_t \le h_t(f_t) + s_t e_t, \qquad s_t = \max_{z > f_t} \frac{h_t(z) - h_t(f_t)}{z - f_t},

    as a batch in z packets has at most :math:`h_t(z)` pairs, those of as many arrays with z of its parameters as there
    can be.

    *Bound.* With any prices :math:`\omega_t` of pairs, :math:`\lambda, \kappa \ge 0` and u, the matrix

    .. math:: M = \tfrac{R - 1}{2R} C(\omega) - \tfrac12 \Lambda
              + \tfrac12 (\kappa 1^T + 1 \kappa^T) - \operatorname{Diag}(u)

    has :math:`\langle M, Y \rangle \ge n \lambda_{\min}(M)`, as the trace of Y is n; :func:`relaxation_bound` adds up
    what follows. It is right for the multipliers of a solver that gave up early, too.

    Ports
    -----
    ``gram``
        Variable: Y, of the parameters in :attr:`RelaxationArrays.touched`.
    ``excess`` : goal packets
        Variable: e.
    ``constraints[0]``, ``constraints[1]``, ``constraints[2]``
        The diagonal; the least inner products; the capacities.
    ``constraints[3]`` : goal packets
        The pairs of batches.
    ``objective``
        Packets or weighted pairs without the constant of batches left out, to be minimised.

    References
    ----------
    A. Frieze, M. Jerrum, "Improved approximation algorithms for MAX k-CUT and MAX BISECTION", Algorithmica 18, 1997.
    The rows of capacities and packets, and the bound, are ours.
    """

    covers: ClassVar[type[Instance]] = RegisterInstance

    def refuses(self, instance: Any) -> str | None:
        """A single array; instances in which no batch can be dearer than its floor."""
        if instance.arrays < 2:
            return "arrays is 1; there is nothing to choose"
        return None if merged(instance).batches else "every batch is at its floor under every placement"

    def problem(self, instance: RegisterInstance) -> cp.Problem:
        """The program; see the class for its ports."""
        arrays = RelaxationArrays(instance)
        size, parts = len(arrays.touched), instance.arrays
        gram = cp.Variable((size, size), name="gram", PSD=True)
        rows: list[Any] = [
            cp.diag(gram) == 1,
            gram[arrays.pairs] >= -1 / (parts - 1),
            cp.sum(gram, axis=1) <= arrays.room,
        ]
        share = (parts - 1) / parts
        if instance.goal == "collisions":
            weights = arrays.pair_weights(arrays.batches.weights)
            cost = share * (weights @ gram[arrays.pairs]) + weights.sum() / parts
            return cp.Problem(cp.Minimize(cost), rows)
        excess = cp.Variable(len(arrays.batches.batches), name="excess", nonneg=True)
        held = arrays.members.astype(np.float64)
        together = share * (held @ gram[arrays.pairs]) + held.sum(axis=1) / parts
        rows.append((together - arrays.pairs_at_floor) / arrays.slope <= excess)
        cost = arrays.batches.weights @ excess + arrays.batches.weights @ arrays.batches.floors
        return cp.Problem(cp.Minimize(cost), rows)

    def read(self, problem: cp.Problem, instance: RegisterInstance) -> Floats:
        """(n, n) inner products of the parameters in :attr:`RelaxationArrays.touched`."""
        value = problem.var_dict["gram"].value
        if value is None:
            raise SolverError("the problem has no values; solve it first")
        return np.asarray((value + value.T) / 2)

    def prices(self, problem: cp.Problem, instance: RegisterInstance) -> RelaxationPrices:
        """Multipliers of a solved ``problem``.

        Raises
        ------
        SolverError
            If it has none.
        """
        arrays = RelaxationArrays(instance)
        duals = [constraint.dual_value for constraint in problem.constraints]
        if any(dual is None for dual in duals):
            raise SolverError("the problem has no multipliers; solve it first")
        unit, lowest, room = (np.atleast_1d(np.asarray(dual, dtype=np.float64)) for dual in duals[:3])
        prices = arrays.batches.weights
        if instance.goal == "packets":
            prices = np.clip(np.asarray(duals[3]), 0.0, arrays.batches.weights) / arrays.slope
        # Which sign CVXPY gives the multipliers of an equation does not matter: the bound says which one is right.
        return max(
            (RelaxationPrices(prices, lowest, room, sign * unit) for sign in (1.0, -1.0)),
            key=lambda each: relaxation_bound(instance, each),
        )


class RelaxationArrays:
    """What the relaxation of an instance is made of.

    Attributes
    ----------
    batches : Merged
    touched : (n,) array
        Parameters in a batch that matters.
    pairs : (rows, columns)
        Places in ``touched`` of the pairs that share a batch.
    members : (T, k) bool array
        Whether a batch has each pair.
    room : float
        Most that a row of Y may add up to.
    """

    def __init__(self, instance: RegisterInstance) -> None:
        self._instance = instance
        self.batches: Merged = merged(instance)
        self.touched = np.array(sorted(set().union(*self.batches.batches)), dtype=np.int64)
        place = {int(parameter): number for number, parameter in enumerate(self.touched)}
        touches = np.zeros((len(self.batches.batches), len(place)), dtype=np.bool_)
        for number, batch in enumerate(self.batches.batches):
            touches[number, [place[i] for i in batch]] = True
        rows, columns = np.nonzero(np.triu(touches.T.astype(np.int64) @ touches, 1))
        self.pairs = rows, columns
        self.members: npt.NDArray[np.bool_] = touches[:, rows] & touches[:, columns]
        parts = instance.arrays
        self.room = (max(instance.capacities) * parts - len(place)) / (parts - 1)

    def pair_weights(self, weights: Floats) -> Floats:
        """(k,) weight of the batches that have each pair."""
        found: Floats = weights @ self.members
        return found

    @cached_property
    def pairs_at_floor(self) -> Floats:
        """(T,) most pairs that a batch has at its floor."""
        counts = zip(self.batches.batches, self.batches.floors.tolist(), strict=True)
        return np.array([_most_pairs(len(batch), floor) for batch, floor in counts], dtype=np.float64)

    @cached_property
    def slope(self) -> Floats:
        """(T,) pairs that a packet more allows at most."""
        found = []
        for batch, floor in zip(self.batches.batches, self.batches.floors.tolist(), strict=True):
            count, least = len(batch), _most_pairs(len(batch), floor)
            found.append(max((_most_pairs(count, z) - least) / (z - floor) for z in range(floor + 1, count + 1)))
        return np.array(found)


def relaxation_bound(instance: RegisterInstance, prices: RelaxationPrices) -> float:
    """A bound on the objective of every placement that any prices give; see :class:`PlacementRelaxation`."""
    arrays, parts = RelaxationArrays(instance), instance.arrays
    size = len(arrays.touched)
    lowest, room = np.maximum(0.0, prices.lowest), np.maximum(0.0, prices.room)
    weights = arrays.pair_weights(prices.pairs)
    matrix = np.zeros((size, size))
    matrix[arrays.pairs] = ((parts - 1) / parts * weights - lowest) / 2
    matrix += matrix.T
    matrix += (room[:, None] + room[None, :]) / 2 - np.diag(prices.unit)
    least = float(np.linalg.eigvalsh(matrix)[0]) - _ROUNDING * size * float(np.linalg.norm(matrix))
    found = size * least + prices.unit.sum() - lowest.sum() / (parts - 1) - room.sum() * arrays.room
    found += weights.sum() / parts
    if instance.goal == "packets":
        found += float(arrays.batches.weights @ arrays.batches.floors - prices.pairs @ arrays.pairs_at_floor)
    return float(found) + arrays.batches.constant


def _most_pairs(count: int, packets: int) -> int:
    """Pairs of ``count`` parameters in arrays that hold a limited number of them each."""
    return sum(map(pairs, packed_counts(count, [packets] * count)))
