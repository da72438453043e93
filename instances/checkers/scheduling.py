"""Checks a schedule of training jobs in rational numbers: python scheduling.py INSTANCE SOLUTION.

Each run has a job on some servers over consecutive slots, and a ring through the network where there is one. How many
mini-batches a job does in a slot follows from its width, its ring's bandwidth, and who else is on its servers.
Utilities with logarithms or powers, and norms of times, are rounded to double precision once.
"""

import gzip
import json
import math
import sys
from fractions import Fraction as F

TOLERANCE = 1e-9
"""Part of a capacity by which it may be passed."""
DONE = 1 - F(1, 10**9)
"""The part of a job's mini-batches with which it is finished."""


def check(instance, solution):
    """The objective, None where there is none, and (rule, where) of what is broken."""
    jobs, runs, servers = instance["jobs"], solution.get("runs", []), servers_of(instance)
    for run in runs:
        if run["job"] < 0 or run["start"] < 0 or run["slots"] < 1:
            raise ValueError("job and start of a run are at least 0, its slots at least 1")
        if run.get("bandwidth_bytes_per_s") is not None and run["bandwidth_bytes_per_s"] <= 0:
            raise ValueError("the bandwidth of a run is above 0")
    broken = []
    fine = check_runs(instance, runs, servers, broken)
    if not fine:
        return None, broken
    check_capacities(instance, runs, servers, broken)
    if not check_rings(instance, runs, servers, broken):
        return None, broken
    outcomes = outcomes_of(instance, runs, servers)
    if instance["slots"] > 1 and any(job.get("least_run_slots", 1) > 1 for job in jobs):
        check_lengths(instance, runs, outcomes, broken)
    if objective_name(instance) in ("makespan", "completion", "finish_time_fairness"):
        unfinished = [job for job, outcome in enumerate(outcomes) if outcome[1] is None]
        broken += [("job_is_finished", f"jobs[{job}]") for job in unfinished]
        if unfinished:
            return None, broken
    return objective_of(instance, runs, servers, outcomes), broken


def objective_name(instance):
    """What is maximised or minimised."""
    return instance.get("objective", "utility")


def servers_of(instance):
    """The group of each server."""
    return [group for group in instance["servers"] for _ in range(group.get("count", 1))]


def width(run):
    """Workers of a run."""
    return sum(count for _, count in run["workers"])


def end(run):
    """First slot after a run."""
    return run["start"] + run["slots"]


def last_slot(instance, job):
    """First slot in which a job may no longer run."""
    deadline = instance["jobs"][job].get("deadline")
    return instance["slots"] if deadline is None else deadline


def check_runs(instance, runs, servers, broken):
    """Jobs, servers, widths, arrivals, deadlines, one run at a time; whether progress can be computed."""
    jobs, fine, last_end, times = instance["jobs"], True, {}, {}
    for place in sorted(range(len(runs)), key=lambda place: runs[place]["start"]):
        run, where = runs[place], f"runs[{place}]"
        number, workers = run["job"], run["workers"]
        if number >= len(jobs):
            broken.append(("job_exists", where))
            fine = False
            continue
        job = jobs[number]
        wrong = []
        if not workers:
            wrong.append("run_has_workers")
        if any(not 0 <= server < len(servers) for server, _ in workers):
            wrong.append("server_exists")
        if any(count < 1 for _, count in workers):
            wrong.append("count_is_positive")
        if len({server for server, _ in workers}) < len(workers):
            wrong.append("server_is_named_once")
        given = run.get("bandwidth_bytes_per_s") is not None
        shared = instance.get("bandwidth", "reserved") == "shared"
        if shared and not given and len(workers) > 1:
            wrong.append("ring_has_bandwidth")
        fine &= not wrong
        if not shared and given:
            wrong.append("bandwidth_is_the_jobs")
        if run["start"] < job.get("arrival", 0):
            wrong.append("job_has_arrived")
        if end(run) > last_slot(instance, number):
            wrong.append("deadline_is_kept")
        if workers and width(run) < job.get("min_workers", 1):
            wrong.append("width_is_enough")
        if width(run) > job["max_workers"]:
            wrong.append("width_is_allowed")
        if run["start"] < last_end.get(number, 0):
            wrong.append("job_runs_once_at_a_time")
        last_end[number] = max(end(run), last_end.get(number, 0))
        times[number] = times.get(number, 0) + 1
        speeds = job.get("speeds") or {}
        here = {servers[server].get("type", "") for server, _ in workers if 0 <= server < len(servers)}
        if speeds and any(not speeds[name] for name in here):
            wrong.append("type_suits_the_job")
        if speeds and len(here) > 1 and not instance.get("mixed_types", True):
            wrong.append("workers_are_of_one_type")
        broken += [(rule, where) for rule in wrong]
    if not instance.get("preemptive", True):
        broken += [("job_runs_in_one_piece", f"jobs[{job}]") for job, count in times.items() if count > 1]
    return fine


