"""The independent check of a schedule with plans: every plan by its own problem's check, then the schedule."""

from collections.abc import Iterator
from fractions import Fraction

from ddlopt.models.catalogue import problem_of
from ddlopt.models.cluster.jobs.evaluate import evaluate_jobs
from ddlopt.models.cluster.joint.instance import JointInstance, JointPlan, WorkloadPlan
from ddlopt.models.contracts import Evaluation, Violation
from ddlopt.models.errors import SolutionError
from ddlopt.models.tolerances import ROUNDING


def evaluate_joint(instance: JointInstance, solution: JointPlan, exact: bool = False) -> Evaluation:
    """The objective of a schedule with plans, and what it violates.

    A plan is checked as an answer to the problem of its workload on so many servers, and may not take longer than what
    is reserved for a step. Then starts and servers are looked at with the reserved times, in fractions.

    Details are those of cluster jobs, and ``plans``, how many there are.
    """
    wrong = list(_form(instance, solution))
    for plan in () if wrong else solution.plans:
        wrong += _plan(instance, plan, exact)
    if wrong:
        return Evaluation(None, tuple(wrong))
    steps = solution.steps()
    jobs = instance.at(lambda workload, choice: steps.get((workload, choice.servers)))
    found = evaluate_jobs(jobs, solution.schedule(), exact)
    return Evaluation(found.objective, found.violations, {**found.details, "plans": len(solution.plans)})


def _form(instance: JointInstance, solution: JointPlan) -> Iterator[Violation]:
    if len(solution.runs) != len(instance.jobs):
        yield Violation("every job has an entry", "runs", len(solution.runs), len(instance.jobs))
        return
    planned = [(plan.workload, plan.servers) for plan in solution.plans]
    for key in planned:
        if key[0] >= len(instance.workloads):
            yield Violation("plans are of workloads", "plans", key[0], len(instance.workloads))
            return
        if planned.count(key) > 1:
            yield Violation("a workload has one plan a width", _told(instance, *key), planned.count(key), 1)
            return
    for workload, servers in planned:
        if instance.workloads[workload].choice(servers) is None:
            yield Violation("widths are choices", _told(instance, workload, servers), servers, 0)
    for job, run in zip(instance.jobs, solution.runs, strict=True):
        if (job.workload, run.servers) not in planned:
            yield Violation("a job has a plan for its servers", f"job '{job.name}'", run.servers, 0)
    if {each.workload for each in instance.jobs} - {workload for workload, _ in planned}:
        return
    for key in planned:
        if all((job.workload, run.servers) != key for job, run in zip(instance.jobs, solution.runs, strict=True)):
            yield Violation("a plan is used", _told(instance, *key), 0, 1)


def _plan(instance: JointInstance, plan: WorkloadPlan, exact: bool) -> Iterator[Violation]:
    choice = instance.workloads[plan.workload].choice(plan.servers)
    assert choice is not None
    where, inner = _told(instance, plan.workload, plan.servers), instance.inner(choice)
    if inner is None:
        if plan.answer is not None:
            yield Violation("there is nothing to plan", where, 1, 0)
        if Fraction(plan.step_s) != Fraction(choice.step_s or 0):
            yield Violation("a step takes as long as is said", where, plan.step_s, choice.step_s or 0)
        return
    if plan.answer is None:
        yield Violation("there is a plan", where, 0, 1)
        return
    found = problem_of(inner)
    if not isinstance(plan.answer, found.solution):
        raise SolutionError(f"{where}: a {plan.answer.kind} cannot answer the {inner.kind} '{inner.name}'")
    plan.answer.belongs_to(inner)
    told = found.evaluate(inner, plan.answer, exact)
    for each in told.violations:
        yield Violation(each.kind, f"{where}: {each.where}", each.lhs, each.rhs)
    if told.objective is None or told.violations:
        return
    # In floats the last digit of a sum is no reason to refuse a plan.
    room = Fraction(plan.step_s) if exact else plan.step_s * (1 + ROUNDING)
    if told.objective > room:
        yield Violation("a plan takes no longer than is reserved", where, told.objective, plan.step_s)


def _told(instance: JointInstance, workload: int, servers: int) -> str:
    return f"workload '{instance.workloads[workload].name}' on {servers} servers"
