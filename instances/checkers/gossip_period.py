"""Checks how often workers communicate: python gossip_period.py INSTANCE SOLUTION.

Steps of size h, m workers, a period of t steps, mixing r: 2 D / (h K) + h L v / m + (h L)^2 v ((1 + r) / (1 - r) t - 1)
is to be as small as the target after K steps, each of which takes its computation and a t-th of the communication. All
of it is in rational numbers. Where matchings are drawn, one a round, r is 1 - z / 2 with the second smallest eigenvalue
z of the expected Laplacian, of which a proven lower bound is taken that is within 1e-10 or so. Where steps are slow by
chance the mean of the slowest worker is a finite sum, of probabilities that are rounded in their 200th binary place.
"""

import gzip
import json
import sys
from fractions import Fraction as F

MOST_STEPS = 4096
"""Of a period where steps are slow by chance: the sum has as many terms for each worker."""


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


def second_smallest(rounds, chances):
    """A number that the second eigenvalue of the expected Laplacian is not below."""
    edges, n = rounds["network"]["edges"], rounds["network"]["nodes"]
    laplacian = [[F(0)] * n for _ in range(n)]
    for chance, matching in zip(chances, rounds["matchings"]):
        for i, j in (edges[edge] for edge in matching):
            for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                laplacian[a][b] += sign * chance
    # The all-one vector has the eigenvalue 0; what is taken off its share moves it behind all others.
    taken = sum(laplacian[i][i] for i in range(n)) / n
    return max(F(0), -largest([[-value - taken for value in row] for row in laplacian]))


def slowest(stragglers, steps):
    """Mean seconds a step of the last worker, over compute_s: a sum over times of the chance that not all are done."""
    chance, slowdown = F(stragglers["chance"]), F(stragglers["slowdown"])
    hit, whole = chance.numerator, chance.denominator
    # at_most[k] is the chance of at most k slow steps; terms of the binomial distribution in units of 1 / whole^steps.
    at_most, total, term = [], 0, (whole - hit) ** steps
    for slow in range(steps + 1):
        total += term
        at_most.append(F(2**200 * total // whole**steps, 2**200))
        term = term * (steps - slow) * hit // ((slow + 1) * (whole - hit))
    factors = [F(factor) for factor in stragglers["factors"]]
    kinds = sorted(set(factors))
    ends = [(kind * (steps + (slowdown - 1) * slow), kind, slow) for kind in kinds for slow in range(steps + 1)]
    done, before, mean = dict.fromkeys(kinds, F(0)), F(0), F(0)
    for time, kind, slow in sorted(ends):
        all_done = F(1)
        for other in kinds if time > before else ():
            all_done *= done[other] ** factors.count(other)
        mean += (time - before) * (1 - all_done)
        before, done[kind] = time, at_most[slow]
    return mean / steps


def seconds_a_step(instance, period):
    """Over compute_s, until the last worker is done."""
    stragglers = instance.get("stragglers")
    if stragglers is None:
        return F(1)
    return slowest(stragglers, int(period)) if random(stragglers) else F(max(stragglers["factors"]))


def random(stragglers):
    """Whether a step may be slow."""
    return stragglers is not None and stragglers.get("chance", 0) > 0 and stragglers.get("slowdown", 1) > 1


def limits(instance, solution):
    """What is broken."""
    period, step, chances = F(solution["period"]), F(solution["step_size"]), solution.get("activation", [])
    rounds, broken = instance.get("rounds"), []
    if len(chances) != (len(rounds["matchings"]) if rounds else 0):
        broken.append(("number of probabilities", "activation"))
    if period < 1:
        broken.append(("period below one step", "period"))
    if instance.get("whole") and period.denominator != 1:
        broken.append(("period is no whole number", "period"))
    if random(instance.get("stragglers")) and (not 0 < period <= MOST_STEPS or period.denominator != 1):
        broken.append(("no seconds are known for the period", "period"))
    if step <= 0:
        broken.append(("step size not above 0", "step_size"))
    if instance.get("step_size") is not None and step != F(instance["step_size"]):
        broken.append(("step size is not the one given", "step_size"))
    broken += [("probability below 0", f"activation[{i}]") for i, chance in enumerate(chances) if chance < 0]
    if sum(map(F, chances), F(0)) > 1:
        broken.append(("more than one matching in a round", "activation"))
    return broken


def check(instance, solution):
    """Seconds to the target, None where the answer makes no sense, and (rule, where) of what is broken."""
    broken = limits(instance, solution)
    period, step = F(solution["period"]), F(solution["step_size"])
    hopeless = {"number of probabilities", "no seconds are known for the period"} & {rule for rule, _ in broken}
    if period <= 0 or step <= 0 or hopeless:
        return None, broken
    rounds = instance.get("rounds")
    if rounds:
        chances = [max(F(chance), F(0)) for chance in solution.get("activation", [])]
        communication = sum((chance * F(time) for chance, time in zip(chances, rounds["times_s"])), F(0))
        mixing = 1 - second_smallest(rounds, chances) / 2
    else:
        communication, mixing = F(instance["communication_s"]), F(instance["mixing"])
    if mixing >= 1:
        return None, [*broken, ("workers never agree: mixing", "rounds")]
    smooth, variance = F(instance.get("smoothness", 1)), F(instance.get("variance", 1))
    credit = 1 if instance.get("deviation", "exact") == "exact" else 0
    noise = step * smooth * variance / instance["workers"]
    drift = (step * smooth) ** 2 * variance * ((1 + mixing) / (1 - mixing) * period - credit)
    left = F(instance["target"]) - noise - drift
    if left <= 0:
        return None, [*broken, ("target below what the step size allows", "target")]
    steps = 2 * F(instance.get("initial_gap", 1)) / (step * left)
    return steps * (F(instance["compute_s"]) * seconds_a_step(instance, period) + communication / period), broken


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
