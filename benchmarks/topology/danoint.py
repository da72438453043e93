"""How far danoint is solved after 60 s and 600 s: MIPLIB's own file beside our formulations, by HiGHS on one thread.

Two runs share a computer of two cores. The file is public and not part of the project; DDLOPT_SHARED_DATA says where
the folder with ``miplib/danoint.mps`` is, without which that line is left out.
"""

import time
from concurrent.futures import ProcessPoolExecutor

import ddlopt
from benchmarks.harness import Benchmark, Option, Skipped, data, shown
from benchmarks.topology.miplib import solve_file
from ddlopt.frontier.topology.formulations.min_volume import MinVolume
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact, build_model
from ddlopt.solvers.topology.link_exchange.link_exchange import LinkExchange

OPTIMUM = 65 + 2 / 3
FILE = "miplib/danoint.mps"


def stock(seconds):
    """(time, incumbent, bound) while HiGHS solves MIPLIB's file as it is."""
    trace = []
    trace.append(solve_file(data(FILE), seconds, trace.append))
    return trace


def points_of(result, already_s=0.0):
    points = [(p.time_s, p.incumbent, p.bound) for p in result.trace]
    return [(already_s + t, *rest) for t, *rest in [*points, (result.runtime_s, result.objective, result.bound)]]


def ours(seconds):
    """HiGHS on our formulation."""
    method = Exact("rings-and-routes", "topology", RingsAndRoutes())
    return points_of(method.solve(ddlopt.load("danoint"), Limits(time_s=seconds)))


def in_steps(seconds):
    """A design by link exchange, then a bound without routes."""
    instance, started = ddlopt.load("danoint"), time.perf_counter()
    found = LinkExchange().solve(instance, Limits(time_s=seconds / 10))
    trace = points_of(found)
    used = time.perf_counter() - started
    limits = Limits(time_s=max(1, seconds - used), gap=1e-6)
    outcome = Highs().solve(build_model("topology", MinVolume(), instance), limits)
    trace += [(used + p.time_s, None, MinVolume().objective_value(instance, p.bound)) for p in outcome.trace if p.bound]
    return trace


WAYS = {
    "MIPLIB's file": stock,
    "RingsAndRoutes": ours,
    "LinkExchange, MinVolume": in_steps,
}


def known_after(trace, seconds):
    """Best incumbent and bound up to a time."""
    points = [point for point in trace if point[0] <= seconds * 1.01]
    incumbents, bounds = ([p[k] for p in points if p[k] is not None] for k in (1, 2))
    return min(incumbents, default=None), max(bounds, default=None)


def over_time(asked):
    """8 servers, degree 2; the optimum is 65.6667."""
    try:
        ways = WAYS if data(FILE) else {}
    except Skipped as missing:
        yield f"Without MIPLIB's file: {missing}."
        ways = {name: way for name, way in WAYS.items() if way is not stock}
    with ProcessPoolExecutor(asked.workers) as pool:
        runs = {name: pool.submit(way, max(asked.seconds)) for name, way in ways.items()}
        for name, run in runs.items():
            trace, row = run.result(), {"model": name}
            for seconds in asked.seconds:
                best, bound = known_after(trace, seconds)
                gap = None if best is None or bound is None else f"{(best - bound) / best:.2%}"
                row |= {f"best {seconds:g} s": shown(best, ".4f"), f"bound {seconds:g} s": shown(bound, ".4f")}
                row[f"gap {seconds:g} s"] = gap
            reached = (t for t, best, _ in trace if best is not None and best <= OPTIMUM * (1 + 1e-6))
            after = min(reached, default=None)
            yield row | {"optimum found after, s": shown(after, ".0f")}


BENCH = Benchmark(
    over_time,
    seconds=Option([60.0, 600.0], "when to look", quick=[2.0, 8.0]),
    workers=Option(2, "solves at the same time"),
)
