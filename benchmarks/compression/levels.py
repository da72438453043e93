"""How much to compress: relaxation, bound, rounding and practice against the optimum, and the time–error frontier.

For every bundled instance of levels the optimum comes from the integer program over all levels ("overlap-timeline").
"relaxation" and "bound" are what the optimum is above the convex program over real levels and above the bound of its
prices, "rounded", "water-filling", "lgreco" and "uniform" what these answers are above the optimum, all relative to the
optimum. "price" is that of error in seconds (or of a second in error). "time" is the integer program's, build included,
over that of convex-levels, in the same run. An optimum that is not proven in the limit is marked. ``frontiers`` draws
time over error.
"""

import math

from matplotlib.figure import Figure

from benchmarks.compression.frontier import CONTINUOUS, draw, frontier_budgets, frontier_points
from benchmarks.harness import Benchmark, Option, solved
from ddlopt.instances import load, names
from ddlopt.models.compression import LevelInstance
from ddlopt.solvers.contracts import Limits, Status

EXACT, ROUNDED = "overlap-timeline", "convex-levels"
OTHERS = ("water-filling", "lgreco", "uniform")


def instances_of(asked) -> list[LevelInstance]:
    """Those that are asked for, or all bundled ones of levels."""
    if asked.instances:
        return [load(f"compression/{name}") for name in asked.instances]
    return [each for each in map(load, names("compression")) if isinstance(each, LevelInstance)]


def part(above: float | None, below: float | None, optimum: float) -> str | None:
    """A difference relative to the optimum."""
    if above is None or below is None:
        return None
    difference = (above - below) / optimum
    return "0" if abs(difference) < 1e-9 else f"{difference:.2e}" if difference < 1e-3 else f"{difference:.2%}"


def levels(asked):
    """A row for each instance."""
    limits = Limits(time_s=asked.time_limit, gap=1e-7)
    for instance in instances_of(asked):
        rounded = solved(ROUNDED, instance, limits)
        exact = solved(EXACT, instance, limits, start=rounded.solution)
        others = {name: solved(name, instance, limits) for name in OTHERS}
        optimum, details = exact.objective, rounded.details
        price = details.get("price_of_error", details.get("price_of_time", math.nan))
        yield {
            "instance": instance.name, "gradients": instance.size, "goal": instance.goal,
            "optimum": f"{optimum:.6g}{'' if exact.status is Status.OPTIMAL else ' (not proven)'}",
            "relaxation": part(optimum, details.get("relaxation"), optimum),
            "bound": part(optimum, rounded.bound, optimum), "rounded": part(rounded.objective, optimum, optimum),
            **{name: each and part(each.objective, optimum, optimum) for name, each in others.items()},
            "price": f"{price:.3g}", "time": f"{exact.runtime_s / rounded.runtime_s:.1f}",
        }  # fmt: skip


def frontiers(asked):
    """The least time within each budget of error."""
    limits = Limits(time_s=asked.time_limit, gap=1e-7)
    points = {}
    for instance in instances_of(asked):
        budgets = frontier_budgets(instance, asked.budgets)
        points[instance.name] = frontier_points(instance, budgets, (CONTINUOUS, EXACT, "lgreco", "uniform"), limits)
        for point in points[instance.name]:
            yield {"instance": instance.name, **point._asdict()}
    asked.save(lambda: picture(points), "frontier.png")


def picture(points: dict) -> Figure:
    columns = min(2, len(points))
    rows = -(-len(points) // columns)
    figure = Figure(figsize=(5.5 * columns, 3.6 * rows), layout="constrained")
    for place, (name, own) in enumerate(points.items()):
        axes = figure.add_subplot(rows, columns, place + 1)
        draw(axes, own)
        axes.set_title(name, fontsize=9)
    return figure


BENCH = Benchmark(
    levels, frontiers,
    instances=Option([], "(default: all of levels)", quick=["levels-gpt2-qsgd"], type=str),
    pages=False,
    time_limit=Option(30.0, quick=2.0),
    budgets=Option(12, "points of a frontier", quick=2),
)  # fmt: skip
