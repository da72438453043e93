"""Jobs that run in one piece, elastic or not, on any servers, with contention or in any network: one plan for each."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.frontier.scheduling.formulations.one_piece.plans import Plan, is_contended, plans, renumbered
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import InfeasibleError, SolverError
from ddlopt.models.linear import linear, significant
from ddlopt.models.scheduling.concave.piecewise import Pieces, outer_pieces
from ddlopt.models.scheduling.formulations.time_indexed.runs import Terms
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.refusals import refusal
from ddlopt.models.scheduling.rings.rings import ring_rate
from ddlopt.models.scheduling.solution import Run, Schedule
from ddlopt.models.scheduling.units import objective_unit
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.tolerances import INTEGRALITY_TOL, let_pass


@dataclass(frozen=True)
class OnePiece(FormulationBase):
    r"""Each job has one plan of all that it may have: workers on servers, a ring, a first and a last slot.

    Let :math:`x_h = 1` if plan h of job :math:`i_h` is taken, over slots :math:`T_h`, with :math:`c_{hsr}` of
    resource r of server s and :math:`f_{ha}` passes of its ring over arc a:

    .. math::
        \max\ & \textstyle\sum_h v_h x_h - \sum_{st} e_s\, \mathrm{on}_{st} \\
        & \textstyle\sum_{h : i_h = i} x_h \le 1,\qquad
          \sum_{h : t \in T_h} c_{hsr}\, x_h \le C_{sr},\qquad
          \sum_{h : t \in T_h} b_{i_h} f_{ha}\, x_h \le B_a ,

    where :math:`v_h` is the utility of what the plan does less the energy of its workers, or minus its slots from
    arrival to end, in which case every job takes a plan that finishes it. ``max_min``: the smallest part of all jobs
    instead. ``makespan``: :math:`\sum_{h : i_h = i,\, t \in T_h} x_h \le m_t`, and the fewest :math:`m_t`. Servers with
    a power of their own have :math:`\sum_{h \ni s,\, t \in T_h, i_h = i} x_h \le \mathrm{on}_{st}`.

    **Contention.** What a plan on several servers does depends on the others. Let :math:`q_{ist} = 1` if job i is split
    and on server s in slot t (a sum of plans), :math:`L_{smt} = 1` if m split jobs are on it, and
    :math:`\ell_{igkt} = 1` if job i is then of the kind g (its width and number of servers) at level k, where it does
    :math:`\varphi_{igk}` of its mini-batches:

    .. math::
        & \textstyle\sum_i q_{ist} = \sum_m m\, L_{smt},\qquad \sum_m L_{smt} \le 1,\qquad
          \sum_k \ell_{igkt} = \sum_{h \in g,\, t \in T_h} x_h \\
        & \textstyle\sum_{m > k} L_{smt} + q_{ist} \le 1 + \sum_{g,\, k' > k} \ell_{igk't}

    Progress is then :math:`\sum \varphi\, \ell` plus that of plans on one server. A concave utility is replaced by
    pieces of tangents (``outer``), and plans that finish a job need as much progress as it wants.

    *What a host must not couple to.* With ``symmetry``, which of equal servers is which. Runs that go on after their
    job has finished have no plan.

    Parameters
    ----------
    symmetry : bool
        Whether the widest job has no more workers on a server than on an equal one before it.

    Ports
    -----
    ``plan[h]``
        1 if plan h of :func:`~ddlopt.frontier.scheduling.formulations.one_piece.plans.plans` is taken.
    ``level[i, w, n, k, t]`` : contention
        1 if job i has w workers on n > 1 servers at contention level k in slot t.
    ``crowd[s, m, t]`` : contention
        1 if m split jobs are on server s in slot t.
    ``fill[i, k]`` : contention, objective ``utility``
        The part used of piece k of the utility of job i.
    ``smallest`` : objective ``max_min``
        The smallest part, in units.
    ``busy[t]`` : objective ``makespan``
        1 if some job is not finished before slot t.
    ``on[s, t]`` : servers with a power of their own
        1 if somebody is on server s in slot t.
    ``objective``
        Total utility less the price of energy, the smallest part, minus the busy slots, or minus the weighted slots
        from arrival to end, in units of :func:`~ddlopt.models.scheduling.units.objective_unit`; to be maximised.

    References
    ----------
    The contention is that of SJF-BCO (MobiHoc 2022), in our reading. Plans of jobs as columns are common; the rows of
    contention are ours.
    """

    symmetry: bool = True

    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"
    outer: ClassVar[bool] = True

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Preemptive jobs, bandwidth that is shared out, and too many plans."""
        if (reason := refusal(instance)) is not None:
            return reason
        if instance.preemptive:
            return "jobs are preemptive, but it runs each in one piece; use slot-patterns or time-indexed"
        if instance.bandwidth == "shared" and instance.server_count > 1:
            return "bandwidth is shared, but it reserves the bandwidth that each job's timing names"
        if instance.goal.counts_ratios:
            return "the objective is a ratio of times, which it does not know; use time-indexed"
        found = plans(instance, self.symmetry)
        return found if isinstance(found, str) else None

    def build(self, block: pyo.Block, instance: SchedulingInstance) -> None:
        """Fill ``block`` with plans, what they share, and the objective.

        Raises
        ------
        InfeasibleError
            If a job must be finished that no plan finishes. Plans have all places and rings of each number of workers
            and all first and last slots, at the speed of the job alone, which others never exceed.
        """
        every = self._plans(instance)
        block.PLANS = pyo.RangeSet(0, len(every) - 1)
        block.plan = pyo.Var(block.PLANS, domain=pyo.Binary, doc="plan is taken")
        by_job: dict[int, list[int]] = {i: [] for i in range(len(instance.jobs))}
        for h, one in enumerate(every):
            by_job[one.job].append(h)
        must = instance.goal.must_finish
        for i, mine in by_job.items():
            if must and not mine:
                raise InfeasibleError(
                    f"'{instance.name}': jobs[{i}] '{instance.jobs[i].name}' must finish, but no run in one piece does"
                )

        @block.Constraint([i for i, mine in by_job.items() if mine], doc="a job has one plan")
        def job_has_one_plan(b: Any, i: int) -> Any:
            row = linear([(1.0, b.plan[h]) for h in by_job[i]])
            return row == 1 if must else row <= 1

        _add_capacities(block, instance, every)
        done: dict[int, Terms] | None = None
        if any(is_contended(instance, one.option) for one in every):
            done = _add_contention(block, instance, every)
            _add_enough(block, instance, every, done)
            for h, one in enumerate(every):
                if not is_contended(instance, one.option):
                    done[one.job].append((one.part, block.plan[h]))
        terms = _add_energy(block, instance, every)
        if instance.goal.counts_least_part:
            terms += _add_smallest(block, instance, every, done)
        else:
            unit = objective_unit(instance)
            terms += _add_goal(block, instance, every, done)
            terms = [(value / unit, variable) for value, variable in terms]
        block.objective = pyo.Expression(expr=linear(terms))

    def start(self, block: pyo.Block, instance: SchedulingInstance, solution: Schedule) -> None:
        """The plans of a schedule; a job whose plan is none of those listed is left to the solver."""
        place: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        every = self._plans(instance)
        for h, one in enumerate(every):
            place[one.job, one.option.workers, one.option.ring, one.first].append(h)
        for variable in block.plan.values():
            variable.set_value(0)
        for run in renumbered(instance, solution.runs) if self.symmetry else solution.runs:
            these = place[run.job, run.workers, run.ring, run.start]
            if these:  # of those the one that ends with the run, or where it is of no more use
                ends = {every[h].last: h for h in these}
                block.plan[ends.get(run.end, ends[max(ends)])].set_value(1)

    def read(self, block: pyo.Block, instance: SchedulingInstance) -> Schedule:
        """The schedule of the plans taken.

        Raises
        ------
        SolverError
            If a plan is taken in part.
        """
        runs = []
        for h, one in enumerate(self._plans(instance)):
            value = block.plan[h].value or 0.0
            if abs(value - round(value)) > INTEGRALITY_TOL:
                raise SolverError(f"plan {h} is taken to {value:.6g}")
            if round(value):
                runs.append(
                    Run(
                        job=one.job,
                        start=one.first,
                        slots=one.last - one.first,
                        workers=one.option.workers,
                        ring=one.option.ring,
                    )
                )
        return Schedule(instance=instance.name, instance_digest=instance.digest, runs=tuple(runs))

    def objective_value(self, instance: SchedulingInstance, value: float) -> float:
        """Utility or part; seconds for minus a number of slots."""
        value = value * objective_unit(instance)
        return value if instance.sense == "maximize" else -value * instance.slot_s

    def _plans(self, instance: SchedulingInstance) -> Sequence[Plan]:
        found = plans(instance, self.symmetry)
        if isinstance(found, str):
            raise SolverError(found)
        return found


