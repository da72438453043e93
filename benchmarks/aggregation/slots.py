"""Slots of switches shared among jobs: rules beside the optimum, the price of memory, and how solves grow."""

from collections.abc import Sequence
from functools import partial
from statistics import mean
from typing import Any, get_args

from benchmarks.harness import Benchmark, Option, timed
from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation.slots.arrays import SlotArrays
from ddlopt.models.aggregation.slots.formulations.slot_shares import SlotShares
from ddlopt.models.aggregation.slots.instance import SlotsInstance
from ddlopt.models.aggregation.slots.prices import price_bound
from ddlopt.solvers.aggregation.slots.exact import opened
from ddlopt.solvers.aggregation.slots.priced import PricedSlots, relaxation
from ddlopt.solvers.aggregation.slots.rules import RuleName, SlotRule
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.contracts import Limits, Method

KINDS: dict[str, dict[str, Any]] = {
    "one rack, memory": {"jobs": 24, "racks": 1, "memory": 0.1},
    "4 racks, memory": {"jobs": 24, "racks": 4, "memory": 0.05, "spread": 0.8},
    "4 racks, links": {"jobs": 24, "racks": 4, "uplink_gbit_per_s": 100.0, "spread": 0.8},
    "4 racks, servers": {"jobs": 24, "racks": 4, "memory": 0.05, "spread": 0.8, "servers": 1.0},
    "4 racks, whole": {"jobs": 24, "racks": 4, "memory": 0.02, "spread": 0.8, "servers": 0.8, "whole": True},
}
PARTS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)
GROWTH = ((16, 4), (64, 4), (256, 8), (1024, 16), (4096, 32), (4096, 128))
"""Jobs, racks."""


def instance_of(options: dict[str, Any], seed: int) -> SlotsInstance:
    return generate("slots", seed, **options)


def rules(asked):
    """What rules lose against a proven optimum, and prices with rounding before the integer program."""
    methods: list[Method] = [*map(SlotRule, get_args(RuleName)), PricedSlots()]
    for kind, options in KINDS.items():
        instances = [instance_of(options, seed) for seed in range(1, asked.seeds + 1)]
        optima = [opened().solve(instance, asked.limits) for instance in instances]
        row = {"kind": kind}
        for method in methods:
            found = [method.solve(instance, asked.limits).objective for instance in instances]
            ratios = [value / best.objective for value, best in zip(found, optima, strict=True)]
            row[method.name.removesuffix("-slots")] = f"{mean(ratios):.4f}"
        proven = sum(result.status == "optimal" for result in optima)
        seconds = mean(result.runtime_s for result in optima)
        yield row | {"proven": f"{proven}/{asked.seeds}", "s": f"{seconds:.2f}"}


def prices(asked):
    """Total time and the price of a slot as memory grows: 32 jobs on one rack with SwitchML's slots."""
    points = []
    for part in PARTS:
        instance = instance_of({"jobs": 32, "racks": 1, "memory": part}, 3)
        arrays = SlotArrays(instance)
        found = relaxation(arrays)
        best, equal = (method.solve(instance, asked.limits).objective for method in (PricedSlots(), SlotRule("equal")))
        slots, waiting = int(arrays.slots[0]), arrays.compute_total_s
        points.append((slots, best - waiting, equal - waiting, found.prices[0]))
        yield {
            "slots": slots, "total s": f"{best:.0f}", "communication s": f"{best - waiting:.1f}",
            "s for a slot": float(found.prices[0]), "equal / optimum": f"{equal / best:.3f}",
            "jobs at NIC": int((found.rates > arrays.cap * (1 - 1e-6)).sum()),
        }  # fmt: skip
    asked.save(partial(picture, points), "aggregation_slots.png")


def picture(points: Sequence[tuple[float, ...]]):
    """Price of memory over memory."""
    from matplotlib.figure import Figure

    slots, best, equal, price = zip(*points, strict=True)
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    left = figure.add_subplot()
    left.loglog(slots, best, "o-", color="#1f6fb4", label="optimum")
    left.loglog(slots, equal, "s--", color="#7fb3dc", label="equal shares")
    left.set_xlabel("slots of the switch, for 32 jobs")
    left.set_ylabel("communication of all jobs [s]")
    right = left.twinx()
    positive = [(n, value) for n, value in zip(slots, price, strict=True) if value > 0]
    right.loglog(*zip(*positive, strict=True), "^:", color="#d95f02", label="price of a slot")
    right.set_ylabel("what one more slot saves [s]")
    left.legend(handles=[*left.lines, *right.lines], loc="lower left", frameon=False)
    return figure


def growth(asked):
    """Seconds of the relaxation, with links and memory in the way: our interior-point method, CVXPY with Clarabel."""
    relaxation(SlotArrays(instance_of({"jobs": 4, "racks": 1}, 1)))
    for jobs, racks in GROWTH[: asked.sizes]:
        instance = instance_of({"jobs": jobs, "racks": racks, "spread": 0.8, "uplink_gbit_per_s": 100.0}, 1)
        arrays = SlotArrays(instance)
        ours, ours_took = timed(relaxation, arrays)
        (rates, their_prices), conic_took = timed(conic, instance)
        gaps = []
        for each, slot_prices in ((ours.rates, ours.prices), (rates, their_prices)):
            cost = float((arrays.cost / each).sum()) + arrays.compute_total_s
            gaps.append(f"{1 - price_bound(arrays, slot_prices) / cost:.1e}")
        row = {"jobs": jobs, "racks": racks, "rows": len(arrays.limits), "ours s": ours_took.processor_s}
        yield row | {"gap": gaps[0], "Clarabel s": conic_took.processor_s, "its gap": gaps[1]}


def conic(instance):
    """Rates and prices by CVXPY, its problem made and handed over."""
    problem = SlotShares().problem(instance)
    Convex().solve(problem, Limits())
    return SlotShares().read(problem, instance), SlotShares().prices(problem, instance)


def whole(asked):
    """What whole slots cost where there are few, and how often prices alone prove the optimum."""
    for part in (0.002, 0.005, 0.01, 0.05):
        options = {"jobs": 12, "racks": 4, "memory": part, "spread": 0.8}
        results, ratios, gaps = [], [], []
        for seed in range(1, asked.seeds + 1):
            free, bound = (instance_of(options | {"whole": flag}, seed) for flag in (False, True))
            results.append(opened().solve(bound, asked.limits))
            ratios.append(results[-1].objective / PricedSlots().solve(free, asked.limits).objective)
            gaps.append(PricedSlots().solve(bound, asked.limits).gap or 0.0)
        yield {
            "slots": instance_of(options, 1).switches[0].slots, "jobs": 12, "whole / not": f"{mean(ratios):.4f}",
            "gap of prices": f"{mean(gaps):.1e}",
            "proven": f"{sum(result.status == 'optimal' for result in results)}/{asked.seeds}",
            "s": f"{mean(result.runtime_s for result in results):.2f}",
        }  # fmt: skip


BENCH = Benchmark(
    rules, prices, growth, whole,
    pages=False,
    time_limit=Option(60.0, quick=2.0),
    seeds=Option(10, quick=1),
    sizes=Option(len(GROWTH), "how many sizes of the third table, smallest first", quick=2),
)  # fmt: skip
