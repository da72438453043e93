"""What rings and phases in turn lose against trees on given links, and how long the best trees take to find.

Every time of trees is proven, as a fraction; rings are the best mixture, proven up to twelve accelerators.
"""

import time
from fractions import Fraction
from pathlib import Path

import ddlopt
from benchmarks.harness import Benchmark, Option
from ddlopt.analysis.texts import NONE
from ddlopt.frontier.topology.collective.shifted import Shifted
from ddlopt.instances import generators
from ddlopt.instances.readers.schedules import read_schedule
from ddlopt.models.errors import SolutionError
from ddlopt.models.topology.collective.bounds import exact_collective_bound
from ddlopt.models.topology.collective.evaluate import evaluate_collective
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.topology.collective.forest import Forest

NETWORKS = (
    ("dgx-a100", {"boxes": 2}), ("dgx-a100", {"boxes": 4}), ("rails", {"boxes": 4}), ("mi250", {}),
    ("torus", {"dimensions": "4x4"}), ("hypercube", {"accelerators": 8}), ("kautz", {"accelerators": 12}),
    ("de-bruijn", {"accelerators": 8}), ("circulant", {"accelerators": 8}),
    ("random", {"accelerators": 8, "degree": 2}),
    ("star", {"accelerators": 5}), ("path", {"accelerators": 4}), ("unequal", {"accelerators": 8, "degree": 3}),
)  # fmt: skip
SIZES = (
    *(("dgx-a100", {"boxes": boxes}) for boxes in (8, 16, 32, 64, 128)),
    *(("torus", {"dimensions": told}) for told in ("8x8", "8x16", "16x16", "16x32", "32x32")),
    *(("random", {"accelerators": count, "degree": 3}) for count in (64, 128, 256, 512, 1024)),
)
PACKED = 128
"""Accelerators up to which trees are packed here: twice as many take about sixteen times as long."""


def made(network, options, collective):
    return generators.generate("topology", "collective", network=network, collective=collective, **options)


def seconds(instance, method, limit):
    result = ddlopt.solve(instance, method, time_limit=limit)
    if result.solution is None:
        return None
    return evaluate_collective(instance, result.solution, exact=True).objective


def rings(asked):
    """All-gather of 1 GB: trees, the best rings, and one ring in the order of numbers."""
    for network, options in NETWORKS[: asked.most]:
        instance = made(network, options, "all-gather")
        trees, best, plain = (seconds(instance, each, asked.time_limit) for each in ("exact", "rings", "ring-in-order"))
        yield {
            "network": instance.name.removeprefix("all-gather-"), "accelerators": instance.size,
            "trees GB/s": shown(1 / trees), "rings / trees": loss(best, trees), "in order / trees": loss(plain, trees),
        }  # fmt: skip


def in_turn(asked):
    """All-reduce of 1 GB: both phases at once, and a reduce-scatter and then an all-gather at their own best."""
    for network, options in NETWORKS[: asked.most]:
        whole = made(network, options, "all-reduce")
        turn = sum(exact_collective_bound(made(network, options, each)) for each in ("reduce-scatter", "all-gather"))
        best = seconds(whole, "exact", asked.time_limit)
        bound = ddlopt.solve(whole, time_limit=asked.time_limit).bound
        yield {
            "network": whole.name.removeprefix("all-reduce-"), "at once GB/s": shown(1 / best),
            "proven": "yes" if abs(float(best) / bound - 1) <= 1e-9 else f"{1 - bound / float(best):.2%} open",
            "in turn / at once": loss(turn, best),
        }  # fmt: skip


def growth(asked):
    """All-gather: processor seconds for the bound (maximum flows), for packed trees and for those that are shifted."""
    for network, options in SIZES[: asked.most]:
        instance = made(network, options, "all-gather")
        began = time.process_time()
        bound = exact_collective_bound(instance)
        row = {"bound s": f"{time.process_time() - began:.2f}"}
        for method, column in ((Forest(), "packed"), (Shifted(), "shifted")):
            row |= {f"{column} s": NONE, f"{column} trees": NONE}
            if method.refuses(instance) is None and (column == "shifted" or instance.size <= PACKED):
                began = time.process_time()
                plan = method.solve(instance, Limits()).solution
                row[f"{column} s"] = f"{time.process_time() - began:.2f}"
                row[f"{column} trees"] = len(plan.trees)
                assert evaluate_collective(instance, plan, exact=True).objective == bound
        yield {"network": instance.name.removeprefix("all-gather-"), "accelerators": instance.size} | row


def published(asked):
    """What TE-CCL publishes for 1 GB (a copy of microsoft/TE-CCL in ``--folder``), against the bound of any plan."""
    where = "teccl/examples/experiments/output_provided/*/*/*/*/1GB.json"
    for path in sorted(Path(asked.folder).glob(where)) if asked.folder else ():
        network, boxes, name, variant = path.parts[-5:-1]
        collective = {"AllGather": "all-gather", "AlltoAll": "all-to-all"}[name]
        instance = made(network.partition("_")[0].lower(), {"boxes": int(boxes.partition("_")[0])}, collective)
        row = {"network": instance.name.removeprefix(f"{collective}-"), "collective": collective, "variant": variant}
        try:
            schedule = read_schedule(path, "te-ccl", instance)
        except SolutionError:
            yield row | {"published ms": NONE, "bound ms": NONE, "above": "has no paths"}
            continue
        told, bound = schedule.details["published_s"], float(exact_collective_bound(schedule.instance))
        above = f"{told / bound - 1:.1%}"
        yield row | {"published ms": f"{1e3 * told:.2f}", "bound ms": f"{1e3 * bound:.2f}", "above": above}


def shown(value):
    """A fraction of small numbers as it is, others in digits."""
    return str(value) if value.denominator < 1000 else f"{float(value):.4f}"


def loss(value, best):
    ratio = None if value is None else Fraction(value) / best
    return "none found" if ratio is None else shown(ratio)


BENCH = Benchmark(
    rings, in_turn, growth, published,
    most=Option(20, quick=1), time_limit=Option(30.0, quick=5.0), folder=Option("", "a copy of microsoft/TE-CCL"),
)  # fmt: skip
