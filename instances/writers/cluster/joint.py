"""Schedules with plans: as tables, and as one script with the plan of every job in it."""

import shlex
from collections.abc import Iterator
from fractions import Fraction

from ddlopt.instances import writers
from ddlopt.instances.writers.layout import Section, label, seconds, section
from ddlopt.models.catalogue import require_feasible
from ddlopt.models.cluster.joint.instance import JointInstance, JointPlan, WorkloadPlan
from ddlopt.models.contracts import Evaluation
from ddlopt.models.errors import DdloptError

OWN = {"codesign": "routes", "deployment/step": "megatron"}
"""The format of a plan, by its problem; others are written as tables."""


def table(instance: JointInstance, solution: JointPlan) -> Iterator[Section]:
    """Sections of a schedule with plans."""
    steps = solution.steps()
    rows, plans = [], []
    for place, (job, run) in enumerate(zip(instance.jobs, solution.runs, strict=True)):
        start, step = Fraction(run.start), run.step_s or steps[job.workload, run.servers]
        end = start + Fraction(job.iterations) * Fraction(step)
        name = instance.workloads[job.workload].name
        told = seconds(float(start)), seconds(float(end)), run.servers
        rows.append((label(place, job.name), name, *told, seconds(step)))
    yield section("Jobs", ("job", "workload", "from", "to", "servers", "time of an iteration"), rows)
    if instance.fabric is not None:
        names, groups = [each.name for each in instance.jobs], instance.fabric.groups
        where = [
            (label(place, name), groups[rack].name, count)
            for place, (name, run) in enumerate(zip(names, solution.runs, strict=True))
            for rack, count in run.places
        ]
        yield section("Places", ("job", "rack", "servers"), where)
    for plan in solution.plans:
        name = instance.workloads[plan.workload].name
        plans.append((name, plan.servers, seconds(plan.step_s), seconds(plan.least_s)))
    yield section("Plans", ("workload", "servers", "time of an iteration", "no plan takes less than"), plans)


def cluster_script(instance: JointInstance, solution: JointPlan, evaluation: Evaluation) -> str:
    """A script that takes the name of a job: when it starts, on which hosts, and the plan in the format of its kind."""
    lines = ['JOB="$1"', "shift", 'case "$JOB" in']
    plans = {(plan.workload, plan.servers): plan for plan in solution.plans}
    for job, run, own in zip(instance.jobs, solution.runs, hosts(instance, solution), strict=True):
        plan = plans[job.workload, run.servers]
        lines += [f"{shlex.quote(job.name)})", f"START_S={float(Fraction(run.start)):.6f}", f"SERVERS={run.servers}"]
        lines += [f"HOSTS={shlex.quote(' '.join(own))}"] if own else []
        lines += [*_body(instance, plan), ";;"]
    names = ", ".join(job.name for job in instance.jobs)
    lines += ["*)", f"echo {shlex.quote(f'usage: give a job: {names}')} >&2", "exit 2", ";;", "esac"]
    return "\n".join(lines) + "\n"


def hosts(instance: JointInstance, solution: JointPlan) -> list[list[str]]:
    """Names of each job's hosts, rack by rack: a rack's hosts are numbered from 0, and each has one job at a time."""
    if instance.fabric is None:
        return [[] for _ in solution.runs]
    steps = solution.steps()
    free = {rack: list(range(instance.fabric.groups[rack].hosts)) for rack in instance.fabric.racks}
    taken: list[tuple[Fraction, int, int]] = []
    found: dict[int, list[str]] = {}
    for place, run in sorted(enumerate(solution.runs), key=lambda each: Fraction(each[1].start)):
        job, start = instance.jobs[place], Fraction(run.start)
        for end, rack, host in [each for each in taken if each[0] <= start]:
            free[rack].append(host)
            taken.remove((end, rack, host))
        end = start + Fraction(job.iterations) * Fraction(run.step_s or steps[job.workload, run.servers])
        found[place] = []
        for rack, count in run.places:
            own, free[rack] = sorted(free[rack])[:count], sorted(free[rack])[count:]
            taken += [(end, rack, host) for host in own]
            found[place] += [f"{instance.fabric.groups[rack].name}-{host}" for host in own]
    return [found[place] for place in range(len(solution.runs))]


def _body(instance: JointInstance, plan: WorkloadPlan) -> list[str]:
    choice = instance.workloads[plan.workload].choice(plan.servers)
    assert choice is not None
    inner = instance.inner(choice)
    if inner is None or plan.answer is None:
        return ["# no plan: its time is given"]
    evaluation = require_feasible(inner, plan.answer)
    known = writers.formats_of(inner)
    wanted = next((each for each in OWN.values() if each in known), "table")
    try:
        text = writers.written(inner, plan.answer, wanted, evaluation)
    except DdloptError as fault:
        wanted, text = "table", f"{fault}\n{writers.written(inner, plan.answer, 'table', evaluation)}"
    body = text.splitlines()
    return body if wanted != "table" else [f"# {line}".rstrip() for line in body]