def _add_capacities(block: pyo.Block, instance: SchedulingInstance, every: Sequence[Plan]) -> None:
    """Servers and arcs in every slot."""
    rows: dict[tuple[str, int, int, int], Terms] = defaultdict(list)
    limit: dict[tuple[str, int, int], float] = {}
    for h, one in enumerate(every):
        uses: list[tuple[tuple[str, int, int], float]] = []
        for server, count in one.option.workers:
            for column in np.flatnonzero(instance.demand[one.job]).tolist():
                uses.append((("server", server, column), count * float(instance.demand[one.job, column])))
                limit["server", server, column] = float(instance.capacity[server, column])
        for (u, v), times in one.option.passes:
            uses.append((("arc", u, v), times * ring_rate(instance.jobs[one.job])))
            assert instance.network is not None
            limit["arc", u, v] = instance.network.arcs[u, v]
        if any(amount > let_pass(limit[key]) for key, amount in uses):
            block.plan[h].setub(0)  # too much by itself
            continue
        for key, amount in uses:
            for t in range(one.first, one.last) if amount else ():
                rows[(*key, t)].append((amount / limit[key], block.plan[h]))

    @block.Constraint(sorted(rows), doc="nothing is used by more than there is; server and resource, or arc, and slot")
    def room_is_kept(b: Any, kind: str, u: int, v: int, t: int) -> Any:
        return significant(rows[kind, u, v, t]) <= let_pass(1.0)


