"""The finding: how far alternating between strategy and topology is from the joint optimum, on every bundled job.

    python benchmarks/codesign_gap.py --write docs

Each row compares with the best plan known (the library's, or a better one found here) and with the best lower bound
found, which holds for every strategy and every topology. ``--store`` keeps better plans in the library.
"""

import argparse
import dataclasses
import functools
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import ddlopt
from ddlopt import instances
from ddlopt.analysis import plots, tables
from ddlopt.models.contracts import Instance
from ddlopt.solvers.contracts import Result, best_bound, best_objective, relative_gap

HEAD = (
    "# Co-design: how far each method is from the best known plan\n\n"
    "How much longer an iteration takes than with the best known plan, whose distance from the "
    "optimum is at most *gap left* "
    "([codesign.md](codesign.md#how-far-everything-is-from-the-bound)).\n\n"
)
METHODS = (
    "alternating",
    "alternating-released",
    "alternating-exact",
    "alternating-exact-strategies",
    "alternating-exact-topology",
    "data-parallel",
    "expander",
)
PICTURED_METHODS = ("joint", "alternating", "alternating-exact", "data-parallel")
PICTURED = ("-n12-d4", "-n128-d4")
SMALL = 16


def results_of(instance: Instance, options: argparse.Namespace) -> list[Result]:
    """Results of all methods, joint first."""
    seconds = options.small if instance.servers <= SMALL else options.large
    joint = ddlopt.compare([instance], ["joint"], time_limit=options.joint)
    return [*joint, *ddlopt.compare([instance], options.methods, time_limit=seconds)]


def row_of(instance: Instance, results: list[Result], best: float) -> dict[str, str]:
    """One line of the table."""
    bound = best_bound((result.bound for result in results), "minimize")
    joint, *others = results
    row = {
        "instance": instance.name,
        "best known": tables.time_text(best),
        "bound": tables.time_text(bound, like=best),
        "gap left": tables.gap_text(relative_gap(best, bound)),
        "of topology": tables.gap_text(float(joint.details.get("gap_of_topology", 0.0))),
        "of strategies": tables.gap_text(float(joint.details.get("gap_of_strategies", 0.0))),
    }
    for result in (joint, *others):
        excess = None if result.objective is None else max(0.0, result.objective / best - 1)
        row[result.method] = "–" if excess is None else tables.gap_text(excess)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", nargs="+", default=list(ddlopt.names("codesign")))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), help="beside joint")
    parser.add_argument("--joint", type=float, default=60.0, help="seconds for joint")
    parser.add_argument("--small", type=float, default=10.0, help=f"seconds for other methods up to {SMALL} servers")
    parser.add_argument("--large", type=float, default=30.0, help="seconds for other methods beyond")
    parser.add_argument("--store", action="store_true", help="keep plans that are better than the library's")
    parser.add_argument("--write", type=Path, help="folder for codesign_gap.md and codesign_gap.png")
    parser.add_argument("--processes", type=int, default=1, help="instances at a time")
    options = parser.parse_args()
    rows, pictured = [], []
    problems = [ddlopt.load(name) for name in options.instances]
    executor = ProcessPoolExecutor(options.processes, get_context("spawn"))
    answers = executor.map(functools.partial(results_of, options=options), problems)
    for name, instance, results in zip(options.instances, problems, answers, strict=True):
        stored = instances.best(name)
        known = None if stored is None else float(ddlopt.check(instance, stored).objective)
        winner = min((each for each in results if each.objective is not None), key=lambda each: each.objective)
        best = best_objective((known, winner.objective), "minimize")
        if options.store and (known is None or winner.objective < known):
            instances.store_best(name, winner.solution)
        rows.append(row_of(instance, results, best))
        print(" | ".join(rows[-1].values()), flush=True)
        bound = best_bound((result.bound for result in results), "minimize")
        if name.endswith(PICTURED):
            pictured += [dataclasses.replace(each, bound=bound) for each in results if each.method in PICTURED_METHODS]
    lines = [list(rows[0]), ["---"] + ["---:"] * (len(rows[0]) - 1), *(list(row.values()) for row in rows)]
    markdown = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    print(markdown)
    if options.write:
        (options.write / "codesign_gap.md").write_text(HEAD + markdown)
        picture = plots.comparison(pictured, title="Iteration time relative to the best found")
        plots.save(picture, options.write / "codesign_gap.png")


if __name__ == "__main__":
    main()
