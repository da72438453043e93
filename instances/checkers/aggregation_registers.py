"""Checks the register array of each parameter: python aggregation_registers.py INSTANCE SOLUTION.

Parameters of a batch that are in one array need a packet each; a packet has room for a fixed number of entries.
"""

import gzip
import json
import sys
from fractions import Fraction as F


def check(instance, solution):
    """Packets or collisions, None where the answer makes no sense, and (rule, where) of what is broken."""
    arrays, count, capacity = solution["arrays"], instance["arrays"], instance["capacity"]
    if len(arrays) != instance["parameters"]:
        return None, [("every parameter has an array", "arrays")]
    broken = [("array exists", f"arrays[{i}]") for i, array in enumerate(arrays) if not 0 <= array < count]
    if broken:
        return None, broken
    rooms = capacity if isinstance(capacity, list) else [capacity] * count
    full = [array for array in range(count) if arrays.count(array) > rooms[array]]
    broken = [("array has room for its parameters", f"array {array}") for array in full]
    total, weights = F(0), instance.get("weights") or [1.0] * len(instance["batches"])
    for weight, batch in zip(weights, instance["batches"]):
        held = {}
        for parameter in batch:
            held[arrays[parameter]] = held.get(arrays[parameter], 0) + 1
        if instance.get("goal", "packets") == "packets":
            total += F(weight) * max(-(-len(batch) // instance["entries"]), max(held.values(), default=0))
        else:
            total += F(weight) * sum(number * (number - 1) // 2 for number in held.values())
    return total, broken


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
