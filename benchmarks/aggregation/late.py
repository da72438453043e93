"""Packets that are late or lost: goodput beside a simulation; what they change in optima, gaps and the order of rules.

Expected goodput is what slots give by expected holding times (``ddlopt.models.aggregation.slots.delivery``). It is held
against a simulation packet by packet (``ddlopt.analysis.simulation.slot_holds``).
"""

from statistics import mean
from typing import Any, get_args

import numpy as np
from scipy.stats import kendalltau

from benchmarks.harness import Benchmark, Option
from ddlopt.analysis.simulation.slot_holds import through_holds
from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import evaluate
from ddlopt.models.aggregation.slots.arrays import SlotArrays
from ddlopt.models.aggregation.slots.instance import SlotPlan, SlotsInstance
from ddlopt.solvers.aggregation.slots.exact import opened
from ddlopt.solvers.aggregation.slots.priced import PricedSlots
from ddlopt.solvers.aggregation.slots.rates import held
from ddlopt.solvers.aggregation.slots.rules import RuleName, SlotRule

JOBS: dict[str, Any] = {"jobs": 24, "racks": 4, "memory": 0.2, "servers": 0.5, "spread": 0.8, "whole": True}
FEW = {"memory": 0.01}
"""82 slots a switch, so that few packets fill them often enough."""
COUNTS = (1, 4, 16, 64, 256, 1024)
LATE = {"slow_chance": 0.01, "slow_us": 100.0}
LEVELS: dict[str, dict[str, float]] = {
    "on time": {},
    "1 in 100 late by 0.1 ms": LATE,
    "1 in 10 000 lost": {"loss": 1e-4},
    "1 in 1 000 lost": {"loss": 1e-3},
    "both": LATE | {"loss": 1e-3},
    "both, timeouts of 0.1 ms": LATE | {"loss": 1e-3, "timeout_us": 100.0},
    "1 in 100 lost": {"loss": 1e-2},
}
RULES: tuple[RuleName, ...] = get_args(RuleName)


def simulated(asked):
    """Simulated over expected goodput of jobs whose slots are in the way, and mean over expected holding times."""
    for level, options in LEVELS.items():
        ratios, measured, expected = {1: [], 2: []}, [], []
        for seed in range(1, asked.seeds + 1):
            instance = generate("slots", seed, **JOBS | FEW | options)
            plan = PricedSlots().solve(instance, asked.limits).solution
            for job, found in zip(instance.jobs, through_holds(instance, plan, asked.packets, seed), strict=True):
                if found is None:
                    continue
                ratios[min(2, len(job.switches))].append(found.goodput_bytes_per_s / found.expected_bytes_per_s)
                measured += found.holds_s
                expected += map(job.hold_s, range(len(job.switches)))
        yield {
            "packets": level,
            "jobs on one switch": len(ratios[1]), "goodput / expected": _mean(ratios[1]),
            "on several": len(ratios[2]), "their goodput / expected": _mean(ratios[2]),
            "least": f"{min(ratios[2]):.3f}", "most": f"{max(ratios[2]):.3f}",
            "holds / expected": f"{sum(measured) / sum(expected):.3f}",
        }  # fmt: skip


def _mean(values: list[float]) -> str:
    return f"{mean(values):.3f}" if values else "—"


def slots(asked):
    """The same by the number of slots: a job on one rack of eight workers, and one on two such racks and a switch."""
    late = {"delays_s": [1e-4], "chances": [0.01], "loss": 1e-3, "timeout_s": 1e-3}
    for count in COUNTS:
        row: dict[str, Any] = {"slots": count}
        for name, workers in (("one switch", [8]), ("three switches", [8, 8, 16])):
            job = {
                "name": name, "gradient_bytes": 1e8, "nic_bytes_per_s": 1e12, "rtt_s": 1e-5,
                "switches": [*range(len(workers))], "delivery": {"workers": workers} | late,
            }  # fmt: skip
            switches = [{"name": f"s{k}", "slots": 10**6, "payload_bytes": 256.0} for k in range(len(workers))]
            instance = SlotsInstance.from_data({"name": "one", "switches": switches, "jobs": [job]})
            holds = [instance.jobs[0].hold_s(k) for k in range(len(workers))]
            # As many at each switch as it needs for the same rate.
            given = [[max(1, round(count * hold_s / holds[0])) for hold_s in holds]]
            plan = SlotPlan(instance="one", slots=given, rates_bytes_per_s=[1.0])
            (found,) = through_holds(instance, plan, asked.packets + 400 * count, seed=1)
            row[name] = f"{found.goodput_bytes_per_s / found.expected_bytes_per_s:.3f}"
        yield row


def changes(asked):
    """The same jobs with packets that are late or lost: optima, and ratios of plans to them, means over seeds."""
    yield from changed(asked, "packets", LEVELS)


def changed(asked, extension, levels):
    """What options of the generator change, beside the first level: also what its best slots are then off by."""
    before: dict[int, tuple[Any, list[float]]] = {}
    for level, options in levels.items():
        rows = []
        for seed in range(1, asked.seeds + 1):
            instance = generate("slots", seed, **JOBS | options)
            best = opened().solve(instance, asked.limits)
            found = [SlotRule(rule).solve(instance, asked.limits).objective / best.objective for rule in RULES]
            first, order = before.setdefault(seed, (best, found))
            rows.append(
                {
                    "optimum": best.objective / first.objective,
                    "fall back": sum(rate is None for rate in best.solution.rates_bytes_per_s),
                    **dict(zip(RULES, found, strict=True)),
                    "slot-prices": PricedSlots().solve(instance, asked.limits).objective / best.objective,
                    "planned without": unaware(first.solution, instance) / best.objective,
                    "tau": kendalltau(order, found).statistic,
                    "proven": best.status == "optimal",
                }
            )
        shown = {name: f"{mean(row[name] for row in rows):.3f}" for name in rows[0] if name != "proven"}
        ranks = sorted(RULES, key=lambda rule: mean(row[rule] for row in rows))
        proven = f"{sum(row['proven'] for row in rows)}/{asked.seeds}"
        yield {extension: level} | shown | {"proven": proven, "best rules": ", ".join(ranks[:3])}


def unaware(plan: SlotPlan, instance: SlotsInstance) -> float:
    """Objective of the slots of a plan for another instance, at the rates that they then have."""
    arrays = SlotArrays(instance)
    slots = arrays.given(plan.slots)
    wanted = np.array([rate or 0.0 for rate in plan.rates_bytes_per_s])
    rates = np.minimum(held(arrays, slots), wanted)
    aggregated = rates > arrays.fallback
    checked = evaluate(instance, arrays.plan(np.where(aggregated, rates, 1.0), aggregated, slots))
    assert checked.feasible, checked.violations
    return float(checked.objective)


BENCH = Benchmark(
    simulated, slots, changes,
    pages=False,
    time_limit=Option(20.0, quick=2.0),
    gap=Option(1e-3),
    seeds=Option(10, quick=1),
    packets=Option(40_000, "of each job that is simulated", quick=4000),
)  # fmt: skip
