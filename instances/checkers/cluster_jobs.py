"""Checks when jobs of a cluster run, in rational numbers: python cluster_jobs.py INSTANCE SOLUTION.

A rigid job has a start and a number of servers to its end; otherwise jobs have servers slot by slot.
"""

import gzip
import json
import re
import sys
from fractions import Fraction as F


def check(instance, solution):
    """The objective, None where there is none, and (rule, where) of what is broken."""
    jobs, runs, rigid, broken = instance["jobs"], solution["runs"], instance.get("mode", "rigid") == "rigid", []
    for run in (run for own in runs for run in own):
        if not re.fullmatch(r"[0-9]{1,600}(/[1-9][0-9]{0,599})?", run["start"]) or run["servers"] < 1:
            raise ValueError("a start is a fraction such as 7/2, and servers are at least 1")
    if len(runs) != len(jobs):
        return None, [("every job has an entry", "runs")]
    for job, own in zip(jobs, runs):
        where = f"job '{job['name']}'"
        if not own or (rigid and len(own) != 1):
            broken.append(("every job runs", where))
        for run in own:
            if run["servers"] > len(job["step_s"]) or job["step_s"][run["servers"] - 1] is None:
                broken.append(("widths have a step time", where))
            if not rigid and "/" in run["start"]:
                broken.append(("slots are whole numbers", where))
        if len({F(run["start"]) for run in own}) < len(own):
            broken.append(("a job has servers once a slot", where))
    if broken:
        return None, broken
    ends, changes, finished, slot = [], {}, True, F(instance.get("slot_s") or 0)
    for job, own in zip(jobs, runs):
        where, left, end = f"job '{job['name']}'", F(job["iterations"]), None
        for run in sorted(own, key=lambda run: F(run["start"])):
            begins = F(run["start"]) if rigid else int(run["start"]) * slot
            step = F(job["step_s"][run["servers"] - 1])
            lasts = left * step if rigid else slot
            if begins < F(job.get("arrival_s", 0)):
                broken.append(("a job starts after its arrival", where))
            if end is not None:
                broken.append(("a job that is done has no servers", where))
            elif left * step <= lasts:
                end = begins + left * step
            else:
                left -= slot / step
            for moment, change in ((begins, run["servers"]), (begins + lasts, -run["servers"])):
                changes[moment] = changes.get(moment, 0) + change
        if end is None:
            broken.append(("all iterations are done", where))
            finished = False
        ends.append(end)
    used = 0
    for moment in sorted(changes):
        used += changes[moment]
        if used > instance["servers"]:
            broken.append(("servers suffice", f"{float(moment):.6g} s"))
            break
    if not finished:
        return None, broken
    goal = instance.get("objective", "makespan")
    if goal == "makespan":
        return max(ends), broken
    due = [F(job.get("deadline_s") or 0) if goal == "weighted_tardiness" else F(0) for job in jobs]
    late = [max(F(0), end - each) for end, each in zip(ends, due)]
    return sum((F(job.get("weight", 1.0)) * each for job, each in zip(jobs, late)), F(0)), broken


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
