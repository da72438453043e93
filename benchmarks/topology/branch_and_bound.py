"""Branch and bound over neighbour sets: danoint with its certificate, random traffic on 8 servers, and growth with n.

``danoint`` is shown beside HiGHS, and Gurobi where it is importable (its free licence is limited in size), on one
thread and for as many seconds. Kernels are compiled before anything is measured. Seconds are wall-clock; where other
work runs beside, compare the nodes.
"""

import argparse
import time

from rich.console import Console
from rich.table import Table

import ddlopt
from ddlopt.instances.generators.topology import generate
from ddlopt.models.errors import SolverError
from ddlopt.models.topology.certificate import check_certificate
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.topology.branch_and_bound import BranchAndBound

ALL_TO_ALL = ("n6-d2", "n7-d2", "n8-d2", "n9-d2", "n10-d2", "n11-d2", "n12-d2")
JOBS = ("bert", "candle", "dlrm", "ncf", "resnet50", "vgg16")


def table(title, *columns):
    made = Table(title=title)
    for number, column in enumerate(columns):
        made.add_column(column, justify="right" if number else "left")
    return made


def figures(result):
    gap = "" if result.gap is None else f"{result.gap:.2%}"
    return [f"{result.objective:.6g}", f"{result.bound:.6g}", gap, f"{result.runtime_s:.1f}"]


def effort(result):
    return [f"{result.details[name]:.0f}" for name in ("nodes", "images", "routed")]


def compile_kernels():
    for name in ("tiny-n4-d2", "tiny-n4-d2-duplex", "all-to-all-n6-d2"):
        check_certificate(ddlopt.load(name), BranchAndBound(opening=0.01).certified(ddlopt.load(name), Limits())[1])


def proven(instance, seconds, threads):
    """The result of one instance with its certificate checked, as a row."""
    result, certificate = BranchAndBound().certified(instance, Limits(time_s=seconds, threads=threads))
    began = time.perf_counter()
    check_certificate(instance, certificate)
    checking_s = time.perf_counter() - began
    size = f"{certificate.size_bytes / 1e6:.1f}"
    return [*figures(result), *effort(result), size, f"{certificate.bound_bytes:.6g}", f"{checking_s:.1f}"]


def record(seconds, threads):
    """danoint: ours with certificate, and what general solvers reach."""
    instance = ddlopt.load("danoint")
    shown = table("danoint", "method", "best", "bound", "gap", "seconds")
    row = proven(instance, seconds, threads)
    shown.add_row(f"branch-and-bound, {threads} threads", *row[:4])
    for solver in ("highs", "gurobi"):
        try:
            other = method("min-congestion", "topology", solver).solve(instance, Limits(time_s=seconds))
        except SolverError as missing:
            shown.add_row(f"min-congestion, {solver}", str(missing)[:50])
            continue
        shown.add_row(f"min-congestion, {solver}, 1 thread", *figures(other))
    Console(width=120).print(shown)
    print(f"nodes {row[4]}, certificate {row[7]} MB for the bound {row[8]}, checked in {row[9]} s")


def random_traffic(degrees, seeds, seconds, threads):
    shown = table(
        "8 servers, gamma-distributed traffic", "degree, seed", "best", "bound", "gap", "seconds", "nodes", "routed"
    )
    for degree in degrees:
        for seed in range(seeds):
            instance = generate("random", servers=8, degree=degree, seed=seed)
            result = BranchAndBound().solve(instance, Limits(time_s=seconds, threads=threads))
            shown.add_row(f"{degree}, {seed}", *figures(result), effort(result)[0], effort(result)[2])
    Console(width=120).print(shown)


HEADINGS = "best", "bound", "gap", "seconds", "nodes", "images", "routed", "MB", "certified", "check s"


def growth(seconds, threads):
    shown = table("all-to-all", "n, d", *HEADINGS)
    for name in ALL_TO_ALL:
        shown.add_row(name, *proven(ddlopt.load(f"all-to-all-{name}"), seconds, threads))
    Console(width=140).print(shown)
    shown = table("gamma-distributed traffic, seed 0", "n, d", *HEADINGS)
    for n in (6, 7, 8, 9, 10):
        instance = generate("random", servers=n, degree=2, seed=0)
        shown.add_row(f"n{n}-d2", *proven(instance, seconds, threads))
    Console(width=140).print(shown)


def jobs(seconds, threads):
    shown = table("training jobs on 12 servers, 4 ports", "job", "best", "bound", "gap", "seconds", "nodes", "by bound")
    for job in JOBS:
        for optics in ("", "-duplex"):
            instance = ddlopt.load(f"{job}-n12-d4{optics}")
            limits = Limits(time_s=seconds, threads=threads, gap=1e-6)
            result = BranchAndBound(opening=1.0).solve(instance, limits)
            before = "yes" if result.details["nodes"] == 0 else "no"
            shown.add_row(f"{job}{optics}", *figures(result), effort(result)[0], before)
    Console(width=120).print(shown)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each solve")
    parser.add_argument("--threads", type=int, default=2, help="of the branch and bound")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--degrees", type=int, nargs="+", default=[2, 3])
    parts = {"danoint": record, "growth": growth, "jobs": jobs}
    parser.add_argument("--parts", nargs="+", choices=[*parts, "random"], default=[*parts, "random"])
    options = parser.parse_args()
    compile_kernels()
    for name, part in parts.items():
        if name in options.parts:
            part(options.seconds, options.threads)
    if "random" in options.parts:
        random_traffic(options.degrees, options.seeds, options.seconds, options.threads)


if __name__ == "__main__":
    main()
