"""A lane of its own for compression on CPUs: what it changes in the optimum, and what Espresso's greedy loses then.

Espresso's costs on PCIe by its simulator's rules; its greedy with CPUs moves gradients there last. ``one wire``: the
same options where compression on CPUs occupies the wire. Losses are relative to the best plan on lanes.
"""

from benchmarks.harness import Benchmark, Option
from ddlopt.instances.generators.compression import generate
from ddlopt.instances.readers.espresso import read_espresso
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Result

NETWORKS = {
    "vgg16": "random_k:0.01/cpu",
    "bert-base": "random_k:0.01/inter/cpu",
    "gpt2": "sign/inter/cpu",
    "resnet101": "dgc:0.01/cpu",
}
"""With compressors as in the released plans, on both levels or between nodes."""
LISTS = {
    "vgg16": ("randomk", True),
    "bert": ("randomk", False),
    "gpt2": ("efsignsgd", False),
    "resnet101": ("dgc", True),
    "LSTM": ("efsignsgd", True),
    "ugatit": ("dgc", False),
}
"""The same of the published lists of tensors."""
HEURISTICS = ("espresso", "espresso:thresholds=false", "lane-search", "all", "none")


def pairs(asked):
    """Name, instance on one wire, instance with lanes."""
    if asked.lists:
        for name, (compressor, two_level) in list(LISTS.items())[: asked.networks]:
            known = {"model": name, "compressor": compressor, "two_level": two_level, "intra": "pcie", "cpu": True}
            yield name, *(read_espresso(asked.lists, **known, lanes=lanes) for lanes in (False, True))
        return
    for name, compressor in list(NETWORKS.items())[: asked.networks]:
        known = {"model": name, "compressors": (compressor,), "intra": "pcie", "cost_model": "espresso"}
        yield name, generate("network", **known), generate("network", **known, lanes=True)


def told(result: Result, best: float) -> str:
    return "none" if result.objective is None else f"{100 * (result.objective / best - 1):.2f} %"


def lanes(asked):
    """A row for each network."""
    for name, wire, own in pairs(asked):
        one, best = (method("exact", "compression").solve(each, asked.limits) for each in (wire, own))
        found = [method(each, "compression").solve(own, asked.limits) for each in HEURISTICS]
        yield {
            "network": name, "gradients": str(own.size), "one wire ms": f"{1e3 * one.objective:.1f}",
            "lanes ms": f"{1e3 * best.objective:.1f}", "gap left": f"{100 * best.gap:.2f} %",
            **{each: told(result, best.objective) for each, result in zip(HEURISTICS, found, strict=True)},
        }  # fmt: skip


BENCH = Benchmark(
    lanes,
    time_limit=Option(120.0, quick=5.0),
    gap=Option(1e-4),
    networks=Option(6, "how many of them", quick=1),
    lists=Option("", "model_tensor.py of zhuangwang93/Espresso, in place of networks by our roofline"),
)
