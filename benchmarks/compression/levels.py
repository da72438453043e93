"""How much to compress: relaxation, bound, rounding and practice against the optimum, and the time–error frontier.

For every bundled instance of levels the optimum comes from the integer program over all levels ("overlap-timeline").
"relaxation" and "bound" are what the optimum is above the convex program over real levels and above the bound of its
prices, "rounded", "water-filling", "lgreco" and "uniform" what these answers are above the optimum, all relative to the
optimum. "price" is that of error in seconds (or of a second in error). "time" is the integer program's, build included,
over that of convex-levels, in the same run. An optimum that is not proven in the limit is marked.

    python benchmarks/levels.py [--instances levels-gpt2-qsgd …] [--limit 30]
    python benchmarks/levels.py --instances levels-resnet50-powersgd --frontier frontier.png [--budgets 12]
"""

import argparse
import math

from matplotlib.figure import Figure

from ddlopt.analysis.frontier import CONTINUOUS, draw, frontier_budgets, frontier_points
from ddlopt.analysis.plots import picture_path, save
from ddlopt.instances import load, names
from ddlopt.models.compression import LevelInstance
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Result, Status

EXACT, ROUNDED = "overlap-timeline", "convex-levels"
OTHERS = ("water-filling", "lgreco", "uniform")
HEADINGS = ("instance", "gradients", "goal", "optimum", "relaxation", "bound", "rounded", *OTHERS, "price", "time")


def bundled() -> list[str]:
    """Names of the bundled instances of levels, the family left out."""
    found = [name for name in names("compression") if isinstance(load(name), LevelInstance)]
    return [name.partition("/")[2] for name in found]


def answered(name: str, instance: LevelInstance, limits: Limits, start: Result | None = None) -> Result | None:
    """The result of a method that covers the instance."""
    made = method(name, "compression")
    if made.refuses(instance) is not None:
        return None
    return made.solve(instance, limits, start=None if start is None else start.solution)


def part(above: float | None, below: float | None, optimum: float) -> str:
    """A difference relative to the optimum."""
    if above is None or below is None:
        return "–"
    difference = (above - below) / optimum
    return "0" if abs(difference) < 1e-9 else f"{difference:.2e}" if difference < 1e-3 else f"{difference:.2%}"


def row(instance: LevelInstance, limits: Limits) -> list[str]:
    """One row of the table."""
    rounded = answered(ROUNDED, instance, limits)
    exact = answered(EXACT, instance, limits, rounded)
    assert rounded is not None
    assert exact is not None
    assert exact.objective is not None
    assert rounded.objective is not None
    optimum = exact.objective
    others = [answered(name, instance, limits) for name in OTHERS]
    price = rounded.details.get("price_of_error", rounded.details.get("price_of_time", math.nan))
    return [
        instance.name,
        str(instance.size),
        instance.goal,
        f"{optimum:.6g}{'' if exact.status is Status.OPTIMAL else ' (not proven)'}",
        part(optimum, rounded.details.get("relaxation"), optimum),
        part(optimum, rounded.bound, optimum),
        part(rounded.objective, optimum, optimum),
        *("–" if each is None else part(each.objective, optimum, optimum) for each in others),
        f"{price:.3g}",
        f"{exact.runtime_s / rounded.runtime_s:.1f}",
    ]


def picture(instances: list[LevelInstance], budgets: int, limits: Limits, path: str) -> None:
    """Draw the frontier of each instance."""
    columns = min(2, len(instances))
    rows = -(-len(instances) // columns)
    figure = Figure(figsize=(5.5 * columns, 3.6 * rows), layout="constrained")
    for place, instance in enumerate(instances):
        axes = figure.add_subplot(rows, columns, place + 1)
        methods = (CONTINUOUS, EXACT, "lgreco", "uniform")
        draw(axes, frontier_points(instance, frontier_budgets(instance, budgets), methods, limits))
        axes.set_title(instance.name, fontsize=9)
    save(figure, path)


def main() -> None:
    """Print a Markdown table, or draw frontiers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", nargs="+", default=None, help="(default: all of levels)")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for each solve")
    parser.add_argument("--frontier", metavar="PICTURE", help="draw time over error instead")
    parser.add_argument("--budgets", type=int, default=12, help="points of a frontier")
    arguments = parser.parse_args()
    instances = [load(f"compression/{name}") for name in arguments.instances or bundled()]
    limits = Limits(time_s=arguments.limit, gap=1e-7)
    if arguments.frontier:
        picture_path(arguments.frontier)
        picture(instances, arguments.budgets, limits, arguments.frontier)
        return
    print(f"| {' | '.join(HEADINGS)} |\n|---|{'|'.join(['---:'] * (len(HEADINGS) - 1))}|")
    for instance in instances:
        print(f"| {' | '.join(row(instance, limits))} |", flush=True)


if __name__ == "__main__":
    main()
