"""Plans, widths and order decided one after the other, as the papers do, or some of them together."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from ddlopt.models.cluster.jobs.instance import ClusterJob, JobsInstance, JobsSchedule, Stretch
from ddlopt.models.cluster.joint.instance import JointInstance, JointPlan, Run
from ddlopt.models.codesign.evaluate import evaluate as evaluate_codesign
from ddlopt.models.codesign.formulations.rows.coupling import plan_of
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.cluster.jobs.list_exchange import ListSearch, list_starts
from ddlopt.solvers.cluster.jobs.start_order import with_widths
from ddlopt.solvers.cluster.joint.fabric_search import fitted
from ddlopt.solvers.cluster.joint.plans import Plans
from ddlopt.solvers.cluster.joint.refinement import kernels_of_plans, slowed, with_plans
from ddlopt.solvers.codesign.compression_apart import compressed_first, compressed_last, without_compression
from ddlopt.solvers.heuristic import Clock, Heuristic

_SEARCHES = 4
"""Rounds of a search of lists."""
_PAPER_S = 60.0
"""Seconds of a paper's heuristic, which ends by itself."""


@dataclass(frozen=True)
class Apart(Heuristic, uses=("seed",)):
    """What systems do that each decide a part: a plan for each job and width, then widths, then an order.

    Parameters
    ----------
    plans : {"paper", "best"}
        By the paper's heuristic alone (TopoOpt's alternation, Megatron's rule, Piper), or the best that our method
        finds besides in ``seconds`` for each.
    seconds : float
    widths : {"equal", "greedy", "search"}
        An equal share of the servers for each job; GADGET's greedy on the resulting curves: as few as can be, then
        server by server to the job whose remaining time falls most for each; or together with the order.
    order : {"arrival", "search"}
        First come, first served, with backfilling; or the best list that a search finds.
    compression : {"within", "last", "first", "never"}
        Of co-designs whose layers may be compressed: an option of their strategies; or apart from them, by Espresso's
        greedy (:class:`.CompressionApart`). ``last`` is when widths and order are there, too: then each job keeps its
        servers and its place, and ends sooner.

    References
    ----------
    M. Yu, Y. Tian, B. Ji, C. Wu, H. Rajan, J. Liu, "GADGET: online resource optimization for scheduling ring-all-reduce
    learning jobs", INFOCOM 2022, for the greedy, there in slots and with utilities.
    """

    plans: Literal["paper", "best"] = "paper"
    seconds: float = 2.0
    widths: Literal["equal", "greedy", "search"] = "greedy"
    order: Literal["arrival", "search"] = "arrival"
    compression: Literal["within", "last", "first", "never"] = "within"

    name: ClassVar[str] = "apart"
    covers: ClassVar[type[JointInstance]] = JointInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.cluster.jobs.exchange_kernel",)

    def kernels_for(self, instance: JointInstance) -> tuple[str, ...]:
        """Those of the methods that inner problems are solved by."""
        return self.kernels + kernels_of_plans(instance)

    def answer(self, instance: JointInstance, seed: int, clock: Clock, start: Any) -> Any:
        """The schedule with plans.

        Raises
        ------
        NoSolutionError
            If a job has no plan on any number of servers by the time limit.
        """
        told = with_codesigns(instance, _NARROWED[self.compression])
        plans, high = planned(told, seed, clock, self.plans == "best", self.seconds)
        plan = with_plans(plans, decided(high, self.widths, self.order, seed, clock))
        if self.compression == "last":
            plan = retimed(instance, plan, seed, clock)
        return answering(instance, plan), {"plans": float(plans.solves)}


def with_codesigns(instance: JointInstance, change: Callable[[CodesignInstance], CodesignInstance]) -> JointInstance:
    """The instance with other co-designs in place of its own."""
    problems = [change(each) if isinstance(each, CodesignInstance) else each for each in instance.problems]
    return instance if problems == list(instance.problems) else instance.changed(problems=problems)


def answering(instance: JointInstance, plan: JointPlan) -> JointPlan:
    """A plan of :func:`with_codesigns` as one of the instance: strategies that it has are strategies there."""
    plans = []
    for each in plan.plans:
        choice = instance.workloads[each.workload].choice(each.servers)
        inner = None if choice is None else instance.inner(choice)
        answer = each.answer
        if isinstance(inner, CodesignInstance) and each.answer is not None:
            answer = plan_of(inner, each.answer.choices(inner), each.answer.design)
        plans.append(each.model_copy(update={"answer": answer}))
    return plan.changed(plans=plans)


