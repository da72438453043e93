"""Schedule, widths and plans in one mixed-integer program: the programs of all inner problems beside that of jobs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.catalogue import problem_of
from ddlopt.models.cluster.jobs.formulations.server_flows import ServerFlows
from ddlopt.models.cluster.jobs.instance import JobsInstance
from ddlopt.models.cluster.joint.bounds import TINY_S, least_times, simple_step_bound
from ddlopt.models.cluster.joint.instance import Choice, JointInstance, JointPlan, WorkloadPlan, runs_of
from ddlopt.models.codesign.formulations.joint_milp import JointStrategyTopology
from ddlopt.models.codesign.formulations.rows.coupling import cycle_time_s, template_of
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.covering import FormulationBase
from ddlopt.models.deployment.pipeline.formulations.stage_path import StagePath
from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.models.deployment.step.formulations.plan_choice import PlanChoice
from ddlopt.models.deployment.step.instance import StepInstance
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import Rows, Sum, joined, term, total
from ddlopt.models.problem import path_of
from ddlopt.models.remembered import remembered
from ddlopt.models.switched import switch
from ddlopt.models.tolerances import INTEGRALITY_TOL, RANGE_MARGIN, ROUNDING
from ddlopt.models.topology.formulations.rows.throughput import all_bytes

_FLOWS = ServerFlows()
Key = tuple[int, int]
"""A problem's place, and its devices in place of its own number; 0 where that is kept."""


