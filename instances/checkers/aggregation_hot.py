"""Checks which parameters are on which switch, in rational numbers: python aggregation_hot.py INSTANCE SOLUTION.

With m workers that each touch a parameter with probability p, a switch saves m p - (1 - (1 - p)^m) messages.
"""

import gzip
import json
import sys
from fractions import Fraction as F


def check(instance, solution):
    """Numbers saved in a second, None where the answer makes no sense, and (rule, where) of what is broken."""
    jobs, switches, placed, broken = instance["jobs"], instance["switches"], solution["placed"], []
    if len(placed) != len(switches):
        return None, [("every switch has its sets", "placed")]
    for s, own in enumerate(placed):
        if len(own) != len(jobs):
            broken.append(("a switch has a set of each job", f"placed[{s}]"))
            continue
        for j, parameters in enumerate(own):
            if any(not 0 <= each < len(jobs[j]["frequencies"]) for each in parameters):
                broken.append(("parameter exists", f"placed[{s}][{j}]"))
    if broken:
        return None, broken
    for j, job in enumerate(jobs):
        taken = [parameter for own in placed for parameter in own[j]]
        if len(set(taken)) < len(taken):
            broken.append(("a parameter is on one switch", f"job '{job['name']}'"))
    total = F(0)
    for switch, own in zip(switches, placed):
        used = 0
        for j, (job, parameters) in enumerate(zip(jobs, own)):
            workers = switch["workers"][j] if switch.get("workers") else job["workers"]
            for parameter in parameters:
                width, p = job.get("registers", 1), F(job["frequencies"][parameter])
                if isinstance(width, list):
                    width = width[0] if len(width) == 1 else width[parameter]
                used += width
                saved = workers * p - (1 - (1 - p) ** workers)
                if job.get("saved_messages") is not None:
                    saved = F(job["saved_messages"][parameter]) if workers else F(0)
                total += F(job.get("iterations_per_s", 1.0)) * width * saved
        if used > switch["registers"]:
            broken.append(("registers suffice", f"switch '{switch['name']}'"))
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
