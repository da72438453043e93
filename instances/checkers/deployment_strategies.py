"""Checks a strategy for every node in rational numbers: python deployment_strategies.py INSTANCE SOLUTION.

The costs of nodes and of edges are added up; null is forbidden. Nodes keep memory while what they make is alive.
"""

import gzip
import json
import sys
from fractions import Fraction as F


def check(instance, solution):
    """The cost, None where something forbidden is chosen, and (rule, where) of what is broken."""
    costs, chosen, broken = instance["costs"], solution["strategies"], []
    if len(chosen) != len(costs):
        return None, [("number of strategies", "strategies")]
    broken = [("no such strategy", f"node {i}") for i, each in enumerate(chosen) if not 0 <= each < len(costs[i])]
    if broken:
        return None, broken
    for node, strategy in instance.get("pins", []):
        if chosen[node] != strategy:
            broken.append(("pinned strategy", f"node {node}"))
    for nodes in instance.get("aliases", []):
        if len({chosen[node] for node in nodes}) > 1:
            broken.append(("strategies alike", f"nodes {nodes}"))
    total, forbidden = F(0), False
    terms = [("forbidden strategy", f"node {i}", costs[i][each]) for i, each in enumerate(chosen)]
    for number, (i, j) in enumerate(instance.get("edges", [])):
        table = instance["tables"][instance["table_of"][number]]
        terms.append(("forbidden pair", f"edge {number}", table[chosen[i] * len(costs[j]) + chosen[j]]))
    for rule, where, term in terms:
        if term is None:
            broken.append((rule, where))
            forbidden = True
        else:
            total += F(term)
    limit = instance.get("usage_limit")
    kept = [F(usages[each]) for usages, each in zip(instance["usages"], chosen)]
    intervals = instance["intervals"]
    if limit is not None and any(use % 1 for usages in instance["usages"] for use in usages):
        limit = F(limit) * (1 + F(1e-9))  # as `evaluate` allows: data are rounded, unless they are whole
    for time in sorted({begin for begin, end in intervals if begin < end}) if limit is not None else []:
        if sum(use for use, (begin, end) in zip(kept, intervals) if begin <= time < end) > limit:
            broken.append(("memory", f"time {time}"))
    return None if forbidden else total, broken


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
