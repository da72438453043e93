"""When to send: rules that see only the past against the optimum, and how the work grows.

Ratios are staleness over the optimum. ``rules`` needs scikit-learn.
"""

from statistics import mean
from time import process_time

import numpy as np

from benchmarks.harness import Benchmark, Option, clocked, solved
from ddlopt.instances.generators.gossip import generate
from ddlopt.models.gossip import ExchangeInstance
from ddlopt.models.gossip.exchange.bounds import exchange_bound
from ddlopt.models.gossip.exchange.formulations.exchange_path import ExchangePath
from ddlopt.solvers.contracts import Limits, Result
from ddlopt.solvers.exact import Exact, lp_relaxation
from ddlopt.solvers.gossip.exchange.exact import OptimalTimes
from ddlopt.solvers.gossip.exchange.rules import ExchangeRule

RULES = (
    *("threshold", "relative-threshold", "rate-threshold", "norm-threshold", "speed-rule", "sum-rule"),
    *("fixed-period", "random-times"),
)
EXACT = Limits(gap=0, time_s=300)
WHOLE = 10_000
"""Columns of a tensor: as many as it takes to keep all distances."""
DRAWN = {
    "smooth": {"noise": 0.0},
    "walk": {"noise": 5.0},
    "drift": {"noise": 1.0},
    "returning": {"noise": 20.0, "pull": 0.2},
}
RETURNING = {"noise": 30.0, "pull": 0.3}
LONGEST_TABLE = 3000
"""Steps: the table has the square of them."""


def made(kind: str, seed: int = 0, **options: object) -> ExchangeInstance:
    """An instance of kind ``exchange-<kind>``."""
    return generate(f"exchange-{kind}", seed, **options)


def changed(instance: ExchangeInstance, **fields: object) -> ExchangeInstance:
    """The same trajectory with another budget or norm."""
    kept = ("name", "points", "sends", "norm", "blocks", "rates")
    return ExchangeInstance(**{name: getattr(instance, name) for name in kept} | fields)


def optimum(instance: ExchangeInstance) -> Result:
    return OptimalTimes().solve(instance, EXACT)


def by_table(instance: ExchangeInstance) -> float:
    """The optimum by the table over steps and sends, with every segment; of a price by that over steps."""
    points, steps = instance.points, instance.size
    costs = np.full((steps, steps + 1), np.inf)
    for start in range(steps):
        apart = ((points[start:] - points[start]) ** 2).sum(axis=1)
        costs[start, start + 1 :] = np.cumsum(np.sqrt(apart) if instance.plain else apart)
    if instance.send_cost is not None:
        costs[1:] += instance.send_cost
        least = np.zeros(steps + 1)
        for end in range(1, steps + 1):
            least[end] = (least[:end] + costs[:end, end]).min()
        return float(least[-1])
    least = costs[0]
    for _ in range(min(instance.most_sends, steps - 1)):
        least = np.minimum(least, (least[:-1, np.newaxis] + costs).min(axis=0))
    return float(least[-1])


def rules(asked):
    """Staleness over the optimum, means over seeds, on recorded training with all parameters and on drawn walks."""
    seeds = range(asked.seeds)
    trajectories = {model: [made("digits", seed, model=model, axes=WHOLE) for seed in seeds] for model in asked.models}
    trajectories |= {name: [made("drift", seed, steps=600, **options) for seed in seeds]
                     for name, options in DRAWN.items()}  # fmt: skip
    for name, instances in trajectories.items():
        for norm in ("squared", "plain") if name in ("mlp", "walk") else ("squared",):
            for sends in (87, 55, 26, 13):
                own = [changed(each, sends=sends, norm=norm) for each in instances]
                best = [optimum(each) for each in own]
                row = {
                    "trajectory": name, "norm": norm, "sends": sends,
                    "optimum": f"{mean(each.objective for each in best):.5g}",
                    "gap": f"{max(each.gap or 0.0 for each in best):.1e}",
                }  # fmt: skip
                for rule in RULES:
                    found = [solved(ExchangeRule(rule), each, Limits(), seed) for seed, each in enumerate(own)]
                    ratios = [each.objective / (known.objective or 1.0)
                              for each, known in zip(found, best, strict=True) if each is not None]  # fmt: skip
                    row[rule] = f"{mean(ratios):.2f}" if ratios else None
                yield row


def reduced(asked):
    """What columns of a recorded trajectory keep: squared lengths of steps, optimum, threshold and fixed period."""
    for axes in asked.axes:
        instance = made("digits", 0, axes=axes)
        moved = float((np.diff(instance.points, axis=0) ** 2).sum())
        row = {"columns a tensor": axes, "in all": instance.points.shape[1], "moved": f"{moved:.3f}"}
        for sends in (87, 26):
            own = changed(instance, sends=sends)
            best = optimum(own).objective or 1.0
            row[f"optimum at {sends}"] = f"{best:.3f}"
            for rule in ("threshold", "fixed-period"):
                row[f"{rule} at {sends}"] = f"{(ExchangeRule(rule).solve(own, Limits()).objective or 0) / best:.2f}"
        yield row