@dataclass(frozen=True)
class PlansAndFlows(FormulationBase):
    r"""Everything at once: the program of each problem that plans answer, switched by widths, and flows of servers.

    :class:`~ddlopt.models.cluster.jobs.formulations.server_flows.ServerFlows` with open lengths stands in the block
    ``schedule``. For every problem p that some job may have a plan of there is its own program, unchanged but switched
    by :math:`z_p` (:func:`~ddlopt.models.switched.switch`), with the time :math:`\tau_p` of a step, which is 0 if
    :math:`z_p` is:
    :class:`~ddlopt.models.codesign.formulations.joint_milp.JointStrategyTopology` for a co-design,
    :class:`~ddlopt.models.deployment.step.formulations.plan_choice.PlanChoice` and
    :class:`~ddlopt.models.deployment.pipeline.formulations.stage_path.StagePath` for large models. With
    :math:`p(j, w)` for the problem of job j on w servers, :math:`u_{jw}` for its length there, :math:`L_p` for a bound
    from below on the time of a step and :math:`U_p` for a time that some plan keeps,

    .. math::
        & y_{jw} \le z_{p(j, w)} \le \textstyle\sum_{i, v:\, p(i, v) = p(j, w)} y_{iv}, \qquad
          C_j - S_j \ge \textstyle\sum_w u_{jw} \\
        & u_{jw} \ge q_j L_{p(j, w)}\, y_{jw}, \qquad
          u_{jw} \ge q_j \bigl(\tau_{p(j, w)} - U_{p(j, w)} (z_{p(j, w)} - y_{jw})\bigr) .

    Where nobody else may have a plan of p, :math:`u = q\, \tau_p` and there is no :math:`U`. Where nothing is to be
    planned, :math:`u_{jw} = q_j t_j(w)\, y_{jw}`. Plans slower than :math:`U_p` are left out, and lose nothing: those
    of different jobs do not meet, so that each problem is best answered by its fastest plan.

    The relaxation is weak, and every inner problem is open all the time: it is for a handful of jobs on a handful of
    servers, and says the same as the loop of the method ``refinement`` without anything of its proof.

    Parameters
    ----------
    rings : {"all", "generators"}
        Of co-designs.

    Ports
    -----
    ``schedule``
        A block with the ports of ``ServerFlows``.
    ``planned[p, k]``
        z of problem p with k devices, or 0 for its own number.
    ``plan[p, k]``
        A block with the ports of its formulation, in the units of that.
    ``part[j, w]``
        u, in units of the schedule, where others may have a plan of the same problem.
    ``objective``
        That of the schedule, to be minimised.

    References
    ----------
    Ours.
    """

    rings: Literal["all", "generators"] = "all"

    covers: ClassVar[type[Instance]] = JointInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: Any) -> str | None:
        """Shared fabrics, problems of plans whose formulation does not cover them, too many jobs."""
        if instance.fabric is not None:
            return "its jobs share a fabric, and this program has links of their own for them"
        for workload in instance.workloads:
            for choice in workload.choices:
                inner = instance.inner(choice)
                told = None if inner is None else self._inner(inner).refuses(inner)
                if told is not None:
                    return f"workload '{workload.name}' on {choice.servers} servers: {told}"
        simple = instance.at(lambda workload, choice: 1.0)
        return _FLOWS.refuses(simple)

    def scope(self, instance: JointInstance) -> str | None:
        """What of all rings is searched."""
        inners = (inner for _, inner in _inners(instance).values())
        return next((told for inner in inners if (told := self._inner(inner).scope(inner))), None)

    def build(self, block: pyo.Block, instance: JointInstance) -> None:
        """Fill ``block``.

        Raises
        ------
        InfeasibleError
            If a job has no plan on any number of servers.
        """
        jobs, most, rows = _slowest(instance), _most(instance), Rows()
        unit = _FLOWS.unit_s(jobs)
        block.schedule = pyo.Block()
        _FLOWS.build(block.schedule, jobs, open_lengths=True)
        used = Counter(_key(choice) for _, choice in _pairs(instance) if choice.problem is not None)
        keys = [key for key in _inners(instance) if used[key] and most[key] is not None]
        block.planned = pyo.Var(keys, domain=pyo.Binary, doc="1 if there is a plan of this problem")
        block.plan = pyo.Block(keys)
        times = {key: self._plan(block.plan[key], block.planned[key], _inners(instance)[key][1]) for key in keys}
        pairs = [(j, choice) for j, choice in _pairs(instance) if choice.servers in jobs.jobs[j].widths]
        shared = [(j, choice.servers) for j, choice in pairs if used[_key(choice)] > 1 and choice.problem is not None]
        block.part = pyo.Var(shared, bounds=(0, None), doc="how long a job runs with these servers, in units")
        parts: dict[int, list[Sum]] = {j: [] for j in range(len(instance.jobs))}
        users: dict[Key, list[Any]] = {key: [] for key in keys}
        for j, choice in pairs:
            w, key, times_per_step = choice.servers, _key(choice), instance.jobs[j].iterations / unit
            width = block.schedule.width[j, w]
            if choice.problem is None:
                parts[j].append(float(jobs.jobs[j].length_s(w) / Fraction(unit)) * term(width))
                continue
            users[key].append(width)
            on = term(block.planned[key])
            rows["a_width_has_its_plan"][j, w] = term(width) - on <= 0.0
            least = times_per_step * (simple_step_bound(instance, choice) or 0.0) * (1 - RANGE_MARGIN)
            length = times_per_step * times[key]
            if (j, w) in block.part:
                longest = times_per_step * float(most[key] or 0.0)
                part = term(block.part[j, w])
                rows["a_job_keeps_to_its_plan"][j, w] = part - length + longest * (on - term(width)) >= 0.0
                length = part
            rows["no_plan_is_below_its_bound"][j, w] = length - least * term(width) >= 0.0
            parts[j].append(length)
        for key, own in users.items():
            rows["plans_are_wanted"][key] = term(block.planned[key]) - total(own) <= 0.0
        for j, own_parts in parts.items():
            rows["jobs_run_so_long"][j] = term(block.schedule.length[j]) - joined(own_parts) >= 0.0
        rows.add_to(
            block,
            a_width_has_its_plan="who has these servers has a plan for them",
            plans_are_wanted="by a job",
            a_job_keeps_to_its_plan="on these servers it takes all its iterations",
            no_plan_is_below_its_bound="on these servers a job takes at least so long",
            jobs_run_so_long="as their plans say",
        )
        block.objective = pyo.Expression(expr=block.schedule.objective.expr)

    def start(self, block: pyo.Block, instance: JointInstance, solution: JointPlan) -> None:
        """Set widths, times and the plans that are used; all of the others is nothing."""
        steps, own = solution.steps(), zip(instance.jobs, solution.runs, strict=True)
        lengths = [Fraction(job.iterations) * Fraction(steps[job.workload, run.servers]) for job, run in own]
        _FLOWS.start(block.schedule, _slowest(instance), solution.schedule(), lengths)
        answers: dict[Key, WorkloadPlan] = {}
        for each in solution.plans:
            choice = instance.workloads[each.workload].choice(each.servers)
            if choice is not None and each.answer is not None:
                key = _key(choice)
                answers[key] = min((answers.get(key, each), each), key=lambda plan: plan.step_s)
        for key, inside in block.plan.items():
            block.planned[key].set_value(int(key in answers))
            if key in answers:
                inner = _inners(instance)[key][1]
                self._inner(inner).start(inside, inner, answers[key].answer)
            else:
                for variable in inside.component_data_objects(pyo.Var):
                    variable.set_value(0)

    def read(self, block: pyo.Block, instance: JointInstance) -> JointPlan:
        """Widths, their plans, and starts as early as can be in the order that they have.

        Raises
        ------
        SolverError
            If something is there in part, or a plan has no time.
        """
        plans: dict[tuple[int, int], WorkloadPlan] = {}
        for j, choice in _pairs(instance):
            place = (instance.jobs[j].workload, choice.servers)
            own = (j, choice.servers)
            there = own in block.schedule.width and pyo.value(block.schedule.width[own]) > 1 - INTEGRALITY_TOL
            if there and place not in plans:
                plans[place] = self._read(block, instance, place[0], choice)
        jobs = instance.at(lambda k, choice: plans[k, choice.servers].step_s if (k, choice.servers) in plans else None)
        schedule = _FLOWS.read(block.schedule, jobs)
        made = tuple(plans[place] for place in sorted(plans))
        return JointPlan(instance=instance.name, runs=runs_of(schedule), plans=made)

    def objective_value(self, instance: JointInstance, value: float) -> float:
        """Seconds, times weights."""
        return _FLOWS.objective_value(_slowest(instance), value)

    def _inner(self, inner: Instance) -> Any:
        found = {
            "codesign": JointStrategyTopology(rings=self.rings),
            "deployment/step": PlanChoice(),
            "deployment/pipeline": StagePath(),
        }
        return found[path_of(inner)]

    def _plan(self, inside: pyo.Block, on: Any, inner: Instance) -> Sum:
        """Fill a block with a problem's program, switched; the seconds of a step."""
        formulation = self._inner(inner)
        formulation.build(inside, inner)
        return float(formulation.objective_value(inner, 1.0)) * switch(inside, on)

    def _read(self, block: pyo.Block, instance: JointInstance, workload: int, choice: Choice) -> WorkloadPlan:
        inner = instance.inner(choice)
        if inner is None:
            assert choice.step_s is not None
            return WorkloadPlan(workload=workload, servers=choice.servers, step_s=choice.step_s, least_s=choice.step_s)
        answer: Solution = self._inner(inner).read(block.plan[_key(choice)], inner)
        told = problem_of(inner).evaluate(inner, answer)
        if told.objective is None:
            raise SolverError(f"the plan of '{inner.name}' has no time: {'; '.join(map(str, told.violations))}")
        step_s = max(float(told.objective), TINY_S) * (1 + ROUNDING)
        return WorkloadPlan(workload=workload, servers=choice.servers, step_s=step_s, answer=answer)


