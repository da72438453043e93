"""The finding: how far compression heuristics are from the optimum, as a heat map (model x network).

The map is of generated instances: the same networks, nodes and compressors everywhere. Beside it an iteration with and
without what a heuristic leaves out. The bundled instances are in suite/gaps.
"""

import ddlopt
from benchmarks.compression.heat_map import heat_maps
from benchmarks.harness import Benchmark, Option

MAPPED = ("espresso", "espresso:thresholds=false", "secopa", "none")
MODELS = ("vgg16", "resnet50", "resnet101", "bert-base", "gpt2", "transformer")
NETWORKS = {f"{intra} {rate:g}G": {"intra": intra, "network_gigabit_per_s": rate}
            for intra in ("nvlink", "pcie") for rate in (100.0, 25.0, 10.0)}  # fmt: skip
TITLE = "How much longer than the optimum: 8 nodes of 8 GPUs"


def gaps(asked):
    """Per cent above the optimum, by model and network."""
    panels = {method: {} for method in MAPPED}
    columns = list(NETWORKS)[: asked.networks]
    for model in asked.models:
        for column in columns:
            options = {"model": model, "nodes": 8, "gpus_per_node": 8, **NETWORKS[column]}
            instance = ddlopt.generate("compression", "network", **options)
            exact, *others = ddlopt.compare([instance], ["exact", *MAPPED], time_limit=asked.time_limit)
            for result in others:
                panels[result.method][model, column] = 100 * max(0.0, result.objective / exact.objective - 1)
            cells = {method: f"{panels[method][model, column]:.2f}" for method in MAPPED}
            yield {"model": model, "network": column, **cells}
    asked.save(lambda: heat_maps(panels, asked.models, columns, TITLE), "compression_map.png")


def timelines(asked):
    """What Espresso's thresholds make of an iteration, and the best that can be made of it."""
    from ddlopt.analysis import plots

    instance = ddlopt.load(asked.timelines)
    results = ddlopt.compare([instance], ["espresso", "exact"], time_limit=asked.time_limit)
    for result in results:
        yield {"method": result.method, "ms": 1e3 * result.objective}
    asked.save(lambda: plots.solutions(results, [instance]), "compression_timelines.png")


BENCH = Benchmark(
    gaps, timelines,
    models=Option(list(MODELS), "of the heat map", quick=["resnet50"]),
    networks=Option(len(NETWORKS), "how many networks", quick=1),
    time_limit=Option(20.0, "seconds for each method on each instance", quick=2.0),
    timelines=Option("compression/espresso-resnet101-dgc-pcie", "instance whose timelines are drawn"),
    pages=False,
)  # fmt: skip
