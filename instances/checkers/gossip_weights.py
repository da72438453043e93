"""Checks weights of gossip with proven eigenvalues: python gossip_weights.py INSTANCE SOLUTION.

With L = the sum of w_e (e_i - e_j)(e_i - e_j)^T over edges, workers average by W = I - L, and the factor is the largest
eigenvalue of W in absolute value beside that of the all-one vector; for chains weights are probabilities. For pairwise
gossip w_e = (P_ij + P_ji) / 2n, and the largest eigenvalue beside that one counts; for processes the second smallest of
L. The objective is a rational number that is proven to be no better, and is within 1e-10 or so.
"""

import gzip
import json
import sys
from fractions import Fraction as F

ROW_TOLERANCE = F(1, 10**9)
"""Rows of a matrix that is given, of rounded numbers, add up to 1 within this."""


def positive(matrix):
    """Whether elimination in double precision meets positive pivots only; for the search."""
    rows = [list(row) for row in matrix]
    for k, pivot_row in enumerate(rows):
        pivot = pivot_row[k]
        if pivot <= 0:
            return False
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / pivot
            if factor:
                for j in range(k + 1, i + 1):
                    rows[i][j] -= factor * rows[j][k]
    return True


def surely_positive(rows):
    """Whether a symmetric matrix of integers is positive definite: all leading minors are (Sylvester, by Bareiss)."""
    before = 1
    for k, pivot_row in enumerate(rows):
        pivot = pivot_row[k]
        if pivot <= 0:
            return False
        for i in range(k + 1, len(rows)):
            for j in range(k + 1, i + 1):
                rows[i][j] = (rows[i][j] * pivot - rows[i][k] * rows[j][k]) // before
        before = pivot
    return True


def largest(matrix):
    """A number that no eigenvalue of a symmetric matrix exceeds, and that is some 1e-12 of its rows above the largest.

    It is searched for in floats and proven in integers: s I - B, in units of 2^-60 of the longest row and rounded, is
    positive definite even with n units less on its diagonal. An entry is off by half a unit, so the matrix is by n / 2.
    """
    n, row = len(matrix), max(sum(map(abs, row)) for row in matrix)
    if not row:
        return F(0)
    small = [[float(value / row) for value in values] for values in matrix]
    low, high = -1.0, 1.0
    while high - low > 2.0**-44:
        middle = (low + high) / 2
        shifted = [[(middle if i == j else 0.0) - small[i][j] for j in range(n)] for i in range(n)]
        low, high = (low, middle) if positive(shifted) else (middle, high)
    units = [[round(value * 2**60 / row) for value in values] for values in matrix]
    more = 2.0**-42
    while True:
        shift = round(F(high) * 2**60) - n
        if surely_positive([[(shift if i == j else 0) - units[i][j] for j in range(n)] for i in range(n)]):
            return (F(shift + n) / 2**60) * row
        high, more = high + more, 2 * more


def rows_of(matrix):
    """A matrix from its rows, or from {"size": n, "entries": [[i, j, value], …]}."""
    if isinstance(matrix, dict):
        rows = [[0] * matrix["size"] for _ in range(matrix["size"])]
        for i, j, value in matrix["entries"]:
            rows[i][j] = value
        return rows
    return matrix


