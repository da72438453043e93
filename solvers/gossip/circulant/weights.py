"""The best weights of given generators, and what they prove."""

import numpy as np
from scipy.optimize import linprog

from ddlopt.models.errors import SolverError
from ddlopt.models.gossip.circulant.instance import CirculantGraph, CirculantInstance, Floats
from ddlopt.models.tolerances import ROUNDING, ZERO_TOL


def best_weights(characters: Floats) -> tuple[Floats, float]:
    r"""Weights w with the least :math:`\max_k |1 - \lambda_k|`, and a lower bound on it.

    Multipliers y with :math:`\sum_k y_k a_{kg} = 0` for all generators prove :math:`\sum_k y_k / \sum_k |y_k|`; those
    of the linear program are projected on that space.

    Parameters
    ----------
    characters : (k, r) array
        a_kg.
    """
    count, size = characters.shape
    ones = np.ones((count, 1))
    rows = np.block([[-characters, -ones], [characters, -ones]])
    sides = np.concatenate([-np.ones(count), np.ones(count)])
    costs = np.append(np.zeros(size), 1.0)
    found = linprog(costs, rows, sides, bounds=[(-1, 1)] * size + [(0, 1)])
    if found.x is None:
        raise SolverError(f"weights of generators: {found.message}")
    multipliers = -found.ineqlin.marginals
    y = multipliers[:count] - multipliers[count:]
    for _ in range(2):
        y = y - characters @ np.linalg.lstsq(characters, y, rcond=None)[0]
    scale = np.abs(y).sum()
    return found.x[:-1], max(0.0, float(y.sum() / scale) - ROUNDING) if scale > ZERO_TOL else 0.0


def graph_of(instance: CirculantInstance, generators: tuple[int, ...]) -> CirculantGraph:
    """The answer with these generators, and with their best weights where the goal asks for some."""
    weights: tuple[float, ...] = ()
    if instance.goal == "averaging":
        found, _ = best_weights(instance.characters[:, [g - 1 for g in generators]])
        weights = tuple(found.tolist())
    return CirculantGraph(instance=instance.name, generators=generators, weights=weights)
