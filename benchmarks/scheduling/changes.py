"""What changes cost: utility and number of changes, for more and more seconds that each of them loses.

Jobs with logarithmic utility on equal GPUs, slots of an hour. ``ignoring`` is the schedule of ``lp-guided`` where
changes cost nothing, with their cost afterwards; ``kept-runs`` and ``gadget`` know of it, ``srtf`` and ``las`` choose
as published, and pay. Each cell has the gap to the bound and the number of changes; the bound is that of the instance,
which leaves out what changes lose. The picture has the schedules planned for each of these costs (``lp-guided`` for
none) by their number of changes, with what they lose where a change costs 0, 30 and 300 s, and the gap of every method
by cost.
"""

from benchmarks.harness import Benchmark, Option
from ddlopt.frontier.scheduling.kept_runs import KeptRuns
from ddlopt.frontier.scheduling.lp_guided import LpGuided
from ddlopt.instances.generators.scheduling import generate
from ddlopt.models.scheduling import evaluate
from ddlopt.models.scheduling.problem import PROBLEM
from ddlopt.solvers.scheduling.gadget import Gadget
from ddlopt.solvers.scheduling.online.baselines import LeastAttainedService, ShortestRemainingTime

SECONDS = (0.0, 30.0, 300.0, 900.0, 1800.0, 3600.0)
"""Lost by a change; the last is a whole slot."""
NOTHING = 1e-6
"""Seconds that stand for none, so that changes are counted."""


DRAWN = (0.0, 30.0, 300.0)
"""Costs at which every schedule is looked at in the picture."""


def made(asked, change_s):
    """The instance at a cost of a change."""
    jobs, slots, gpus = (200, 100, 64) if not asked.small else (20, 20, 16)
    return generate("elastic", asked.seed, jobs=jobs, slots=slots, gpus=gpus, change_s=change_s)


def lost(instance, schedule):
    """Part of the bound that is not reached, and how often jobs change."""
    found = evaluate(instance, schedule.model_copy(update={"instance_digest": instance.digest}))
    assert found.feasible
    return 1 - found.objective / PROBLEM.tightest_bound(instance), found.details["changes"]


def picture(planned, gaps):
    """Losses against changes for each cost, and of every method against the cost."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for change_s, points in planned.items():
        counts, losses = zip(*sorted((count, loss) for loss, count in points), strict=True)
        left.plot(counts, [100 * loss for loss in losses], marker="o", label=f"{change_s:g} s a change")
    left.set_xlabel("changes of the schedule")
    left.set_ylabel("utility lost, % of the bound")
    left.legend(fontsize="small")
    for name, values in gaps.items():
        right.plot([max(1.0, each) for each in SECONDS], [100 * value for value in values], marker="o", label=name)
    right.set_xscale("log")
    right.set_yscale("log")
    # At an angle, as the last three are close to each other.
    right.set_xticks([max(1.0, each) for each in SECONDS], [f"{each:g}" for each in SECONDS], rotation=45)
    right.minorticks_off()
    right.set_xlabel("seconds that a change costs")
    # Where no method is, whatever its gap.
    right.legend(fontsize="small", loc=(0.03, 0.13))
    for axis in (left, right):
        axis.grid(alpha=0.3)
    figure.suptitle("What changes cost")
    return figure


def tradeoff(asked):
    """A row for each cost."""
    schedules = [LpGuided().solve(made(asked, 0.0), asked.limits).solution]
    gaps = {}
    for change_s in SECONDS:
        instance = made(asked, change_s or NOTHING)
        methods = (KeptRuns(), Gadget(), ShortestRemainingTime(), LeastAttainedService())
        found = {"ignoring": schedules[0]}
        found |= {method.name: method.solve(instance, asked.limits).solution for method in methods}
        schedules.append(found["kept-runs"])
        losses = {name: lost(instance, schedule) for name, schedule in found.items()}
        for name, (loss, _) in losses.items():
            gaps.setdefault(name, []).append(loss)
        cells = {name: f"{loss:.3%}, {count}" for name, (loss, count) in losses.items()}
        yield {"change_s": f"{change_s:g}", "bound": f"{PROBLEM.tightest_bound(instance):.6g}", **cells}
    planned = {each: [lost(made(asked, each or NOTHING), one) for one in schedules] for each in DRAWN}
    asked.save(lambda: picture(planned, gaps), "cost_of_changes.png")


BENCH = Benchmark(
    tradeoff,
    pages=False,
    time_limit=Option(30.0, quick=2.0),
    seed=Option(1),
    small=Option(0, "1: 20 jobs, 20 slots and 16 GPUs in place of 200, 100 and 64", quick=1),
)
