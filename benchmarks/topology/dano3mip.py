"""MIPLIB's dano3mip (24 servers, degree 2): HiGHS on MIPLIB's own file, and beside it our design under our bounds.

Two processes at the same time, one thread each, both for as long. Ours spends a quarter of the time on link exchange
from different seeds; then come the bounds: combinatorial, the relaxation of MinVolume by interior points, branch and
bound, and MinVolume with whole links for what is left. The file is public and not part of the project;
DDLOPT_SHARED_DATA says where the folder with ``miplib/dano3mip.mps.gz`` is.

The file and the instance are not the same problem: rows TOT of the file ask of each source for more bytes times hops
than some designs need. Printed are its bound by linear programming with and without them, and which of them our
design breaks.
"""

import argparse
import multiprocessing
import os
import time
from pathlib import Path

import highspy
from rich.console import Console
from rich.table import Table

from ddlopt.instances.readers.miplib import read_miplib
from ddlopt.models.errors import SolverError
from ddlopt.models.topology.bounds import congestion_bounds
from ddlopt.models.topology.min_congestion import unit_bytes
from ddlopt.models.topology.min_volume import MinVolume
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.topology.branch_and_bound import BranchAndBound
from ddlopt.solvers.topology.link_exchange import LinkExchange
from ddlopt.solvers.topology.root_relaxation import RootRelaxation

FILE = (
    Path(os.environ.get("DDLOPT_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
    / "miplib"
    / "dano3mip.mps.gz"
)
DESIGN_SHARE = 0.25
BRANCHING_SHARE = 0.3


def stock(seconds, tell):
    """Rows (what, seconds, best, bound) while HiGHS solves MIPLIB's file as it is."""
    highs, started, last = highspy.Highs(), time.perf_counter(), -1e9
    highs.silent()
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("time_limit", float(seconds))
    if highs.readModel(str(FILE)) != highspy.HighsStatus.kOk:
        raise SystemExit(f"{FILE} cannot be read")

    def note(event):
        nonlocal last
        now = time.perf_counter() - started
        if now - last >= seconds / 12:
            last = now
            tell(("MIPLIB's file", now, finite(event.data_out.mip_primal_bound), finite(event.data_out.mip_dual_bound)))

    highs.cbMipInterrupt += note
    highs.run()
    info = highs.getInfo()
    used = time.perf_counter() - started
    tell(("MIPLIB's file, after all", used, finite(info.objective_function_value), finite(info.mip_dual_bound)))


def of_the_file():
    """Bound of the file by linear programming with rows TOT and without, and their right-hand sides by source."""
    highs = highspy.Highs()
    highs.silent()
    highs.readModel(str(FILE))
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


def finite(value):
    return value if abs(value) < highspy.kHighsInf else None


def ours(seconds, tell):
    """The same by our methods, one after the other."""
    instance, started = read_miplib(FILE), time.perf_counter()

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
    relaxed(instance, 0.3 * (seconds - used()), used, tell)
    branching(instance, BRANCHING_SHARE * (seconds - used()), best, used, tell)
    whole(instance, max(1.0, seconds - used()), used, tell)


def relaxed(instance, seconds, used, tell):
    """MinVolume with links in parts, by interior points: the simplex method takes many times as long."""
    options = {"solver": "ipm", "run_crossover": "off", "threads": 1, "time_limit": float(seconds)}
    try:
        bound = RootRelaxation(instance, options=options).solve()
    except SolverError:
        bound = None
    tell(("MinVolume, links in parts", used(), None, bound))


def branching(instance, seconds, best, used, tell):
    """Branch and bound from our design."""
    design = None if best is None else best.solution
    found = BranchAndBound().solve(instance, Limits(time_s=seconds), start=design)
    tell((found.method, used(), found.objective, found.bound))


def whole(instance, seconds, used, tell):
    """MinVolume as it is."""
    model = build_model("topology", MinVolume(), instance)
    outcome = Highs({"mip_lp_solver": "ipm"}).solve(model, Limits(time_s=seconds, gap=1e-6))
    bound = None if outcome.bound is None else outcome.bound * unit_bytes(instance)
    tell(("MinVolume, whole links", used(), None, bound))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600, help="for each of the two")
    seconds = parser.parse_args().seconds
    if not FILE.exists():
        raise SystemExit(f"there is no {FILE}; set DDLOPT_SHARED_DATA to the folder that holds miplib/")
    queue = multiprocessing.Queue()

    def tell(row):
        queue.put((*row, time.process_time()))

    workers = [multiprocessing.Process(target=way, args=(seconds, tell)) for way in (stock, ours)]
    for worker in workers:
        worker.start()
    rows = []
    while any(worker.is_alive() for worker in workers) or not queue.empty():
        try:
            rows.append(queue.get(timeout=1))
        except Exception:  # nothing new within a second
            continue
        what, used, best, bound, processor = rows[-1]
        print(f"{what}: {used:.0f} s ({processor:.0f} s of a processor), best {best}, bound {bound}", flush=True)
    table = Table(title=f"dano3mip (24 servers, degree 2), {seconds:g} s on one thread each")
    for column in ("", "best", "bound", "gap", "processor time"):
        table.add_column(column, justify="right" if column else "left")
    for name, of in (("HiGHS on MIPLIB's file", True), ("ours", False)):
        mine = [row for row in rows if row[0].startswith("MIPLIB") == of]
        best = min((row[2] for row in mine if row[2] is not None), default=None)
        bound = max((row[3] for row in mine if row[3] is not None), default=None)
        gap = None if best is None or bound is None else (best - bound) / best
        shown = ["-" if value is None else f"{value:.4f}" for value in (best, bound)]
        used = max(row[4] for row in mine)
        table.add_row(name, *shown, "-" if gap is None else f"{100 * gap:.2f} %", f"{used:.0f} s")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
