"""The finding: how far schedulers are from the optimum on every bundled instance, as a table and a picture.

    python benchmarks/scheduling_gap.py --write docs

Each row compares with the best known schedule of the library (re-checked here): how much less utility, or how much more
time, a heuristic's schedule has. The bound is the best that any of the methods proved, and of the exact method, which
has ``--time-limit`` seconds.
"""

import argparse
import dataclasses
from pathlib import Path

import ddlopt
from ddlopt import instances
from ddlopt.analysis import plots, tables
from ddlopt.solvers.contracts import best_bound, best_objective, relative_gap

HEAD = (
    "# Scheduling: how far each method is from the best known schedule\n\n"
    "How much less utility, or more time, than the best known schedule, whose distance from the "
    "optimum is at most *gap left* ([scheduling.md](scheduling.md)).\n\n"
)
HEURISTICS = (
    *("job-plans", "lp-guided", "fair-shares", "gang-search", "gadget"),
    *("sjf-bco", "optimus", "drf", "srtf", "las", "fifo"),
)
PICTURED_METHODS = ("job-plans", "fair-shares", "gadget", "optimus", "srtf", "fifo")
PICTURED = (
    *("capped-j50-t50-g32", "deadlines-j50-t50-g32", "elastic-j200-t100-g64", "energy-j20-t20-g16"),
    *("contended-j20-t10-s4", "leaf-spine-j40-t10-s16", "departures-j96-t24-g16", "caps-j11-t12-g16"),
    *("bursty-j40-t24-g16", "all-or-nothing-j20-t20-g16"),
)


def loss(objective: float, best: float, sense: str) -> float:
    """How much worse than the best, relative to the best."""
    return max(0.0, (best - objective if sense == "maximize" else objective - best) / abs(best))


def row_of(name: str, time_limit: float) -> tuple[dict[str, str], list]:
    instance, best = ddlopt.load(name), instances.best(name)
    results = ddlopt.compare([instance], HEURISTICS, time_limit=time_limit)
    exact = ddlopt.solve(instance, "exact", time_limit=time_limit, start=best)
    answered = [result for result in (*results, exact) if result.objective is not None]
    known = float(ddlopt.check(instance, best).objective)
    top = best_objective((known, *(result.objective for result in answered)), instance.sense)
    bound = best_bound((result.bound for result in answered), instance.sense)
    row = {
        "instance": instance.name,
        "best known": tables.objective_text(top, instance.objective_unit),
        "gap left": tables.gap_text(relative_gap(top, bound, instance.sense)),
    }
    for result in results:
        missing = result.objective is None
        row[result.method] = "–" if missing else tables.gap_text(loss(result.objective, top, instance.sense))
    pictured = [r for r in answered if r.method in PICTURED_METHODS and instance.name in PICTURED]
    return row, [dataclasses.replace(result, bound=bound) for result in pictured]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    large = [name for name in ddlopt.names("scheduling") if "/tiny-" not in name]
    parser.add_argument("--instances", nargs="+", default=large)
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds for each method on each instance")
    parser.add_argument("--write", type=Path, help="folder for scheduling_gap.md and scheduling_gap.png")
    options = parser.parse_args()
    table, results = [], []
    for name in options.instances:
        row, shown = row_of(name, options.time_limit)
        print(" ".join(row.values()), flush=True)
        table.append(row)
        results += shown
    text = [list(table[0]), ["---"] + ["---:"] * (len(table[0]) - 1), *(list(row.values()) for row in table)]
    markdown = "".join(f"| {' | '.join(line)} |\n" for line in text)
    print(markdown)
    if options.write:
        (options.write / "scheduling_gap.md").write_text(HEAD + markdown)
        picture = plots.comparison(results, title="Utility of schedulers relative to the best found")
        plots.save(picture, options.write / "scheduling_gap.png")


if __name__ == "__main__":
    main()
