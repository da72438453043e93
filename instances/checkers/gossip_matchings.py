"""Checks matchings, probabilities and weights with a proven eigenvalue: python gossip_matchings.py INSTANCE SOLUTION.

An active matching M averages its edges: W = I - the sum of w_e (e_i - e_j)(e_i - e_j)^T over M. Matchings are active
independently, or one at a time. The objective is the largest eigenvalue of E[W^T W] beside that of the all-one vector,
as a rational number that is proven to be no better, and is within 1e-10 or so.
"""

import gzip
import json
import sys
from fractions import Fraction as F


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


def added(one, factor, other):
    """One + factor * other; matrices are dictionaries of their entries."""
    total = dict(one)
    for place, value in other.items():
        total[place] = total.get(place, F(0)) + factor * value
    return total


def squared(matrix):
    """The product of a symmetric matrix with itself."""
    rows, product = {}, {}
    for (i, j), value in matrix.items():
        rows.setdefault(i, []).append((j, value))
    for i, row in rows.items():
        for k, value in row:
            for j, other in rows.get(k, ()):
                product[i, j] = product.get((i, j), F(0)) + value * other
    return product


def second_moment(instance, solution):
    """E[W^T W], of integers, probabilities and weights as they are given."""
    edges, n = instance["network"]["edges"], instance["network"]["nodes"]
    chances = [F(chance) for chance in solution["probabilities"]]
    whole = {(i, i): F(1) for i in range(n)}
    moves = []
    for matching in solution["matchings"]:
        move = {}
        for edge in matching:
            i, j = edges[edge]
            weight = F(solution["weights"][edge])
            move = added(move, weight, {(i, i): 1, (j, j): 1, (i, j): -1, (j, i): -1})
        moves.append(move)
    if instance.get("activation", "independent") == "single":
        moment = {place: value * (1 - sum(chances, F(0))) for place, value in whole.items()}
        for chance, move in zip(chances, moves):
            moment = added(moment, chance, squared(added(whole, -1, move)))
        return moment
    # The square of the expectation, and the variance of each matching.
    expected, variance = whole, {}
    for chance, move in zip(chances, moves):
        expected = added(expected, -chance, move)
        variance = added(variance, chance * (1 - chance), squared(move))
    return added(squared(expected), 1, variance)


def readable(instance, solution):
    """What is broken so that there is no objective."""
    matchings, edges = solution["matchings"], instance["network"]["edges"]
    broken = []
    if len(solution["probabilities"]) != len(matchings):
        broken.append(("number of probabilities", "matchings"))
    if len(solution["weights"]) != len(edges):
        broken.append(("number of weights", "edges"))
    listed = [edge for matching in matchings for edge in matching]
    broken += [("no such edge", f"edge {edge}") for edge in listed if not 0 <= edge < len(edges)]
    return broken + [("matchings of an edge", f"edge {e}") for e in range(len(edges)) if listed.count(e) != 1]


def limits(instance, solution):
    """What is broken of the plan, without any tolerance."""
    matchings, edges, broken = solution["matchings"], instance["network"]["edges"], []
    chances = [F(chance) for chance in solution["probabilities"]]
    given = [frozenset(matching) for matching in instance.get("matchings") or []]
    times = instance.get("times") or [1] * len(edges)
    budgets = instance.get("edge_budgets") or [1] * len(edges)
    spent = F(0)
    for number, (matching, chance) in enumerate(zip(matchings, chances)):
        where = f"matching {number}"
        ends = [node for edge in matching for node in edges[edge]]
        if len(set(ends)) < len(ends):
            broken.append(("edges of a matching at a node", where))
        if given and matching and frozenset(matching) not in given:
            broken.append(("a matching that is not given", where))
        if not 0 <= chance <= 1:
            broken.append(("probability", where))
        if instance.get("edge_budgets") and any(chance > F(budgets[edge]) for edge in matching):
            broken.append(("budget of an edge", where))
        spent += max(chance, 0) * max((F(times[edge]) for edge in matching), default=F(0))
    if spent > F(instance["budget"]):
        broken.append(("budget", "all matchings"))
    if instance.get("activation", "independent") == "single" and sum(chances, F(0)) > 1:
        broken.append(("sum of probabilities", "all matchings"))
    return broken


def check(instance, solution):
    """The factor, None where the answer makes no sense, and (rule, where) of what is broken."""
    broken = readable(instance, solution)
    if broken:
        return None, broken
    n, moment = instance["network"]["nodes"], second_moment(instance, solution)
    beside = [[moment.get((i, j), F(0)) - F(1, n) for j in range(n)] for i in range(n)]
    return largest(beside), limits(instance, solution)


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