def _add_contention(block: pyo.Block, instance: SchedulingInstance, every: Sequence[Plan]) -> dict[int, Terms]:
    """Levels of split jobs; gives the parts that each job does while it is split."""
    here: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    kinds: dict[tuple[int, int, int, int], list[int]] = defaultdict(list)
    done: dict[int, Terms] = {i: [] for i in range(len(instance.jobs))}
    for h, one in enumerate(every):
        if not is_contended(instance, one.option):
            continue
        for t in range(one.first, one.last):
            kinds[one.job, one.option.width, len(one.option.workers), t].append(h)
            for server, _ in one.option.workers:
                here[one.job, server, t].append(h)
    most = len({i for i, _, _ in here})
    spots = sorted({(s, t) for _, s, t in here})
    block.CROWDS = pyo.Set(dimen=3, initialize=[(s, m, t) for s, t in spots for m in range(1, most + 1)])
    block.crowd = pyo.Var(block.CROWDS, domain=pyo.Binary, doc="the server has this number of split jobs in the slot")
    levels = [(*key[:3], k, key[3]) for key in kinds for k in range(1, most + 1)]
    block.LEVELS = pyo.Set(dimen=5, initialize=levels, doc="(job, workers, servers, contention level, slot)")
    block.level = pyo.Var(block.LEVELS, domain=pyo.Binary, doc="job is of this kind at this level in the slot")

    @block.Constraint(spots, doc="split jobs on a server are counted")
    def crowd_is_counted(b: Any, s: int, t: int) -> Any:
        jobs = [(1.0, b.plan[h]) for (_, server, slot), each in here.items() if (server, slot) == (s, t) for h in each]
        return linear([*jobs, *((-float(m), b.crowd[s, m, t]) for m in range(1, most + 1))]) == 0

    @block.Constraint(spots, doc="a server has one number of split jobs")
    def crowd_is_one(b: Any, s: int, t: int) -> Any:
        return linear([(1.0, b.crowd[s, m, t]) for m in range(1, most + 1)]) <= 1

    @block.Constraint(list(kinds), doc="a split job has one level")
    def level_is_one(b: Any, i: int, w: int, n: int, t: int) -> Any:
        plan = [(-1.0, b.plan[h]) for h in kinds[i, w, n, t]]
        return linear([*((1.0, b.level[i, w, n, k, t]) for k in range(1, most + 1)), *plan]) == 0

    of: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for i, w, n, t in kinds:
        of[i, t].append((w, n))

    @block.Constraint([(*key, k) for key in here for k in range(1, most)], doc="no server of a job is more crowded")
    def level_is_no_lower(b: Any, i: int, s: int, t: int, k: int) -> Any:
        row = [(1.0, b.plan[h]) for h in here[i, s, t]]
        row += [(1.0, b.crowd[s, m, t]) for m in range(k + 1, most + 1)]
        row += [(-1.0, b.level[i, w, n, more, t]) for w, n in of[i, t] for more in range(k + 1, most + 1)]
        return linear(row) <= 1

    for i, w, n, k, t in levels:
        part = min(1.0, instance.rate(i, w, n, k) / instance.jobs[i].minibatches)
        done[i].append((part, block.level[i, w, n, k, t]))
    return done


