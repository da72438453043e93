"""The independent check of a schedule with plans: every plan by its own problem's check, then the schedule."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from ddlopt.models.catalogue import problem_of
from ddlopt.models.cluster.jobs.evaluate import evaluate_jobs
from ddlopt.models.cluster.joint.instance import JointInstance, JointPlan, Run, WorkloadPlan
from ddlopt.models.contracts import Evaluation, Violation
from ddlopt.models.errors import SolutionError, a_or_an
from ddlopt.models.tolerances import ROUNDING


def evaluate_joint(instance: JointInstance, solution: JointPlan, exact: bool = False) -> Evaluation:
    """The objective of a schedule with plans, and what it violates.

    A plan is checked as an answer to the problem of its workload on that number of servers, and may not take longer
    than what is reserved for a step. Then starts and servers are looked at with the reserved times, in fractions; and
    in a fabric hosts of racks and rates on uplinks.

    Details are those of cluster jobs, and ``plans``, how many there are; in a fabric also ``crossing_jobs``, which use
    uplinks, and ``busiest_uplink``, the most of an uplink that is reserved at a time, over what it has.
    """
    wrong = list(_form(instance, solution))
    for plan in () if wrong else solution.plans:
        wrong += _plan(instance, plan, exact)
    if wrong:
        return Evaluation(None, tuple(wrong))
    found = evaluate_jobs(instance.reserved(solution), solution.schedule(), exact)
    details = {**found.details, "plans": len(solution.plans)}
    if instance.fabric is not None:
        broken, told = _fabric(instance, solution)
        wrong += broken
        details |= {name: value if exact else float(value) for name, value in told.items()}
    return Evaluation(found.objective, (*found.violations, *wrong), details)


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
    if {each.workload for each in instance.jobs} <= {workload for workload, _ in planned}:
        asked = {(job.workload, run.servers) for job, run in zip(instance.jobs, solution.runs, strict=True)}
        for key in planned:
            if key not in asked:
                yield Violation("a plan is used", _told(instance, *key), 0, 1)
    steps = solution.steps()
    for job, run in zip(instance.jobs, solution.runs, strict=True):
        least = steps.get((job.workload, run.servers), 0.0)
        if run.step_s is not None and run.step_s < least:
            yield Violation("a job is no faster than its plan", f"job '{job.name}'", run.step_s, least)
        yield from _places(instance, job.name, run)


def _places(instance: JointInstance, name: str, run: Run) -> Iterator[Violation]:
    where, fabric = f"job '{name}'", instance.fabric
    if fabric is None:
        if run.places:
            yield Violation("places are in a fabric", where, len(run.places), 0)
        return
    for rack, count in run.places:
        if rack >= len(fabric.groups) or not fabric.groups[rack].hosts:
            yield Violation("places are racks", where, rack, len(fabric.groups))
        if count < 1:
            yield Violation("a job has hosts where it is", f"{where}, group {rack}", count, 1)
    racks = [rack for rack, _ in run.places]
    if len(set(racks)) < len(racks):
        yield Violation("a rack is named once", where, len(racks), len(set(racks)))
    given = sum(count for _, count in run.places)
    if given != run.servers:
        yield Violation("a job has a host for each of its servers", where, given, run.servers)


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
        raise SolutionError(f"{where}: {a_or_an(plan.answer.kind)} cannot answer the {inner.kind} '{inner.name}'")
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


Use = tuple[Fraction, Fraction, Fraction]
"""From when until when, and how much."""


def _fabric(instance: JointInstance, solution: JointPlan) -> tuple[list[Violation], dict[str, Fraction]]:
    """What hosts and rates violate, and figures for people.

    Of a rack or an uplink only the first moment is told at which it has too little.
    """
    fabric = instance.fabric
    assert fabric is not None
    hosts, rates, crossing = _uses(instance, solution)
    wrong, busiest = list[Violation](), Fraction(0)
    for rack, uses in sorted(hosts.items()):
        most = Fraction(fabric.groups[rack].hosts)
        over = next((each for each in _totals(uses) if each[1] > most), None)
        if over is not None:
            where = f"rack '{fabric.groups[rack].name}', {float(over[0]):.6g} s"
            wrong.append(Violation("hosts of a rack suffice", where, over[1], most))
    for group, uses in sorted(rates.items()):
        most = Fraction(fabric.groups[group].uplink_bytes_per_s)
        totals = list(_totals(uses))
        over = next((each for each in totals if each[1] > most), None)
        if over is not None:
            where = f"uplink of '{fabric.groups[group].name}', {float(over[0]):.6g} s"
            wrong.append(Violation("an uplink carries what is reserved", where, over[1], most))
        busiest = max(busiest, *(used / most for _, used in totals))
    return wrong, {"crossing_jobs": Fraction(crossing), "busiest_uplink": busiest}


def _uses(instance: JointInstance, solution: JointPlan) -> tuple[dict[int, list[Use]], dict[int, list[Use]], int]:
    """Hosts of each rack, rates on each uplink, and how many jobs use uplinks."""
    fabric, steps = instance.fabric, solution.steps()
    assert fabric is not None
    hosts: dict[int, list[Use]] = {}
    rates: dict[int, list[Use]] = {}
    crossing = 0
    for job, run in zip(instance.jobs, solution.runs, strict=True):
        step, start = Fraction(run.step_s or steps[job.workload, run.servers]), Fraction(run.start)
        end = start + Fraction(job.iterations) * step
        within = Counter[int]()
        for rack, count in run.places:
            hosts.setdefault(rack, []).append((start, end, Fraction(count)))
            group: int | None = rack
            while group is not None:
                within[group] += count
                group = fabric.groups[group].inside
        choice = instance.workloads[job.workload].choice(run.servers)
        sent = Fraction(choice.crossing_bytes if choice else 0)
        crossed = [group for group, count in within.items() if count < run.servers and sent]
        crossing += bool(crossed)
        for group in crossed:
            rates.setdefault(group, []).append((start, end, sent / step))
    return hosts, rates, crossing


def _totals(uses: list[Use]) -> Iterator[tuple[Fraction, Fraction]]:
    """Moments at which something changes, and what is used from then on."""
    changes: dict[Fraction, Fraction] = {}
    for start, end, amount in uses:
        changes[start] = changes.get(start, Fraction(0)) + amount
        changes[end] = changes.get(end, Fraction(0)) - amount
    used = Fraction(0)
    for moment in sorted(changes):
        used += changes[moment]
        yield moment, used
