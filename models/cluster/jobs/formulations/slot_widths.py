"""Jobs with servers slot by slot, a mixed-integer program."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.cluster.jobs.instance import ClusterJob, JobsInstance, JobsSchedule, Stretch
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import Rows, Sum, term, total, weighted
from ddlopt.models.tolerances import INTEGRALITY_TOL

_MOST_CHOICES = 100_000
"""Jobs times slots times widths; more take longer than anybody waits."""


@dataclass(frozen=True)
class SlotWidths(FormulationBase):
    r"""A width for each job in each slot, the last slot of a job apart.

    :math:`y_{jkw} = 1` if job j has w servers all through slot k and is not done in it, :math:`z_{jkw} = 1` if it is
    done in slot k on w servers, :math:`a_{jkw}` its iterations there. In slots of length s, k = 0, 1, …:

    .. math::
        \min\ & C_{\max} \text{ or } \textstyle\sum_j w_j C_j \text{ or } \sum_j w_j L_j \\
        & \textstyle\sum_{k, w} z_{jkw} = 1, \qquad a_{jkw} \le \min(q_j, s / t_j(w))\, z_{jkw} \\
        & \textstyle\sum_{k, w} (s / t_j(w)\, y_{jkw} + a_{jkw}) = q_j \\
        & \textstyle\sum_w y_{jkw} \le \sum_{h > k, w} z_{jhw}, \qquad \sum_{j, w} w (y_{jkw} + z_{jkw}) \le K \\
        & C_j = \textstyle\sum_{k, w} (k\, s\, z_{jkw} + t_j(w)\, a_{jkw}) \\
        & C_{\max} \ge C_j, \qquad L_j \ge C_j - d_j, \quad L_j \ge 0

    A job may take :math:`\ell_j(w) = q_j t_j(w) / s` slots on w servers, hardly more than a whole number. It then needs
    another slot for what solvers take for nothing. Its iterations, measured in slots on w servers and rounded up, say
    so:

    .. math::
        \textstyle\sum_{k, v} \lceil \ell_j(w) / \ell_j(v) \rceil (y_{jkv} + z_{jkv}) \ge \lceil \ell_j(w) \rceil .

    Widths in turn may leave as little, which these rows may not see; :meth:`read` then adds the next slot with servers.

    Ports
    -----
    ``full[j, k, w]``, ``final[j, k, w]``
        y and z.
    ``done[j, k, w]``
        a, as a part of all iterations of the job.
    ``last`` : if the objective is ``makespan``
        The makespan, in slots.
    ``late[j]`` : if the objective is ``weighted_tardiness``
        How late a job ends, in slots.
    ``objective``
        To be minimised, in slots.

    References
    ----------
    Ours.
    """

    covers: ClassVar[type[Instance]] = JobsInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: Any) -> str | None:
        """Rigid jobs, too many slots."""
        if instance.mode != "slots":
            return "it has slots, and this instance has rigid jobs"
        choices = _slots(instance) * sum(len(job.widths) for job in instance.jobs)
        if choices > _MOST_CHOICES:
            return f"it would have {choices} choices of a width in a slot, and at most {_MOST_CHOICES} are built"
        return None

    def build(self, block: pyo.Block, instance: JobsInstance) -> None:
        """Fill ``block``."""
        slot = Fraction(instance.slot_s or 1)
        jobs, slots = range(len(instance.jobs)), range(_slots(instance))
        choices = [
            (j, k, w) for j in jobs for k in slots if k * slot >= Fraction(instance.jobs[j].arrival_s)
            for w in instance.jobs[j].widths
        ]  # fmt: skip
        # In slots: all iterations of a job on w servers.
        lengths = {(j, w): instance.jobs[j].length_s(w) / slot for j in jobs for w in instance.jobs[j].widths}
        block.full = pyo.Var(choices, domain=pyo.Binary, doc="1 if a job has this number of servers and goes on")
        block.final = pyo.Var(
            choices, domain=pyo.Binary, doc="1 if a job is done in the slot on this number of servers"
        )
        block.done = pyo.Var(choices, bounds=(0, 1), doc="part of a job's iterations in its last slot")
        by_job: dict[int, list[tuple[int, int, int]]] = {j: [] for j in jobs}
        by_slot: dict[int, list[tuple[int, int, int]]] = {k: [] for k in slots}
        for key in choices:
            by_job[key[0]].append(key)
            by_slot[key[1]].append(key)
        rows, ends = Rows(), []
        for j in jobs:
            own = by_job[j]
            rows["job_is_done_once"][j] = total(block.final[key] for key in own) == 1.0
            parts = [(min(1.0, float(1 / lengths[j, w])), block.full[j, k, w]) for _, k, w in own]
            rows["all_iterations_are_done"][j] = weighted([*parts, *((1.0, block.done[key]) for key in own)]) == 1.0
            for k in sorted({k for _, k, _ in own}):
                goes_on = total(block.full[key] for key in own if key[1] == k)
                later = total(block.final[key] for key in own if key[1] > k)
                rows["job_goes_on_until_it_is_done"][j, k] = goes_on - later <= 0.0
            for key in own:
                most = min(1.0, float(1 / lengths[j, key[2]]))
                rows["last_slot_has_its_iterations"][key] = term(block.done[key]) <= most * term(block.final[key])
            for w in instance.jobs[j].widths:
                if 0 < lengths[j, w] % 1 < INTEGRALITY_TOL:
                    counted = {v: float(math.ceil(lengths[j, w] / lengths[j, v])) for v in instance.jobs[j].widths}
                    taken = [(counted[key[2]], each[key]) for key in own for each in (block.full, block.final)]
                    rows["little_that_is_left_has_a_slot"][j, w] = weighted(taken) >= float(math.ceil(lengths[j, w]))
            ends.append(
                weighted(
                    [
                        *((float(k), block.final[j, k, w]) for _, k, w in own if k),
                        *((float(lengths[j, w]), block.done[j, k, w]) for _, k, w in own),
                    ]
                )
            )
        for k, keys in by_slot.items():
            if keys:
                used = [(float(key[2]), each[key]) for key in keys for each in (block.full, block.final)]
                rows["servers_are_there"][k] = weighted(used) <= float(instance.servers)
        objective = _objective(block, instance, rows, ends)
        rows.add_to(
            block,
            job_is_done_once="in one slot",
            all_iterations_are_done="of every job",
            job_goes_on_until_it_is_done="a job that is done has no servers",
            last_slot_has_its_iterations="no more than fit into it",
            little_that_is_left_has_a_slot="slots on a width for all iterations, rounded up",
            servers_are_there="no more than the cluster has",
            jobs_end_by_the_last="the makespan is the last end",
            jobs_are_late="behind their deadlines",
        )
        block.objective = pyo.Expression(expr=objective.expression)

    def start(self, block: pyo.Block, instance: JobsInstance, solution: JobsSchedule) -> None:
        """Set all widths; times follow."""
        slot = Fraction(instance.slot_s or 1)
        for family in (block.full, block.final, block.done):
            for variable in family.values():
                variable.set_value(0)
        for j, own in enumerate(solution.runs):
            left = Fraction(1)
            runs = sorted(own, key=lambda run: int(run.start))
            for number, run in enumerate(runs):
                key = (j, int(run.start), run.servers)
                if key not in block.full:
                    return
                if number == len(runs) - 1:
                    block.final[key].set_value(1)
                    block.done[key].set_value(float(left))
                else:
                    block.full[key].set_value(1)
                    left -= slot / instance.jobs[j].length_s(run.servers)

    def read(self, block: pyo.Block, instance: JobsInstance) -> JobsSchedule:
        """The widths of all slots.

        Raises
        ------
        SolverError
            If a width is there in part.
        """
        runs: list[dict[int, int]] = [{} for _ in instance.jobs]
        for name, family in (("full", block.full), ("final", block.final)):
            for (j, k, w), variable in family.items():
                value = pyo.value(variable)
                if abs(value - round(value)) > INTEGRALITY_TOL:
                    raise SolverError(f"{name}[{j}, {k}, {w}] is {value:.6g}, not a whole number")
                if round(value):
                    runs[j][k] = w
        lefts = [_without_the_done(instance, job, own) for job, own in zip(instance.jobs, runs, strict=True)]
        for job, own, left in zip(instance.jobs, runs, lefts, strict=True):
            if 0 < left < INTEGRALITY_TOL:
                _add_slot(instance, job, own, runs)
        found = tuple(tuple(Stretch(start=str(k), servers=own[k]) for k in sorted(own)) for own in runs)
        return JobsSchedule(instance=instance.name, runs=found)

    def objective_value(self, instance: JobsInstance, value: float) -> float:
        """Seconds, times weights."""
        return value * float(instance.slot_s or 1)


def _slots(instance: JobsInstance) -> int:
    """By which some best schedule ends: a slot behind the last arrival in which nobody runs can be left out."""
    slot = Fraction(instance.slot_s or 1)
    arrived = max(math.ceil(Fraction(job.arrival_s) / slot) for job in instance.jobs)
    return arrived + sum(math.ceil(max(job.length_s(w) for w in job.widths) / slot) for job in instance.jobs)


def _without_the_done(instance: JobsInstance, job: ClusterJob, own: dict[int, int]) -> Fraction:
    """Take the slots from a job in which it is done already; what part of it is left after all of them."""
    left, slot = Fraction(1), Fraction(instance.slot_s or 1)
    for k in sorted(own):
        # The check lets nothing pass here, so that a slot for what little is left is needed.
        if left <= 0:
            del own[k]
        else:
            left -= slot / job.length_s(own[k])
    return left


def _add_slot(instance: JobsInstance, job: ClusterJob, own: dict[int, int], runs: list[dict[int, int]]) -> None:
    """Give a job the first slot behind its own with servers for it, on the width that takes the fewest."""
    width, k = min(job.widths), max(own) + 1
    while sum(each.get(k, 0) for each in runs) + width > instance.servers:
        k += 1
    own[k] = width


def _objective(block: pyo.Block, instance: JobsInstance, rows: Rows, ends: list[Sum]) -> Sum:
    jobs = range(len(instance.jobs))
    if instance.objective == "makespan":
        block.last = pyo.Var(bounds=(0, None), doc="the makespan, in slots")
        for j in jobs:
            rows["jobs_end_by_the_last"][j] = term(block.last) - ends[j] >= 0.0
        return term(block.last) + 0.0
    if instance.objective == "weighted_completion":
        parts = [instance.jobs[j].weight * ends[j] for j in jobs]
        return weighted(
            (coefficient, variable)
            for part in parts
            for coefficient, variable in zip(part.coefficients, part.variables, strict=True)
        )
    block.late = pyo.Var(jobs, bounds=(0, None), doc="tardiness, in slots")
    for j in jobs:
        due = float(Fraction(instance.jobs[j].deadline_s or 0) / Fraction(instance.slot_s or 1))
        rows["jobs_are_late"][j] = term(block.late[j]) - ends[j] >= -due
    return weighted((instance.jobs[j].weight, block.late[j]) for j in jobs)
