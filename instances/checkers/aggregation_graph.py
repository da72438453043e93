"""Checks aggregation trees of a network in rational numbers: python aggregation_graph.py INSTANCE SOLUTION.

Each worker, and each switch where messages of a job end, starts one route of the job; routes end at such a switch or at
the server. The objective is the sum of the times of links, the longest time, or the sum of the jobs' rates.
"""

import gzip
import json
import sys
from fractions import Fraction as F


def check(instance, solution):
    """The objective, None where the answer makes no sense, and (rule, where) of what is broken."""
    jobs, trees, nodes = instance["jobs"], solution["trees"], instance["nodes"]
    bandwidth = {}
    for link in instance["links"]:
        bandwidth[tuple(link["ends"])] = bandwidth[tuple(link["ends"][::-1])] = F(link["bandwidth_bytes_per_s"])
    if len(trees) != len(jobs):
        return None, [("every job has a tree", "trees")]
    broken = []
    for j, tree in enumerate(trees):
        for place, route in enumerate(tree):
            where = f"trees[{j}][{place}]"
            if any(not 0 <= node < len(nodes) for node in route):
                broken.append(("node exists", where))
            elif len(route) < 2:
                broken.append(("route leads somewhere", where))
            elif any(arc not in bandwidth for arc in zip(route, route[1:])):
                broken.append(("route follows links", where))
    if broken:
        return None, broken
    messages, ended = [], []
    for job, tree in zip(jobs, trees):
        messages.append(counted(arc for route in tree for arc in zip(route, route[1:])))
        ended.append(counted(route[-1] for route in tree if route[-1] != job["server"]))
    for j, (job, tree) in enumerate(zip(jobs, trees)):
        check_tree(nodes, job, tree, ended[j], f"job {j}", broken)
        if instance.get("merging") and max(counted(arc[0] for arc in list_of(messages[j])).values(), default=0) > 1:
            broken.append(("messages that meet are aggregated", f"job {j}"))
        arriving = sum(route[-1] == job["server"] for route in tree)
        if instance.get("connections") is not None and arriving > instance["connections"]:
            broken.append(("few connections arrive at the server", f"job {j}"))
    for number, node in enumerate(nodes):
        if sum(job.get("slots", 1) for job, own in zip(jobs, ended) if number in own) > node.get("slots", 0):
            broken.append(("slots suffice", f"node {number}"))
    if instance.get("aggregators") is not None and sum(map(len, ended)) > instance["aggregators"]:
        broken.append(("aggregators are within the budget", "trees"))
    return objective_of(instance, bandwidth, messages, ended), broken


def counted(things):
    """How often each occurs."""
    found = {}
    for each in things:
        found[each] = found.get(each, 0) + 1
    return found


def list_of(counts):
    """Each thing as often as it is counted."""
    return [each for each, count in counts.items() for _ in range(count)]


def check_tree(nodes, job, tree, ended, where, broken):
    """Routes, where they start, and that all of them lead to the server in the end."""
    for route in tree:
        if len(set(route)) < len(route):
            broken.append(("route visits a node once", where))
        if job["server"] in route[:-1]:
            broken.append(("route ends where it meets the server", where))
        if any(not nodes[node].get("forwards", True) for node in route[1:-1]):
            broken.append(("nodes on the way forward", where))
    begun = counted(route[0] for route in tree)
    for node in set(begun) | set(job["workers"]) | set(ended):
        if begun.get(node, 0) != int(node in job["workers"] or node in ended):
            broken.append(("senders start one route", f"{where}, node {node}"))
    follows = {route[0]: route[-1] for route in tree}
    for start in follows:
        node, steps = follows[start], 1
        while node in follows and node not in (start, job["server"]) and steps <= len(follows):
            node, steps = follows[node], steps + 1
        if node == start:
            broken.append(("messages reach the server", f"{where}, node {start}"))


def objective_of(instance, bandwidth, messages, ended):
    """Sum of times of links, the longest time of a link or switch, or the sum of rates with equal shares."""
    jobs, goal = instance["jobs"], instance.get("goal", "congestion")
    speeds = {place: node.get("aggregation_bytes_per_s") for place, node in enumerate(instance["nodes"])}
    busy, users = {}, {}
    for j, job in enumerate(jobs):
        switches = {node: count for node, count in ended[j].items() if speeds[node] is not None}
        for key, count in [*messages[j].items(), *switches.items()]:
            busy[key] = busy.get(key, F(0)) + count * F(job.get("gradient_bytes", 1.0))
            users.setdefault(key, {})[j] = count if isinstance(key, tuple) else 1
    capacity = {key: bandwidth[key] if isinstance(key, tuple) else F(speeds[key]) for key in busy}
    if goal == "rates":
        shares = {key: capacity[key] / sum(own.values()) for key, own in users.items()}
        rates = [[shares[key] for key, own in users.items() if j in own] for j in range(len(jobs))]
        return sum((min(own) for own in rates if own), F(0))
    times = {key: load / capacity[key] for key, load in busy.items()}
    if goal == "utilization":
        return sum((time for key, time in times.items() if isinstance(key, tuple)), F(0))
    return max(times.values(), default=F(0))


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
