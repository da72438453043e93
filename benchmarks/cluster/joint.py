"""What it costs to decide the plans of a cluster's jobs, their servers and their order one after the other.

Beside the joint answer with its certified gap stand the ways of the papers: each plan by its own heuristic, GADGET's
greedy on the resulting curves, jobs as they arrive; and everything between, by which the loss is attributed.
"""

import csv
import itertools
from datetime import datetime
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

import ddlopt
from benchmarks.harness import Benchmark, Option, data
from ddlopt.instances.generators import generate
from ddlopt.instances.generators.cluster.joint import of_topoopt
from ddlopt.models.cluster.jobs.evaluate import evaluate_jobs
from ddlopt.models.cluster.joint.bounds import simple_step_bound
from ddlopt.models.cluster.joint.instance import JointInstance
from ddlopt.solvers.cluster.jobs.list_exchange import list_starts
from ddlopt.solvers.cluster.jobs.relaxation import relaxed
from ddlopt.solvers.cluster.joint.apart import decided, sharpened
from ddlopt.solvers.cluster.joint.plans import Plans
from ddlopt.solvers.contracts import Limits, Result, relative_gap
from ddlopt.solvers.heuristic import Clock

NETWORKS = ("dlrm", "bert", "candle", "ncf", "resnet50", "vgg16")
DECISIONS = ("plans", "widths", "order")
"""Each alone, as the papers do it, or together with what comes after it."""
DAY = "2017-10-26"
_LEAST_S = 600.0
"""What a job of the trace takes at least that counts."""


def small() -> JointInstance:
    """4 jobs on 8 servers, whose inner problems are solved in an instant."""
    return ddlopt.load("cluster/joint-tiny-j4-k8")


def medium() -> JointInstance:
    """20 jobs of TopoOpt's networks on 128 servers."""
    return generate("cluster", "joint", 4, jobs=20, servers=128, workloads=NETWORKS, widths=(4, 8, 16), spread=2.0)


