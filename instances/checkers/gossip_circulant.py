"""Checks a circulant graph by its characters, in double precision: python gossip_circulant.py INSTANCE SOLUTION.

A generator g links each worker x to x + g and x - g modulo n. The Laplacian has the eigenvalues
sum of w_g (2 - 2 cos(2 pi k g / n)) for k = 1 .. n - 1, with half of that for g = n / 2.
"""

import gzip
import json
import math
import sys
from fractions import Fraction as F


def check(instance, solution):
    """The objective, None where the answer makes no sense, and (rule, where) of what is broken."""
    n, generators, weights = instance["nodes"], solution["generators"], solution.get("weights", [])
    averaging, broken = instance.get("goal", "gap") == "averaging", []
    for place, generator in enumerate(generators):
        if not 1 <= generator <= n // 2:
            broken.append(("no such generator", f"generators[{place}]"))
        if generator in generators[:place]:
            broken.append(("the same generator again", f"generators[{place}]"))
    if len(weights) != (len(generators) if averaging else 0):
        broken.append(("number of weights", "weights"))
    if broken:
        return None, broken
    if sum(1 if 2 * generator == n else 2 for generator in generators) > instance["degree"]:
        broken.append(("links", "each worker"))
    values = []
    for k in range(1, n):
        parts = [2 - 2 * math.cos(2 * math.pi * (k * g % n) / n) for g in generators]
        halves = [part / 2 if 2 * g == n else part for g, part in zip(generators, parts)]
        values.append(math.fsum(w * part for w, part in zip(weights if averaging else [1.0] * len(halves), halves)))
    return F(max(abs(1 - value) for value in values) if averaging else max(0.0, min(values))), broken


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