def _add_enough(block: pyo.Block, instance: SchedulingInstance, every: Sequence[Plan], done: dict[int, Terms]) -> None:
    finishing = [i for i, terms in done.items() if terms and instance.goal.counts_whole(instance.jobs[i])]

    @block.Constraint(finishing, doc="a split job that has to finish does what it wants")
    def plan_is_enough(b: Any, i: int) -> Any:
        split = [h for h, one in enumerate(every) if one.job == i and is_contended(instance, one.option)]
        wanted = [(-float(DONE), b.plan[h]) for h in split]
        return linear([*done[i], *wanted]) >= 0


def _add_energy(block: pyo.Block, instance: SchedulingInstance, every: Sequence[Plan]) -> Terms:
    price = instance.energy_price_per_j * instance.slot_s
    if not price:
        return []
    terms: Terms = []
    powered = np.flatnonzero(instance.idle_w).tolist()
    rows: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for h, one in enumerate(every):
        watts = sum(count * float(instance.worker_w[server]) for server, count in one.option.workers)
        terms.append((-price * watts * (one.last - one.first), block.plan[h]))
        for server, _ in one.option.workers:
            for t in range(one.first, one.last) if server in powered else ():
                rows[one.job, server, t].append(h)
    block.ON = pyo.Set(dimen=2, initialize=sorted({(s, t) for _, s, t in rows}))
    block.on = pyo.Var(block.ON, domain=pyo.Binary, doc="somebody is on the server in the slot")

    @block.Constraint(sorted(rows), doc="a server with workers is on")
    def server_is_on(b: Any, i: int, s: int, t: int) -> Any:
        return linear([*((1.0, b.plan[h]) for h in rows[i, s, t]), (-1.0, b.on[s, t])]) <= 0

    return terms + [(-price * float(instance.idle_w[s]), block.on[s, t]) for s, t in block.ON]


