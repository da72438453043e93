"""The independent check of matchings, probabilities and weights."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.gossip.matchings.instance import MatchingPlan, MatchingsInstance
from ddlopt.models.gossip.spectral.verified import largest_below
from ddlopt.models.tolerances import FEASIBILITY_TOL


def evaluate_matchings(instance: MatchingsInstance, solution: MatchingPlan, exact: bool = False) -> Evaluation:
    r"""The factor ρ, and what the plan violates.

    With ``exact``: a rational number that is proven to be at least ρ, see
    :func:`~ddlopt.models.gossip.spectral.verified.largest_below`; budgets are then checked without tolerance.

    Details: ``time``, the expected time of a round; ``matchings``; ``largest_degree``, which no decomposition is below.
    """
    broken = tuple(_unreadable(instance, solution))
    if broken:
        return Evaluation(None, broken)
    violations = tuple(_violations(instance, solution, 0 if exact else FEASIBILITY_TOL))
    second = _second_moment(instance, solution)
    details: dict[str, Number] = {
        "time": float(_time(instance, solution)),
        "matchings": len(solution.matchings),
        "largest_degree": int(instance.network.degrees.max()),
    }
    objective: Number = float(np.linalg.eigvalsh(second - 1.0 / instance.size)[-1])
    if exact:
        # Matrices are multiplied and added in floats; no row of them adds up to more than this.
        row = 1.0 + 2.0 * sum(abs(weight) for weight in solution.weights)
        error = 4.0 * 2.0**-53 * (instance.size + len(solution.matchings) + 4) * row**2
        objective = largest_below(second, 1.0, error)
    return Evaluation(objective, violations, details)


def _unreadable(instance: MatchingsInstance, solution: MatchingPlan) -> Iterator[Violation]:
    edges = len(instance.network.edges)
    if len(solution.probabilities) != len(solution.matchings):
        yield Violation("number of probabilities", "matchings", len(solution.probabilities), len(solution.matchings))
    if len(solution.weights) != edges:
        yield Violation("number of weights", "edges", len(solution.weights), edges)
    counts = [0] * edges
    for number, matching in enumerate(solution.matchings):
        for edge in matching:
            if 0 <= edge < edges:
                counts[edge] += 1
            else:
                yield Violation("no such edge", f"matching {number}", edge, edges - 1)
    for edge, count in enumerate(counts):
        if count != 1:
            yield Violation("matchings of an edge", f"edge {edge}", count, 1)


def _violations(instance: MatchingsInstance, solution: MatchingPlan, tolerance: float) -> Iterator[Violation]:
    for number, matching in enumerate(solution.matchings):
        met: dict[int, int] = {}
        for edge in matching:
            for node in instance.network.edges[edge]:
                met[node] = met.get(node, 0) + 1
        for node, count in met.items():
            if count > 1:
                yield Violation("edges of a matching at a node", f"matching {number}, node {node}", count, 1)
    if instance.matchings:
        given = {frozenset(matching) for matching in instance.matchings}
        for number, matching in enumerate(solution.matchings):
            if matching and frozenset(matching) not in given:
                yield Violation("a matching that is not given", f"matching {number}", len(matching), 0)
    for number, chance in enumerate(solution.probabilities):
        if not -tolerance <= chance <= 1 + tolerance:
            yield Violation("probability", f"matching {number}", chance, 0 if chance < 0 else 1)
    spent = _time(instance, solution)
    if spent > Fraction(instance.budget) * (1 + Fraction(tolerance)):
        yield Violation("budget", "all matchings", spent, instance.budget)
    total = sum(map(Fraction, solution.probabilities), Fraction(0))
    if instance.activation == "single" and total > 1 + Fraction(tolerance):
        yield Violation("sum of probabilities", "all matchings", total, 1)
    if instance.edge_budgets:
        for number, matching in enumerate(solution.matchings):
            for edge in matching:
                if solution.probabilities[number] > instance.edge_budgets[edge] * (1 + tolerance):
                    yield Violation(
                        "budget of an edge", f"edge {edge}", solution.probabilities[number], instance.edge_budgets[edge]
                    )


def _time(instance: MatchingsInstance, solution: MatchingPlan) -> Fraction:
    """Of a round; a probability that rounding left below 0 makes none shorter."""
    times = instance.edge_times
    return sum(
        (
            Fraction(max(chance, 0.0)) * Fraction(max((times[edge] for edge in matching), default=0.0))
            for chance, matching in zip(solution.probabilities, solution.matchings, strict=True)
        ),
        Fraction(0),
    )


def _second_moment(instance: MatchingsInstance, solution: MatchingPlan) -> npt.NDArray[np.float64]:
    """E[WᵀW], from matrices of single matchings."""
    n = instance.size
    whole = np.eye(n)
    steps = [whole - _moved(instance, solution, matching) for matching in solution.matchings]
    if instance.activation == "single":
        idle = 1.0 - sum(solution.probabilities)
        return sum(
            (chance * step @ step for chance, step in zip(solution.probabilities, steps, strict=True)), idle * whole
        )
    # Of independent matchings: the square of the expectation, and the variance of each.
    expected, variance = whole.copy(), np.zeros((n, n))
    for chance, step in zip(solution.probabilities, steps, strict=True):
        move = whole - step
        expected -= chance * move
        variance += chance * (1.0 - chance) * move @ move
    found: npt.NDArray[np.float64] = expected @ expected + variance
    return (found + found.T) / 2.0


def _moved(instance: MatchingsInstance, solution: MatchingPlan, matching: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """L_j(w)."""
    found = np.zeros((instance.size, instance.size))
    for edge in matching:
        i, j = instance.network.edges[edge]
        weight = solution.weights[edge]
        found[i, i] += weight
        found[j, j] += weight
        found[i, j] -= weight
        found[j, i] -= weight
    return found
