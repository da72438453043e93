"""Checks slots and rates of jobs in rational numbers: python aggregation_slots.py INSTANCE SOLUTION.

What a job has in flight, its rate times the seconds for which a packet holds a slot, must be in its slots at each of
its switches. Jobs with packets that are late or lost (delivery) are not covered: this checker refuses them.
"""

import gzip
import json
import sys
from fractions import Fraction as F


def check(instance, solution):
    """The objective in seconds, None where the answer makes no sense, and (rule, where) of what is broken."""
    jobs, slots, rates, broken = instance["jobs"], solution["slots"], solution["rates_bytes_per_s"], []
    if any(job.get("delivery") for job in jobs):
        raise ValueError("jobs with delivery are not covered")
    if len(slots) != len(jobs) or len(rates) != len(jobs):
        return None, [("every job has slots and a rate", "slots or rates_bytes_per_s")]
    for place, (job, own, rate) in enumerate(zip(jobs, slots, rates)):
        where = f"job {place}"
        if len(own) != len(job.get("switches", [])):
            broken.append(("slots are given at every switch", where))
        if any(each < 0 for each in own):
            broken.append(("slots are not negative", where))
        if rate is None and job.get("fallback_bytes_per_s") is None:
            broken.append(("job that falls back has a server", where))
        if rate is not None and rate <= 0:
            broken.append(("rate is positive", where))
    if broken:
        return None, broken
    times = []
    for place, (job, own, rate) in enumerate(zip(jobs, slots, rates)):
        where = f"job {place}"
        if instance.get("whole") and any(each != round(each) for each in own):
            broken.append(("slots are whole", where))
        times.append(weighted_s(job, F(job["fallback_bytes_per_s"] if rate is None else rate)))
        if rate is None:
            continue
        if rate > F(job["nic_bytes_per_s"]):
            broken.append(("rate within the network card's", where))
        for switch, given in zip(job.get("switches", []), own):
            if F(rate) * F(job["rtt_s"]) / F(instance["switches"][switch]["payload_bytes"]) > given:
                broken.append(("slots hold what is in flight", f"{where} at switch {switch}"))
    moments = sorted({job["stay"]["begins_s"] for job in jobs if job.get("stay")}) or [0.0]
    for moment in moments:
        check_shared(instance, slots, rates, moment, broken)
    return sum(times, F(0)) if instance.get("goal", "total") == "total" else max(times), broken


def weighted_s(job, rate):
    """Weighted seconds of a job's iterations: buckets are sent while it computes, one behind the other."""
    compute, ends = F(job.get("compute_s", 0)), []
    buckets = job.get("buckets") or [{"ready_s": job.get("compute_s", 0), "size_bytes": job["gradient_bytes"]}]
    for place, bucket in enumerate(buckets):
        left = sum(F(each["size_bytes"]) for each in buckets[place:])
        ends.append(F(bucket["ready_s"]) + left / rate)
    return F(job.get("weight", 1.0)) * F(job.get("iterations", 1.0)) * max(compute, *ends)


def check_shared(instance, slots, rates, moment, broken):
    """What the jobs that are there at a moment take of switches and links."""
    here = []
    for job, own, rate in zip(instance["jobs"], slots, rates):
        stay = job.get("stay")
        if not stay or stay["begins_s"] <= moment < stay["ends_s"]:
            here.append((job, own, rate))
    for place, switch in enumerate(instance["switches"]):
        mine = [
            (own[job["switches"].index(place)], rate) for job, own, rate in here if place in job.get("switches", [])
        ]
        limit = switch.get("aggregation_bytes_per_s")
        if sum(F(given) for given, _ in mine) > switch["slots"]:
            broken.append(("switch has the slots", f"switch {place}"))
        if limit is not None and sum(F(rate) for _, rate in mine if rate is not None) > limit:
            broken.append(("switch aggregates as fast", f"switch {place}"))
    for place, link in enumerate(instance.get("links", [])):
        load = sum(job.get("links", []).count(place) * F(rate) for job, _, rate in here if rate is not None)
        if load > F(link["bandwidth_bytes_per_s"]):
            broken.append(("link carries the load", f"link {place}"))


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