def weights_of(instance, solution, broken):
    """The weight of each edge, of pairwise gossip two; from a matrix if that is given."""
    edges, goal, matrix = instance["network"]["edges"], instance.get("goal", "averaging"), solution.get("matrix")
    weights = solution.get("weights") or []
    if matrix is None:
        if len(weights) != len(edges) * (2 if goal == "pairwise" else 1):
            broken.append(("number of weights", "weights"))
        return [F(weight) for weight in weights]
    rows, n = rows_of(matrix), instance["network"]["nodes"]
    if weights or any(rows[i][j] != rows[j][i] for i in range(len(rows)) for j in range(i)):
        raise ValueError("a matrix is symmetric, and stands alone")
    if goal in ("process", "pairwise"):
        broken.append(("a matrix is for averaging and chains", "matrix"))
    elif len(rows) != n:
        broken.append(("rows of the matrix", "matrix"))
    if broken:
        return []
    linked = {frozenset(edge) for edge in edges}
    for i in range(n):
        if any(rows[i][j] and frozenset((i, j)) not in linked for j in range(i)):
            broken.append(("weight where there is no edge", f"node {i}"))
        if abs(sum(map(F, rows[i])) - 1) > ROW_TOLERANCE:
            broken.append(("sum of a row", f"node {i}"))
    return [F(rows[i][j]) for i, j in edges]


def limits(instance, weights, broken):
    """Signs, the budget of a process, and that nodes give away no more than they have."""
    edges, goal, n = instance["network"]["edges"], instance.get("goal", "averaging"), instance["network"]["nodes"]
    if goal == "averaging":
        return
    broken += [("weight below 0", f"weights[{place}]") for place, weight in enumerate(weights) if weight < 0]
    if goal == "process":
        costs = instance.get("costs") or [1] * len(edges)
        if sum((F(cost) * max(weight, 0) for cost, weight in zip(costs, weights)), F(0)) > F(instance["budget"]):
            broken.append(("budget", "all edges"))
        return
    given = [F(0)] * n
    for place, (i, j) in enumerate(edges):
        given[i] += weights[2 * place] if goal == "pairwise" else weights[place]
        given[j] += weights[2 * place + 1] if goal == "pairwise" else weights[place]
    broken += [("more than all is given away", f"node {node}") for node in range(n) if given[node] > 1]


def check(instance, solution):
    """The eigenvalue, None where the answer makes no sense, and (rule, where) of what is broken."""
    edges, goal, n = instance["network"]["edges"], instance.get("goal", "averaging"), instance["network"]["nodes"]
    broken = []
    weights = weights_of(instance, solution, broken)
    if broken:
        return None, broken
    limits(instance, weights, broken)
    laplacian = [[F(0)] * n for _ in range(n)]
    for place, (i, j) in enumerate(edges):
        weight = (weights[2 * place] + weights[2 * place + 1]) / (2 * n) if goal == "pairwise" else weights[place]
        for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
            laplacian[a][b] += sign * weight
    if goal == "process":
        # The all-one vector has the eigenvalue 0; what is taken off its share moves it behind all others.
        taken = 2 * max(abs(laplacian[i][i]) for i in range(n)) / n
        return max(F(0), -largest([[-value - taken for value in row] for row in laplacian])), broken
    beside = [[(i == j) - laplacian[i][j] - F(1, n) for j in range(n)] for i in range(n)]
    factor = largest(beside)
    if goal != "pairwise":
        factor = max(factor, largest([[-value for value in row] for row in beside]))
    return factor, broken


def main():
    """Print the objective and every rule that is broken; exit code 0 if none is, 1 if one is, 2 for no answer."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: python {sys.argv[0]} INSTANCE SOLUTION, each a .json or .json.gz file")
    documents = []
    for name in sys.argv[1:]:
        with gzip.open(name, "rt", encoding="utf-8") if name.endswith(".gz") else open(name, encoding="utf-8") as file:
            documents.append(json.load(file))
    instance, solution = documents
    if solution.get("format") == "ddlopt submission":
        solution = solution["solution"]
    try:
        objective, broken = check(instance, solution)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError) as problem:
        print(f"this is no answer to the problem: {type(problem).__name__}: {problem}")
        sys.exit(2)
    print("objective:", "none" if objective is None else f"{objective} ({float(objective):.12g})")
    for rule, where in broken:
        print(f"broken: {rule}: {where}")
    feasible = objective is not None and not broken
    print("feasible" if feasible else "not feasible")
    sys.exit(0 if feasible else 1)


if __name__ == "__main__":
    main()
