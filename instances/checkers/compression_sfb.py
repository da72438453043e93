"""Checks which operators are duplicated, in rational numbers: python compression_sfb.py INSTANCE SOLUTION.

A duplicated operator is computed in full by every replica: its gradient needs no all-reduce, but its inputs from
operators that are not duplicated are broadcast. The objective is the time of communication and duplication.
"""

import gzip
import json
import sys
from fractions import Fraction as F


def check(instance, solution):
    """The objective in seconds, None where the answer makes no sense, and (rule, where) of what is broken."""
    operators, named = instance["operators"], solution.get("duplicated", [])
    model, chosen = instance.get("cost_model", "per_link"), set(named)
    broken = [("operator_exists", f"operator {node}") for node in chosen if not 0 <= node < len(operators)]
    if len(chosen) < len(named):
        broken.append(("operator_is_named_once", "duplicated"))
    if broken:
        return None, broken
    extra, memory, reduced, penalty = F(0), F(0), F(0), F(0)
    for node, operator in enumerate(operators):
        replicas = operator.get("replicas", 1)
        if node in chosen:
            if replicas < 2 or not operator.get("can_duplicate", True):
                broken.append(("operator_can_be_duplicated", f"operator {node}"))
            more = F(operator["time_s"]) * (replicas - 1)
            extra += more / replicas if model == "per_link" else more
            memory += F(operator.get("memory_bytes", 0))
            penalty += F(instance.get("duplication_penalty_s", 0))
        else:
            size, bandwidth = F(operator.get("gradient_bytes", 0)), F(operator["bandwidth_bytes_per_s"])
            on_a_link = 2 * (replicas - 1) * size / replicas / bandwidth
            reduced += on_a_link * {"per_link": F(1), "total_bytes": F(replicas), "tag_code": F(1, 4)}[model]
    broadcast = F(0)
    for tensor in instance.get("tensors", []):
        if tensor["producer"] not in chosen:
            wanting = sum(consumer in chosen for consumer in tensor["consumers"])
            if instance.get("broadcast", "per_tensor") == "per_tensor":
                wanting = min(1, wanting)
            producer = operators[tensor["producer"]]
            replicas = producer.get("replicas", 1)
            by_all = F(tensor["size_bytes"]) * (replicas - 1) / F(producer["bandwidth_bytes_per_s"])
            factor = {"per_link": F(1, replicas), "total_bytes": F(1), "tag_code": F(replicas, 4)}[model]
            broadcast += wanting * by_all * factor
    for rule, used, budget in (
        ("memory_budget_is_kept", memory, instance.get("memory_budget_bytes")),
        ("compute_budget_is_kept", extra, instance.get("compute_budget_s")),
    ):
        if budget is not None and used > F(budget) * (1 + F(1e-9)):  # as `evaluate` allows: sums are rounded
            broken.append((rule, "duplicated operators"))
    return extra + reduced + broadcast + penalty, broken


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
