"""Rigid gangs: jobs of one width each that run in one piece until they are done; SJF-BCO's problem."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.frontier.scheduling.formulations.rigid_gangs import places as rigid_places
from ddlopt.frontier.scheduling.formulations.rigid_gangs import starts as rigid_starts
from ddlopt.models.scheduling.gangs import not_gangs
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.scheduling.solution import Schedule
from ddlopt.models.scheduling.units import objective_unit


@dataclass(frozen=True)
class RigidGangs:
    r"""Each job has one width and runs in one piece, with the same workers, until it is done.

    SJF-BCO's problem: minimise the last end, or the weighted sum of the times from arrival to end. There are two forms.

    **Starts** (where widths alone decide what fits and how fast a job is). Let :math:`n_{kt} \in \mathbb{Z}` be the
    jobs of kind k that start in slot t; jobs of one kind have the same length :math:`p_k`, amounts :math:`c_{kr}`,
    arrival and deadline, and :math:`N_k` of them there are. With :math:`R_{kt} = \sum_{t - p_k < t' \le t} n_{kt'}`,

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

    **Places** (with contention, or where workers of different jobs take different amounts of several servers). Let
    :math:`x_{jt} = 1` if job j runs in slot t, :math:`y_{js}` its workers on server s and :math:`q_{js} = 1` if there
    are any, :math:`o_{jn} = 1` if it is on n servers, and :math:`\ell_{jnkt} = 1` if it then runs at contention level
    k, the number of split jobs on its most crowded server (0 for n = 1), at the rate :math:`\varphi_{jnk}`:

    .. math::
        & \textstyle\sum_s y_{js} = G_j,\quad q_{js} \le y_{js} \le Y_{js}\, q_{js},\quad
          \sum_n o_{jn} = 1,\quad \sum_n n\, o_{jn} = \sum_s q_{js} \\
        & x_{jt} - x_{j,t-1} = b_{jt} - d_{jt},\quad \textstyle\sum_t b_{jt} = 1,\quad
          \sum_{nk} \ell_{jnkt} = x_{jt},\quad \sum_k \ell_{jnkt} \le o_{jn},\quad
          \sum_{nkt} \varphi_{jnk}\, \ell_{jnkt} \ge F_j \\
        & \textstyle\sum_s z_{jst} = G_j\, x_{jt},\quad z_{jst} \le y_{js},\quad \sum_j l_j^r z_{jst} \le C_s^r \\
        & h_{jst} \ge q_{js} + x_{jt} - 1 - o_{j1},\qquad
          \textstyle\sum_{i \ne j} h_{ist} \le \sum_{nk} k\, \ell_{jnkt} - 1 + K_j (1 - h_{jst})

    with :math:`h_{jst} = 1` for a split job j that meets others on server s, and :math:`K_j - 1` the other jobs that
    may be split. The makespan is counted by :math:`m_\tau \ge x_{j\tau}` as above. Of equal servers the first has most
    workers of the widest job, and of equal jobs the first starts first. It may run a job longer or at a higher level
    than need be, so that its objective is an estimate, while its bound holds (``outer``). It suits some ten jobs.

    *What a host must not couple to.* With ``reduced``, which of equal servers and equal jobs is which, and when jobs
    start where they do not hurry; with ``achievable_s``, schedules that are worse. Of jobs of one kind, which starts
    when.

    Parameters
    ----------
    achievable_s : float, optional
        An objective that some schedule is known to have; worse ones are excluded. Default: the makespan of a simple
        list schedule, where the starts form is taken.
    reduced : bool
        Leave out what is no better for the objective: equal servers and jobs in another order, starts that left-shifted
        schedules do not have, and slots after the makespan of a simple list schedule.

    Ports
    -----
    ``starting[k, t]`` : starts form
        Jobs of kind k that start in slot t.
    ``running[j, t]``, ``workers[j, s]`` : places form
        1 if job j runs in slot t, and its workers on server s.
    ``busy[t]`` : objective ``makespan``
        1 if the last end is after slot t.
    ``objective``
        Slots to the last end, or weighted slots from arrival to end in units of
        :func:`~ddlopt.models.scheduling.units.objective_unit`, to be minimised.

    References
    ----------
    The problem, contention included, is SJF-BCO's (MobiHoc 2022) in our reading. Start-indexed models of cumulative
    resources are due to A. Pritsker et al. (Management Science 16, 1969); rows with :math:`m_\tau`, useful starts, and
    the places form are ours.
    """

    achievable_s: float | None = None
    reduced: bool = True

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    outer: ClassVar[bool] = True

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Objectives that count no ends, elastic and preemptive jobs, networks, and sizes that are hopeless."""
        reason = not_gangs(instance)
        if reason is not None:
            return reason
        if instance.preemptive:
            return "jobs are preemptive, but it runs each in one piece; use time-indexed"
        if pool(instance).exact:
            return rigid_starts.too_large(instance, self.achievable_s, self.reduced)
        return rigid_places.too_large(instance)

    def scope(self, instance: SchedulingInstance) -> str | None:
        """All schedules."""
        return None

    def build(self, block: pyo.Block, instance: SchedulingInstance) -> None:
        """Fill ``block`` with starts or places.

        Raises
        ------
        InfeasibleError
            If it is proven that not all jobs can be finished in time: the makespan's bound, of which
            :func:`~ddlopt.frontier.scheduling.makespan.bounds.makespan_bound_slots` has the proof, is beyond the last
            slot.
        """
        self._form(instance).add(block, instance, self.achievable_s, self.reduced)

    def start(self, block: pyo.Block, instance: SchedulingInstance, solution: Schedule) -> None:
        """Starts of the schedule's jobs, as early as their order allows; or their slots and places."""
        self._form(instance).set_values(block, instance, solution, self.achievable_s, self.reduced)

    def read(self, block: pyo.Block, instance: SchedulingInstance) -> Schedule:
        """The schedule that the values describe.

        Raises
        ------
        SolverError
            If a job has no start, or places do not fit.
        """
        schedule: Schedule = self._form(instance).read(block, instance)
        return schedule

    def objective_value(self, instance: SchedulingInstance, value: float) -> float:
        """Seconds for slots."""
        return value * objective_unit(instance) * instance.slot_s

    def _form(self, instance: SchedulingInstance) -> Any:
        return rigid_starts if pool(instance).exact else rigid_places