def _key(choice: Choice) -> Key:
    return (-1 if choice.problem is None else choice.problem), choice.devices or 0


def _pairs(instance: JointInstance) -> Iterator[tuple[int, Choice]]:
    """Every job with every choice of its workload."""
    for j, job in enumerate(instance.jobs):
        for choice in instance.workloads[job.workload].choices:
            yield j, choice


def _inners(instance: JointInstance) -> dict[Key, tuple[Choice, Instance]]:
    """Every problem that plans are to answer, with a choice that it is of."""
    found: dict[Key, tuple[Choice, Instance]] = {}
    for workload in instance.workloads:
        for choice in workload.choices:
            inner = instance.inner(choice)
            if inner is not None:
                found.setdefault(_key(choice), (choice, inner))
    return found


@remembered
def _most(instance: JointInstance) -> dict[Key, float | None]:
    """Of every problem, what some plan takes at most; None if it is known that there is none.

    Times that are known are widened by a margin: a row that the best plan holds to the last digit cuts it off within
    the tolerances of solvers.
    """
    found: dict[Key, float | None] = {}
    for key, (choice, inner) in _inners(instance).items():
        known = None if simple_step_bound(instance, choice) is None else _achievable_s(inner)
        found[key] = None if known is None else max(known, TINY_S) * (1 + RANGE_MARGIN)
    return found


@remembered
def _slowest(instance: JointInstance) -> JobsInstance:
    """Jobs at the times of :func:`_most`: no length of the program is above."""
    most = _most(instance)
    return least_times(instance, lambda _, choice: most[_key(choice)])


def _achievable_s(inner: Instance) -> float | None:
    """What the fastest plan takes at most; None if it is known that there is none."""
    if isinstance(inner, CodesignInstance):
        return _codesign_s(inner)
    found: float | None
    if isinstance(inner, StepInstance):
        found = PlanChoice().achievable_s(inner)
    else:
        assert isinstance(inner, PipelineInstance)
        found = StagePath().achievable_s(inner)
    return found


def _codesign_s(inner: CodesignInstance) -> float:
    """A plan on one cycle of links, or what no plan takes more than whose routes are simple paths."""
    known = cycle_time_s(inner)
    if known is not None:
        return known
    template = template_of(inner)
    sent = 0.0 if template is None else all_bytes(template) / inner.link_bandwidth_bytes_per_s
    return sent + sum(float(times.max()) for times in tables_of(inner).compute_s)
