"""Rigid gangs: jobs of one width each that run in one piece until they are done; SJF-BCO's problem."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.frontier.scheduling.formulations.rigid_gangs import starts
from ddlopt.models.covering import FormulationBase
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.scheduling.refusals import not_gangs
from ddlopt.models.scheduling.solution import Schedule
from ddlopt.models.scheduling.units import objective_unit


@dataclass(frozen=True)
class RigidGangs(FormulationBase):
    r"""Each job has one width and runs in one piece, with the same workers, until it is done.

    SJF-BCO's problem without contention: minimise the last end, or the weighted sum of the times from arrival to end,
    where widths alone decide what fits and how fast a job is. Let :math:`n_{kt} \in \mathbb{Z}` be the jobs of kind k
    that start in slot t; jobs of one kind have the same length :math:`p_k`, amounts :math:`c_{kr}`, arrival and
    deadline, and :math:`N_k` of them there are. With :math:`R_{kt} = \sum_{t - p_k < t' \le t} n_{kt'}`,

    .. math::
        \min\ & L + \textstyle\sum_{\tau \ge L} m_\tau \\
        & \textstyle\sum_t n_{kt} = N_k,\qquad \sum_k c_{kr} R_{kt} \le C_r \quad (t < L) \\
        & \textstyle\sum_k c_{kr} R_{k\tau} \le C_r\, m_\tau,\quad
          R_{k\tau} \le \min(N_k, \lfloor C_r / c_{kr} \rfloor)\, m_\tau,\quad
          m_{\tau+1} \le m_\tau \in \{0, 1\} \quad (\tau \ge L)

    where L is the combinatorial bound
    (:func:`~ddlopt.frontier.scheduling.makespan.bounds.makespan_bound_slots`), so that the slots that matter end soon:
    at the makespan of a simple list schedule, or at ``achievable_s``. Jobs may only start where left-shifted schedules
    can have a start: at an arrival plus lengths of distinct jobs. The completion time has costs on :math:`n_{kt}`.

    *What a host must not couple to.* With ``reduced``, when jobs start where they do not hurry; with ``achievable_s``,
    schedules that are worse. Of jobs of one kind, which starts when.

    Parameters
    ----------
    achievable_s : float, optional
        An objective that some schedule is known to have; worse ones are excluded. Default: the makespan of a simple
        list schedule.
    reduced : bool
        Leave out what is no better for the objective: starts that left-shifted schedules do not have, and slots after
        the makespan of a simple list schedule.

    Ports
    -----
    ``starting[k, t]``
        Jobs of kind k that start in slot t.
    ``busy[t]`` : objective ``makespan``
        1 if the last end is after slot t.
    ``objective``
        Slots to the last end, or weighted slots from arrival to end in units of
        :func:`~ddlopt.models.scheduling.units.objective_unit`, to be minimised.

    References
    ----------
    The problem is SJF-BCO's (MobiHoc 2022) in our reading, without its contention. Start-indexed models of cumulative
    resources are due to A. Pritsker et al. (Management Science 16, 1969); rows with :math:`m_\tau` and useful starts
    are ours.
    """

    achievable_s: float | None = None
    reduced: bool = True

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    outer: ClassVar[bool] = True

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Objectives that count no ends, elastic and preemptive jobs, places that matter, and what is too large."""
        reason = not_gangs(instance)
        if reason is not None:
            return reason
        if instance.preemptive:
            return "jobs are preemptive, but it runs each in one piece; use time-indexed"
        if not pool(instance).exact:
            return "speeds or what fits depend on places, but it knows widths alone; use one-piece or gang-search"
        return starts.too_large(instance, self.achievable_s, self.reduced)

    def build(self, block: pyo.Block, instance: SchedulingInstance) -> None:
        """Fill ``block`` with starts.

        Raises
        ------
        InfeasibleError
            If it is proven that not all jobs can be finished in time: the makespan's bound, of which
            :func:`~ddlopt.frontier.scheduling.makespan.bounds.makespan_bound_slots` has the proof, is beyond the last
            slot.
        """
        starts.add(block, instance, self.achievable_s, self.reduced)

    def start(self, block: pyo.Block, instance: SchedulingInstance, solution: Schedule) -> None:
        """Starts of the schedule's jobs, as early as their order allows."""
        starts.set_values(block, instance, solution, self.achievable_s, self.reduced)

    def read(self, block: pyo.Block, instance: SchedulingInstance) -> Schedule:
        """The schedule that the values describe.

        Raises
        ------
        SolverError
            If a job has no start, or places do not fit.
        """
        return starts.read(block, instance)

    def objective_value(self, instance: SchedulingInstance, value: float) -> float:
        """Seconds for slots."""
        return value * objective_unit(instance) * instance.slot_s
