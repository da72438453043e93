"""Branch and bound over neighbour sets: danoint with its certificate, growth with n, training jobs, random traffic.

``danoint`` is shown beside HiGHS, and Gurobi where it is importable (its free licence is limited in size), on one
thread and for as many seconds. Seconds are wall-clock; where other work runs beside, compare the nodes.
"""

import ddlopt
from benchmarks.harness import Benchmark, Option, timed
from ddlopt.certificates.topology import check_certificate
from ddlopt.frontier.topology.branch_and_bound.branch_and_bound import BranchAndBound
from ddlopt.instances.generators.topology import generate
from ddlopt.models.errors import SolverError
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Result, compiled

JOBS = ("bert", "candle", "dlrm", "ncf", "resnet50", "vgg16")


def figures(result: Result) -> dict[str, str | None]:
    return {
        "best": f"{result.objective:.6g}",
        "bound": f"{result.bound:.6g}",
        "gap": None if result.gap is None else f"{result.gap:.2%}",
        "seconds": f"{result.runtime_s:.1f}",
    }


def effort(result: Result, *names: str) -> dict[str, str]:
    return {name: f"{result.details[name]:.0f}" for name in names}


def proven(instance, asked) -> dict[str, str | None]:
    """What branch and bound proves of an instance, and its certificate, checked."""
    compiled(BranchAndBound(), instance)
    result, certificate = BranchAndBound().certified(instance, asked.limits)
    _, checking = timed(check_certificate, instance, certificate)
    size = {"MB": f"{certificate.size_bytes / 1e6:.1f}", "certified": f"{certificate.bound_bytes:.6g}"}
    return {**figures(result), **effort(result, "nodes", "images", "routed"), **size, "check s": checking.wall_s}


def danoint(asked):
    """Ours with its certificate, and what general solvers reach."""
    instance = ddlopt.load("danoint")
    own = proven(instance, asked)
    headings = ("best", "bound", "gap", "seconds")
    yield {"method": f"branch-and-bound, {asked.threads} threads", **{name: own[name] for name in headings}}
    for solver in asked.solvers:
        row = {"method": f"rings-and-routes, {solver}, 1 thread"}
        try:
            yield row | figures(
                method("rings-and-routes", "topology", solver).solve(instance, Limits(asked.time_limit))
            )
        except SolverError as missing:
            yield row | dict.fromkeys(headings) | {"best": str(missing)[:50]}
    yield "Nodes {nodes}, certificate {MB} MB for the bound {certified}, checked in {check s:.1f} s.".format(**own)


def growth(asked):
    """All-to-all and gamma-distributed traffic (seed 0), of degree 2."""
    for n in asked.sizes:
        yield {"traffic": f"all-to-all, n{n}-d2", **proven(ddlopt.load(f"all-to-all-n{n}-d2"), asked)}
    for n in [size for size in asked.sizes if size <= 10]:
        yield {"traffic": f"random, n{n}-d2", **proven(generate("random", servers=n, degree=2, seed=0), asked)}


def jobs(asked):
    """Training jobs on 12 servers, 4 ports, to a gap of 1e-6; whether the bounds alone prove it."""
    limits = Limits(time_s=asked.time_limit, threads=asked.threads, gap=1e-6)
    for job in asked.jobs:
        for optics in ("", "-duplex"):
            result = BranchAndBound(opening=1.0).solve(ddlopt.load(f"{job}-n12-d4{optics}"), limits)
            by_bound = result.details["nodes"] == 0
            yield {"job": f"{job}{optics}", **figures(result), **effort(result, "nodes"), "by bound": by_bound}


def random(asked):
    """8 servers, gamma-distributed traffic."""
    for degree in asked.degrees:
        for seed in range(asked.seeds):
            result = BranchAndBound().solve(generate("random", servers=8, degree=degree, seed=seed), asked.limits)
            yield {"degree, seed": f"{degree}, {seed}", **figures(result), **effort(result, "nodes", "routed")}


BENCH = Benchmark(
    danoint, growth, jobs, random,
    time_limit=Option(60.0, quick=2.0),
    threads=Option(2, "of the branch and bound"),
    solvers=Option(["highs", "gurobi"], "to compare with"),
    sizes=Option([6, 7, 8, 9, 10, 11, 12], "servers, of the second table", quick=[6]),
    jobs=Option(list(JOBS), "of the third table", quick=["bert"]),
    seeds=Option(10, quick=1),
    degrees=Option([2, 3], "of the last table", quick=[2]),
)  # fmt: skip
