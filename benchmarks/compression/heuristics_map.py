"""The finding: how far compression heuristics are from the optimum, as a heat map (model x network).

    python benchmarks/compression_map.py --write docs/results

The heat map is of generated instances: the same networks, nodes and compressors everywhere. Beside it, an iteration
with and without what a heuristic leaves out. The bundled instances are in benchmarks/gaps.py.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import ddlopt
from ddlopt.analysis import plots
from ddlopt.analysis.heat_map import heat_maps

MAPPED = ("espresso", "espresso-all-sizes", "secopa", "none")
MODELS = ("vgg16", "resnet50", "resnet101", "bert-base", "gpt2", "transformer")
NETWORKS = [(intra, rate) for intra in ("nvlink", "pcie") for rate in (100.0, 25.0, 10.0)]


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
    parser.add_argument("--models", nargs="*", default=list(MODELS), help="of the heat map")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds for each method on each instance")
    parser.add_argument("--timelines", default="compression/espresso-resnet101-dgc-pcie", help="instance to draw")
    parser.add_argument("--write", type=Path, help="folder for compression_map.png and compression_timelines.png")
    options = parser.parse_args()
    picture = heat_map(options.models, options.time_limit) if options.models else None
    if options.write:
        if picture is not None:
            plots.save(picture, options.write / "compression_map.png")
        plots.save(timelines(options.timelines, options.time_limit), options.write / "compression_timelines.png")


if __name__ == "__main__":
    main()
