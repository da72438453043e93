"""The best plan over time: alternating optimization, with either plane exact or as released, and the joint method.

Every method has ``--time-limit`` seconds for each instance. A line of the picture begins with the first plan that the
method has; its end is marked. The table says what each half-round of the alternating ones left, in milliseconds: which
plane is still able to improve the plan, and where both are stuck. Writes docs/results/codesign_anytime.md.
"""

from matplotlib.figure import Figure

import ddlopt
from benchmarks.harness import Benchmark, Option, solved
from ddlopt.analysis.texts import gap_text, time_text
from ddlopt.solvers.contracts import Limits, Result, best_bound

HEAD = (
    "# Co-design: the best plan over time\n\n"
    "What each method of the alternating kind ends with, and when "
    "([codesign.md](../families/codesign.md#what-alternating-loses-and-where)); *above the best* of these runs, not of "
    "all\nthat is known ([codesign_gap.md](codesign_gap.md)).\n\n"
)
METHODS = {
    "alternating": "#1f6fb4",
    "alternating:strategies=exact": "#17a2b8",
    "alternating:topology=exact": "#3a9d5d",
    "alternating:strategies=exact,topology=exact": "#8c4a9e",
    "alternating-released": "#b8860b",
    "joint": "#d95f02",
}
INSTANCES = ("dlrm-n12-d4", "candle-n12-d4", "dlrm-n16-d4", "candle-n16-d4", "dlrm-n128-d4", "candle-n128-d4")
WARM_UP = "codesign/tiny-tables-n4-d2"


def plans(asked):
    """The objective after every half-round, and what the best method and bound are."""
    for method in asked.methods:  # imports settle
        solved(method, WARM_UP, Limits(5.0))
    found = {}
    for name in asked.instances:
        instance = ddlopt.load(f"codesign/{name}")
        results = found[name] = [ddlopt.solve(instance, each, time_limit=asked.time_limit) for each in asked.methods]
        best = min(result.objective for result in results if result.objective is not None)
        bound = best_bound((result.bound for result in results), "minimize")
        for result in results:
            yield {"instance": name, "method": result.method, **row(result, best)}
        last = {"plan": time_text(bound), "above the best": None if bound is None else gap_text(1 - bound / best)}
        yield {"instance": name, "method": "best bound", **dict.fromkeys(row(results[0], best)), **last}
    asked.save(lambda: picture(found, asked.time_limit), "codesign_anytime.png")


def row(result: Result, best: float) -> dict[str, str | None]:
    headings = ("plan", "above the best", "found after", "half-rounds (ms)", "improved last by")
    if result.objective is None:
        return dict.fromkeys(headings) | {"plan": str(result.status)}
    enough = result.objective * (1 + 1e-9)
    reached = (p.time_s for p in result.trace if p.incumbent is not None and p.incumbent <= enough)
    halves = " → ".join(f"{1e3 * each['objective_s']:.4g}" for each in result.details.get("half_rounds", ()))
    cells = (
        time_text(result.objective), gap_text(result.objective / best - 1),
        f"{min(reached, default=result.runtime_s):.2f} s", halves or None, result.details.get("improved_last"),
    )  # fmt: skip
    return dict(zip(headings, cells, strict=True))


def picture(found: dict[str, list[Result]], time_limit: float) -> Figure:
    """One panel for each instance: incumbents over time, the best bound as a dashed line."""
    columns = min(2, len(found))
    rows = -(-len(found) // columns)
    figure = Figure(figsize=(5.2 * columns, 3.0 * rows + 0.6), layout="constrained")
    for place, (name, results) in enumerate(found.items()):
        axes = figure.add_subplot(rows, columns, place + 1)
        for result in [each for each in results if each.objective is not None]:
            points = [(p.time_s, 1e3 * p.incumbent) for p in result.trace if p.incumbent is not None]
            points.append((max(result.runtime_s, 0.01), 1e3 * result.objective))
            times, values = zip(*points, strict=True)
            colour = METHODS[result.method]
            axes.step(times, values, where="post", color=colour, label=result.method, linewidth=1.4)
            axes.plot(times[-1], values[-1], marker="o", markersize=4, color=colour)
        bound = best_bound((result.bound for result in results), "minimize")
        if bound is not None:
            axes.axhline(1e3 * bound, color="black", linestyle="--", linewidth=1, label="best bound")
        axes.set_xscale("log")
        axes.set_xlim(0.01, 1.3 * time_limit)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("seconds", fontsize=8)
        axes.set_ylabel("iteration time (ms)", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    handles = dict(zip(*reversed(figure.axes[0].get_legend_handles_labels()), strict=True))
    placed = {"loc": "outside lower center", "ncols": min(4, len(handles)), "fontsize": 8, "frameon": False}
    figure.legend(handles.values(), handles.keys(), **placed)
    return figure


BENCH = Benchmark(
    plans,
    page="codesign_anytime",
    head=HEAD,
    instances=Option(list(INSTANCES), quick=["dlrm-n12-d4"]),
    methods=Option(list(METHODS), choices=METHODS, quick=["alternating", "joint"]),
    time_limit=Option(30.0, "seconds for each method and instance", quick=2.0),
)
