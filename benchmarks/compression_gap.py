"""The finding: how far compression heuristics are from the optimum, as tables and as a heat map (model x network).

    python benchmarks/compression_gap.py --write docs

Each row of a table compares with the optimum of a bundled instance, or with the best known answer where none is proven
within ``--time-limit``. The heat map is of generated instances: the same networks, nodes and compressors everywhere.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import ddlopt
from ddlopt import instances
from ddlopt.analysis import plots, tables
from ddlopt.analysis.heat_map import heat_maps
from ddlopt.models.contracts import Instance
from ddlopt.solvers.contracts import best_bound, best_objective, relative_gap

HEAD = (
    "# Compression: how far each method is from the best known plan\n\n"
    "How much more time (or error, where that is minimised) than the best known plan, whose distance "
    "from the optimum is at most *gap left* ([compression.md](compression.md)).\n\n"
)
METHODS = {
    "sfb": ("parametric-cut", "tag", "poseidon", "factor-rule", "all", "none"),
    "timeline": ("priced-choices", "espresso", "espresso-all-sizes", "secopa", "lgreco", "all", "none"),
    "levels": ("priced-choices", "convex-levels", "water-filling", "lgreco", "uniform"),
}
TITLES = {
    "sfb": "Sufficient factors",
    "timeline": "Which compressor for which gradient",
    "levels": "How much to compress",
}
MAPPED = ("espresso", "espresso-all-sizes", "secopa", "none")
MODELS = ("vgg16", "resnet50", "resnet101", "bert-base", "gpt2", "transformer")
NETWORKS = [(intra, rate) for intra in ("nvlink", "pcie") for rate in (100.0, 25.0, 10.0)]


def row_of(instance: Instance, methods: Sequence[str], time_limit: float) -> dict[str, str]:
    """One line of a table: the optimum, what is left to prove, and what each heuristic loses."""
    best = instances.best(f"{instance.family}/{instance.name}")
    results = ddlopt.compare([instance], ["exact", *methods], time_limit=time_limit)
    known = None if best is None else float(ddlopt.check(instance, best).objective)
    top = best_objective((known, *(result.objective for result in results)), "minimize")
    bound = best_bound((result.bound for result in results), "minimize")
    row = {
        "instance": instance.name,
        "size": str(instance.size),
        "best known": tables.objective_text(top, instance.objective_unit),
        "gap left": tables.gap_text(relative_gap(top, bound)),
    }
    for result in results[1:]:
        row[result.method] = "–" if result.objective is None else tables.gap_text(max(0.0, result.objective / top - 1))
    return row


def tables_of(names: Sequence[str], time_limit: float) -> str:
    """Markdown tables of the bundled instances, one for each problem."""
    known = [ddlopt.load(name) for name in names]
    text = ""
    for problem, methods in METHODS.items():
        rows = []
        for instance in known:
            if instance.problem == problem:
                rows.append(row_of(instance, methods, time_limit))
                print(" ".join(rows[-1].values()), flush=True)
        if rows:
            lines = [list(rows[0]), ["---"] + ["---:"] * (len(rows[0]) - 1), *(list(row.values()) for row in rows)]
            text += f"## {TITLES[problem]}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"
    return text


def heat_map(models: Sequence[str], time_limit: float):
    """Gaps of heuristics by model and network, in percent."""
    panels = {method: {} for method in MAPPED}
    columns = [f"{intra} {rate:g}G" for intra, rate in NETWORKS]
    for model in models:
        for column, (intra, rate) in zip(columns, NETWORKS, strict=True):
            options = {"model": model, "nodes": 8, "gpus_per_node": 8, "intra": intra, "network_gigabit_per_s": rate}
            instance = ddlopt.generate("compression", "network", **options)
            exact, *others = ddlopt.compare([instance], ["exact", *MAPPED], time_limit=time_limit)
            for result in others:
                panels[result.method][model, column] = 100 * max(0.0, result.objective / exact.objective - 1)
            print(model, column, *(f"{100 * (r.objective / exact.objective - 1):.2f} %" for r in others), flush=True)
    title = "How much longer than the optimum: 8 nodes of 8 GPUs"
    return heat_maps(panels, models, columns, title)


def timelines(name: str, time_limit: float):
    """What Espresso's thresholds make of an iteration, and the best that can be made of it."""
    instance = ddlopt.load(name)
    return plots.solutions(ddlopt.compare([instance], ["espresso", "exact"], time_limit=time_limit), [instance])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", nargs="*", default=list(ddlopt.names("compression")))
    parser.add_argument("--models", nargs="*", default=list(MODELS), help="of the heat map")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds for each method on each instance")
    parser.add_argument("--timelines", default="compression/espresso-resnet101-dgc-pcie", help="instance to draw")
    parser.add_argument("--write", type=Path, help="folder for compression_gap.md, .png and compression_timelines.png")
    options = parser.parse_args()
    markdown = tables_of(options.instances, options.time_limit)
    print(markdown)
    picture = heat_map(options.models, options.time_limit) if options.models else None
    if options.write:
        (options.write / "compression_gap.md").write_text(HEAD + markdown)
        if picture is not None:
            plots.save(picture, options.write / "compression_gap.png")
        plots.save(timelines(options.timelines, options.time_limit), options.write / "compression_timelines.png")


if __name__ == "__main__":
    main()
