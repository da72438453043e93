"""The offline optimum over all slots: how near to a proven bound, and in what time.

Jobs with logarithmic utility that arrive in the first 60 % of the horizon, on equal GPUs. Every method is alone with
its own bound, or the combinatorial one where that is better: ``relaxation`` is the optimum of the compact linear
relaxation, ``greedy`` the GADGET-style greedy, ``time-indexed`` HiGHS on the compact model from nothing, ``guided``
the same from the schedule of ``lp-guided``, ``job-plans`` the column generation over plans. Times are of the whole
solve, model building included; ``*`` is within 1e-4.
"""

from benchmarks.harness import Benchmark, Option, timed
from ddlopt.frontier.scheduling.job_plans.job_plans import JobPlans
from ddlopt.frontier.scheduling.lp_guided import LpGuided
from ddlopt.instances.generators.scheduling import generate
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.solvers.contracts import Method, Result
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation
from ddlopt.solvers.scheduling.gadget import Gadget
from ddlopt.solvers.wrappers.warm_started import WarmStarted

SIZES = ((10, 10, 8), (20, 20, 16), (50, 20, 32), (50, 50, 32), (100, 50, 64), (200, 100, 64))
"""Jobs, slots, GPUs."""
EXACT = Exact("time-indexed", "scheduling", TimeIndexed())
METHODS: dict[str, Method] = {
    "greedy": Gadget(),
    "lp-guided": LpGuided(),
    "time-indexed": EXACT,
    "guided": WarmStarted("guided", "scheduling", LpGuided(), lambda instance: EXACT),
    "job-plans": JobPlans(),
}


def cell_of(result: Result) -> str:
    gap = "no gap" if result.gap is None else f"{result.gap:.3%}"
    return f"{gap}{' *' if result.status == 'optimal' else ''}, {result.runtime_s:.1f} s"


def methods(asked):
    """A row for each size."""
    for jobs, slots, gpus in SIZES[: asked.sizes]:
        instance = generate("elastic", asked.seed, jobs=jobs, slots=slots, gpus=gpus)
        _, building = timed(build_model, "scheduling", TimeIndexed(), instance)
        relaxed = lp_relaxation(TimeIndexed(), instance).objective
        results = {name: method.solve(instance, asked.limits) for name, method in METHODS.items()}
        best = max(result.objective for result in results.values() if result.objective is not None)
        yield {
            "jobs, slots, GPUs": f"{jobs}, {slots}, {gpus}", "best": f"{best:.5g}",
            "relaxation": f"+{relaxed / best - 1:.3%}", "built s": building.wall_s,
            **{name: cell_of(result) for name, result in results.items()},
        }  # fmt: skip


BENCH = Benchmark(
    methods,
    time_limit=Option(60.0, quick=1.0),
    threads=Option(2),
    seed=Option(1),
    sizes=Option(len(SIZES), "how many of the sizes, smallest first", quick=1),
)
