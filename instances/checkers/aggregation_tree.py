"""Checks aggregating switches of a tree in rational numbers: python aggregation_tree.py INSTANCE SOLUTION.

A switch that aggregates for a job sends one message on where it receives any; other switches send on all of them.
"""

import gzip
import json
import sys
from fractions import Fraction as F


def check(instance, solution):
    """The objective in seconds, None where the answer makes no sense, and (rule, where) of what is broken."""
    parents, jobs, chosen = instance["parents"], instance["jobs"], solution["switches"]
    count, broken = len(parents), []
    if len(chosen) != len(jobs):
        return None, [("every job has its switches", "switches")]
    for job, own in enumerate(chosen):
        for place, node in enumerate(own):
            if not 0 <= node < count:
                broken.append(("switch exists", f"switches[{job}][{place}]"))
            elif node in own[:place]:
                broken.append(("switch is named once", f"switches[{job}][{place}]"))
    if broken:
        return None, broken
    order = [node for node in range(count) if parents[node] in (None, -1)]
    for node in order:
        order += [below for below in range(count) if parents[below] == node]
    busy, used = [F(0)] * count, [0] * count
    for job, own in zip(jobs, chosen):
        messages = list(job["loads"])
        for node in reversed(order):
            if node in own:
                messages[node] = min(1, messages[node])
                used[node] += job.get("memory", 1)
            if node != order[0]:
                messages[parents[node]] += messages[node]
            busy[node] += F(instance["seconds_per_message"][node]) * F(job.get("message_size", 1.0)) * messages[node]
        if job.get("budget") is not None and len(own) > job["budget"]:
            broken.append(("job has no more switches than its budget", f"job '{job['name']}'"))
    if instance.get("memory") is not None:
        full = [node for node in range(count) if used[node] > instance["memory"][node]]
        broken += [("switch has the memory that its jobs need", f"switch {node}") for node in full]
    if instance.get("budget") is not None and sum(map(len, chosen)) > instance["budget"]:
        broken.append(("no more switches aggregate than the budget", "all jobs"))
    return sum(busy) if instance.get("goal", "utilization") == "utilization" else max(busy), broken


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
