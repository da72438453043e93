"""The best use of one slot: widths, places and rings of all jobs at once."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling.circulations import (
    add_circulations,
    core_of,
    read_circulation,
    start_circulations,
    station_cuts,
)
from ddlopt.models.scheduling.cut_indicators import Cut, add_cut_indicators, linear, start_cut_indicators, tree_cuts
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Placer, Workers, pool
from ddlopt.models.scheduling.rings import Ring, find_ring, tree_ring
from ddlopt.models.scheduling.slot_widths import SlotData, slot_data
from ddlopt.models.scheduling.solution import Run, Schedule

_INTEGRAL = 1e-5
_LARGEST_GAIN = 100.0


@dataclass(frozen=True)
class SlotEmbedding:
    r"""Which jobs run in one slot, how wide, on which servers, and over which rings.

    Job i gains :math:`g_i(w) = u_i\bigl((Z_i + \varphi_i(w)) / F_i\bigr) - u_i(Z_i / F_i)` with w workers, after
    :math:`Z_i` mini-batches done before. One width is chosen for each job, so that gains of any form are exact. Widths
    that gain no more than a smaller one are left out: fewer workers fit wherever more do.

    .. math::
        \max\ & \textstyle\sum_{iw} g_i(w)\, x_{iw}
            - \pi \Delta \bigl(\sum_s P_s\, o_s + \sum_{is} p_s\, y_{is}\bigr) \\
        & \textstyle\sum_w x_{iw} = r_i \le 1,\qquad \sum_s y_{is} = \sum_w w\, x_{iw} \\
        & \textstyle\sum_i l_{ir}\, y_{is} \le C_{sr},\qquad y_{is} \le \min(C_{is}, N_i)\, o_s

    with capacities :math:`C_{sr}`, the workers :math:`C_{is}` of job i that server s holds, the largest width
    :math:`N_i`, and energy at the price :math:`\pi` (without one there is no o). ``max_min`` maximises z with
    :math:`z \le Z_i / F_i + \sum_w g_i(w)\, x_{iw}`. Where widths alone decide what fits
    (:func:`~ddlopt.models.scheduling.pool.pool`), there is no y.

    **Cuts.** On a tree (see :mod:`~ddlopt.models.scheduling.rings`) a ring takes its bandwidth :math:`b_i` once of
    every link that separates its workers, and no routing is left to choose. Let U be the servers behind a link (the
    side with fewer) that cannot carry the rings of all jobs, :math:`e_{iU} = 1` if all workers of the job are within U,
    and :math:`c_{iU} = 1` if some are within and some are not. The sets U are nested or disjoint; for each, and for the
    whole cluster with :math:`e_i = r_i` and :math:`c_i = 0`, V ranges over those directly within:

    .. math::
        & \textstyle\sum_{s \in U} y_{is} \le \min(C_{iU}, N_i)\, e_{iU} + \min(C_{iU}, N_i - 1)\, c_{iU},\qquad
          \sum_i b_i\, c_{iU} \le B_U \\
        & \textstyle c_{iV} + \sum_{V'} e_{iV'} \le e_{iU} + c_{iU},\qquad \sum_V e_{iV} \le e_{iU} \\
        & \textstyle\sum_V c_{iV} \ge 2 \bigl(e_{iU} - \sum_V e_{iV}\bigr) + c_{iU} .

    The last row holds where U has no server outside all V; such a server has no workers of jobs within some V. In a
    star this says that a job is on one server, or takes the card of each of its two or more servers.

    **Circulations.** On any other network take away the leaf servers, those with one neighbour, whose links are cuts as
    before. What is left is the *core*, its nodes with servers (their own and leaf servers) are *stations*; the servers
    of each are a set U, too. A ring passes arc a of the core :math:`f_{ia} \in \{0, 1, \dots\}` times:

    .. math::
        & \textstyle f_i(\delta^+(v)) = f_i(\delta^-(v)),\qquad f_i(\delta^+(v)) \ge c_{iv},\qquad
          \sum_i b_i f_{ia} \le B_a \\
        & \textstyle\sum_{u \le v} t_{iu} \ge c_{iv},\qquad \sum_u t_{iu} = r_i - \sum_u e_{iu},\qquad
          t_{iv} \le c_{iv} \\
        & h_i(\delta^-(v)) - h_i(\delta^+(v)) + q_{iv} = c_{iv} - t_{iv},\qquad q_{iv} \le K_i\, t_{iv},\qquad
          h_{ia} \le K_i f_{ia} .

    That is, f is a circulation that goes through the job's stations, and is connected: from the first of them, t, a
    unit h goes to each of the at most :math:`K_i` others over arcs that the ring passes. A commodity of its own for
    each station made the model three times as large, and its relaxation no stronger where that was measured. Only x, y,
    e, c and f are integers.

    ==================  ==========================================
    symbol              component
    ==================  ==========================================
    x, r, y, o          ``width``, ``runs``, ``workers``, ``awake``
    e, c                ``inside``, ``split``
    f, t, h, q          ``passes``, ``first``, ``reach``, ``supply``
    z                   ``smallest_part``
    ==================  ==========================================

    The objective is measured such that the most that a job could gain is 100 units: large beside the absolute
    tolerances of solvers.

    Parameters
    ----------
    routing : {"auto", "cuts", "circulation"}
        ``cuts`` needs a tree; ``circulation`` covers any network; ``auto`` takes the first of them that covers the
        instance.
    done : tuple of float
        Mini-batches of each job done before; none if empty. The objective is then the gain of the slot alone.
    gains : tuple of tuples of float, optional
        Gain of each job by width 0..N, -inf where it may not have it, in place of what its utility grows by; the
        objective is their sum less the energy.

    Ports
    -----
    ``width[i, w]``, ``runs[i]``
        1 if job i has w workers; whether it has any. Jobs and widths that gain nothing are left out.
    ``workers[i, s]``
        Workers of job i on server s; missing where widths alone decide.
    ``split[i, u]``, ``passes[i, u, v]``
        Whether cut u separates job i; how often its ring passes over an arc of the core.
    ``objective``
        Gain in units.

    References
    ----------
    M. Yu et al., "GADGET", INFOCOM 2022, for the embedding of rings as the problem of a slot. Cuts, circulations
    between stations and their strengthenings are ours.
    """

    routing: Literal["auto", "cuts", "circulation"] = "auto"
    done: tuple[float, ...] = ()
    gains: tuple[tuple[float, ...], ...] | None = None

    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """More than one slot, and what is not in the model."""
        if instance.slots != 1:
            return f"it models one slot, but there are {instance.slots}"
        if instance.objective not in ("utility", "max_min") and self.gains is None:
            return (
                f"the objective {instance.objective} counts ends, of which one slot says little; use utility or max_min"
            )
        if instance.contention is not None:
            return "under contention a job's progress depends on the others' places, which the model does not know"
        if instance.bandwidth == "shared":
            return "it reserves the bandwidth of every job and shares none out"
        if self.routing == "cuts" and instance.needs_rings and not _is_tree(instance):
            return "cut indicators need a tree network; use routing 'circulation'"
        for name, given in (("done", self.done), ("gains", self.gains or ())):
            if given and len(given) != len(instance.jobs):
                return f"{name} has {len(given)} entries, but there are {len(instance.jobs)} jobs"
        return None

    def scope(self, instance: SchedulingInstance) -> str | None:
        """All schedules."""
        return None

    def build(self, block: pyo.Block, instance: SchedulingInstance) -> None:
        """Fill ``block`` with widths, workers and rings."""
        data = self._data(instance)
        _add_widths(block, data)
        if _widths_decide(instance):
            _add_pool(block, instance)
        else:
            _add_workers(block, instance, data)
            if self._routing(instance) == "cuts":
                add_cut_indicators(block, data, tree_cuts(instance, data))
            elif self._routing(instance) == "circulation":
                add_circulations(block, instance, data)
        self._add_objective(block, instance, data)

    def start(self, block: pyo.Block, instance: SchedulingInstance, solution: Schedule) -> None:
        """Widths, workers and rings of the runs; superfluous workers are left out, and the rest follows."""
        data = self._data(instance)
        runs = {run.job: run for run in solution.runs}
        workers = {i: there for i, run in runs.items() if (there := _useful_workers(run, data))}
        for i, w in block.WIDTHS:
            block.width[i, w].set_value(int(i in workers and _width(workers[i]) == w))
        if _widths_decide(instance):
            return
        placed = {(i, s): count for i, there in workers.items() for s, count in there}
        for i, s in block.PLACES:
            block.workers[i, s].set_value(placed.get((i, s), 0))
        used = {i: [s for s, _ in there] for i, there in workers.items()}
        cuts = self._cuts(instance, data)
        if cuts:
            start_cut_indicators(block, cuts, used)
        if self._routing(instance) == "circulation":
            rings = {i: runs[i].ring if len(servers) > 1 else () for i, servers in used.items()}
            start_circulations(block, rings)

    def read(self, block: pyo.Block, instance: SchedulingInstance) -> Schedule:
        """The schedule that the values describe.

        Raises
        ------
        SolverError
            If workers are not whole, or what the ring of a job passes over is no ring.
        """
        widths = {i: w for i, w in block.WIDTHS if _whole(block.width[i, w])}
        if _widths_decide(instance):
            workers: Mapping[int, Workers] = Placer(instance).place(widths)
        else:
            counts: dict[int, list[tuple[int, int]]] = defaultdict(list)
            for i, s in block.PLACES:
                if count := _whole(block.workers[i, s]):
                    counts[i].append((s, count))
            workers = {i: tuple(there) for i, there in counts.items()}
        runs = tuple(
            Run(job=i, start=0, slots=1, workers=there, ring=self._ring(block, instance, i, [s for s, _ in there]))
            for i, there in sorted(workers.items())
        )
        return Schedule(instance=instance.name, instance_digest=instance.digest, runs=runs)

    def objective_value(self, instance: SchedulingInstance, value: float) -> float:
        """Gain for a gain in units."""
        return value * self._unit(instance)

    def _unit(self, instance: SchedulingInstance) -> float:
        """A hundredth of the most that any job could gain."""
        if self.gains is not None:
            most = max((gain for row in self.gains for gain in row if isfinite(gain)), default=0.0)
        elif instance.objective == "max_min":
            most = 1.0
        else:
            parts = [0.0] * len(instance.jobs)
            if self.done:
                parts = [min(1.0, z / job.minibatches) for z, job in zip(self.done, instance.jobs, strict=True)]
            pairs = zip(instance.jobs, parts, strict=True)
            most = max(float(job.utility.of(1.0)) - float(job.utility.of(part)) for job, part in pairs)
        return most / _LARGEST_GAIN if most > 0 else 1.0

    def _data(self, instance: SchedulingInstance) -> SlotData:
        return slot_data(instance, self.done, self.gains)

    def _routing(self, instance: SchedulingInstance) -> Literal["none", "cuts", "circulation"]:
        if not instance.needs_rings:
            return "none"
        if self.routing == "auto":
            return "cuts" if _is_tree(instance) else "circulation"
        return self.routing

    def _cuts(self, instance: SchedulingInstance, data: SlotData) -> list[Cut]:
        match self._routing(instance):
            case "cuts":
                return tree_cuts(instance, data)
            case "circulation":
                return station_cuts(instance, data)
        return []

    def _ring(self, block: pyo.Block, instance: SchedulingInstance, job: int, servers: list[int]) -> Ring:
        if not instance.needs_rings or len(servers) < 2:
            return ()
        if _is_tree(instance):
            return tree_ring(instance, servers)
        assert instance.network is not None
        if instance.jobs[job].timing.kind == "ring":
            return read_circulation(block, core_of(instance), job, servers)
        ring = find_ring(instance, servers, instance.network.arcs, 0.0)
        assert ring is not None
        return ring

    def _add_objective(self, block: pyo.Block, instance: SchedulingInstance, data: SlotData) -> None:
        unit = self._unit(instance)
        if instance.objective == "max_min" and self.gains is None:
            parts = np.zeros(len(instance.jobs))
            if self.done:
                parts = np.minimum(1.0, np.array(self.done) / [job.minibatches for job in instance.jobs])
            _add_smallest_part(block, data, parts.tolist(), unit)
            return
        terms = [(data.gains[i][w] / unit, block.width[i, w]) for i, w in block.WIDTHS]
        if data.worker_cost.any() and _widths_decide(instance):
            cost = float(data.worker_cost[0]) / unit
            terms += [(-cost * w, block.width[i, w]) for i, w in block.WIDTHS]
        elif data.worker_cost.any():
            terms += [(-float(data.worker_cost[s]) / unit, block.workers[i, s]) for i, s in block.PLACES]
        if data.idle_cost.any():
            terms += [(-float(data.idle_cost[s]) / unit, block.awake[s]) for s in block.awake]
        block.objective = pyo.Expression(expr=linear(terms))


def _is_tree(instance: SchedulingInstance) -> bool:
    return instance.network is not None and instance.network.is_tree(instance.server_count)


def _widths_decide(instance: SchedulingInstance) -> bool:
    """Whether no model of places is needed; a single server's idle power needs one, of who is on it."""
    return pool(instance).exact and not (instance.energy_price_per_j and instance.idle_w.any())


