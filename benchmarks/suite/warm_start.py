"""What a start is worth to a solver: each model solved without one and with a heuristic's, in pairs side by side.

    python benchmarks/warm_start.py [--time-limit 8] [--solvers highs,scip,cbc,gurobi]

Where all are proven optimal within the limit: the ratio of the times, the heuristic's own counted; above 1, the start
saved time. Otherwise the gaps that are open at the limit. "Its gap" is the start's distance from the best known.
"""

import argparse
import math

import ddlopt
from ddlopt import instances
from ddlopt.models.errors import DdloptError
from ddlopt.solvers.backends import backend
from ddlopt.solvers.catalogue import formulation_named
from ddlopt.solvers.contracts import Limits, Result
from ddlopt.solvers.exact import Exact

PAIRS = (
    ("topology/all-to-all-n6-d2", "min-congestion", "ocs-greedy"),
    ("topology/all-to-all-n6-d2", "min-congestion", "link-exchange"),
    ("topology/bert-n12-d4", "rings-and-routes", "link-exchange"),
    ("scheduling/gangs-contention-j6-g8", "rigid-gangs", "gang-search"),
    ("scheduling/gangs-j38-g32", "rigid-gangs", "gang-search"),
    ("scheduling/slot-tight", "slot-embedding", "gadget"),
    ("scheduling/elastic-j10-t10-g8", "time-indexed", "lp-guided"),
    ("compression/levels-gpt2-qsgd", "overlap-timeline", "priced-choices"),
    ("codesign/tiny-drawn-n5-d2", "joint-milp", "alternating"),
    ("codesign/tiny-drawn-n5-d2", "joint-milp", "alternating-exact"),
)
"""Instance, formulation, heuristic."""
HEURISTIC_S = 1.0
SEEDS = 3
PATIENCE_S = 4.0
"""A pair that takes longer is not repeated with other seeds."""


def gap(result: Result) -> float | None:
    return result.gap if result.scope is None else result.scope_gap


def proven(result: Result) -> bool:
    known = gap(result)
    return known is not None and known <= 1e-4


def text(results: list[Result]) -> str:
    """Mean time if all are proven, else the largest gap."""
    if all(map(proven, results)):
        return f"{sum(result.runtime_s for result in results) / len(results):.2f} s"
    gaps = [gap(result) for result in results]
    return "no bound or no solution" if None in gaps else f"{100 * max(gaps):.2f} % open"


def pairs_of(instance, formulation, solver, limit, start) -> list[tuple[Result, Result]]:
    method = Exact(formulation, instance.family, formulation_named(formulation, instance.family), backend(solver))
    pairs = []
    for seed in range(SEEDS):
        pairs.append(tuple(method.solve(instance, Limits(limit), seed, start=each) for each in (None, start)))
        if sum(result.runtime_s for result in pairs[-1]) > PATIENCE_S:
            break
    return pairs


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--time-limit", type=float, default=8.0)
    parser.add_argument("--solvers", default="highs,scip,cbc,gurobi")
    options = parser.parse_args()
    print("| instance | formulation | start | its gap | its time | solver | without | with | ratio |")
    print("|---|---|---|---:|---:|---|---:|---:|---:|")
    ratios: dict[str, list[float]] = {}
    for name, formulation, heuristic in PAIRS:
        instance = ddlopt.load(name)
        best = instances.best(name)
        known = None if best is None else float(ddlopt.check(instance, best).objective)
        ddlopt.solve(instance, heuristic, time_limit=HEURISTIC_S)  # compiled kernels are loaded once
        found = ddlopt.solve(instance, heuristic, time_limit=HEURISTIC_S)
        distance = "–" if known is None else f"{100 * abs(found.objective - known) / abs(known):.1f} %"
        for solver in options.solvers.split(","):
            row = f"| {instance.name} | {formulation} | {heuristic} | {distance} | {found.runtime_s:.2f} s | {solver} |"
            try:
                cold, warm = map(
                    list, zip(*pairs_of(instance, formulation, solver, options.time_limit, found.solution), strict=True)
                )
            except DdloptError as problem:
                print(f"{row} {problem} | | |", flush=True)
                continue
            ratio = "–"
            if all(map(proven, cold + warm)):
                each = [
                    one.runtime_s / (found.runtime_s + other.runtime_s) for one, other in zip(cold, warm, strict=True)
                ]
                ratios.setdefault(solver, []).append(mean(each))
                ratio = f"{mean(each):.2f}"
            print(f"{row} {text(cold)} | {text(warm)} | {ratio} |", flush=True)
    for solver, each in ratios.items():
        print(f"{solver}: geometric mean of {len(each)} ratios {mean(each):.2f}")


if __name__ == "__main__":
    main()
