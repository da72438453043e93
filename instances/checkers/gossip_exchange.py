"""Checks when a worker sends its model, in rational numbers: python gossip_exchange.py INSTANCE SOLUTION.

Others have the model that was sent last; staleness is the sum of the squared distances of the models from it, or of the
distances themselves, each of which is rounded up in its 64th binary place, of one below 1 from its first digit on.
"""

import gzip
import json
import math
import sys
from fractions import Fraction as F


def check(instance, solution):
    """Staleness and the cost of sends, None where the answer makes no sense, and (rule, where) of what is broken."""
    points, times = instance["points"], solution.get("times", [])
    if any(after <= before for before, after in zip([0, *times], times)):
        raise ValueError("times increase, from 1 on")
    if times and times[-1] >= len(points):
        return None, [("send after the last step", "times")]
    total, sent = F(instance.get("send_cost") or 0) * len(times), 0
    for step, point in enumerate(points):
        sent = step if step in times else sent
        square = sum(((F(a) - F(b)) ** 2 for a, b in zip(point, points[sent])), F(0))
        if instance.get("norm", "squared") == "plain":
            places = 64 + max(0, square.denominator.bit_length() - square.numerator.bit_length()) // 2
            scaled = square * 4**places
            root = math.isqrt(math.ceil(scaled))
            square = F(root if root * root >= scaled else root + 1, 2**places)
        total += square
    many = instance.get("sends") is not None and len(times) > instance["sends"]
    return total, [("number of sends", "all steps")] if many else []


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
