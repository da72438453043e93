"""What changes cost: utility and number of changes, for more and more seconds that each of them loses.

Jobs with logarithmic utility on equal GPUs, slots of an hour. ``ignoring`` is the schedule of ``lp-guided`` where
changes cost nothing, with their cost afterwards; ``kept-runs`` and ``gadget`` know of it, ``srtf`` and ``las`` choose
as published, and pay. Each cell has the gap to the bound and the number of changes; the bound is that of the instance,
which leaves out what changes lose.
"""

from benchmarks.harness import Benchmark, Option
from ddlopt.instances.generators.scheduling import generate
from ddlopt.models.scheduling import evaluate
from ddlopt.models.scheduling.bounds import bound
from ddlopt.solvers.scheduling.gadget import Gadget
from ddlopt.solvers.scheduling.kept_runs import KeptRuns
from ddlopt.solvers.scheduling.lp_guided import LpGuided
from ddlopt.solvers.scheduling.online.baselines import LeastAttainedService, ShortestRemainingTime

SECONDS = (0.0, 30.0, 300.0, 900.0, 1800.0, 3600.0)
"""Lost by a change; the last is a whole slot."""
NOTHING = 1e-6
"""Seconds that stand for none, so that changes are counted."""


def tradeoff(asked):
    """A row for each cost."""
    jobs, slots, gpus = (200, 100, 64) if not asked.small else (20, 20, 16)
    free = generate("elastic", asked.seed, jobs=jobs, slots=slots, gpus=gpus)
    ignoring = LpGuided().solve(free, asked.limits).solution
    for change_s in SECONDS:
        instance = generate("elastic", asked.seed, jobs=jobs, slots=slots, gpus=gpus, change_s=change_s or NOTHING)
        highest = bound(instance)

        def cell(schedule, instance=instance, highest=highest):
            found = evaluate(instance, schedule.model_copy(update={"instance_digest": instance.digest}))
            assert found.feasible
            return f"{1 - found.objective / highest:.3%}, {found.details['changes']}"

        methods = (KeptRuns(), Gadget(), ShortestRemainingTime(), LeastAttainedService())
        yield {
            "change_s": f"{change_s:g}", "bound": f"{highest:.6g}", "ignoring": cell(ignoring),
            **{method.name: cell(method.solve(instance, asked.limits).solution) for method in methods},
        }  # fmt: skip


BENCH = Benchmark(
    tradeoff,
    time_limit=Option(30.0, quick=2.0),
    seed=Option(1),
    small=Option(0, "1: 20 jobs, 20 slots and 16 GPUs in place of 200, 100 and 64", quick=1),
)
