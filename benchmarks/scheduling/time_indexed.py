"""The offline optimum over all slots: how near to a proven bound, and in what time.

    python benchmarks/time_indexed.py --time-limit 60 --threads 2

Jobs with logarithmic utility that arrive in the first 60 % of the horizon, on equal GPUs. Every method is alone with
its own bound, or the combinatorial one where that is better: ``relaxation`` is the optimum of the compact linear
relaxation, ``greedy`` the GADGET-style greedy, ``time-indexed`` HiGHS on the compact model from nothing, ``guided``
the same from the schedule of ``lp-guided``, ``job-plans`` the column generation over plans. Times are of the whole
solve, model building included.
"""

import argparse
import os
import time

from ddlopt.instances.generators.scheduling import generate
from ddlopt.models.scheduling.time_indexed import TimeIndexed
from ddlopt.solvers.contracts import Limits, Method, Result
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation
from ddlopt.solvers.opened import Opened
from ddlopt.solvers.scheduling.gadget import Gadget
from ddlopt.solvers.scheduling.job_plans import JobPlans
from ddlopt.solvers.scheduling.lp_guided import LpGuided

SIZES = ((10, 10, 8), (20, 20, 16), (50, 20, 32), (50, 50, 32), (100, 50, 64), (200, 100, 64))
"""Jobs, slots, GPUs."""


def methods() -> dict[str, Method]:
    exact = Exact("time-indexed", "scheduling", TimeIndexed())
    return {
        "greedy": Gadget(),
        "lp-guided": LpGuided(),
        "time-indexed": exact,
        "guided": Opened("guided", "scheduling", LpGuided(), lambda instance: exact),
        "job-plans": JobPlans(),
    }


def cell(result: Result) -> str:
    gap = "–" if result.gap is None else f"{100 * result.gap:.3f} %"
    return f"{gap} {'*' if result.status == 'optimal' else ' '} {result.runtime_s:5.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="how many of the sizes, smallest first")
    options = parser.parse_args()
    print(
        f"{os.cpu_count()} cores, {options.threads} threads, {options.time_limit:g} s each, seed {options.seed}; * 1e-4"
    )
    named = methods()
    headings = ["jobs, slots, GPUs", "best", "relaxation", "built", *named]
    print(" | ".join(f"{heading:>18}" for heading in headings))
    for jobs, slots, gpus in SIZES[: options.sizes]:
        instance = generate("elastic", options.seed, jobs=jobs, slots=slots, gpus=gpus)
        began = time.perf_counter()
        build_model("scheduling", TimeIndexed(), instance)
        built_s = time.perf_counter() - began
        relaxed = lp_relaxation(TimeIndexed(), instance).objective
        limits = Limits(time_s=options.time_limit, threads=options.threads)
        results = [method.solve(instance, limits) for method in named.values()]
        best = max(result.objective for result in results if result.objective is not None)
        above = f"+{100 * (relaxed / best - 1):.3f} %"
        cells = [f"{jobs}, {slots}, {gpus}", f"{best:.5g}", above, f"{built_s:.2f} s", *map(cell, results)]
        print(" | ".join(f"{text:>18}" for text in cells), flush=True)


if __name__ == "__main__":
    main()
