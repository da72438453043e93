"""Checks when jobs of a cluster run and by which plans, in rational numbers: python cluster_joint.py INSTANCE SOLUTION.

Each plan is checked by the file of its own problem, which lies beside this one, and may take no longer than is reserved
for a step. Then starts and servers are checked with the reserved times, by ``cluster_jobs.py``; and of a fabric hosts
of racks and rates on uplinks at every moment.
"""

import functools
import gzip
import json
import pathlib
import sys
from fractions import Fraction as F
from importlib import util


@functools.cache
def beside(name):
    """The checker of another problem."""
    spec = util.spec_from_file_location(name, pathlib.Path(__file__).with_name(f"{name}.py"))
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(instance, solution):
    """The objective, None where there is none, and (rule, where) of what is broken."""
    runs, plans = solution["runs"], solution["plans"]
    for plan in plans:
        if plan["workload"] < 0 or plan["servers"] < 1 or not plan["step_s"] > 0 or plan.get("least_s", 0) < 0:
            raise ValueError("a plan is of a workload, for at least one server, and takes time")
    steps = {(plan["workload"], plan["servers"]): plan["step_s"] for plan in plans}
    broken = form(instance, runs, [(plan["workload"], plan["servers"]) for plan in plans], steps)
    for plan in [] if broken else plans:
        broken += check_plan(instance, plan)
    if broken:
        return None, broken
    jobs = jobs_of(instance, runs, plans)
    plain = [[{"start": run["start"], "servers": run["servers"]}] for run in runs]
    objective, broken = beside("cluster_jobs").check(jobs, {"runs": plain})
    if instance.get("fabric") is not None:
        broken = [*broken, *check_fabric(instance, jobs["jobs"], runs)]
    return objective, broken


def told(instance, workload, servers):
    """Where a plan is."""
    return f"workload '{instance['workloads'][workload]['name']}' on {servers} servers"


def choice_of(instance, workload, servers):
    """The choice of a workload for this number of servers; None if there is none."""
    choices = instance["workloads"][workload]["choices"]
    return next((choice for choice in choices if choice["servers"] == servers), None)


def form(instance, runs, planned, steps):
    """Every job has one plan for its servers, and there are no others."""
    jobs, workloads, broken = instance["jobs"], instance["workloads"], []
    if len(runs) != len(jobs):
        return [("every job has an entry", "runs")]
    for key in planned:
        if key[0] >= len(workloads):
            return [("plans are of workloads", "plans")]
        if planned.count(key) > 1:
            return [("a workload has one plan a width", told(instance, *key))]
    broken = [("widths are choices", told(instance, *key)) for key in planned if choice_of(instance, *key) is None]
    asked = [(job["workload"], run["servers"]) for job, run in zip(jobs, runs)]
    for job, key in zip(jobs, asked):
        if key not in planned:
            broken.append(("a job has a plan for its servers", f"job '{job['name']}'"))
    if {job["workload"] for job in jobs} <= {workload for workload, _ in planned}:
        broken += [("a plan is used", told(instance, *key)) for key in planned if key not in asked]
    for job, run, key in zip(jobs, runs, asked):
        if run.get("step_s") is not None and run["step_s"] < steps.get(key, 0):
            broken.append(("a job is no faster than its plan", f"job '{job['name']}'"))
        broken += form_of_run(instance, job, run)
    return broken


def form_of_run(instance, job, run):
    """Places are racks, each named once, with a host for each server."""
    where, places, broken = f"job '{job['name']}'", run.get("places", []), []
    if run["servers"] < 1 or (run.get("step_s") is not None and not run["step_s"] > 0):
        raise ValueError(f"{where}: it has servers, and takes time")
    if any(len(place) != 2 or min(place) < 0 for place in places):
        raise ValueError(f"{where}: places are pairs of a rack and a number of hosts")
    if instance.get("fabric") is None:
        return [("places are in a fabric", where)] if places else []
    groups = instance["fabric"]["groups"]
    if any(rack >= len(groups) or not groups[rack].get("hosts") for rack, _ in places):
        broken.append(("places are racks", where))
    if any(count < 1 for _, count in places):
        broken.append(("a job has hosts where it is", where))
    if len({rack for rack, _ in places}) < len(places):
        broken.append(("a rack is named once", where))
    if sum(count for _, count in places) != run["servers"]:
        broken.append(("a job has a host for each of its servers", where))
    return broken


