"""Checks orders of micro-batches in rational numbers: python deployment_microbatches.py INSTANCE SOLUTION.

Each device runs its passes in the order of the answer, each as early as it can: F of a chunk waits for F of the chunk
before it, I (or B) for that of the chunk behind it and for its own F, W for its own I.
"""

import gzip
import json
import re
import sys
from fractions import Fraction as F


def check(instance, solution):
    """The objective in seconds, None where there is none, and (rule, where) of what is broken."""
    chunks, batches, broken = instance["chunks"], instance["micro_batches"], []
    memory, orders, seen = instance["memory_bytes"], [], {}
    if len(solution["orders"]) != len(memory):
        broken.append(("every device has an order", "orders"))
    wanted = {(c, kind, n) for c, chunk in enumerate(chunks) for kind in kinds(chunk) for n in range(batches)}
    for device, names in enumerate(solution["orders"]):
        orders.append([])
        for name in names:
            found = re.fullmatch(r"([0-9]{1,9})([FIWB])([0-9]{1,9})", name)
            each = found and (int(found[1]), found[2], int(found[3]))
            if each not in wanted:
                broken.append(("passes are known", f"'{name}' of device {device}"))
                continue
            if chunks[each[0]]["device"] != device:
                broken.append(("passes run on the device of their chunk", f"'{name}' of device {device}"))
            orders[-1].append(each)
            seen[each] = seen.get(each, 0) + 1
    if any(seen.get(each) != 1 for each in wanted):
        broken.append(("every pass runs once", "some pass does not"))
    if broken:
        return None, broken
    waits = waits_of(instance, orders)
    line = in_order(waits)
    if line is None:
        return None, [("no pass waits for itself", "a circle of passes")]
    for device, order in enumerate(orders):
        # As `evaluate` allows: data are rounded.
        if most_held(chunks, order) > F(memory[device]) * (1 + F(1e-9)):
            broken.append(("memory suffices", f"device {device}"))
    goal = instance.get("objective", "makespan")
    if goal == "span":
        return span(chunks, orders, line, waits), broken
    makespan = max(ends(chunks, line, waits, {order[0] for order in orders}).values())
    return makespan + (max(map(F, instance["optimizer_s"])) if goal == "barrier" else 0), broken


def kinds(chunk):
    """Passes of a micro-batch: B has the backward pass for inputs and weights in one."""
    return "FB" if chunk.get("weights_s") is None else "FIW"


def time_s(chunks, each):
    """Of a pass."""
    names = {"F": "forward_s", "I": "backward_s", "B": "backward_s", "W": "weights_s"}
    return F(chunks[each[0]][names[each[1]]])


def waits_of(instance, orders):
    """For every pass the passes that it waits for, with how long after their ends."""
    chunks, edges = instance["chunks"], instance.get("edges", [])
    waits = {each: [] for order in orders for each in order}
    for order in orders:
        for one, then in zip(order, order[1:]):
            waits[then].append((one, F(0)))
    for n in range(instance["micro_batches"]):
        for edge in edges:
            maker, user = edge["maker"], edge["user"]
            waits[user, "F", n].append(((maker, "F", n), F(edge.get("forward_s", 0))))
            back = kinds(chunks[maker])[1], kinds(chunks[user])[1]
            waits[maker, back[0], n].append(((user, back[1], n), F(edge.get("backward_s", 0))))
        for c, chunk in enumerate(chunks):
            own = kinds(chunk)
            for one, then in zip(own, own[1:]):
                waits[c, then, n].append(((c, one, n), F(0)))
    return waits


def in_order(waits):
    """Passes, each after those that it waits for; None where they wait for each other in a circle."""
    left = {each: len(found) for each, found in waits.items()}
    after = {each: [] for each in waits}
    for each, found in waits.items():
        for one, _ in found:
            after[one].append(each)
    line = [each for each, count in left.items() if not count]
    for each in line:
        for then in after[each]:
            left[then] -= 1
            if not left[then]:
                line.append(then)
    return line if len(line) == len(waits) else None


def ends(chunks, line, waits, begin):
    """When passes end that those of ``begin``, which start at 0, lead to."""
    found = {}
    for each in line:
        starts = [found[one] + lag for one, lag in waits[each] if one in found] + [F(0)] * (each in begin)
        if starts:
            found[each] = max(starts) + time_s(chunks, each)
    return found


def span(chunks, orders, line, waits):
    """The largest mean of longest paths over a cycle of devices (Karp): what beginning later makes of the span."""
    paths = []
    for order in orders:
        found = ends(chunks, line, waits, {order[0]})
        paths.append({device: found[other[-1]] for device, other in enumerate(orders) if other[-1] in found})
    best, count = F(0), len(orders)
    for first in range(count):
        walks = [{first: F(0)}]
        for _ in range(count):
            longer = {}
            for device, length in walks[-1].items():
                for other, path in paths[device].items():
                    longer[other] = max(longer.get(other, length + path), length + path)
            walks.append(longer)
        for device, length in walks[count].items():
            best = max(best, min((length - walks[k][device]) / (count - k) for k in range(count) if device in walks[k]))
    return best


def most_held(chunks, order):
    """Memory that a device needs."""
    taken, most = F(0), F(0)
    for c, kind, _ in order:
        held, freed = F(chunks[c].get("held_bytes", 0)), F(chunks[c].get("freed_bytes", 0))
        taken += {"F": held, "B": -held, "I": -freed, "W": freed - held}[kind]
        most = max(most, taken)
    return most


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