def peaks(uses):
    """The most of each key that is used at once, of uses (key, first slot, slot after the last, amount)."""
    changes = {}
    for key, start, stop, amount in uses:
        own = changes.setdefault(key, {})
        own[start] = own.get(start, 0) + amount
        own[stop] = own.get(stop, 0) - amount
    found = {}
    for key, own in changes.items():
        level = found[key] = F(0)
        for slot in sorted(own):
            level += own[slot]
            found[key] = max(found[key], level)
    return found


def check_capacities(instance, runs, servers, broken):
    """No server gives more of a resource than it has."""
    demands = [job.get("demand", {"gpu": 1.0}) for job in instance["jobs"]]
    for name in sorted({name for demand in demands for name, amount in demand.items() if amount}):
        uses = [
            (server, run["start"], end(run), count * F(demands[run["job"]].get(name, 0.0)))
            for run in runs
            for server, count in run["workers"]
        ]
        for server, amount in peaks(uses).items():
            if amount > servers[server]["capacity"].get(name, 0.0) * (1 + TOLERANCE):
                broken.append(("capacity", f"server {server}, {name}"))


def check_rings(instance, runs, servers, broken):
    """Rings are closed walks over arcs through the job's servers; no arc carries too much. Whether all are walks."""
    network = instance.get("network")
    if network is None or len(servers) == 1:
        broken += [("no_ring_without_a_network", f"runs[{place}]") for place, run in enumerate(runs) if run.get("ring")]
        return True
    arcs = {}
    for u, v, rate in network["links"]:
        for arc in [(u, v), (v, u)] if network.get("duplex", True) else [(u, v)]:
            arcs[arc] = arcs.get(arc, 0.0) + rate
    uses, fine = [], True
    for place, run in enumerate(runs):
        ring = run.get("ring", [])
        hops = list(zip(ring, [*ring[1:], *ring[:1]]))
        if any(hop not in arcs for hop in hops):
            broken.append(("ring_follows_links", f"runs[{place}]"))
            fine = False
        if len(run["workers"]) > 1 and not {server for server, _ in run["workers"]} <= set(ring):
            broken.append(("ring_visits_its_servers", f"runs[{place}]"))
        rate, timing = run.get("bandwidth_bytes_per_s"), instance["jobs"][run["job"]]["timing"]
        if rate is None:
            rate = timing["bandwidth_bytes_per_s"] if timing["kind"] == "ring" else 0.0
        uses += [(hop, run["start"], end(run), F(rate)) for hop in hops]
    if fine:
        for arc, amount in peaks(uses).items():
            if amount > arcs[arc] * (1 + TOLERANCE):
                broken.append(("bandwidth", f"arc {arc[0]} -> {arc[1]}"))
    return fine


def iteration_s(timing, workers, bandwidth=None):
    """Seconds of an iteration of a ring of ``workers`` workers."""
    if timing["kind"] == "ring":
        bandwidth = F(timing["bandwidth_bytes_per_s"]) if bandwidth is None else F(bandwidth)
        compute = F(timing["forward_s_per_sample"]) * F(timing.get("batch_samples", 1.0))
        compute += F(timing.get("backward_s", 0.0)) + F(timing.get("overhead_s", 0.0))
        share = F(timing["gradient_bytes"]) * (workers - 1) / workers
        moved = 2 * share / bandwidth + 2 * (workers - 1) * F(timing.get("latency_s", 0.0))
        if timing.get("reduction_bytes_per_s") is not None:
            moved += share / F(timing["reduction_bytes_per_s"])
        return compute + moved
    compute = F(timing["compute_s"])
    compute += F(timing.get("compute_s_per_sample", 0.0)) * F(timing.get("batch_samples", 1.0))
    if workers == 1:
        return compute
    sync = F(timing.get("sync_s", 0.0)) + F(timing.get("sync_s_per_worker", 0.0)) * (workers - 2)
    overlap = timing.get("overlap", 1.0)
    if overlap == 1:
        return compute + sync
    return F((float(compute) ** overlap + float(sync) ** overlap) ** (1 / overlap))