def check_fabric(instance, jobs, runs):
    """Hosts of racks and rates on uplinks, whenever something begins."""
    groups, busy = instance["fabric"]["groups"], []
    for job, own, run in zip(instance["jobs"], jobs, runs):
        step, start = F(own["step_s"][run["servers"] - 1]), F(run["start"])
        inside = {}
        for rack, count in run.get("places", []):
            place = rack
            while place is not None:
                inside[place] = inside.get(place, 0) + count
                place = groups[place].get("inside")
        sent = F(choice_of(instance, job["workload"], run["servers"]).get("crossing_bytes", 0)) / step
        crossed = {place for place, count in inside.items() if count < run["servers"]}
        busy.append((start, start + F(job["iterations"]) * step, inside, crossed, sent))
    broken = []
    for place, group in enumerate(groups):
        for moment, *_ in busy:
            now = [each for each in busy if each[0] <= moment < each[1]]
            if group.get("hosts") and sum(each[2].get(place, 0) for each in now) > group["hosts"]:
                broken.append(("hosts of a rack suffice", f"rack '{group['name']}'"))
                break
        for moment, *_ in busy:
            now = [each for each in busy if each[0] <= moment < each[1]]
            if sum(each[4] for each in now if place in each[3]) > F(group["uplink_bytes_per_s"]):
                broken.append(("an uplink carries what is reserved", f"uplink of '{group['name']}'"))
                break
    return broken


def check_plan(instance, plan):
    """What is broken of a plan."""
    workload, servers = plan["workload"], plan["servers"]
    choice, where, answer = choice_of(instance, workload, servers), told(instance, workload, servers), plan["answer"]
    if choice.get("problem") is None:
        broken = [] if answer is None else [("there is nothing to plan", where)]
        right = F(plan["step_s"]) == F(choice.get("step_s") or 0)
        return broken if right else [*broken, ("a step takes as long as is said", where)]
    if answer is None:
        return [("there is a plan", where)]
    inner = instance["problems"][choice["problem"]]
    if choice.get("devices") is not None:
        inner = inner | {"devices": choice["devices"]}
    path = [(data["family"], data.get("problem")) for data in (inner, answer)]
    if path[0] != path[1] or answer.get("instance_digest") is not None:
        raise ValueError(f"{where}: a plan answers the problem of its workload, and has no digest of an instance")
    objective, broken = beside("_".join(filter(None, path[0]))).check(inner, answer)
    if objective is None or broken:
        return [(rule, f"{where}: {place}") for rule, place in broken]
    return [] if objective <= F(plan["step_s"]) else [("a plan takes no longer than is reserved", where)]


def jobs_of(instance, runs, plans):
    """The jobs with the times that are reserved for their steps."""
    reserved, tables = {(plan["workload"], plan["servers"]): plan["step_s"] for plan in plans}, []
    for place, workload in enumerate(instance["workloads"]):
        table = [None] * workload["choices"][-1]["servers"]
        for choice in workload["choices"]:
            given = choice.get("problem") is None
            table[choice["servers"] - 1] = choice["step_s"] if given else reserved.get((place, choice["servers"]))
        tables.append(table)
    jobs = []
    for job, run in zip(instance["jobs"], runs):
        table = list(tables[job["workload"]])
        if run.get("step_s") is not None:
            table[run["servers"] - 1] = run["step_s"]
        jobs.append(job | {"step_s": table})
    return {"servers": instance["servers"], "jobs": jobs, "objective": instance.get("objective", "makespan")}


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
