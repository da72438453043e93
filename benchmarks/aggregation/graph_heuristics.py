"""Heuristics for aggregation in networks, on the bundled instances: objective of each, relative to the best.

python benchmarks/aggregation_routes.py [seconds] [part of names]
"""

import sys

from ddlopt.instances.library import load
from ddlopt.instances.library.aggregation_graph import instances
from ddlopt.models.errors import NotApplicableError
from ddlopt.solvers.aggregation.graph_search_methods import ENTRIES, strategy
from ddlopt.solvers.contracts import Limits, best_bound, best_objective


def main() -> None:
    """Print a table in Markdown: a row for each instance."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    part = sys.argv[2] if len(sys.argv) > 2 else ""
    names = [entry.name for entry in ENTRIES] + ["level", "top", "max"]
    print("| instance | best | bound / best |", " | ".join(names), "|")
    print("|---" * (3 + len(names)) + "|")
    for made in instances():
        if part not in made.name:
            continue
        instance = load(f"aggregation/{made.name}")
        methods = [entry.make("highs") for entry in ENTRIES] + [strategy(instance, each) for each in names[-3:]]
        values, bounds, cells = [], [], []
        for method in methods:
            try:
                result = method.solve(instance, Limits(time_s=seconds))
            except NotApplicableError:
                values.append(None)
                continue
            values.append(result.objective)
            bounds.append(result.bound)
        best = best_objective(
            [each for each, name in zip(values, names, strict=True) if name != "ring"], instance.sense
        )
        for value in values:
            ratio = None if value is None or best is None else max(value / best, best / value)
            better = value is not None and best is not None and (value < best) == (instance.sense == "minimize")
            cells.append("–" if ratio is None else f"{1 / ratio if better and value != best else ratio:.3f}")
        bound = best_bound(bounds, instance.sense)
        shown = "–" if bound is None or best is None else f"{bound / best:.3f}"
        print(f"| {instance.name} | {best:.5g} | {shown} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