def _whole(variable: Any) -> int:
    value = variable.value or 0.0
    if abs(value - round(value)) > _INTEGRAL:
        raise SolverError(f"variable '{variable.name}' is {value}, which is not whole")
    return round(value)


def _width(workers: Workers) -> int:
    return sum(count for _, count in workers)


def _useful_workers(run: Run, data: SlotData) -> Workers:
    """The workers of a run without those that gain nothing."""
    width = max((w for w in data.gains.get(run.job, ()) if w <= run.width), default=0)
    kept: list[tuple[int, int]] = []
    for server, count in run.workers:
        if width:
            kept.append((server, min(count, width)))
            width -= min(count, width)
    return tuple(kept)


def _add_widths(block: pyo.Block, data: SlotData) -> None:
    widths = [(i, w) for i, gains in data.gains.items() for w in gains]
    block.JOBS = pyo.Set(initialize=list(data.gains), doc="jobs that can gain something")
    block.WIDTHS = pyo.Set(dimen=2, initialize=widths, doc="job, width")
    block.width = pyo.Var(block.WIDTHS, domain=pyo.Binary, doc="the job has that many workers")
    block.runs = pyo.Var(block.JOBS, bounds=(0, 1), doc="the job has workers")

    @block.Constraint(block.JOBS, doc="a job has one width, or does not run")
    def width_is_unique(b: Any, i: int) -> Any:
        return linear([*((1.0, b.width[i, w]) for w in data.gains[i]), (-1.0, b.runs[i])]) == 0