def pieces_of(instance, runs, servers):
    """By job (first slot, slots, mini-batches in a slot), in order; a slot that begins with a change by itself."""
    slot_s, rules, found = F(instance["slot_s"]), instance.get("contention"), [[] for _ in instance["jobs"]]
    split = [run for run in runs if len(run["workers"]) > 1]
    cuts = sorted({slot for run in split for slot in (run["start"], end(run))})
    changed = changes(instance, runs)
    for run in runs:
        job, workers = instance["jobs"][run["job"]], width(run)
        alone = len(run["workers"]) == 1
        parts = [(run["start"], end(run))]
        if rules is not None and not alone:
            own = [slot for slot in cuts if run["start"] <= slot <= end(run)]
            parts = list(zip(own, own[1:]))
        for start, stop in parts:
            if rules is None:
                speeds = job.get("speeds") or {}
                pace = (
                    min((speeds[servers[server].get("type", "")] for server, _ in run["workers"]), default=1.0)
                    if speeds
                    else 1.0
                )
                bandwidth = None if alone else run.get("bandwidth_bytes_per_s")
                rate = workers / iteration_s(job["timing"], workers, bandwidth) * slot_s * F(pace)
            else:
                crowd = (
                    0
                    if alone
                    else max(
                        sum(
                            other["start"] <= start < end(other) and any(server == at for at, _ in other["workers"])
                            for other in split
                        )
                        for server, _ in run["workers"]
                    )
                )
                rate = workers / contended_s(job["timing"], run, crowd, rules) * slot_s
            if (run["job"], start) in changed:
                found[run["job"]].append((start, 1, rate * (1 - F(job["change_s"]) / slot_s)))
                start += 1
            if stop > start:
                found[run["job"]].append((start, stop - start, rate))
    return [sorted(own) for own in found]


def contended_s(timing, run, crowd, rules):
    """Seconds of an iteration whose ring meets ``crowd`` split jobs, itself included; 0: it is on one server."""
    if crowd == 0:
        bandwidth = F(rules["within_server_bytes_per_s"])
    else:
        at_once = max(F(1), F(rules.get("share", 1.0)) * crowd)
        slower = at_once + F(rules.get("degradation", 0.0)) * (at_once - 1)
        bandwidth = F(rules["between_servers_bytes_per_s"]) / slower
    overhead = len(run["workers"]) * F(rules.get("server_overhead_s", 0.0))
    return iteration_s(timing, width(run), bandwidth) + overhead


def changes(instance, runs):
    """(job, slot) of every change that costs time: after a pause, or with other workers than in the slot before."""
    if not instance.get("preemptive", True) or instance["slots"] == 1:
        return set()
    before, found = {}, set()
    for run in sorted(runs, key=lambda run: run["start"]):
        last = before.get(run["job"])
        if last is not None and (end(last) != run["start"] or sorted(last["workers"]) != sorted(run["workers"])):
            found.add((run["job"], run["start"]))
        before[run["job"]] = run
    return {(job, slot) for job, slot in found if instance["jobs"][job].get("change_s", 0.0)}


def outcomes_of(instance, runs, servers):
    """For every job the part of its mini-batches that is done, and the slot after its last needed one, or None."""
    found = []
    for job, pieces in zip(instance["jobs"], pieces_of(instance, runs, servers)):
        wanted, done, finish = F(job["minibatches"]), F(0), None
        for start, slots, rate in pieces:
            if finish is None and rate > 0 and done + rate * slots >= wanted * DONE:
                finish = start + min(slots, max(1, math.ceil((wanted * DONE - done) / rate)))
            done += rate * slots
        found.append((min(done / wanted, F(1)), finish))
    return found