def _add_goal(
    block: pyo.Block, instance: SchedulingInstance, every: Sequence[Plan], done: dict[int, Terms] | None
) -> Terms:
    weights = [job.utility.value for job in instance.jobs]
    if instance.goal.counts_last_end:
        return _add_busy(block, every)
    if instance.goal.counts_ends:
        ends = [weights[one.job] * (one.last - instance.jobs[one.job].arrival) for one in every]
        return [(-value, block.plan[h]) for h, value in enumerate(ends)]
    if done is None:
        worth = [float(instance.jobs[one.job].utility.of(_part(instance, one))) for one in every]
        return [(value, block.plan[h]) for h, value in enumerate(worth)]
    finishing = [
        (weights[one.job], block.plan[h])
        for h, one in enumerate(every)
        if instance.goal.counts_whole(instance.jobs[one.job])
    ]
    return finishing + _add_pieces(block, instance, every, done)


def _part(instance: SchedulingInstance, one: Plan) -> float:
    """What counts as done is done."""
    return 1.0 if instance.goal.counts_whole(instance.jobs[one.job]) else one.part


def _add_pieces(block: pyo.Block, instance: SchedulingInstance, every: Sequence[Plan], done: dict[int, Terms]) -> Terms:
    pieces: dict[int, Pieces] = {}
    for i, job in enumerate(instance.jobs):
        utility = job.utility
        if utility.kind == "all_or_nothing" or not done[i]:
            continue
        most = max(one.part for one in every if one.job == i)
        pieces[i] = outer_pieces(utility, 0.0, most, min(part for part, _ in done[i]))
    index = [(i, k) for i, piece in pieces.items() for k in range(len(piece.lengths))]
    block.PIECES = pyo.Set(dimen=2, initialize=index, doc="(job, piece of its utility)")
    block.fill = pyo.Var(block.PIECES, bounds=(0, 1), doc="part of the piece that progress takes")

    @block.Constraint(list(pieces), doc="only progress fills the pieces of a utility")
    def progress_fills_pieces(b: Any, i: int) -> Any:
        filled = [(-length, b.fill[i, k]) for k, length in enumerate(pieces[i].lengths.tolist())]
        return linear([*done[i], *filled]) >= 0

    return [(float(pieces[i].lengths[k] * pieces[i].slopes[k]), block.fill[i, k]) for i, k in index]


def _add_smallest(
    block: pyo.Block, instance: SchedulingInstance, every: Sequence[Plan], done: dict[int, Terms] | None
) -> Terms:
    parts: dict[int, Terms] = {i: [] for i in range(len(instance.jobs))}
    most = dict.fromkeys(parts, 0.0)
    for h, one in enumerate(every):
        parts[one.job].append((one.part, block.plan[h]))
        most[one.job] = max(most[one.job], one.part)
    top, unit = min(most.values()), objective_unit(instance)
    block.smallest = pyo.Var(bounds=(0, top / unit), doc="smallest part done, in units")

    @block.Constraint(list(parts), doc="no job has done a smaller part")
    def part_is_no_smaller(b: Any, i: int) -> Any:
        # More than the least of the jobs can come to is of no use to any.
        own = [(min(part, top) / unit, x) for part, x in (parts if done is None else done)[i]]
        return linear([*own, (-1.0, b.smallest)]) >= 0

    return [(1.0, block.smallest)]


def _add_busy(block: pyo.Block, every: Sequence[Plan]) -> Terms:
    last = max((one.last for one in every), default=1)
    block.busy = pyo.Var(range(last), domain=pyo.Binary, doc="some job is not finished before the slot")
    rows: dict[tuple[int, int], list[int]] = defaultdict(list)
    for h, one in enumerate(every):
        for t in range(one.first, one.last):
            rows[one.job, t].append(h)

    @block.Constraint(sorted(rows), doc="nobody runs after the busy slots")
    def slot_is_busy(b: Any, i: int, t: int) -> Any:
        return linear([*((1.0, b.plan[h]) for h in rows[i, t]), (-1.0, b.busy[t])]) <= 0

    @block.Constraint(range(1, last), doc="the busy slots come first")
    def busy_slots_are_first(b: Any, t: int) -> Any:
        return b.busy[t] <= b.busy[t - 1]

    return [(-1.0, block.busy[t]) for t in range(last)]
