"""Checks how far gradients are compressed, in rational numbers: python compression_levels.py INSTANCE SOLUTION.

Each gradient has a level: a rank, a number of entries or of bits. Encoding and the wire take longer with every level,
and its curve gives the error. Gradients are sent in the order of the backward pass, each when it is encoded and the
wire is free.
"""

import gzip
import json
import sys
from fractions import Fraction as F


def check(instance, solution):
    """The objective, None where the answer makes no sense, and (rule, where) of what is broken."""
    gradients, levels = instance["gradients"], solution["levels"]
    if len(levels) != len(gradients):
        return None, [("every_gradient_has_a_level", "levels")]
    errors = [errors_of(gradient["curve"]) for gradient in gradients]
    broken = [("level_is_allowed", f"gradient {i}") for i, level in enumerate(levels) if level not in errors[i]]
    if broken:
        return None, broken
    encode, wire, error = F(0), F(0), F(0)
    for gradient, level, known in zip(gradients, levels, errors):
        encode += F(gradient.get("encode_s", 0)) + F(gradient.get("encode_s_per_level", 0)) * level
        start = max(wire, F(gradient.get("ready_s", 0)) + encode)
        wire = start + F(gradient.get("launch_s", 0)) + F(gradient["wire_s_per_level"]) * level
        error += known[level]
    for rule, used, budget in (
        ("error_budget_is_kept", error, instance.get("error_budget")),
        ("time_budget_is_kept", wire, instance.get("time_budget_s")),
    ):
        if budget is not None and used > F(budget) * (1 + F(1e-9)):  # as `evaluate` allows: sums are rounded
            broken.append((rule, "all gradients"))
    return wire if instance.get("goal", "time") == "time" else error, broken


def errors_of(curve):
    """The error at each level that there is."""
    if curve["kind"] == "exponential":
        return {level: F(curve["scale"]) / 4**level for level in range(curve["lowest"], curve["highest"] + 1)}
    return {level: F(error) for level, error in zip(curve["levels"], curve["errors"])}


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
