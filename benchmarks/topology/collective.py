"""What rings and phases in turn lose against trees on given links, and how long the best trees take to find.

Every time of trees is proven, as a fraction; rings are the best mixture, proven up to twelve accelerators.
"""

import time
from fractions import Fraction
from pathlib import Path

import ddlopt
from benchmarks.harness import Benchmark, Option
from ddlopt.analysis.texts import NONE
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
    ("dgx-a100", {"boxes": 4}), ("dgx-a100", {"boxes": 8}), ("dgx-a100", {"boxes": 16}),
    ("torus", {"dimensions": "4x4"}),
    ("torus", {"dimensions": "8x8"}), ("torus", {"dimensions": "8x16"}),
)  # fmt: skip


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
    """Seconds for the bound (maximum flows) and for the trees, from the instance to the checked plan."""
    for network, options in SIZES[: asked.most]:
        instance, began = made(network, options, "all-gather"), time.perf_counter()
        bound = exact_collective_bound(instance)
        middle = time.perf_counter()
        result = Forest().solve(instance, Limits())
        yield {
            "network": instance.name.removeprefix("all-gather-"), "accelerators": instance.size,
            "bound s": f"{middle - began:.2f}", "trees s": f"{result.runtime_s:.2f}",
            "trees": len(result.solution.trees),
            "at the bound": "yes" if evaluate_collective(instance, result.solution, True).objective == bound else "no",
        }  # fmt: skip


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
