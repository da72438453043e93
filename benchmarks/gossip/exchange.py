"""When to send: rules that see only the past against the optimum, and how the work grows.

    python benchmarks/gossip_exchange.py [rules] [reduced] [growth] [hull] [bounds] [program]

Without a name: all tables. Ratios are staleness over the optimum. ``rules`` needs scikit-learn.
"""

import argparse
import statistics
import time

import numpy as np

from ddlopt.instances.generators.gossip import generate
from ddlopt.models.gossip import ExchangeInstance
from ddlopt.models.gossip.bounds_exchange import exchange_bound
from ddlopt.models.gossip.exchange_path import ExchangePath
from ddlopt.solvers.contracts import Limits, Result
from ddlopt.solvers.exact import Exact, lp_relaxation
from ddlopt.solvers.gossip.exchange_exact import DynamicProgram, OptimalTimes
from ddlopt.solvers.gossip.exchange_rules import ExchangeRule

RULES = (
    "threshold",
    "relative-threshold",
    "rate-threshold",
    "norm-threshold",
    "speed-rule",
    "sum-rule",
    "fixed-period",
    "random-times",
)
EXACT = Limits(gap=0, time_s=300)
SEEDS = 5
_WHOLE = 10_000
"""Columns of a tensor: as many as it takes to keep all distances."""


def made(kind: str, seed: int = 0, **options: object) -> ExchangeInstance:
    """An instance of kind ``exchange-<kind>``."""
    instance = generate(f"exchange-{kind}", seed, **options)
    assert isinstance(instance, ExchangeInstance)
    return instance


def with_budget(instance: ExchangeInstance, sends: int) -> ExchangeInstance:
    """The same trajectory with another budget."""
    return ExchangeInstance(
        name=instance.name,
        points=instance.points,
        sends=sends,
        norm=instance.norm,
        blocks=instance.blocks,
        rates=instance.rates,
    )


def solved(instance: ExchangeInstance, drift: bool = True) -> Result:
    """The optimum."""
    return OptimalTimes(drift).solve(instance, EXACT)


def ratios(instances: list[ExchangeInstance]) -> tuple[float, float, list[str]]:
    """Mean optimum, largest gap, and the mean ratio of each rule."""
    best = [solved(each) for each in instances]
    row = []
    for rule in RULES:
        method = ExchangeRule(rule)
        if method.refuses(instances[0]) is not None:
            row.append(f"{'–':>7}")
            continue
        found = [
            (method.solve(each, Limits(), seed).objective or 0.0) / (result.objective or 1.0)
            for seed, (each, result) in enumerate(zip(instances, best, strict=True))
        ]
        row.append(f"{statistics.mean(found):7.2f}")
    return statistics.mean(each.objective or 0.0 for each in best), max(each.gap or 0.0 for each in best), row


def _header(first: str) -> None:
    names = [rule.partition("-")[0][:7] for rule in RULES]
    print(f"{first} | {' '.join(f'{name:>7}' for name in names)}")


def rules() -> None:
    """Rules against the optimum, on recorded training with all parameters and on drawn walks."""
    print(f"\nrules: trajectory, norm, sends | optimum, gap | staleness over the optimum, means of {SEEDS} seeds")
    _header(f"{'':22} {'':22}")
    recorded = {model: [made("digits", seed, model=model, axes=_WHOLE) for seed in range(SEEDS)]
                for model in ("mlp", "logistic")}  # fmt: skip
    drawn = {
        "smooth": {"noise": 0.0},
        "walk": {"noise": 5.0},
        "drift": {"noise": 1.0},
        "returning": {"noise": 20.0, "pull": 0.2},
    }
    recorded |= {
        name: [made("drift", seed, steps=600, **options) for seed in range(SEEDS)] for name, options in drawn.items()
    }
    for name, instances in recorded.items():
        for norm in ("squared", "plain") if name in ("mlp", "walk") else ("squared",):
            for sends in (87, 55, 26, 13):
                own = [with_budget(each.model_copy(update={"norm": norm}), sends) for each in instances]
                optimum, gap, row = ratios(own)
                print(f"{name:9} {norm:7} {sends:3} | {optimum:12.5g} {gap:8.1e} | {' '.join(row)}", flush=True)


def reduced() -> None:
    """What columns of a recorded trajectory keep."""
    print(
        "\nreduced: columns a tensor, in all | squared lengths of steps | optimum at 87 sends, at 26 | threshold, fixed"
    )
    for axes in (4, 6, 8, 16, 32, _WHOLE):
        instance = made("digits", 0, axes=axes)
        moved = float((np.diff(instance.points, axis=0) ** 2).sum())
        row, after = [], []
        for sends in (87, 26):
            own = with_budget(instance, sends)
            best = solved(own).objective or 1.0
            row.append(f"{best:8.3f}")
            after += [f"{(ExchangeRule(rule).solve(own, Limits()).objective or 0) / best:5.2f}"
                      for rule in ("threshold", "fixed-period")]  # fmt: skip
        print(f"{axes:6} {instance.points.shape[1]:4} | {moved:8.3f} | {' '.join(row)} | {' '.join(after)}", flush=True)