def retimed(instance: JointInstance, plan: JointPlan, seed: int, clock: Clock) -> JointPlan:
    """Compressors for the plans that are there, within their error budgets; then every job as early as can be.

    Jobs keep their servers and the order of their starts.
    """
    plans = []
    for each in plan.plans:
        choice = instance.workloads[each.workload].choice(each.servers)
        inner = None if choice is None else instance.inner(choice)
        if isinstance(inner, CodesignInstance) and each.answer is not None:
            own = plan_of(inner, each.answer.choices(inner), each.answer.design)
            answer = compressed_last(inner, own, "greedy", seed, clock)
            found = evaluate_codesign(inner, answer).objective
            if found is not None and (step_s := float(found) * (1 + ROUNDING)) < each.step_s:
                each = each.model_copy(update={"answer": answer, "step_s": step_s, "least_s": 0.0})
        plans.append(each)
    steps = {(each.workload, each.servers): each.step_s for each in plans}
    jobs = instance.at(lambda workload, choice: steps.get((workload, choice.servers)))
    widths = [run.servers for run in plan.runs]
    order = sorted(range(len(widths)), key=lambda place: (Fraction(plan.runs[place].start), place))
    schedule = _schedule(jobs, list_starts(jobs, order, widths), widths)
    if instance.fabric is None:
        runs = tuple(Run.model_validate(run) for (run,) in schedule.runs)
    else:
        runs = slowed(instance, fitted(jobs, instance, schedule), steps)
    return plan.changed(plans=plans, runs=runs)


def planned(instance: JointInstance, seed: int, clock: Clock, best: bool, seconds: float) -> tuple[Plans, JobsInstance]:
    """A plan for every choice, and the jobs with the times of these plans; see :func:`sharpened`.

    Raises
    ------
    NoSolutionError
        If a job has no plan on any number of servers by the time limit.
    """
    plans = Plans(instance, clock, clock.gap, seed)
    sharpened(plans, best, seconds)
    high = plans.high()
    if high is None:
        raise NoSolutionError("not every job has a plan")
    return plans, high


def sharpened(plans: Plans, best: bool, seconds: float) -> None:
    """Find a plan for every choice by its paper's heuristic, and the best one of our method in a number of seconds."""
    for own in plans.all_known():
        own.budget_s = _PAPER_S
    plans.sharpen(list(plans.pairs), lambda: False)
    if best:
        for own in plans.all_known():
            own.budget_s = seconds
        plans.sharpen(list(plans.pairs), lambda: False)


def decided(high: JobsInstance, widths: str, order: str, seed: int, clock: Clock) -> JobsSchedule:
    """A schedule of jobs with tables; see :class:`Apart`."""
    if widths != "search":
        chosen = dict(zip((job.name for job in high.jobs), _WIDTHS[widths](high), strict=True))
        high = with_widths(high, lambda job: chosen[job.name])
    first = sorted(range(len(high.jobs)), key=lambda place: (high.jobs[place].arrival_s, place))
    if order == "search":
        search = ListSearch(high, seed)
        search.follow(np.array(first), search.widths)
        for _ in range(_SEARCHES):
            if clock.expired:
                break
            search.run(1)
        return search.schedule()
    if widths == "search":
        # The order is given; each job takes the width with which it ends first.
        return _earliest(high, first)
    own = [job.widths[0] for job in high.jobs]
    return _schedule(high, list_starts(high, first, own), own)


def _schedule(high: JobsInstance, starts: Any, widths: list[int]) -> JobsSchedule:
    runs = tuple((Stretch(start=str(at), servers=width),) for at, width in zip(starts, widths, strict=True))
    return JobsSchedule(instance=high.name, runs=runs)


def _earliest(high: JobsInstance, first: list[int]) -> JobsSchedule:
    widths = [job.widths[0] for job in high.jobs]
    for number, place in enumerate(first):
        job = high.jobs[place]

        def ends(width: int, place: int = place, job: ClusterJob = job, number: int = number) -> Any:
            widths[place] = width
            return list_starts(high, first[: number + 1], widths)[place] + job.length_s(width), width

        widths[place] = min(job.widths, key=ends)
    return _schedule(high, list_starts(high, first, widths), widths)


def equal_shares(high: JobsInstance) -> list[int]:
    """Of each job the most servers within its share, or as few as it can have."""
    share = high.servers // len(high.jobs)
    return [max((width for width in job.widths if width <= share), default=job.widths[0]) for job in high.jobs]


def greedy_widths(high: JobsInstance) -> list[int]:
    """As few servers as can be; then the step to a larger width that saves most for each server, while there are any.

    What a job saves is weighted where ends are; of a makespan only a job that ends last saves anything.
    """
    menus = [job.widths for job in high.jobs]
    at = [0] * len(menus)
    left = high.servers - sum(menu[0] for menu in menus)
    while left > 0:
        best, gain = None, 0.0
        times = [float(job.length_s(menu[k])) for job, menu, k in zip(high.jobs, menus, at, strict=True)]
        for place, (job, menu) in enumerate(zip(high.jobs, menus, strict=True)):
            if high.objective == "makespan" and times[place] < max(times):
                continue
            for k in range(at[place] + 1, len(menu)):
                more = menu[k] - menu[at[place]]
                weight = 1.0 if high.objective == "makespan" else job.weight
                saved = weight * (times[place] - float(job.length_s(menu[k]))) / more
                if more <= left and saved > gain and not math.isnan(saved):
                    best, gain = (place, k), saved
        if best is None:
            break
        left -= menus[best[0]][best[1]] - menus[best[0]][at[best[0]]]
        at[best[0]] = best[1]
    return [menu[k] for menu, k in zip(menus, at, strict=True)]


_NARROWED: dict[str, Callable[[CodesignInstance], CodesignInstance]] = {
    "within": lambda each: each,
    "first": compressed_first,
    "last": without_compression,
    "never": without_compression,
}
_WIDTHS = {"equal": equal_shares, "greedy": greedy_widths}
