"""The offline optimum: the width of every job, or its workers on every server, in every slot."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.covering import FormulationBase
from ddlopt.models.linear import linear
from ddlopt.models.scheduling.formulations.time_indexed.changes import (
    add_changes,
    add_long_runs,
    gains_of,
    set_changes,
    set_over,
)
from ddlopt.models.scheduling.formulations.time_indexed.goals import Goal, goal
from ddlopt.models.scheduling.formulations.time_indexed.places import Places
from ddlopt.models.scheduling.formulations.time_indexed.runs import (
    Choices,
    Terms,
    Widths,
    add_runs,
    add_width_rows,
    choices,
    read_widths,
    set_runs,
    useful_slots,
)
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Pool, Workers, pool, schedule_of_places, schedule_of_widths
from ddlopt.models.scheduling.refusals import bandwidth_refusal
from ddlopt.models.scheduling.rings.rings import tree_ring
from ddlopt.models.scheduling.solution import Schedule
from ddlopt.models.scheduling.units import objective_unit
from ddlopt.models.tolerances import let_pass
from ddlopt.models.worded import FOR_HOSTS


@dataclass(frozen=True)
class TimeIndexed(FormulationBase):
    r"""Which job runs with how many workers in which slot, over the whole horizon at once.

    Let :math:`x_{iwt} = 1` if job i has w workers in slot t, from its arrival up to its deadline, and
    :math:`\varphi_i(w)` the mini-batches that it then does, of the :math:`F_i` wanted. In the pool form

    .. math::
        \max\ & \textstyle\sum_i \bar u_i(p_i) - e \sum_{iwt} w\, x_{iwt} \\
        & \textstyle\sum_w x_{iwt} \le 1,\qquad \sum_{iw} l_i^r\, w\, x_{iwt} \le C^r \\
        & F_i\, p_i \le \textstyle\sum_{wt} \min(\varphi_i(w), F_i)\, x_{iwt},\qquad 0 \le p_i \le 1 .

    Widths that do no more than a smaller one are left out: workers can leave a job at no harm.

    **Utilities.** A concave :math:`u_i` is replaced by :math:`\bar u_i \ge u_i`, pieces of tangents (chosen in
    :mod:`~ddlopt.models.scheduling.concave.piecewise`; a chord below the least progress that there is): their parts
    used, ``fill``, need no binaries, as the steeper pieces come first of themselves. The model's bound thus holds for
    the instance, and its objective is an estimate (``outer``). All-or-nothing jobs have a binary that wants :math:`\sum
    \varphi x \ge F_i` and without which they do not run.

    **Other objectives.** ``max_min``: z in place of every p. ``makespan``: :math:`\sum_w x_{iwt} \le m_t \le m_{t-1}`,
    and the fewest busy slots. ``completion``: :math:`e_{it} = 1` if the job has ended with slot t,
    :math:`\sum_{w, t' \le t} \varphi_i(w) x_{iwt'} \ge F_i e_{it}`, :math:`\sum_w x_{iwt} + e_{i,t-1} \le 1`; the time
    from arrival to end is the number of slots with :math:`e_{i,t-1} = 0`. Slots before which a job cannot have ended
    have no binaries. ``finish_time_fairness``: that number is at most :math:`T_i \rho`, with the job's slots
    :math:`T_i` at its fair share alone, and the least :math:`\rho`.

    **Runs in one piece** (not preemptive): :math:`x_{iwt} - x_{iw,t-1} = b_{iwt} - d_{iwt}` and
    :math:`\sum_{wt} b_{iwt} \le 1`, the flow of a job through idle, running, over; what a job can do by itself is then
    an integral polytope. Where only the finished job counts, its run has a fixed length L(w) and
    :math:`d_{iwt} = b_{iw,t-L(w)}`.

    **Changes** that cost time: of its progress a job keeps the part :math:`\rho_i = 1 - c_i / \Delta` in a slot in
    which it changes, and the rest of it where it is kept, :math:`k_{iwt} \le \min(x_{iwt}, x_{iw,t-1})`, or starts for
    the first time, :math:`a_{iwt}`:

    .. math::
        \varphi_i(w) \bigl(\rho_i\, x_{iwt} + (1 - \rho_i)(k_{iwt} + a_{iwt})\bigr),\qquad
        k_{iwt} + a_{iwt} \le x_{iwt},\qquad \textstyle\sum_w x_{iwt} \le \sum_{w,\, t' \le t} a_{iwt'} \le 1 .

    Where x is whole, k and a are of themselves; on servers k is binary, as only a job whose workers all stay is kept.

    **Least runs** of :math:`L_i` slots: what starts or changes in slot t is kept in those after it, unless it is over,

    .. math::
        k_{iwt'} + o_{i,t'-1} \ge x_{iwt} - k_{iwt} \quad (t < t' < t + L_i),\qquad
        \textstyle\sum_{w,\, t'' \le t} \varphi_i(w) x_{iwt''} \ge F_i\, o_{it} .

    **Types** of accelerators, for a job with speeds: :math:`x_{iwkt}` in place of :math:`x_{iwt}`, at the pace
    :math:`s_{ik}` of class k, :math:`s_{i1} > s_{i2} > \dots`, and its workers are on servers that are fast enough:

    .. math::
        \varphi_{ik}(w) = s_{ik}\, \varphi_i(w),\qquad
        \textstyle\sum_{s:\, s_{is} < s_{i,k-1}} y_{ist} \le \sum_{w,\, k' \ge k} w\, x_{iwk't} .

    Where types do not mix, a class is a type, and its servers have as many workers as its widths say.

    **Servers.** Where widths alone do not decide what fits: :math:`y_{ist} \in \mathbb{Z}`,
    :math:`\sum_s y_{ist} = \sum_w w\, x_{iwt}` and capacities on every server. Servers that consume power by
    themselves have a binary :math:`y_{ist} \le Y_{is}\, o_{st}`. On a tree network the ring of a job takes
    each link that separates its workers once in either direction, and no other (tree lemma). Links that all rings
    together can fill are *cuts* in every slot, with the rows of
    :class:`~ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding.SlotEmbedding`.

    Progress is counted in slots at a job's fastest width, so that coefficients are near 1.

    *What a host must not couple to.* Widths that do no more than a smaller one, which have no variables. All-or-nothing
    jobs run only if they finish.

    Parameters
    ----------
    places : {"auto", "pool", "servers"}
        ``auto``: the pool where it is exact.
    widths : {"all", "envelope"}
        ``envelope``: only those on the concave envelope of a job's progress, {1, N} without latency. The LP bound is
        the same, but schedules may be worse: an opening for the full model.
    tangents : int, optional
        Of each utility. Default: as many as keep the over-estimate below
        :data:`~ddlopt.models.scheduling.concave.piecewise.ERROR`.
    done : tuple of float
        Mini-batches of each job that were done before the first slot; its utility is then that of all. () for none.

    Ports
    -----
    ``running[i, w, t]``
        1 if job i has w workers in slot t; with speeds, ``w + k * (N + 1)`` is w of at most N workers in class k.
    ``workers[i, s, t]`` : servers form
        Workers of job i on server s in slot t.
    ``fill[i, k]`` : objective ``utility``
        The part used of piece k of the utility of job i.
    ``finished[i]`` : objective ``utility``, preemptive
        1 if the all-or-nothing job i is finished.
    ``smallest`` : objective ``max_min``
        z in units.
    ``busy[t]`` : objective ``makespan``
        m: 1 if some job is not finished before slot t.
    ``worst`` : objective ``finish_time_fairness``
        The largest ratio, in units.
    ``ended[i, t]`` : objectives ``completion`` and ``finish_time_fairness``, preemptive
        e: 1 if job i has ended with slot t.
    ``begins[i, w, t]`` : not preemptive
        b: 1 if job i begins at width w in slot t.
    ``kept[i, w, t]``, ``starts[i, w, t]``, ``begun[i, t]`` : jobs that lose time when they change
        k, a and the sum of a up to t: 1 if job i goes on as before, starts for the first time, has started.
    ``over[i, t]`` : jobs with least runs
        o, 1 if job i has done all that it wants with slot t.
    ``inside[i, u, t]``, ``split[i, u, t]`` : tree networks
        1 if all, or if some but not all workers of job i are on side u of a link.
    ``awake[s, t]`` : servers with a power of their own
        1 if server s has workers in slot t.
    ``objective``
        Total utility, smallest part, minus the busy slots, minus the weighted slots from arrival to end, or minus the
        largest ratio, in units of :func:`~ddlopt.models.scheduling.units.objective_unit`; to be maximised.

    References
    ----------
    The schedules, progress and utilities are those of GADGET (INFOCOM 2022) in our reading. Tangents, the runs in one
    piece, and the indicators on trees in this form are ours.
    """

    places: Literal["auto", "pool", "servers"] = "auto"
    widths: Widths = "all"
    tangents: int | None = None
    done: tuple[float, ...] = field(default=(), metadata=FOR_HOSTS)

    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"
    outer: ClassVar[bool] = True

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Speeds that depend on other jobs, networks that are no trees, and a pool that is not exact."""
        if (reason := bandwidth_refusal(instance)) is not None:
            return reason
        if self.places == "pool" and not _pool_suits(instance):
            return "widths alone do not decide what fits or costs, so a pool is no valid model; use places='servers'"
        if instance.needs_rings:
            if instance.accelerators.matter:
                return "the speed of jobs depends on the type of accelerators, which rings on links do not know"
            assert instance.network is not None
            if not instance.network.is_tree(instance.server_count):
                return "the network is no tree; slot-embedding routes rings through any network, one slot at a time"
        if self.done and len(self.done) != len(instance.jobs):
            return f"done has {len(self.done)} figures, but there are {len(instance.jobs)} jobs"
        if any(not before >= 0 for before in self.done):
            return f"done is {min(self.done)} for some job; mini-batches done are at least 0"
        if self.tangents is not None and self.tangents < 2:
            return f"tangents is {self.tangents}, but a utility has one at either end; use at least 2"
        return None

    def scope(self, instance: SchedulingInstance) -> str | None:
        """All schedules, unless widths are left out or some mini-batches were done before."""
        if any(self.done):
            return "after mini-batches done before"
        return "widths on the envelope" if self.widths == "envelope" else None

    def build(self, block: pyo.Block, instance: SchedulingInstance) -> None:
        """Fill ``block`` with runs, places and the objective.

        Raises
        ------
        InfeasibleError
            If a job must be finished that cannot be, even alone.
        """
        jobs, aim = self._parts(instance)
        add_runs(block, jobs, instance.preemptive)
        add_changes(block, jobs)
        add_long_runs(block, jobs)
        aim.add_variables(block)
        add_width_rows(block, jobs, lambda c, t: aim.most(block, c, t), instance.preemptive)
        terms, constant = aim.add(block)
        if self._on_servers(instance):
            costs = Places(instance, jobs).add(block)
        else:
            costs = _add_pool(block, instance, pool(instance), jobs)
        terms += [(-cost / aim.unit, variable) for cost, variable in costs]
        block.objective = pyo.Expression(expr=linear(terms, constant))

    def start(self, block: pyo.Block, instance: SchedulingInstance, solution: Schedule) -> None:
        """Values of all variables from a schedule, without slots and workers that make no difference."""
        jobs, aim = self._parts(instance)
        given: dict[int, dict[int, Workers]] = defaultdict(dict)
        for run in solution.runs:
            for t in range(run.start, run.end):
                given[run.job][t] = run.workers
        widths: dict[tuple[int, int], int] = {}
        places: dict[tuple[int, int], Mapping[int, int]] = {}
        gains: dict[int, dict[int, float]] = {}
        for c in jobs:
            chosen = {t: c.at(*_offer(instance, c.job, workers))[0] for t, workers in given[c.job].items()}
            fewer = {t: _fewer(given[c.job][t], c.workers(width)) for t, width in chosen.items()}
            where = fewer if self._on_servers(instance) else dict.fromkeys(chosen)
            gains[c.job] = useful_slots(c, gains_of(c, chosen, where))
            used = {t: chosen[t] for t in gains[c.job]}
            set_changes(block, c, used, where)
            set_over(block, c, gains[c.job])
            for t, width in used.items():
                widths[c.job, t], places[c.job, t] = width, fewer[t]
        set_runs(block, widths, instance.preemptive)
        aim.start(block, gains)
        if self._on_servers(instance):
            Places(instance, jobs).start(block, places)

    def read(self, block: pyo.Block, instance: SchedulingInstance) -> Schedule:
        """The schedule that the values describe, without slots in which a job has nothing left to do.

        Raises
        ------
        SolverError
            If a job runs in part.
        """
        jobs, _ = self._parts(instance)
        found = read_widths(block)
        placed = Places(instance, jobs).read(block, found) if self._on_servers(instance) else None
        widths: list[dict[int, int]] = [{} for _ in range(instance.slots)]
        for c in jobs:
            chosen = {t: found[c.job, t] for t in range(c.first, c.last) if (c.job, t) in found}
            where = {t: placed[t][c.job] if placed else None for t in chosen}
            for t in useful_slots(c, gains_of(c, chosen, where), whole=False):
                widths[t][c.job] = chosen[t]
        if placed is None:
            return schedule_of_widths(instance, widths)
        placed = [{i: placed[t][i] for i in here} for t, here in enumerate(widths)]
        if not instance.needs_rings:
            return schedule_of_places(instance, placed)
        rings = [{i: tree_ring(instance, [s for s, _ in workers]) for i, workers in here.items()} for here in placed]
        return schedule_of_places(instance, placed, rings)

    def objective_value(self, instance: SchedulingInstance, value: float) -> float:
        """Utility, part or ratio; seconds for minus a number of slots."""
        return instance.goal.of_model(value * objective_unit(instance, self.done), instance.slot_s)

    def _parts(self, instance: SchedulingInstance) -> tuple[list[Choices], Goal]:
        jobs = choices(instance, self.widths, self.done)
        return jobs, goal(instance, jobs, self.done, self.tangents)

    def _on_servers(self, instance: SchedulingInstance) -> bool:
        return self.places == "servers" or not _pool_suits(instance)


def _offer(instance: SchedulingInstance, job: int, workers: Workers) -> tuple[int, int]:
    """The width and the class of servers that a job has with these workers."""
    servers = [server for server, _ in workers]
    return sum(count for _, count in workers), instance.accelerators.class_of(job, servers)


def _pool_suits(instance: SchedulingInstance) -> bool:
    powered = bool(instance.energy_price_per_j and instance.idle_w.any())
    return pool(instance).exact and not powered


def _add_pool(block: pyo.Block, instance: SchedulingInstance, cluster: Pool, jobs: Sequence[Choices]) -> Terms:
    """Widths fit the pool in every slot; gives what the workers' energy costs."""
    running: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for c in jobs:
        for t in range(c.first, c.last):
            running[t] += [(c.job, w) for w in c.widths]
    demand, capacity = cluster.demand.tolist(), let_pass(cluster.capacity).tolist()

    @block.Constraint([(r, t) for r in range(len(capacity)) for t in sorted(running)], doc="the cluster holds all")
    def cluster_is_large_enough(b: Any, r: int, t: int) -> Any:
        row = [(w * demand[i][r], b.running[i, w, t]) for i, w in running[t] if demand[i][r]]
        return linear(row) <= capacity[r] if row else pyo.Constraint.Skip

    price = instance.energy_price_per_j * instance.slot_s * float(instance.worker_w[0])
    return [(price * w, variable) for (_, w, _), variable in block.running.items()] if price else []


def _fewer(workers: Workers, width: int) -> dict[int, int]:
    """``width`` of the workers; those go first that have the fewest beside them."""
    left: dict[int, int] = {}
    for server, count in sorted(workers, key=lambda pair: (-pair[1], pair[0])):
        if width > 0:
            left[server] = min(count, width)
            width -= left[server]
    return left
