"""The independent check of weights: eigenvalues are calculated anew, or proven."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.gossip.spectral.verified import largest_below
from ddlopt.models.gossip.weights.instance import GossipWeights, WeightsInstance
from ddlopt.models.tolerances import FEASIBILITY_TOL

Floats = npt.NDArray[np.float64]


def evaluate_weights(instance: WeightsInstance, solution: GossipWeights, exact: bool = False) -> Evaluation:
    r"""The eigenvalue that the instance asks for, and what the weights violate.

    An eigenvalue is no rational number. With ``exact`` the objective is a rational number that is proven to be no
    better than it, and relatively within some :math:`10^{-10}` of it
    (:func:`~ddlopt.models.gossip.spectral.verified.largest_below`); constraints are checked without tolerance then.

    Details: ``averaging_time``, the rounds :math:`1 / \ln(1/\rho)` in which the distance from the average shrinks to
    1/e.
    """
    values, broken = _weights_by_edge(instance, solution)
    if broken:
        return Evaluation(None, tuple(broken))
    violations = tuple(_violations(instance, values, 0 if exact else FEASIBILITY_TOL))
    matrix = _matrix(instance, [float(value) for value in values])
    goal, n = instance.goal, instance.size
    objective: Number
    if goal == "process":
        spectrum = np.linalg.eigvalsh(matrix)
        objective = float(spectrum[1])
        if exact:
            objective = max(Fraction(0), -largest_below(-matrix, 2.0 * float(np.abs(matrix.diagonal()).max())))
        return Evaluation(objective, violations)
    # Beside the eigenvalue 1 of the all-one vector
    beside = matrix - 1.0 / n
    spectrum = np.linalg.eigvalsh(beside)
    objective = float(spectrum[-1] if goal == "pairwise" else np.abs(spectrum).max())
    details: dict[str, Number] = {}
    if 0 < objective < 1:
        details["averaging_time"] = 1.0 / math.log(1.0 / objective)
    if exact:
        objective = largest_below(matrix, 1.0)
        if goal != "pairwise":
            objective = max(objective, largest_below(-matrix, -1.0))
    return Evaluation(objective, violations, details)


def _weights_by_edge(instance: WeightsInstance, solution: GossipWeights) -> tuple[list[Fraction], list[Violation]]:
    edges = instance.network.edges
    wanted = len(edges) * (2 if instance.goal == "pairwise" else 1)
    if solution.matrix is None:
        if len(solution.weights) != wanted:
            return [], [Violation("number of weights", "weights", len(solution.weights), wanted)]
        return [Fraction(value) for value in solution.weights], []
    if instance.goal in ("process", "pairwise"):
        return [], [Violation("a matrix is for averaging and chains", "matrix", len(solution.matrix), 0)]
    return _weights_of_matrix(instance, solution.matrix)


def _weights_of_matrix(instance: WeightsInstance, matrix: Floats) -> tuple[list[Fraction], list[Violation]]:
    edges, n = instance.network.edges, instance.size
    if len(matrix) != n:
        return [], [Violation("rows of the matrix", "matrix", len(matrix), n)]
    linked = np.eye(n, dtype=bool)
    linked[tuple(instance.network.ends.T)] = linked[tuple(instance.network.ends.T[::-1])] = True
    broken = [
        Violation("weight where there is no edge", f"nodes {i} and {j}", float(matrix[i, j]), 0)
        for i, j in np.argwhere(~linked & (matrix != 0)).tolist()
        if i < j
    ]
    for i, total in enumerate(matrix.sum(axis=1).tolist()):
        if abs(total - 1) > FEASIBILITY_TOL:
            broken.append(Violation("sum of a row", f"node {i}", total, 1))
    return [Fraction(float(matrix[i, j])) for i, j in edges], broken


def _violations(instance: WeightsInstance, values: list[Fraction], tolerance: float) -> Iterator[Violation]:
    if instance.goal == "averaging":
        return
    for place, value in enumerate(values):
        if value < -tolerance:
            yield Violation("weight below 0", f"weights[{place}]", value, 0)
    if instance.goal == "process":
        costs = instance.costs or (1.0,) * len(values)
        # A rate that rounding left below 0 pays for no other.
        rates = [max(value, Fraction(0)) for value in values]
        spent = sum((Fraction(cost) * rate for cost, rate in zip(costs, rates, strict=True)), Fraction(0))
        assert instance.budget is not None
        if spent > Fraction(instance.budget) * (1 + Fraction(tolerance)):
            yield Violation("budget", "all edges", spent, instance.budget)
        return
    shares = [Fraction(0)] * instance.size
    for place, (i, j) in enumerate(instance.network.edges):
        if instance.goal == "chain":
            shares[i] += values[place]
            shares[j] += values[place]
        else:
            shares[i] += values[2 * place]
            shares[j] += values[2 * place + 1]
    for node, share in enumerate(shares):
        if share > 1 + Fraction(tolerance):
            yield Violation("more than all is given away", f"node {node}", share, 1)


def _matrix(instance: WeightsInstance, values: list[float]) -> Floats:
    """W, the expectation of W, or L(w); entry by entry, so that each is rounded once."""
    n, goal = instance.size, instance.goal
    matrix = np.zeros((n, n))
    given: list[list[float]] = [[] for _ in range(n)]
    for place, (i, j) in enumerate(instance.network.edges):
        weight = (values[2 * place] + values[2 * place + 1]) / (2 * n) if goal == "pairwise" else values[place]
        matrix[i, j] = matrix[j, i] = -weight if goal == "process" else weight
        given[i].append(weight)
        given[j].append(weight)
    for node, parts in enumerate(given):
        matrix[node, node] = math.fsum(parts) if goal == "process" else math.fsum([1.0, *(-part for part in parts)])
    return matrix
