"""MIPLIB's dano3mip (24 servers, degree 2): HiGHS on MIPLIB's own file, and beside it our design under our bounds.

Two processes at the same time, one thread each, both for as long; with ``--alone`` only ours. It spends an eighth of
the time on link exchange from different seeds; then come the bounds: combinatorial, branch and bound, and MinVolume
with whole links for what is left, which is most. The file is public and not part of the project; DDLOPT_SHARED_DATA
says where the folder with ``miplib/dano3mip.mps.gz`` is.

The file and the instance are not the same problem: rows TOT of the file ask of each source for more bytes times hops
than some designs need. Printed are its bound by linear programming with and without them, and which of them our
design breaks.
"""

import multiprocessing
import queue
import time

import highspy

from benchmarks.harness import Benchmark, Option, data, shown
from benchmarks.topology.miplib import solve_file
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.frontier.topology.branch_and_bound.branch_and_bound import BranchAndBound
from ddlopt.frontier.topology.formulations.min_volume import MinVolume
from ddlopt.instances.readers.miplib import read_miplib
from ddlopt.models.topology.formulations.rows.throughput import unit_bytes
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.backends.silent_highs import SilentHighs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.topology.link_exchange.link_exchange import LinkExchange

FILE = "miplib/dano3mip.mps.gz"
DESIGN_SHARE, BRANCHING_SHARE = 0.125, 0.05
"""Of all the time, and of what is then left: branching over neighbour sets does not get above the combinatorial bound,
so that nearly all is for whole links."""


def stock(seconds, tell):
    """Tells (what, seconds, best, bound) while HiGHS solves MIPLIB's file as it is."""
    last = -seconds

    def note(point):
        nonlocal last
        if point[0] - last >= seconds / 12:
            last = point[0]
            tell(("MIPLIB's file", *point))

    tell(("MIPLIB's file, after all", *solve_file(data(FILE), seconds, note)))


def ours(seconds, tell):
    """The same by our methods, one after the other."""
    instance, started = read_miplib(data(FILE)), time.perf_counter()

    def used():
        return time.perf_counter() - started

    tell(("combinatorial bounds", used(), None, max(congestion_bounds(instance).values())))
    best, seed = None, 0
    while used() < DESIGN_SHARE * seconds:
        found = LinkExchange().solve(instance, Limits(time_s=DESIGN_SHARE * seconds - used()), seed=seed)
        seed += 1
        if found.objective is not None and (best is None or found.objective < best.objective):
            best = found
            tell((f"link-exchange, seed {seed - 1}", used(), best.objective, found.bound))
    (with_them, without), sides = of_the_file()
    print(f"MIPLIB's file by linear programming: {with_them:.4f}, without rows TOT {without:.4f}", flush=True)
    if best is not None:
        broken = broken_rows(instance, best.solution, sides)
        print(f"our design ({best.objective:.4f}) breaks rows TOT of the sources {broken}", flush=True)
    limits = Limits(time_s=BRANCHING_SHARE * max(1.0, seconds - used()))
    found = BranchAndBound().solve(instance, limits, start=None if best is None else best.solution)
    tell((found.method, used(), found.objective, found.bound))
    model = build_model("topology", MinVolume(), instance)
    outcome = Highs({"mip_lp_solver": "ipm"}).solve(model, Limits(time_s=max(1.0, seconds - used()), gap=1e-6))
    bound = None if outcome.bound is None else outcome.bound * unit_bytes(instance)
    tell(("MinVolume, whole links", used(), None, bound))


def of_the_file():
    """Bound of the file by linear programming with rows TOT and without, and their right-hand sides by source."""
    highs = SilentHighs()
    highs.readModel(str(data(FILE)))
    for name, value in {"solve_relaxation": True, "solver": "ipm", "run_crossover": "off", "threads": 1}.items():
        highs.setOptionValue(name, value)
    model, bounds = highs.getLp(), []
    rows = {name: k for k, name in enumerate(model.row_names_) if name.startswith("TOT")}
    sides = {name: model.row_lower_[k] for name, k in rows.items()}
    for lift in (False, True):
        for k in rows.values() if lift else ():
            highs.changeRowBounds(k, -highspy.kHighsInf, highspy.kHighsInf)
        highs.run()
        bounds.append(highs.getInfo().objective_function_value)
    return bounds, [sides[name] for name in sorted(sides)]


def broken_rows(instance, design, sides):
    """Numbers of the sources for which the design sends too few bytes times hops, those of one hop counted twice."""
    broken = []
    for source, side in enumerate(sides):
        next_to = {j for i, j, _ in design.links if i == source}
        volume = sum(instance.traffic_bytes[source, j] for j in next_to)
        for route in design.routes:
            if route.source == source:
                hops = sum(f * (len(path) - 1) for f, path in zip(route.fractions, route.paths, strict=True))
                volume += hops * instance.traffic_bytes[source, route.target]
        if volume < side * (1 - 1e-6):
            broken.append(source)
    return broken


def told(way, seconds, rows):
    """One of the two, which tells with the processor seconds that it has used so far."""
    way(seconds, lambda row: rows.put((way.__name__, *row, time.process_time())))


def side_by_side(asked):
    """Both for as long, on one thread each."""
    data(FILE)
    rows, found = multiprocessing.Queue(), []
    ways = (ours,) if asked.alone else (stock, ours)
    workers = [multiprocessing.Process(target=told, args=(way, asked.time_limit, rows)) for way in ways]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers) or not rows.empty():
        try:
            found.append(rows.get(timeout=1))
        except queue.Empty:
            continue
        _, what, used, best, bound, processor_s = found[-1]
        figures = {"best": shown(best, ".4f"), "bound": shown(bound, ".4f")}
        yield {"what": what, "s": f"{used:.0f}", "processor s": f"{processor_s:.0f}", **figures}
    for way in ways:
        name = "HiGHS on MIPLIB's file" if way is stock else "ours"
        own = [row for row in found if row[0] == way.__name__]
        best = min((row[3] for row in own if row[3] is not None), default=None)
        bound = max((row[4] for row in own if row[4] is not None), default=None)
        gap = None if best is None or bound is None else (best - bound) / best
        figures = {"best": shown(best, ".4f"), "bound": shown(bound, ".4f"), "gap": shown(gap, ".2%")}
        yield {"in the end": name, **figures, "processor s": f"{max(row[5] for row in own):.0f}"}


BENCH = Benchmark(
    side_by_side,
    time_limit=Option(3600.0, "seconds for each of the two", quick=20.0),
    alone=Option(False, "ours only"),
)