def check_lengths(instance, runs, outcomes, broken):
    """Stretches with the same workers are long enough, but for those that the job's end or its last slot cuts."""
    for number, job in enumerate(instance["jobs"]):
        stretches = []
        for run in sorted((run for run in runs if run["job"] == number), key=lambda run: run["start"]):
            workers = sorted(run["workers"])
            if stretches and stretches[-1][1:] == (run["start"], workers):
                stretches[-1] = stretches[-1][0], end(run), workers
            else:
                stretches.append((run["start"], end(run), workers))
        finish = outcomes[number][1]
        for start, stop, _ in stretches:
            over = stop >= last_slot(instance, number) or (finish is not None and finish <= stop)
            if stop - start < job.get("least_run_slots", 1) and not over:
                broken.append(("run_is_long_enough", f"jobs[{number}], slot {start}"))


def utility(curve, part):
    """What a part of a job is worth."""
    value, kind, p = curve.get("value", 1.0), curve["kind"], float(part)
    if kind == "capped":
        return F(value) * part
    if kind == "logarithmic":
        curvature = curve.get("curvature", 10.0)
        return F(value * math.log1p(curvature * p) / math.log1p(curvature))
    if kind == "loss_curve":
        rate = F(curve.get("rate", 10.0))
        return F(value) * rate * part / (1 + rate * part)
    if kind == "all_or_nothing":
        return F(value) * int(part >= DONE)
    epsilon, power = curve.get("epsilon", 0.01), 1 - curve.get("alpha", 1.0)
    if power == 0:
        return F(value * math.log1p(p / epsilon))
    return F(value * ((epsilon + p) ** power - epsilon**power) / power)


def energy_j(instance, runs, servers):
    """Of all servers in use and all workers."""
    slot_s, total, spans = F(instance["slot_s"]), F(0), {}
    for run in runs:
        for server, count in run["workers"]:
            total += count * run["slots"] * F(servers[server].get("worker_w", 0.0)) * slot_s
            spans.setdefault(server, set()).update(range(run["start"], end(run)))
    return total + sum(len(slots) * F(servers[server].get("idle_w", 0.0)) * slot_s for server, slots in spans.items())


def fair_s(instance, job):
    """Seconds that a job would take with the N-th part of all servers for itself, in whole slots."""
    if job.get("fair_s") is not None:
        return F(job["fair_s"])
    demand, slot_s = job.get("demand", {"gpu": 1.0}), F(instance["slot_s"])
    share = min(
        sum(F(group["capacity"].get(name, 0.0)) * group.get("count", 1) for group in instance["servers"]) / F(amount)
        for name, amount in demand.items()
        if amount
    ) / len(instance["jobs"])
    widths = range(job.get("min_workers", 1), job["max_workers"] + 1)
    rates = {w: w / iteration_s(job["timing"], w) * slot_s for w in widths}
    below = {0: F(0)} | {w: rate for w, rate in rates.items() if w <= share}
    best = max(below.values())
    for w, rate in rates.items():
        if w > share:  # part of the time at one width below the share, the rest at this one above it
            best = max(best, *(low + (rate - low) * (share - v) / (w - v) for v, low in below.items()))
    return max(1, math.ceil(F(job["minibatches"]) * DONE / best)) * slot_s


def objective_of(instance, runs, servers, outcomes):
    """Utility less energy, the smallest part done, or times of jobs that are all finished."""
    jobs, slot_s, name = instance["jobs"], F(instance["slot_s"]), objective_name(instance)
    curves = [job.get("utility", {"kind": "capped"}) for job in jobs]
    if name == "utility":
        worth = sum((utility(curve, part) for curve, (part, _) in zip(curves, outcomes)), F(0))
        return worth - F(instance.get("energy_price_per_j", 0.0)) * energy_j(instance, runs, servers)
    if name == "max_min":
        return min(part for part, _ in outcomes)
    if name == "makespan":
        return max(finish for _, finish in outcomes) * slot_s
    flows = [finish - job.get("arrival", 0) for job, (_, finish) in zip(jobs, outcomes)]
    if name == "finish_time_fairness":
        return max(flow * slot_s / fair_s(instance, job) for job, flow in zip(jobs, flows))
    return sum((F(curve.get("value", 1.0)) * flow for curve, flow in zip(curves, flows)), F(0)) * slot_s


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