def growth(asked):
    """Seconds against steps, sends and columns; and by the table over steps and sends."""
    cases = [
        *((steps, 8, 1.0, steps // 100) for steps in (1000, 3000, 10_000, 30_000, 100_000)),
        *((100_000, 8, 1.0, sends) for sends in (300, 3000, 10_000, 30_000)),
        *((30_000, width, 1.0, 300) for width in (2, 32, 128)),
        *((100_000, 8, 0.0, sends) for sends in (10, 1000, 30_000)),
        (30_000, 8, 10.0, 300),
    ]
    for steps, width, noise, sends in [case for case in cases if case[0] <= asked.steps]:
        instance = made("drift", steps=steps, width=width, noise=noise, sends=sends, decay=steps / 5)
        result, spent = clocked(OptimalTimes(), instance, EXACT)
        row = {
            "steps": steps, "columns": width, "noise": f"{noise:.0f}", "sends": sends, "s": spent.processor_s,
            "runs": f"{result.details['runs']:.0f}", "open segments": f"{result.details['open_segments']:.0f}",
            "gap": f"{result.gap or 0:.1e}", "table s": None,
        }  # fmt: skip
        if steps <= LONGEST_TABLE:
            began = process_time()
            other = by_table(instance)
            row["table s"] = process_time() - began
            assert abs(other / (result.objective or 1) - 1) < 1e-9
        yield row


def hull(asked):
    """How often no price gives the budget, of several budgets of 300 steps, and what closes the gap then."""
    cases = {
        "smooth": {"noise": 0.0},
        "drift": {"noise": 1.0},
        "walk": {"noise": 10.0},
        "returning": RETURNING,
        "around a point": {"noise": 1000.0, "pull": 1.0, "power": 0.0},
    }
    for name, options in cases.items():
        gaps, segments, last = [], [], 0.0
        for seed in range(2 * asked.seeds):
            instance = made("drift", seed, steps=300, width=4, **options)
            for sends in asked.budgets:
                result = optimum(changed(instance, sends=sends))
                last = max(last, result.gap or 0.0)
                if "segments" in result.details:
                    gaps.append(float(result.details["gap_by_price"]))
                    segments.append(float(result.details["segments"]))
        yield {
            "trajectory": name, "budgets": 2 * asked.seeds * len(asked.budgets), "no price gives": len(gaps),
            "largest gap by prices": f"{max(gaps, default=0.0):.1e}",
            "segments": f"{max(segments, default=0.0):.0f} of 45150", "last gap": f"{last:.1e}",
        }  # fmt: skip


def bounds(asked):
    """The bound by windows, which needs no solver, over the optimum at 2, 5, 10 and 20 % of the steps."""
    for name, options in {"smooth": {"noise": 0.0}, "drift": {}, "returning": RETURNING}.items():
        for norm in ("squared", "plain"):
            instance = made("drift", steps=2000, norm=norm, **options)
            row = {"trajectory": name, "norm": norm}
            for part in (50, 20, 10, 5):
                own = changed(instance, sends=instance.size // part)
                row[f"{100 // part} %"] = f"{exchange_bound(own) / (optimum(own).objective or 1.0):.3f}"
            yield row


def program(asked):
    """The integer program beside the search over prices."""
    for name, options in {"drift": {}, "returning": RETURNING}.items():
        for steps in asked.program_steps:
            instance = made("drift", 12, steps=steps, width=2, sends=steps // 25, **options)
            best = optimum(instance)
            other = Exact("exchange-path", "gossip", ExchangePath()).solve(instance, Limits(gap=1e-9, time_s=120))
            relaxed = lp_relaxation(ExchangePath(), instance).objective
            yield {
                "trajectory": name, "steps": steps, "sends": steps // 25, "optimum": f"{best.objective:.6g}",
                "search s": f"{best.runtime_s:.3f}", "program s": f"{other.runtime_s:.2f}",
                "gap": f"{other.gap or 0:.1e}", "relaxation / optimum": f"{relaxed / best.objective:.4f}",
            }  # fmt: skip


BENCH = Benchmark(
    rules, reduced, growth, hull, bounds, program,
    seeds=Option(5, quick=1),
    models=Option(["mlp", "logistic"], "of recorded training", quick=["logistic"]),
    axes=Option([4, 6, 8, 16, 32, WHOLE], "columns a tensor, of the second table", quick=[4]),
    budgets=Option(list(range(5, 105, 5)), "sends, of the fourth table", quick=[20, 60]),
    steps=Option(100_000, "most steps, of the third table", quick=1000),
    program_steps=Option([50, 100, 200, 300], "of the last table", quick=[50]),
)  # fmt: skip
