"""Slots of switches shared among jobs: rules beside the optimum, the price of memory, and how solves grow.

    python benchmarks/aggregation_slots.py [rules] [prices] [growth] [whole] [--picture FILE]

*rules*: what rules lose against a proven optimum, and prices with rounding before the integer program, over seeds of
the generator's kind ``slots``. *prices*: total time and the price of a slot as memory grows, of 32 jobs on one rack.
*growth*: seconds of the relaxation by our interior-point method and by CVXPY with Clarabel. *whole*: what whole slots
cost where there are few, and how often prices alone prove the optimum.
"""

import argparse
import time
from collections.abc import Sequence
from statistics import mean
from typing import Any

from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation.slot_arrays import SlotArrays
from ddlopt.models.aggregation.slot_prices import price_bound
from ddlopt.models.aggregation.slot_shares import SlotShares
from ddlopt.models.aggregation.slots import SlotsInstance
from ddlopt.solvers.aggregation.priced_slots import PricedSlots, relaxation
from ddlopt.solvers.aggregation.slot_rules import RULES, SlotRule
from ddlopt.solvers.aggregation.slots_exact import opened
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.contracts import Limits, Method, Result

TABLES = ("rules", "prices", "growth", "whole")
_SEEDS = range(1, 11)
_KINDS: dict[str, dict[str, Any]] = {
    "one rack, memory": {"jobs": 24, "racks": 1, "memory": 0.1},
    "4 racks, memory": {"jobs": 24, "racks": 4, "memory": 0.05, "spread": 0.8},
    "4 racks, links": {"jobs": 24, "racks": 4, "uplink_gbit_per_s": 100.0, "spread": 0.8},
    "4 racks, servers": {"jobs": 24, "racks": 4, "memory": 0.05, "spread": 0.8, "servers": 1.0},
    "4 racks, whole": {"jobs": 24, "racks": 4, "memory": 0.02, "spread": 0.8, "servers": 0.8, "whole": True},
}


def instance_of(options: dict[str, Any], seed: int) -> SlotsInstance:
    """Of the kind ``slots``."""
    made = generate("slots", seed, **options)
    assert isinstance(made, SlotsInstance)
    return made


def solved(method: Method, instance: SlotsInstance, time_s: float = 60) -> Result:
    """With a minute and a gap of 1e-4."""
    return method.solve(instance, Limits(time_s=time_s))


def objective(result: Result) -> float:
    """That every plan has."""
    assert result.objective is not None
    return result.objective


def rules() -> None:
    """Ratios to the optimum."""
    methods: list[Method] = [*map(SlotRule, RULES), PricedSlots()]
    print(f"{'kind':18}" + "".join(f"{method.name.removesuffix('-slots'):>13}" for method in methods) + "  proven  s")
    for kind, options in _KINDS.items():
        ratios: list[list[float]] = [[] for _ in methods]
        proven, seconds = 0, []
        for seed in _SEEDS:
            instance = instance_of(options, seed)
            reference = solved(opened(), instance)
            proven += reference.status == "optimal"
            seconds.append(reference.runtime_s)
            for found, method in zip(ratios, methods, strict=True):
                found.append(objective(solved(method, instance)) / objective(reference))
        cells = "".join(f"{mean(found):13.4f}" for found in ratios)
        print(f"{kind:18}{cells}  {proven:2}/{len(_SEEDS)}  {mean(seconds):.2f}")


_PARTS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)


def prices(picture: str | None = None) -> None:
    """One rack with SwitchML's slots, less and less of them."""
    head = f"{'slots':>6}{'total s':>12}{'communication s':>17}{'s for a slot':>14}"
    print(f"{head}{'optimum':>10}{'equal':>10}{'jobs at NIC':>13}")
    points = []
    for part in _PARTS:
        instance = instance_of({"jobs": 32, "racks": 1, "memory": part}, 3)
        arrays = SlotArrays(instance)
        found = relaxation(arrays)
        best, equal = (objective(solved(method, instance)) for method in (PricedSlots(), SlotRule("equal")))
        at_cap = int((found.rates > arrays.cap * (1 - 1e-6)).sum())
        slots = int(arrays.slots[0])
        points.append((slots, best - arrays.compute_total_s, equal - arrays.compute_total_s, found.prices[0]))
        print(
            f"{slots:6}{best:12.0f}{best - arrays.compute_total_s:17.1f}{found.prices[0]:14.4g}"
            f"{1.0:10.3f}{equal / best:10.3f}{at_cap:13}"
        )
    if picture:
        _draw(points, picture)


def _draw(points: Sequence[tuple[float, ...]], picture: str) -> None:
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
    figure.savefig(picture, dpi=150)


def growth() -> None:
    """Relaxations with links and memory in the way."""
    print(f"{'jobs':>6}{'racks':>7}{'rows':>6}{'ours s':>9}{'gap':>10}{'Clarabel s':>12}{'gap':>10}")
    for jobs, racks in ((16, 4), (64, 4), (256, 8), (1024, 16), (4096, 32), (4096, 128)):
        instance = instance_of({"jobs": jobs, "racks": racks, "spread": 0.8, "uplink_gbit_per_s": 100.0}, 1)
        arrays = SlotArrays(instance)
        began = time.perf_counter()
        ours = relaxation(arrays)
        ours_s = time.perf_counter() - began
        cost = float((arrays.cost / ours.rates).sum()) + arrays.compute_total_s
        gap = 1 - price_bound(arrays, ours.prices) / cost
        began = time.perf_counter()
        problem = SlotShares().problem(instance)
        Convex().solve(problem, Limits())
        conic_s = time.perf_counter() - began
        other = float((arrays.cost / SlotShares().read(problem, instance)).sum()) + arrays.compute_total_s
        other_gap = 1 - price_bound(arrays, SlotShares().prices(problem, instance)) / other
        rows = len(arrays.limits)
        print(f"{jobs:6}{racks:7}{rows:6}{ours_s:9.3f}{gap:10.1e}{conic_s:12.3f}{other_gap:10.1e}")


def whole() -> None:
    """Few slots, given out whole or not."""
    print(f"{'slots':>6}{'jobs':>6}{'whole / not':>13}{'gap of prices':>15}{'proven':>8}{'s':>7}")
    for part in (0.002, 0.005, 0.01, 0.05):
        ratios, gaps, proven, seconds = [], [], 0, []
        for seed in _SEEDS:
            options = {"jobs": 12, "racks": 4, "memory": part, "spread": 0.8}
            free, bound = (instance_of(options | {"whole": flag}, seed) for flag in (False, True))
            result = solved(opened(), bound)
            ratios.append(objective(result) / objective(solved(PricedSlots(), free)))
            gaps.append(solved(PricedSlots(), bound).gap or 0.0)
            proven += result.status == "optimal"
            seconds.append(result.runtime_s)
        slots = instance_of(options, 1).switches[0].slots
        print(f"{slots:6}{12:6}{mean(ratios):13.4f}{mean(gaps):15.1e}{proven:5}/{len(_SEEDS)}{mean(seconds):7.2f}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)} (default: all)")
    parser.add_argument("--picture", metavar="FILE", help="price of memory over memory")
    options = parser.parse_args()
    for table in options.tables or TABLES:
        print(f"\n{table}")
        {"rules": rules, "prices": lambda: prices(options.picture), "growth": growth, "whole": whole}[table]()


if __name__ == "__main__":
    main()
