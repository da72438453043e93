"""Checks the hosts of gangs: python cluster_placement.py INSTANCE SOLUTION.

Each gang has runs (leaf, ranks) in the order of its ring. What is counted are the domains that it is in, or the
neighbours in its ring that are in different domains, at each level for its price.
"""

import gzip
import json
import sys
from fractions import Fraction as F


def check(instance, solution):
    """The objective, None where the answer makes no sense, and (rule, where) of what is broken."""
    levels, leaves, gangs = instance.get("levels", ["rack"]), instance["leaves"], instance["gangs"]
    places, goal, broken = solution["places"], instance.get("objective", "pairs"), []
    if any(number < 0 for runs in places for run in runs for number in run):
        raise ValueError("leaves and numbers of ranks are at least 0")
    if len(places) != len(gangs):
        return None, [("every gang has an entry", "places")]
    for place, runs in enumerate(places):
        for leaf, count in runs:
            if leaf >= len(leaves):
                broken.append(("leaves are known", f"places[{place}]"))
            if count < 1:
                broken.append(("runs have ranks", f"places[{place}]"))
    if broken:
        return None, broken
    for gang, runs in zip(gangs, places):
        if runs and sum(count for _, count in runs) != gang["hosts"]:
            broken.append(("a gang has all its hosts", f"gang '{gang['name']}'"))
        if not runs and goal in ("pairs", "crossings"):
            broken.append(("every gang is placed", f"gang '{gang['name']}'"))
        within = gang.get("within", "any")
        if within != "any" and len(set(names(leaves, runs, levels.index(within)))) > 1:
            broken.append(("a gang is within its level", f"gang '{gang['name']}'"))
    for number, leaf in enumerate(leaves):
        if sum(count for runs in places for at, count in runs if at == number) > leaf["hosts"]:
            broken.append(("hosts are free", f"leaf '{leaf['name']}'"))
    placed = [(gang, runs) for gang, runs in zip(gangs, places) if runs]
    if goal == "fits":
        return F(len(placed) == len(gangs)), broken
    if goal == "max_gangs":
        return F(sum(gang.get("weight", 1) for gang, _ in placed)), broken
    total, prices = F(0), instance.get("prices") or [0] * (len(levels) - 1) + [1]
    for gang, runs in placed:
        for level, price in enumerate(prices):
            ring = names(leaves, runs, level)
            crossings = sum(own != after for own, after in zip(ring, ring[1:] + ring[:1]))
            total += gang.get("weight", 1) * price * (len(set(ring)) if goal == "pairs" else crossings)
    return total, broken


def names(leaves, runs, level):
    """The domain of a level that each run is in."""
    return [[*leaves[leaf].get("inside", []), leaves[leaf]["name"]][level] for leaf, _ in runs]


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