def _add_pool(block: pyo.Block, instance: SchedulingInstance) -> None:
    cluster = pool(instance)
    block.RESOURCES = pyo.RangeSet(0, len(cluster.capacity) - 1, doc="resources of the pool")

    @block.Constraint(block.RESOURCES, doc="the pool gives no more than it has")
    def pool_is_respected(b: Any, r: int) -> Any:
        terms = [(w * float(cluster.demand[i, r]), b.width[i, w]) for i, w in b.WIDTHS if cluster.demand[i, r]]
        return linear(terms) <= float(cluster.capacity[r]) if terms else pyo.Constraint.Skip


def _add_workers(block: pyo.Block, instance: SchedulingInstance, data: SlotData) -> None:
    servers = range(instance.server_count)
    places = [(i, s) for i in data.gains for s in servers if data.room[i, s]]
    block.PLACES = pyo.Set(dimen=2, initialize=places, doc="job, server that holds a worker of it")
    block.workers = pyo.Var(
        block.PLACES,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, i, s: (0, int(data.room[i, s])),
        doc="workers of the job on the server",
    )
    resources = range(len(instance.resources))
    block.CAPACITIES = pyo.Set(dimen=2, initialize=[(s, r) for s in servers for r in resources], doc="server, resource")

    @block.Constraint(block.JOBS, doc="as many workers as the job is wide")
    def workers_make_the_width(b: Any, i: int) -> Any:
        placed = [(1.0, b.workers[i, s]) for s in servers if data.room[i, s]]
        return linear([*placed, *((-float(w), b.width[i, w]) for w in data.gains[i])]) == 0

    @block.Constraint(block.CAPACITIES, doc="a server gives no more than it has")
    def capacity_is_respected(b: Any, s: int, r: int) -> Any:
        amounts = instance.demand[:, r]
        terms = [(float(amounts[i]), b.workers[i, s]) for i in data.gains if data.room[i, s] and amounts[i]]
        return linear(terms) <= float(instance.capacity[s, r]) if terms else pyo.Constraint.Skip

    if data.idle_cost.any():
        paid = [s for s in servers if data.idle_cost[s]]
        block.awake = pyo.Var(paid, domain=pyo.Binary, doc="somebody is on the server")
        block.PAID_PLACES = pyo.Set(dimen=2, initialize=[(i, s) for i, s in places if data.idle_cost[s]])

        @block.Constraint(block.PAID_PLACES, doc="workers keep their server awake")
        def workers_wake_the_server(b: Any, i: int, s: int) -> Any:
            return b.workers[i, s] <= int(data.room[i, s]) * b.awake[s]


def _add_smallest_part(block: pyo.Block, data: SlotData, parts: list[float], unit: float) -> None:
    """The smallest part done, of what was done before and what the slot adds."""
    still = [part for i, part in enumerate(parts) if i not in data.gains]
    block.smallest_part = pyo.Var(bounds=(0, min([1.0, *still])), doc="of the mini-batches wanted, of all jobs")

    @block.Constraint(block.JOBS, doc="nobody has done less")
    def nobody_has_less(b: Any, i: int) -> Any:
        gained = [(-gain, b.width[i, w]) for w, gain in data.gains[i].items()]
        return linear([(1.0, b.smallest_part), *gained]) <= parts[i]

    block.objective = pyo.Expression(expr=linear([(1 / unit, block.smallest_part)]))