def growth() -> None:
    """Seconds against steps, sends and columns; and without what makes it fast."""
    print("\ngrowth: steps, columns, noise, sends | seconds, runs, open segments, gap | table over steps and sends, s")
    solved(made("drift", steps=100))
    solved(made("drift", steps=100, noise=0.0))
    DynamicProgram().solve(made("drift", steps=100), EXACT)
    cases = [
        *((steps, 8, 1.0, steps // 100) for steps in (1000, 3000, 10_000, 30_000, 100_000)),
        *((100_000, 8, 1.0, sends) for sends in (300, 3000, 10_000, 30_000)),
        *((30_000, width, 1.0, 300) for width in (2, 32, 128)),
        *((100_000, 8, 0.0, sends) for sends in (10, 1000, 30_000)),
        (30_000, 8, 10.0, 300),
    ]
    for steps, width, noise, sends in cases:
        instance = made("drift", steps=steps, width=width, noise=noise, sends=sends, decay=steps / 5)
        began = time.perf_counter()
        result = solved(instance)
        took = time.perf_counter() - began
        table = "–"
        if steps <= DynamicProgram.most_steps:
            began = time.perf_counter()
            other = DynamicProgram().solve(instance, EXACT)
            table = f"{time.perf_counter() - began:.2f}"
            assert abs((other.objective or 0) / (result.objective or 1) - 1) < 1e-9
        print(
            f"{steps:6} {width:3} {noise:4.0f} {sends:5} | {took:6.2f} {result.details['runs']:3.0f} "
            f"{result.details['open_segments']:6.0f} {result.gap or 0:8.1e} | {table}",
            flush=True,
        )


def hull() -> None:
    """How often no price gives the budget, and what closes the gap then."""
    print(
        "\nhull: trajectory of 300 steps | of 200 budgets, no price gives | largest gap by prices | segments | last gap"
    )
    cases = {
        "smooth": {"noise": 0.0},
        "drift": {"noise": 1.0},
        "walk": {"noise": 10.0},
        "returning": {"noise": 30.0, "pull": 0.3},
        "around a point": {"noise": 1000.0, "pull": 1.0, "power": 0.0},
    }
    for name, options in cases.items():
        gaps, segments, last = [], [], 0.0
        for seed in range(10):
            instance = made("drift", seed, steps=300, width=4, **options)
            for sends in range(5, 105, 5):
                result = solved(with_budget(instance, sends))
                last = max(last, result.gap or 0.0)
                if "segments" in result.details:
                    gaps.append(float(result.details["gap_by_price"]))
                    segments.append(float(result.details["segments"]))
        largest, most = max(gaps, default=0.0), max(segments, default=0.0)
        print(f"{name:15} | {len(gaps):3} | {largest:8.1e} | {most:6.0f} of 45150 | {last:8.1e}", flush=True)


def bounds() -> None:
    """The bound by windows, which needs no solver."""
    print("\nbounds: trajectory | bound over optimum at 2, 5, 10 and 20 % of the steps")
    for name, options in {"smooth": {"noise": 0.0}, "drift": {}, "returning": {"noise": 30.0, "pull": 0.3}}.items():
        for norm in ("squared", "plain"):
            instance = made("drift", steps=2000, norm=norm, **options)
            row = []
            for part in (50, 20, 10, 5):
                own = with_budget(instance, instance.size // part)
                row.append(f"{exchange_bound(own) / (solved(own).objective or 1.0):.3f}")
            print(f"{name:9} {norm:7} | {' '.join(row)}", flush=True)


def program() -> None:
    """The integer program beside the search over prices."""
    print("\nprogram: trajectory, steps, sends | optimum | search s | program s, gap | relaxation over optimum")
    for name, options in {"drift": {}, "returning": {"noise": 30.0, "pull": 0.3}}.items():
        for steps in (50, 100, 200, 300):
            instance = made("drift", 12, steps=steps, width=2, sends=steps // 25, **options)
            best = solved(instance)
            other = Exact("exchange-path", "gossip", ExchangePath()).solve(instance, Limits(gap=1e-9, time_s=120))
            assert best.objective is not None
            relaxed = lp_relaxation(ExchangePath(), instance).objective
            print(
                f"{name:9} {steps:4} {steps // 25:3} | {best.objective:12.6g} | {best.runtime_s:6.3f} | "
                f"{other.runtime_s:6.2f} {other.gap or 0:8.1e} | {relaxed / best.objective:.4f}",
                flush=True,
            )


TABLES = {"rules": rules, "reduced": reduced, "growth": growth, "hull": hull, "bounds": bounds, "program": program}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    for name in parser.parse_args().tables or TABLES:
        TABLES[name]()


if __name__ == "__main__":
    main()
