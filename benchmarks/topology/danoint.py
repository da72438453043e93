"""How far danoint is solved after 60 s and 600 s: MIPLIB's own file beside our formulations, by HiGHS on one thread.

Two runs share a computer of two cores. The file is public and not part of the project; DDLOPT_SHARED_DATA says where
the folder with ``miplib/danoint.mps`` is, without which that line is left out.
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import highspy
from rich.console import Console
from rich.table import Table

import ddlopt
from ddlopt.models.topology.min_congestion import MinCongestion
from ddlopt.models.topology.min_volume import MinVolume
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact, build_model
from ddlopt.solvers.topology.link_exchange import LinkExchange

OPTIMUM = 65 + 2 / 3
FILE = (
    Path(os.environ.get("DDLOPT_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data")) / "miplib" / "danoint.mps"
)


def stock(seconds):
    """(time, incumbent, bound) while HiGHS solves MIPLIB's file as it is."""
    highs, trace = highspy.Highs(), []
    highs.silent()
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("time_limit", float(seconds))
    if highs.readModel(str(FILE)) != highspy.HighsStatus.kOk:
        raise SystemExit(f"{FILE} cannot be read")
    started = time.perf_counter()

    def note(event):
        trace.append((time.perf_counter() - started, event.data_out.mip_primal_bound, event.data_out.mip_dual_bound))

    highs.cbMipInterrupt += note
    highs.run()
    info = highs.getInfo()
    return [*trace, (seconds, info.objective_function_value, info.mip_dual_bound)]


def points_of(result, already_s=0.0):
    points = [(p.time_s, p.incumbent, p.bound) for p in result.trace]
    return [(already_s + t, *rest) for t, *rest in [*points, (result.runtime_s, result.objective, result.bound)]]


def exact(seconds, start=None, **options):
    """The same while HiGHS solves our formulation."""
    method = Exact("min-congestion", "topology", MinCongestion(**options))
    return method.solve(ddlopt.load("danoint"), Limits(time_s=seconds), start=start)


def ours(seconds):
    return points_of(exact(seconds))


def plain(seconds):
    """Without strengthenings."""
    return points_of(exact(seconds, server_cuts=False, hops="none"))


def in_steps(seconds):
    """A design by link exchange, then a bound without routes, then the formulation that is given both."""
    instance, started = ddlopt.load("danoint"), time.perf_counter()
    found = LinkExchange().solve(instance, Limits(time_s=seconds / 10))
    trace = points_of(found)
    used = time.perf_counter() - started
    outcome = Highs().solve(
        build_model("topology", MinVolume(), instance), Limits(time_s=max(1, seconds - used), gap=1e-6)
    )
    trace += [(used + p.time_s, None, MinVolume().objective_value(instance, p.bound)) for p in outcome.trace if p.bound]
    used = time.perf_counter() - started
    if used >= seconds:
        return trace
    known = {"proven_bytes": trace[-1][2], "achievable_bytes": found.objective, "unlaid_links": True}
    return [*trace, *points_of(exact(seconds - used, start=found.solution, **known), used)]


WAYS = {
    "MIPLIB's file": stock,
    "MinCongestion, plain": plain,
    "MinCongestion": ours,
    "LinkExchange, MinVolume, MinCongestion": in_steps,
}


def known_after(trace, seconds):
    """Best incumbent and bound up to a time."""
    points = [point for point in trace if point[0] <= seconds * 1.01]
    incumbents = [p[1] for p in points if p[1] is not None and p[1] < highspy.kHighsInf]
    bounds = [p[2] for p in points if p[2] is not None and p[2] > -highspy.kHighsInf]
    return min(incumbents, default=None), max(bounds, default=None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, nargs="+", default=[60, 600], help="when to look")
    parser.add_argument("--workers", type=int, default=2, help="solves at the same time")
    arguments = parser.parse_args()
    ways = {name: way for name, way in WAYS.items() if way is not stock or FILE.exists()}
    if len(ways) < len(WAYS):
        print(f"without MIPLIB's file: there is no {FILE}; set DDLOPT_SHARED_DATA to the folder that holds miplib/")
    with ProcessPoolExecutor(arguments.workers) as pool:
        runs = {name: pool.submit(way, max(arguments.seconds)) for name, way in ways.items()}
        table = Table(title=f"danoint (8 servers, degree 2), optimum {OPTIMUM:.4f}")
        table.add_column("model")
        for seconds in arguments.seconds:
            for figure in ("best", "bound", "gap"):
                table.add_column(f"{figure} {seconds:g} s", justify="right")
        table.add_column("optimum found after", justify="right")
        for name, run in runs.items():
            trace, cells = run.result(), []
            for seconds in arguments.seconds:
                best, bound = known_after(trace, seconds)
                gap = None if best is None or bound is None else (best - bound) / best
                cells += ["-" if best is None else f"{best:.4f}", "-" if bound is None else f"{bound:.4f}"]
                cells.append("-" if gap is None else f"{100 * gap:.2f} %")
            found = [t for t, best, _ in trace if best is not None and best < OPTIMUM * (1 + 1e-6)]
            table.add_row(name, *cells, f"{found[0]:.0f} s" if found else "-")
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
