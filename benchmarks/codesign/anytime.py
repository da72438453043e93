"""The best plan over time: alternating optimization, with either plane exact or as released, and the joint method.

    python benchmarks/codesign_anytime.py --write docs/results

Every method has ``--time-limit`` seconds for each instance. A line of the picture begins with the first plan that the
method has; its end is marked. The table says what each half-round of the alternating ones left, in milliseconds: which
plane is still able to improve the plan, and where both are stuck.
"""

import argparse
from pathlib import Path

from matplotlib.figure import Figure

import ddlopt
from ddlopt.analysis import plots, tables
from ddlopt.solvers.contracts import best_bound

HEAD = (
    "# Co-design: the best plan over time\n\n"
    "What each method of the alternating kind ends with, and when "
    "([codesign.md](../families/codesign.md#what-alternating-loses-and-where)).\n\n"
)
METHODS = {
    "alternating": "#1f6fb4",
    "alternating-exact-strategies": "#17a2b8",
    "alternating-exact-topology": "#3a9d5d",
    "alternating-exact": "#8c4a9e",
    "alternating-released": "#b8860b",
    "joint": "#d95f02",
}
INSTANCES = ("dlrm-n12-d4", "candle-n12-d4", "dlrm-n16-d4", "candle-n16-d4", "dlrm-n128-d4", "candle-n128-d4")
WARM_UP = "codesign/tiny-tables-n4-d2"


def run(names: list[str], methods: list[str], time_limit: float) -> dict[str, list]:
    """Results by instance."""
    for method in methods:  # Numba compiles before anything is measured.
        ddlopt.solve(ddlopt.load(WARM_UP), method, time_limit=5)
    found: dict[str, list] = {}
    for name in names:
        instance = ddlopt.load(f"codesign/{name}")
        for method in methods:
            result = ddlopt.solve(instance, method, time_limit=time_limit)
            found.setdefault(name, []).append(result)
            print(f"{name} {method}: {tables.time_text(result.objective)}, {result.runtime_s:.1f} s", flush=True)
    return found


def table(found: dict[str, list]) -> str:
    """Markdown: the objective after every half-round, and what the best method and bound are."""
    head = ["instance", "method", "plan", "above the best", "found after", "half-rounds (ms)", "improved last by"]
    rows = [head, ["---"] * 2 + ["---:"] * 3 + ["---"] * 2]
    for name, results in found.items():
        best = min(result.objective for result in results if result.objective is not None)
        bound = best_bound((result.bound for result in results), "minimize")
        for result in results:
            if result.objective is None:
                rows.append([name, result.method, str(result.status), "–", "–", "–", "–"])
                continue
            points = [point for point in result.trace if point.incumbent is not None]
            first = next((p.time_s for p in points if p.incumbent <= result.objective * (1 + 1e-9)), result.runtime_s)
            halves = result.details.get("half_rounds", ())
            rows.append(
                [
                    name,
                    result.method,
                    tables.time_text(result.objective),
                    tables.gap_text(result.objective / best - 1),
                    f"{first:.2f} s",
                    " → ".join(f"{1e3 * each['objective_s']:.4g}" for each in halves) or "–",
                    result.details.get("improved_last", "–"),
                ]
            )
        rows.append([name, "best bound", tables.time_text(bound), tables.gap_text(1 - bound / best), "–", "–", "–"])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def picture(found: dict[str, list], time_limit: float) -> Figure:
    """One panel for each instance: incumbents over time, the best bound as a dashed line."""
    columns = min(2, len(found))
    rows = -(-len(found) // columns)
    figure = Figure(figsize=(5.2 * columns, 3.0 * rows + 0.6), layout="constrained")
    for place, (name, results) in enumerate(found.items()):
        axes = figure.add_subplot(rows, columns, place + 1)
        for result in results:
            points = [(p.time_s, 1e3 * p.incumbent) for p in result.trace if p.incumbent is not None]
            if result.objective is None:
                continue
            points = [*points, (max(result.runtime_s, 0.01), 1e3 * result.objective)]
            times, values = zip(*points, strict=True)
            axes.step(times, values, where="post", color=METHODS[result.method], label=result.method, linewidth=1.4)
            axes.plot(times[-1], values[-1], marker="o", markersize=4, color=METHODS[result.method])
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
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=min(4, len(handles)),
        fontsize=8,
        frameon=False,
    )
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", nargs="+", default=list(INSTANCES))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--time-limit", type=float, default=30.0, help="seconds for each method and instance")
    parser.add_argument("--write", type=Path, help="folder for codesign_anytime.md and codesign_anytime.png")
    options = parser.parse_args()
    found = run(options.instances, options.methods, options.time_limit)
    markdown = table(found)
    print(markdown)
    if options.write:
        (options.write / "codesign_anytime.md").write_text(HEAD + markdown)
        plots.save(picture(found, options.time_limit), options.write / "codesign_anytime.png")


if __name__ == "__main__":
    main()