def philly() -> JointInstance:
    """A day of the Philly trace, each job with one of TopoOpt's networks drawn for it.

    All jobs that began on the day, took ten minutes at least and had several GPUs; a server has one, as in TopoOpt's
    prototype. A job may have half as many servers as it had, as many, or twice as many, in powers of two from 2 to 16;
    its network is drawn from those whose layers fit into the memory of each of these. It has as many iterations as
    would take the time of the trace on its own number of servers if a step took the least that a bound without a search
    says. The objective is the sum of times from arrivals to ends.
    """
    rng = np.random.default_rng(0)
    with data("traces/philly.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["timestamp"].startswith(DAY)]
    rows = [row for row in rows if float(row["duration"]) >= _LEAST_S and int(row["num_gpus"]) > 1]
    problems, menus = [], []
    for network in NETWORKS:
        choices = []
        for width in (2, 4, 8, 16):
            choices.append({"servers": width, "problem": len(problems)})
            problems.append(of_topoopt(network, width, 2, degree=min(4, width - 1), gpus_per_server=1))
        menus.append({"name": network, "choices": choices})
    base = {"name": "philly", "servers": 512, "problems": problems, "objective": "weighted_tardiness"}
    one = JointInstance.from_data(
        base
        | {"workloads": menus, "jobs": [{"name": "one", "workload": 0, "iterations": 1}]}
        | {"objective": "makespan"}
    )
    least = [[simple_step_bound(one, choice) for choice in menu.choices] for menu in one.workloads]
    workloads: dict[tuple[int, int], dict[str, Any]] = {}
    jobs = []
    begin = datetime.fromisoformat(f"{DAY} 00:00:00")
    for place, row in enumerate(rows):
        power = min(4, max(1, int(np.ceil(np.log2(int(row["num_gpus"]))))))
        some = [k for k in (power - 1, power, power + 1) if 1 <= k <= 4]
        fit = [network for network, times in enumerate(least) if all(times[k - 1] for k in some)]
        network = fit[int(rng.integers(len(fit)))]
        menu = {
            "name": f"{NETWORKS[network]}-{2**power}",
            "choices": [menus[network]["choices"][k - 1] for k in some],
        }
        workloads.setdefault((network, power), menu)
        arrival = (datetime.fromisoformat(row["timestamp"]) - begin).total_seconds()
        jobs.append(
            {
                "name": f"job-{place}",
                "workload": list(workloads).index((network, power)),
                "iterations": max(1, round(float(row["duration"]) / least[network][power - 1])),
                "arrival_s": arrival,
                "deadline_s": arrival,
            }
        )
    return JointInstance.from_data(base | {"workloads": list(workloads.values()), "jobs": jobs})


def large() -> JointInstance:
    """12 large models on 1 024 H100, 128 servers of eight: Llama 3 in three sizes, on 16 to 128 servers."""
    return ddlopt.load("cluster/joint-llama-j12-k128")


CASES = {"tiny-4x8": small, "topoopt-20x128": medium, "philly-512": philly, "large-12x128": large}


@cache
def _joint(name: str, time_limit: float, gap: float, threads: int) -> Result:
    return ddlopt.solve(CASES[name](), "refinement", time_limit=time_limit, gap=gap, threads=threads)


def joint(asked: Any) -> Any:
    """The joint answer, its certified gap, and how much longer the papers' way takes."""
    for name in asked.cases:
        found, instance = _joint(name, asked.time_limit, asked.gap, asked.threads), CASES[name]()
        apart = ddlopt.solve(instance, "apart", time_limit=asked.time_limit)
        yield {
            "case": name,
            "joint": found.objective,
            "bound": found.bound,
            "gap": f"{relative_gap(found.objective, found.bound):.2%}" if found.objective else None,
            "seconds": round(found.runtime_s),
            "apart": apart.objective,
            "apart takes longer by": f"{apart.objective / found.objective - 1:.1%}" if apart.objective else None,
            "solves": f"{found.details.get('inner_solves', 0):.0f} for {_inner(instance)} inner problems",
        }


def _inner(instance: JointInstance) -> int:
    choices = [choice for menu in instance.workloads for choice in menu.choices if choice.step_s is None]
    return len({(choice.problem, choice.devices) for choice in choices})


def oracle(asked: Any) -> Any:
    """4 jobs on 8 servers: every width and every order, at proven optima of every inner problem."""
    instance = small()
    times = {
        (place, choice.servers): ddlopt.solve(instance.inner(choice), gap=1e-7, time_limit=60).objective
        for place, menu in enumerate(instance.workloads)
        for choice in menu.choices
    }
    jobs = instance.at(lambda workload, choice: times[workload, choice.servers])
    best, tried = None, 0
    for widths in itertools.product(*(job.widths for job in jobs.jobs)):
        for order in itertools.permutations(range(len(jobs.jobs))):
            starts = list_starts(jobs, list(order), list(widths))
            value = max(
                start + Fraction(job.length_s(width))
                for start, job, width in zip(starts, jobs.jobs, widths, strict=True)
            )
            best, tried = value if best is None else min(best, value), tried + 1
    found = ddlopt.solve(instance, "refinement", time_limit=asked.time_limit, gap=1e-6)
    yield {"schedules": tried, "the best": float(best), "joint": found.objective, "bound": found.bound}


def lossy() -> JointInstance:
    """8 jobs of two networks on 16 servers with links of 10 Gb/s, whose layers may be compressed."""
    menu: dict[str, Any] = {"compressors": ("fp16", "random_k:0.1"), "error_budget": 0.25}
    problems, workloads = [], []
    for network in ("vgg16", "candle"):
        choices = []
        for width in (4, 8):
            choices.append({"servers": width, "problem": len(problems)})
            problems.append(of_topoopt(network, width, 4, degree=3, gigabit_per_s=10.0, **menu))
        workloads.append({"name": network, "choices": choices})
    rng = np.random.default_rng(0)
    jobs = [
        {"name": f"job-{place}", "workload": place % 2, "iterations": int(rng.integers(20_000, 60_000))}
        for place in range(8)
    ]
    data = {"name": "lossy", "servers": 16, "problems": problems, "workloads": workloads, "jobs": jobs}
    return JointInstance.from_data(data)


def compression(asked: Any) -> Any:
    """Compressors decided with all else, with each job's strategies alone, last, first, or not at all."""
    instance = lossy()
    found = ddlopt.solve(instance, "refinement", time_limit=asked.time_limit, gap=asked.gap, threads=asked.threads)
    yield {"compressors": "with all else", "makespan": found.objective, "bound": found.bound, "beside": "0.0%"}
    for when, rest in itertools.product(("within", "last", "first", "never"), ("", ",widths=search,order=search")):
        apart = ddlopt.solve(instance, f"apart:compression={when}{rest}", time_limit=asked.time_limit)
        told = f"{when}; widths and order {'searched' if rest else 'as the papers do'}"
        beside = f"{apart.objective / found.objective - 1:.1%}"
        yield {"compressors": told, "makespan": apart.objective, "bound": None, "beside": beside}


def attribution(asked: Any) -> Any:
    """Every subset of decisions that are taken together with what comes after them: how far from the joint answer."""
    for name in asked.cases:
        found, instance = _joint(name, asked.time_limit, asked.gap, asked.threads), CASES[name]()
        row = {"case": name}
        tables = [_planned(instance, best) for best in (False, True)]
        for best, widths, order in itertools.product((0, 1), repeat=len(DECISIONS)):
            high, chosen = tables[best], (("greedy", "search")[widths], ("arrival", "search")[order])
            value = evaluate_jobs(high, decided(high, *chosen, 0, Clock(Limits(), None))).objective
            told = " + ".join(each for each, k in zip(DECISIONS, (best, widths, order), strict=True) if k) or "none"
            row[told] = f"{float(value) / found.objective - 1:.1%}"
        yield row


def _planned(instance: JointInstance, best: bool) -> Any:
    """Tables of the papers' heuristics, or of our method in ten seconds for each besides."""
    plans = Plans(instance, Clock(Limits(), None), 1e-3)
    sharpened(plans, best, 10.0)
    return plans.high()


def online(asked: Any) -> Any:
    """Nothing is known of a job before it arrives, and none is moved: what either costs, at most, by the bounds."""
    for name in asked.cases:
        found, instance = _joint(name, asked.time_limit, asked.gap, asked.threads), CASES[name]()
        rolling = ddlopt.solve(instance, "rolling:seconds=10", time_limit=asked.time_limit)
        moved = _moved_bound(instance, found, asked.gap)
        yield {
            "case": name,
            "bound": found.bound,
            "joint": found.objective,
            "rolling": rolling.objective,
            "regret at most": f"{rolling.objective / found.bound - 1:.1%}" if rolling.objective else None,
            "beside the joint answer": f"{rolling.objective / found.objective - 1:.1%}" if rolling.objective else None,
            "never moving a job costs at most": f"{found.objective / moved - 1:.1%}" if moved else None,
            "decided at": f"{rolling.details.get('moments', 0):.0f} moments",
        }


_FEW_JOBS = 7
"""The most jobs with which the joint bound is by orders of starts, which says nothing of jobs that are moved."""


def _moved_bound(instance: JointInstance, found: Result, gap: float) -> float | None:
    """What no schedule is below in which jobs are interrupted, moved and change their widths for nothing.

    The relaxation of a makespan holds for these as it is; that of sums has a row of its own for them, at times that no
    plan is below, which are those of the run's plans, and of bounds without a search where it has none.
    """
    if instance.objective == "makespan":
        return found.bound if len(instance.jobs) > _FEW_JOBS else relaxed(instance.at(_proven(instance)), 1.0).value
    plans = Plans(instance, Clock(Limits(), None), gap)
    for each in found.solution.plans:
        known = plans.known((each.workload, each.servers))
        if known is not None:
            known.lower = max(known.lower, each.least_s)
    ends = [run.start for run in found.solution.runs]
    last = max(float(Fraction(start)) for start in ends)
    return relaxed(plans.low(), last, moved=True).value


def _proven(instance: JointInstance) -> Any:
    """For :meth:`JointInstance.at`: what no plan is below, by a solve to a gap of nearly nothing."""
    return cache(lambda workload, choice: ddlopt.solve(instance.inner(choice), gap=1e-7, time_limit=60).bound)


def growth(asked: Any) -> Any:
    """Jobs of TopoOpt's networks on more and more servers: gap and solves after the same time."""
    for jobs, servers in asked.sizes:
        instance = generate(
            "cluster", "joint", 4, jobs=jobs, servers=servers, workloads=NETWORKS, widths=(4, 8), spread=2.0
        )
        found = ddlopt.solve(instance, "refinement", time_limit=asked.growth_s, gap=asked.gap, threads=asked.threads)
        yield {
            "jobs": jobs,
            "servers": servers,
            "joint": found.objective,
            "bound": found.bound,
            "gap": f"{relative_gap(found.objective, found.bound):.2%}" if found.objective else None,
            "seconds": round(found.runtime_s),
            "solves": f"{found.details.get('inner_solves', 0):.0f} for {_inner(instance)} inner problems",
        }


def _pair(text: str) -> tuple[int, int]:
    jobs, servers = text.split("x")
    return int(jobs), int(servers)


BENCH = Benchmark(
    joint,
    oracle,
    compression,
    attribution,
    online,
    growth,
    time_limit=Option(600.0, quick=10.0),
    gap=Option(0.01),
    threads=Option(1),
    cases=Option(list(CASES), quick=[next(iter(CASES))]),
    growth_s=Option(60.0, "seconds of each row of growth", quick=5.0),
    sizes=Option([(5, 32), (10, 64), (20, 128), (40, 256), (80, 512)], quick=[(3, 16)], type=_pair),
)
