"""What a start is worth to a solver: each model solved without one and with a heuristic's, in pairs side by side.

Where all are proven optimal within the limit: the ratio of the times, the heuristic's own counted; above 1, the start
saved time. Otherwise the gaps that are open at the limit. "Its gap" is the start's distance from the best known.
"""

from statistics import geometric_mean

import ddlopt
from benchmarks.harness import Benchmark, Option, ratio
from ddlopt import instances
from ddlopt.models.errors import DdloptError
from ddlopt.solvers.backends import backend
from ddlopt.solvers.catalogue import formulation_named
from ddlopt.solvers.contracts import Limits, Result
from ddlopt.solvers.exact import Exact

PAIRS = (
    ("topology/bert-n12-d4", "rings-and-routes", "link-exchange"),
    ("scheduling/gangs-contention-j6-g8", "one-piece", "gang-search"),
    ("scheduling/gangs-j38-g32", "rigid-gangs", "gang-search"),
    ("scheduling/slot-tight", "counted-slot", "gadget"),
    ("scheduling/elastic-j10-t10-g8", "time-indexed", "lp-guided"),
    ("compression/levels-gpt2-qsgd", "overlap-timeline", "secopa"),
    ("codesign/tiny-drawn-n5-d2", "joint-milp", "alternating"),
    ("codesign/tiny-drawn-n5-d2", "joint-milp", "alternating:strategies=exact,topology=exact"),
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
    """Results without a start and with it, by seed; which comes first alternates."""
    method = Exact(formulation, instance.family, formulation_named(formulation, instance), backend(solver))
    pairs = []
    for seed in range(SEEDS):
        order = (None, start) if seed % 2 == 0 else (start, None)
        found = [method.solve(instance, Limits(limit), seed, start=each) for each in order]
        pairs.append(tuple(found if seed % 2 == 0 else reversed(found)))
        if sum(result.runtime_s for result in found) > PATIENCE_S:
            break
    return pairs


def starts(asked):
    """A row for each model and solver."""
    ratios: dict[str, list[float]] = {}
    for name, formulation, heuristic in PAIRS[: asked.most]:
        instance = ddlopt.load(name)
        best = instances.best(name)
        known = None if best is None else float(ddlopt.check(instance, best).objective)
        ddlopt.solve(instance, heuristic, time_limit=HEURISTIC_S)  # compiled kernels are loaded once
        found = ddlopt.solve(instance, heuristic, time_limit=HEURISTIC_S)
        distance = None if known is None else f"{abs(found.objective - known) / abs(known):.1%}"
        for solver in asked.solvers:
            row = {"instance": instance.name, "formulation": formulation, "start": heuristic, "its gap": distance,
                   "its time": f"{found.runtime_s:.2f} s", "solver": solver}  # fmt: skip
            try:
                pairs = pairs_of(instance, formulation, solver, asked.time_limit, found.solution)
            except DdloptError as problem:
                yield row | {"without": str(problem), "with": "", "ratio": ""}
                continue
            cold, warm = map(list, zip(*pairs, strict=True))
            row |= {"without": text(cold), "with": text(warm), "ratio": None}
            if all(map(proven, cold + warm)):
                own = ratio((one.runtime_s for one in cold), (found.runtime_s + other.runtime_s for other in warm))
                ratios.setdefault(solver, []).append(own)
                row["ratio"] = f"{own:.2f}"
            yield row
    for solver, each in ratios.items():
        yield f"{solver}: geometric mean of {len(each)} ratios {geometric_mean(each):.2f}"


BENCH = Benchmark(
    starts,
    time_limit=Option(8.0, quick=1.0),
    solvers=Option(["highs", "scip", "cbc", "gurobi"], quick=["highs"]),
    most=Option(len(PAIRS), "how many of the models", quick=2),
)
