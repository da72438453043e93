"""Checks trees of a collective in rational numbers: python topology_collective.py INSTANCE SOLUTION.

Each tree moves its share (a fraction such as "3/16") of all M bytes over every link of each of its paths: it gathers at
its root what accelerators add up, or spreads what the root has. The objective is how long the busiest link takes, with
the steps of the longest way.
"""

import gzip
import json
import sys
from fractions import Fraction as F

GATHERS = ("reduce-scatter", "all-reduce")
SPREADS = ("all-gather", "broadcast", "all-reduce")


def check(instance, solution):
    """The objective in seconds, None where a rule is broken, and (rule, where) of what is broken."""
    count, collective = instance["accelerators"], instance.get("collective", "all-gather")
    bandwidth = {(link["source"], link["target"]): link["bytes_per_s"] for link in instance["links"]}
    broken, load, shares, hops = [], {}, {}, 0
    if not solution["trees"]:
        raise ValueError("there is no tree")
    for place, tree in enumerate(solution["trees"]):
        where, share, root = f"trees[{place}]", F(tree["share"]), tree["root"]
        gather, spread = tree.get("gather", []), tree.get("spread", [])
        if root < 0 or share < 0 or any(len(path) < 2 or min(path) < 0 for path in [*gather, *spread]):
            raise ValueError(f"{where}: nodes and shares are at least 0, paths have two nodes or more")
        if root >= count:
            broken.append(("root is an accelerator", where))
            continue
        before = len(broken)
        if gather and collective not in GATHERS or spread and collective == "reduce-scatter":
            broken.append((f"{collective} has no such paths", where))
        for path in [*gather, *spread]:
            if path[0] >= count or path[-1] >= count:
                broken.append(("path joins accelerators", where))
            for link in zip(path, path[1:]):
                if link not in bandwidth:
                    broken.append(("path follows links", f"{where}: {link[0]} -> {link[1]}"))
                load[link] = load.get(link, 0) + share
        if collective != "all-to-all":
            shares[(root,)] = shares.get((root,), 0) + share
        if len(broken) > before:
            continue
        if collective == "all-to-all":
            if len(spread) != 1:
                broken.append(("all-to-all has one path a tree", where))
                continue
            if spread[0][0] != root:
                broken.append(("path starts at the root", where))
            pair, way = (root, spread[0][-1]), len(spread[0]) - 1
            shares[pair] = shares.get(pair, 0) + share
        else:
            way = 0
            if collective in GATHERS:
                up = [(path[-1], path[0], len(path) - 1) for path in gather]
                way += longest_way(count, root, up, f"{where}.gather", broken)
            if collective in SPREADS:
                down = [(path[0], path[-1], len(path) - 1) for path in spread]
                way += longest_way(count, root, down, f"{where}.spread", broken)
        hops = max(hops, way)
    compare_shares(instance, count, collective, shares, broken)
    if broken:
        return None, broken
    size = F(instance["collective_bytes"])
    busy = max(part * size / F(bandwidth[link]) for link, part in load.items())
    return busy + hops * F(instance.get("step_s", 0)), []


def longest_way(count, root, edges, where, broken):
    """Links to the farthest, of edges (nearer to the root, farther, links) that are a tree over all accelerators."""
    far = [node for _, node, _ in edges]
    if root in far or len(set(far)) < len(far):
        broken.append(("tree reaches each accelerator once", where))
        return 0
    depth, grown = {root: 0}, True
    while grown:
        grown = {node: depth[near] + links for near, node, links in edges if near in depth and node not in depth}
        depth |= grown
    if len(depth) != count:
        broken.append(("tree reaches all accelerators", where))
        return 0
    return max(depth.values())


def compare_shares(instance, count, collective, shares, broken):
    """Each root, or pair, has the bytes that the collective gives it."""
    if collective == "all-reduce":
        shares, wanted = {"all": sum(shares.values(), F(0))}, {"all": F(1)}
    elif collective == "broadcast":
        wanted = {(instance.get("root") or 0,): F(1)}
    elif collective == "all-to-all":
        wanted = {(i, j): F(1, count) for i in range(count) for j in range(count) if i != j}
    else:
        wanted = {(root,): F(1, count) for root in range(count)}
    for key in set(wanted) | set(shares):
        if shares.get(key, 0) != wanted.get(key, 0):
            broken.append(("shares add up", str(key)))


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
