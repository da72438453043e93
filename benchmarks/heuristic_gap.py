"""The finding: how far the heuristics are from the optimum on every bundled instance, as a table and a picture.

    python benchmarks/heuristic_gap.py --write docs

Each row compares with the best known solution of the library (re-checked here) and with the best bound: the
combinatorial one or, up to 8 servers, that of an exact model, which starts from the best known solution and has
``--time-limit`` seconds.
"""

import argparse
import dataclasses
from pathlib import Path

import ddlopt
from ddlopt import instances
from ddlopt.analysis import plots, tables
from ddlopt.models.catalogue import family
from ddlopt.solvers.contracts import Status

HEAD = (
    "# Topology: how far each method is from the best known design\n\n"
    "How much longer an iteration takes than with the best known design, whose distance from the "
    "optimum is at most *gap left* ([topology.md](topology.md)).\n\n"
)
HEURISTICS = ("topology-finder", "topology-finder-released", "ocs-greedy", "expander", "link-exchange")
EXACT_SERVERS = 8
PICTURED_METHODS = ("topology-finder", "topology-finder-released", "link-exchange")
PICTURED = (
    *("all-to-all-n6-d2", "all-to-all-n8-d2", "all-to-all-n16-d4", "danoint", "hybrid-n16-d4-s1", "dlrm-n12-d4"),
    *("dlrm-n16-d4", "dlrm-n128-d4", "dlrm-n128-d4-duplex", "dlrm-stress-n16-d4", "dlrm-stress-n128-d4", "ncf-n128-d4"),
)


def bound_of(name: str, time_limit: float) -> tuple[float | None, str]:
    """The best lower bound, and the method that gave it."""
    instance, best = ddlopt.load(name), instances.best(name)
    combinatorial = family(instance.family).bound(instance)
    known = float(ddlopt.check(instance, best).objective)
    if instance.servers > EXACT_SERVERS or known <= combinatorial * (1 + 1e-9):
        return combinatorial, "combinatorial"
    method = "all-rings" if instance.allreduce_groups else "min-congestion"
    result = ddlopt.solve(instance, method, start=best, time_limit=time_limit)
    return result.bound, method


def rows(names: list[str], time_limit: float) -> tuple[list[dict[str, str]], list]:
    table, results = [], []
    for name in names:
        instance = ddlopt.load(name)
        best = float(ddlopt.check(instance, instances.best(name)).objective)
        bound, source = bound_of(name, time_limit)
        row = {
            "instance": instance.name,
            "n": str(instance.servers),
            "d": str(instance.degree),
            "best known": tables.time_text(best),
            "bound": tables.time_text(bound, like=best),
            "gap left": tables.gap_text(max(0.0, 1 - bound / best)),
            "bound by": source,
        }
        for result in ddlopt.compare([instance], HEURISTICS):
            above = None if result.objective is None else result.objective / best - 1
            row[result.method] = "–" if result.status is Status.ERROR else tables.gap_text(max(0.0, above))
            if result.method in PICTURED_METHODS and result.instance in PICTURED:
                results.append(dataclasses.replace(result, bound=bound))
        print(" ".join(row.values()), flush=True)
        table.append(row)
    return table, results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", nargs="+", default=list(ddlopt.names("topology")))
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for each exact bound")
    parser.add_argument("--write", type=Path, help="folder for heuristic_gap.md and heuristic_gap.png")
    options = parser.parse_args()
    table, results = rows(options.instances, options.time_limit)
    text = [list(table[0]), ["---"] + ["---:"] * (len(table[0]) - 1), *(list(row.values()) for row in table)]
    markdown = "".join(f"| {' | '.join(line)} |\n" for line in text)
    print(markdown)
    if options.write:
        (options.write / "heuristic_gap.md").write_text(HEAD + markdown)
        picture = plots.comparison(results, title="Iteration time of heuristics relative to the best found")
        plots.save(picture, options.write / "heuristic_gap.png")


if __name__ == "__main__":
    main()
