"""The independent check of a circulant graph: its matrix is built, and eigenvalues are calculated anew."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.gossip.circulant.instance import CirculantGraph, CirculantInstance
from ddlopt.models.gossip.spectral.verified import largest_below

Floats = npt.NDArray[np.float64]


def evaluate_circulant(instance: CirculantInstance, solution: CirculantGraph, exact: bool = False) -> Evaluation:
    """The second smallest eigenvalue of the Laplacian, or the factor of a round; 0 or 1 where no path joins workers.

    With ``exact`` a rational number that is proven to be no better. Details: ``degree``, and for goal ``averaging``
    ``averaging_time``, the rounds in which the distance from the average shrinks to 1/e.
    """
    broken = tuple(_broken(instance, solution))
    if broken:
        return Evaluation(None, broken)
    n, averaging = instance.nodes, instance.goal == "averaging"
    weights = solution.weights if averaging else (1.0,) * len(solution.generators)
    laplacian = np.zeros((n, n))
    degree = 0
    for generator, weight in zip(solution.generators, weights, strict=True):
        degree += 1 if 2 * generator == n else 2
        for x in range(n):
            y = (x + generator) % n
            laplacian[x, y] = laplacian[y, x] = -weight
    given = [math.fsum(-row[row != 0]) for row in laplacian]
    violations = () if degree <= instance.degree else (Violation("links", "each worker", degree, instance.degree),)
    details: dict[str, Number] = {"degree": float(degree)}
    objective: Number
    if not averaging:
        laplacian[np.diag_indices(n)] = given
        objective = max(0.0, float(np.linalg.eigvalsh(laplacian)[1]))
        if exact:
            objective = max(Fraction(0), -largest_below(-laplacian, 2.0 * float(laplacian.diagonal().max())))
        return Evaluation(objective, violations, details)
    matrix = -laplacian
    matrix[np.diag_indices(n)] = [math.fsum([1.0, *row[row != 0]]) for row in laplacian]
    objective = float(np.abs(np.linalg.eigvalsh(matrix - 1.0 / n)).max())
    if 0 < objective < 1:
        details["averaging_time"] = 1.0 / math.log(1.0 / objective)
    if exact:
        objective = max(largest_below(matrix, 1.0), largest_below(-matrix, -1.0))
    return Evaluation(objective, violations, details)


def _broken(instance: CirculantInstance, solution: CirculantGraph) -> Iterator[Violation]:
    half = instance.nodes // 2
    for place, generator in enumerate(solution.generators):
        if not 1 <= generator <= half:
            yield Violation("no such generator", f"generators[{place}]", generator, half)
        if generator in solution.generators[:place]:
            yield Violation("the same generator again", f"generators[{place}]", generator, generator)
    wanted = len(solution.generators) if instance.goal == "averaging" else 0
    if len(solution.weights) != wanted:
        yield Violation("number of weights", "weights", len(solution.weights), wanted)
