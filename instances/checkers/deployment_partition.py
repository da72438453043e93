"""Checks a partition of a graph of operators in rational numbers: python deployment_partition.py INSTANCE SOLUTION.

An accelerator also fetches what its nodes need and sends what others need, each output once. The largest load counts,
or when the last of the sets of nodes that run as one is done.
"""

import gzip
import json
import sys
from fractions import Fraction as F


def check(instance, solution):
    """The objective in seconds, None where there is none, and (rule, where) of what is broken."""
    nodes, device, accelerators = instance["nodes"], solution["devices"], instance["accelerators"]
    latency, subgraphs = instance.get("goal", "throughput") == "latency", solution.get("subgraphs") or []
    processors = instance.get("processors", 0)
    devices = accelerators + (min(1, processors) if latency else processors)
    if len(device) != len(nodes):
        return None, [("every node has a device", "devices")]
    if subgraphs and len(subgraphs) != len(nodes):
        return None, [("every node has a subgraph", "subgraphs")]
    broken = [("device exists", f"devices[{i}]") for i, each in enumerate(device) if not 0 <= each < devices]
    for i, number in enumerate(subgraphs):
        if not 0 <= number <= (instance.get("subgraphs", 1) - 1 if device[i] < accelerators else 0):
            broken.append(("subgraph exists", f"subgraphs[{i}]"))
    if broken:
        return None, broken
    runs = True
    for i, node in enumerate(nodes):
        if node.get("accelerator_s" if device[i] < accelerators else "processor_s") is None:
            broken.append(("node runs on its device", f"node {i}"))
            runs = False
    colours = {node.get("colour") for node in nodes} - {None}
    for colour in colours:
        if len({device[i] for i, node in enumerate(nodes) if node.get("colour") == colour}) > 1:
            broken.append(("nodes of one colour are on one device", f"colour {colour}"))
    for each in range(accelerators):
        used = sum(F(node.get("memory_bytes", 0)) for i, node in enumerate(nodes) if device[i] == each)
        if used > F(instance["memory_bytes"]) * (1 + F(1e-9)):  # as `evaluate` allows: data are rounded
            broken.append(("accelerator's memory suffices", f"device {each}"))
    if not runs:
        return None, broken
    users = [set() for _ in nodes]
    for maker, user in instance.get("edges", []):
        users[maker].add(user)
    if latency:
        return latency_of(instance, device, subgraphs or [0] * len(nodes), users, broken), broken
    total = F(0)
    for backward in (False, True) if instance.get("separate_passes") else (None,):
        loads = [F(0)]
        for each in range(devices):
            members = {i for i in range(len(nodes)) if device[i] == each}
            loads.append(busy(nodes, users, members, each < accelerators, backward))
        total += max(loads)
    if instance.get("contiguous"):
        check_order(instance, device, broken)
    return total, broken


def busy(nodes, users, members, accelerator, backward=None):
    """How long a set of nodes keeps a device busy, with one pass alone where ``backward`` says which."""
    total = F(0)
    for i, node in enumerate(nodes):
        if backward is None or node.get("backward", False) is backward:
            if i in members:
                total += F(node.get("accelerator_s" if accelerator else "processor_s") or 0)
            pins = {i} | users[i]
            if accelerator and members & pins and pins - members:
                total += F(node.get("transfer_s", 0))
    return total


def in_order(before):
    """Keys, each after those that it waits for; None where they wait for each other in a circle."""
    order, done = [], set()
    while len(order) < len(before):
        ready = [key for key in before if key not in done and before[key] <= done]
        if not ready:
            return None
        order += ready
        done |= set(ready)
    return order


def latency_of(instance, device, subgraphs, users, broken):
    """When the last set of nodes is done; a node on a processor is a set by itself."""
    nodes, accelerators = instance["nodes"], instance["accelerators"]
    unit = [(device[i], subgraphs[i]) if device[i] < accelerators else (-1, i) for i in range(len(nodes))]
    before = {each: set() for each in unit}
    for maker, own in enumerate(users):
        for user in own:
            if unit[maker] != unit[user]:
                before[unit[user]].add(unit[maker])
    for at, number in before:
        before[at, number] |= {other for other in before if other[0] == at >= 0 and other[1] < number}
    order = in_order(before)
    if order is None:
        broken.append(("sets that run as one do not wait for each other", "a circle of sets"))
        return None
    done = {}
    for each in order:
        members = {i for i in range(len(nodes)) if unit[i] == each}
        lasts = busy(nodes, users, members, each[0] >= 0)
        done[each] = max((done[other] for other in before[each]), default=F(0)) + lasts
    return max(done.values())


def check_order(instance, device, broken):
    """The forward pass visits each device once; backward edges count, reversed, where no forward node has a colour."""
    nodes = instance["nodes"]
    colour = [("alone", i) if node.get("colour") is None else node["colour"] for i, node in enumerate(nodes)]
    forward = {colour[i] for i, node in enumerate(nodes) if not node.get("backward", False)}
    before = {each: set() for each in device}
    for maker, user in instance.get("edges", []):
        backward = nodes[maker].get("backward", False)
        if backward != nodes[user].get("backward", False) or backward and {colour[maker], colour[user]} <= forward:
            continue
        first, then = (user, maker) if backward else (maker, user)
        if device[first] != device[then]:
            before[device[then]].add(device[first])
    if in_order(before) is None:
        broken.append(("each device is visited once", "a circle of devices"))


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
