"""Rigid jobs as servers that go from job to job, a mixed-integer program."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.cluster.jobs.bounds import shortest_s
from ddlopt.models.cluster.jobs.instance import JobsInstance, JobsSchedule, Stretch
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import RangeError, SolverError
from ddlopt.models.linear import Rows, Sum, joined, term, total, weighted
from ddlopt.models.tolerances import INTEGRALITY_TOL, RANGE_MARGIN
from ddlopt.models.units import MOST_UNITS, unit_of

_MOST_JOBS = 40
"""Flows between more pairs are a model that hardly moves."""


@dataclass(frozen=True)
class ServerFlows(FormulationBase):
    r"""Servers go from a job that ends to jobs that begin.

    :math:`y_{jw} = 1` if job j has w servers, S its start and C its end, :math:`f_{ij}` the servers that it gets from
    job i (0: from the beginning), :math:`x_{ij} = 1` if i ends before j begins. With T a time by which all can end:

    .. math::
        \min\ & C_{\max} \text{ or } \textstyle\sum_j w_j C_j \text{ or } \sum_j w_j L_j \\
        & \textstyle\sum_w y_{jw} = 1, \qquad S_j \ge r_j, \qquad C_j = S_j + \sum_w q_j t_j(w)\, y_{jw} \\
        & \textstyle\sum_{i} f_{ij} = \sum_w w\, y_{jw}, \qquad \sum_{k} f_{jk} \le \sum_w w\, y_{jw}, \qquad
          \sum_j f_{0j} \le K \\
        & f_{ij} \le K x_{ij}, \qquad x_{ij} + x_{ji} \le 1, \qquad S_j \ge C_i - T (1 - x_{ij}) \\
        & C_{\max} \ge C_j, \qquad L_j \ge C_j - d_j, \quad L_j \ge 0

    Ports
    -----
    ``width[j, w]``
        y.
    ``start_time[j]``, ``end_time[j]``
        S and C, in units of :meth:`unit_s` from :meth:`origin_s` on.
    ``last`` : if the objective is ``makespan``
        The last of them.
    ``late[j]`` : if the objective is ``weighted_tardiness``
        How late a job ends, in the same units.
    ``objective``
        To be minimised, in units of :meth:`unit_s`; weights are in units of :meth:`unit_weight`.

    References
    ----------
    C. Artigues, P. Michelon, S. Reusser, "Insertion techniques for static and dynamic resource-constrained project
    scheduling", European Journal of Operational Research 149 (2003), for flows of resources; widths are ours.
    """

    covers: ClassVar[type[Instance]] = JobsInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: Any) -> str | None:
        """Slots, too many jobs."""
        if instance.mode != "rigid":
            return "it has rigid jobs, and this instance has slots"
        if len(instance.jobs) > _MOST_JOBS:
            return f"it has {len(instance.jobs)} jobs, and at most {_MOST_JOBS} are modelled"
        return None

    def unit_s(self, instance: JobsInstance) -> float:
        """In which times are measured, by the longest job that counts.

        One without weight may take far longer than what the objective is made of, and rows hold to a part of a unit.
        """
        return unit_of(float(_longest_s(instance)))

    def origin_s(self, instance: JobsInstance) -> float:
        """The first arrival, from which times are counted: seconds of a calendar have too many digits."""
        return min(job.arrival_s for job in instance.jobs)

    def unit_weight(self, instance: JobsInstance) -> float:
        """In which weights are measured, so that tiny ones count too; 1 if there are none."""
        heaviest = max(job.weight for job in instance.jobs)
        return unit_of(heaviest, parts=1) if heaviest and instance.objective != "makespan" else 1.0

    def build(self, block: pyo.Block, instance: JobsInstance, open_lengths: bool = False) -> None:
        """Fill ``block``.

        With ``open_lengths`` a host model says how long each job runs: it has ``length[j]``, :math:`C_j - S_j` in units
        of :meth:`unit_s`, up to what the table says of the width.

        Raises
        ------
        RangeError
            If all of it is too long beside a job.
        """
        unit, servers = Fraction(self.unit_s(instance)), float(instance.servers)
        begins = Fraction(self.origin_s(instance))
        jobs = range(len(instance.jobs))
        widths = [(j, w) for j in jobs for w in instance.jobs[j].widths]
        pairs = [(i, j) for i in jobs for j in jobs if i != j]
        lengths = {(j, w): float(instance.jobs[j].length_s(w) / unit) for j, w in widths}
        arrival = [float((Fraction(job.arrival_s) - begins) / unit) for job in instance.jobs]
        # By then all can end one after the other; a range as narrow as a tolerance would be empty to presolve.
        end = max(arrival) + sum(max(lengths[j, w] for w in instance.jobs[j].widths) for j in jobs)
        end *= 1 + RANGE_MARGIN
        if end > MOST_UNITS:
            longest = float(_longest_s(instance))
            raise RangeError(
                f"'{instance.name}': until all jobs have ended it may take {end * float(unit):.3g} s, and the longest "
                f"that counts takes {longest:.3g} s: too far apart for this formulation; use start-order or "
                "list-exchange"
            )
        block.width = pyo.Var(widths, domain=pyo.Binary, doc="1 if the job has this number of servers")
        block.start_time = pyo.Var(
            jobs, bounds=lambda _, j: (arrival[j], end), doc="when a job begins, in units from the first arrival on"
        )
        block.end_time = pyo.Var(jobs, bounds=(0, end), doc="when a job ends, likewise")
        block.before = pyo.Var(pairs, domain=pyo.Binary, doc="1 if a job ends before another one begins")
        block.handed = pyo.Var(pairs, bounds=(0, servers), doc="servers that a job gets from another one")
        block.fresh = pyo.Var(jobs, bounds=(0, servers), doc="servers that nobody had before")
        if open_lengths:
            block.length = pyo.Var(jobs, bounds=(0, end), doc="how long a job runs, in units")
        rows = Rows()
        rows["servers_are_there"][None] = total(block.fresh[j] for j in jobs) <= servers
        for j in jobs:
            own = [w for i, w in widths if i == j]
            has = weighted((float(w), block.width[j, w]) for w in own)
            others = [i for i in jobs if i != j]
            rows["job_has_one_width"][j] = total(block.width[j, w] for w in own) == 1.0
            most = weighted((lengths[j, w], block.width[j, w]) for w in own)
            length = most
            if open_lengths:
                length = term(block.length[j])
                rows["length_is_within_the_table"][j] = length - most <= 0.0
            rows["job_ends"][j] = term(block.end_time[j]) - term(block.start_time[j]) - length == 0.0
            given = total(block.handed[i, j] for i in others) + term(block.fresh[j])
            rows["job_gets_its_servers"][j] = given - has == 0.0
            if others:
                rows["job_hands_on_what_it_has"][j] = total(block.handed[j, k] for k in others) - has <= 0.0
        for i, j in pairs:
            rows["servers_come_from_jobs_before"][i, j] = term(block.handed[i, j]) <= servers * term(block.before[i, j])
            gap = term(block.start_time[j]) - term(block.end_time[i]) - end * term(block.before[i, j])
            rows["jobs_before_have_ended"][i, j] = gap >= -end
            if i < j:
                rows["one_is_before_the_other"][i, j] = term(block.before[i, j]) + term(block.before[j, i]) <= 1.0
        objective = self._objective(block, instance, rows, unit, end)
        rows.add_to(
            block,
            job_has_one_width="the same number of servers all the time",
            length_is_within_the_table="no job takes longer than its table says of its width",
            job_ends="after all its iterations",
            job_gets_its_servers="from jobs before it, or from nobody",
            job_hands_on_what_it_has="no more servers than it had",
            servers_are_there="no more than the cluster has",
            servers_come_from_jobs_before="only from those that ended",
            jobs_before_have_ended="when this one begins",
            one_is_before_the_other="of two jobs at most one",
            jobs_end_by_the_last="the makespan is the last end",
            jobs_are_late="behind their deadlines",
        )
        block.objective = pyo.Expression(expr=objective.expression + self._before(instance))

    def start(
        self, block: pyo.Block, instance: JobsInstance, solution: JobsSchedule, lengths: list[Fraction] | None = None
    ) -> None:
        """Set widths and times, with other lengths than those of the table where they are open."""
        given = lengths or [instance.jobs[j].length_s(run.servers) for j, (run,) in enumerate(solution.runs)]
        unit, begins = Fraction(self.unit_s(instance)), Fraction(self.origin_s(instance))
        times = []
        for j, (run,) in enumerate(solution.runs):
            start = Fraction(run.start) - begins
            times.append((start, start + given[j]))
            for w in instance.jobs[j].widths:
                block.width[j, w].set_value(int(w == run.servers))
            block.start_time[j].set_value(float(start / unit))
            block.end_time[j].set_value(float(times[j][1] / unit))
            if lengths is not None:
                block.length[j].set_value(float(given[j] / unit))
        for (i, j), variable in block.before.items():
            variable.set_value(int(times[i][1] <= times[j][0]))

    def read(self, block: pyo.Block, instance: JobsInstance) -> JobsSchedule:
        """Widths and the order of starts, each as early as can be.

        Raises
        ------
        SolverError
            If a job has not one width.
        """
        jobs = range(len(instance.jobs))
        chosen = {}
        for (j, w), variable in block.width.items():
            value = pyo.value(variable)
            if abs(value - round(value)) > INTEGRALITY_TOL:
                raise SolverError(f"width[{j}, {w}] is {value:.6g}, not a whole number")
            if round(value):
                chosen[j] = w
        if len(chosen) < len(jobs):
            raise SolverError(f"{len(jobs) - len(chosen)} jobs have no width")
        runs: dict[int, Stretch] = {}
        busy: list[tuple[Fraction, int]] = []
        now = Fraction(0)
        for j in sorted(jobs, key=lambda j: (pyo.value(block.start_time[j]), j)):
            now = max(now, Fraction(instance.jobs[j].arrival_s))
            moments = sorted({now, *(end for end, _ in busy if end > now)})
            now = next(t for t in moments if sum(w for end, w in busy if end > t) + chosen[j] <= instance.servers)
            runs[j] = Stretch(start=str(now), servers=chosen[j])
            busy.append((now + instance.jobs[j].length_s(chosen[j]), chosen[j]))
        return JobsSchedule(instance=instance.name, runs=tuple((runs[j],) for j in jobs))

    def objective_value(self, instance: JobsInstance, value: float) -> float:
        """Seconds, times weights."""
        return value * self.unit_s(instance) * self.unit_weight(instance)

    def _weights(self, instance: JobsInstance) -> list[float]:
        unit = Fraction(self.unit_weight(instance))
        return [float(Fraction(job.weight) / unit) for job in instance.jobs]

    def _before(self, instance: JobsInstance) -> float:
        """What the time before the first arrival is in the objective."""
        begins = self.origin_s(instance) / self.unit_s(instance)
        if instance.objective == "weighted_tardiness":
            return 0.0
        return begins * (1.0 if instance.objective == "makespan" else sum(self._weights(instance)))

    def _objective(self, block: pyo.Block, instance: JobsInstance, rows: Rows, unit: Fraction, end: float) -> Sum:
        jobs = range(len(instance.jobs))
        weights = self._weights(instance)
        if instance.objective == "makespan":
            block.last = pyo.Var(bounds=(0, end), doc="the last end, in units from the first arrival on")
            for j in jobs:
                rows["jobs_end_by_the_last"][j] = term(block.last) - term(block.end_time[j]) >= 0.0
            return joined([term(block.last)])
        if instance.objective == "weighted_completion":
            return weighted((weights[j], block.end_time[j]) for j in jobs)
        block.late = pyo.Var(jobs, bounds=(0, end), doc="tardiness, in units")
        for j in jobs:
            due = float((Fraction(instance.jobs[j].deadline_s or 0) - Fraction(self.origin_s(instance))) / unit)
            rows["jobs_are_late"][j] = term(block.late[j]) - term(block.end_time[j]) >= -due
        return weighted((weights[j], block.late[j]) for j in jobs)


def _longest_s(instance: JobsInstance) -> Fraction:
    """Of the jobs that the objective is made of; of all, where it is made of none."""
    counting = [job for job in instance.jobs if job.weight > 0 or instance.objective == "makespan"]
    return max(map(shortest_s, counting or instance.jobs))
