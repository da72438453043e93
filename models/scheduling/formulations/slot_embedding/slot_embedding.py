"""The best use of one slot: widths, places and rings of all jobs at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.covering import FormulationBase
from ddlopt.models.linear import linear
from ddlopt.models.scheduling.formulations.slot_embedding.circulations import core_of, read_circulation
from ddlopt.models.scheduling.formulations.slot_embedding.places import Places, PlacesOption, Routing, places_of
from ddlopt.models.scheduling.formulations.slot_embedding.widths import SlotData, slot_data
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Workers
from ddlopt.models.scheduling.refusals import bandwidth_refusal, refusal
from ddlopt.models.scheduling.rings.rings import Ring, find_ring, tree_ring
from ddlopt.models.scheduling.solution import Run, Schedule
from ddlopt.models.worded import FOR_HOSTS

# Gains of up to a hundred units keep a solver's absolute tolerances far below the gaps asked for.
_LARGEST_GAIN = 100.0


@dataclass(frozen=True)
class SlotEmbedding(FormulationBase):
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
    :math:`N_i`, and energy at the price :math:`\pi` (without one there is no o). ``max_min`` maximises z with :math:`z
    \le Z_i / F_i + \sum_w g_i(w)\, x_{iw}`. Where widths alone decide what fits there is no y but one row for the
    cluster.

    Where many servers are equal, method ``counted-slot`` counts them by what is on them, and proves within a second
    what servers with names take minutes for.

    **Cuts.** On a tree (see :mod:`~ddlopt.models.scheduling.rings.rings`) a ring takes its bandwidth :math:`b_i` once
    of every link that separates its workers, and no routing is left to choose. Let U be the servers behind a link (the
    side with fewer) that cannot carry the rings of all jobs, :math:`e_{iU} = 1` if all workers of the job are within U,
    and :math:`c_{iU} = 1` if some are within and some are not. The sets U are nested or disjoint; for each, and for the
    whole cluster with :math:`e_i = r_i` and :math:`c_i = 0`, V ranges over those directly within:

    .. math::
        & \textstyle\sum_{s \in U} y_{is} \le \min(C_{iU}, N_i)\, e_{iU} + \min(C_{iU}, N_i - 1)\, c_{iU},\qquad
          \sum_i b_i\, c_{iU} \le B_U \\
        & \textstyle c_{iV} + \sum_{V'} e_{iV'} \le e_{iU} + c_{iU},\qquad \sum_V e_{iV} \le e_{iU} \\
        & \textstyle\sum_V c_{iV} \ge 2 \bigl(e_{iU} - \sum_V e_{iV}\bigr) + c_{iU} .

    The last row holds where U has no server outside all V; such a server has no workers of jobs within some V. For the
    cluster these two rows know the width: only one that some V holds is within it, and others split at least as many as
    they take to hold. In a star a job is on one server, or takes the card of each of its two or more servers.

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

    *What a host must not couple to.* Widths that gain no more than a smaller one, which have no variable and are none
    of ``width``. Of a circulation where it begins (``first``) and what shows that it is connected (``reach``,
    ``supply``).

    Parameters
    ----------
    routing : {"auto", "cuts", "circulation"}
        ``cuts`` needs a tree; ``circulation`` covers any network; ``auto`` takes the first of them that covers the
        instance.
    places : {"auto", "servers"}
        ``servers`` models every server by itself, ``auto`` only where widths alone do not decide.
    done : tuple of float
        Mini-batches of each job done before; none if empty. The objective is then the gain of the slot alone.
    gains : tuple of tuples of float, optional
        Gain of each job by width 0..N, -inf where it may not have it, in place of what its utility grows by; the
        objective is their sum less the energy.

    Ports
    -----
    ``width[i, w]``, ``runs[i]``
        1 if job i has w workers; whether it has any. Jobs and widths that gain nothing are left out.
    ``workers[i, s]`` : servers form
        Workers of job i on server s.
    ``awake[s]`` : where idle servers save energy
        1 if somebody is on server s.
    ``split[i, u]`` : where links are cuts
        1 if cut u separates workers of job i.
    ``passes[i, u, v]`` : where the network has a core
        How often the ring of job i passes over the arc from u to v.
    ``smallest_part`` : objective ``max_min``
        z in units of the part that the job which the slot brings least far comes to alone.
    ``objective``
        Gain in units, to be maximised.

    References
    ----------
    M. Yu et al., "GADGET", INFOCOM 2022, for the embedding of rings as the problem of a slot. Cuts, circulations
    between stations and their strengthenings are ours.
    """

    routing: Literal["auto", "cuts", "circulation"] = "auto"
    places: PlacesOption = "auto"
    done: tuple[float, ...] = field(default=(), metadata=FOR_HOSTS)
    gains: tuple[tuple[float, ...], ...] | None = field(default=None, metadata=FOR_HOSTS)

    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """More than one slot, and what is not in the model."""
        if (reason := refusal(instance)) is not None:
            return reason
        if instance.slots != 1:
            return f"it models one slot, but there are {instance.slots}"
        if instance.goal.must_finish and self.gains is None:
            return f"the objective {instance.objective} depends on when jobs end; use utility or max_min"
        if (reason := bandwidth_refusal(instance)) is not None:
            return reason
        if self.routing == "cuts" and instance.needs_rings and not _is_tree(instance):
            return "cut indicators need a tree network; use routing 'circulation'"
        for name, given in (("done", self.done), ("gains", self.gains or ())):
            if given and len(given) != len(instance.jobs):
                return f"{name} has {len(given)} entries, but there are {len(instance.jobs)} jobs"
        return None

    def build(self, block: pyo.Block, instance: SchedulingInstance) -> None:
        """Fill ``block`` with widths, workers and rings."""
        data = self._data(instance)
        _add_widths(block, data)
        costs = self.where(instance, data).add(block)
        unit = self._unit(instance)
        if instance.goal.counts_least_part and self.gains is None:
            _add_smallest_part(block, data, _parts(instance, self.done))
            return
        terms = [(data.gains[i][w] / unit, block.width[i, w]) for i, w in block.WIDTHS]
        terms += [(-cost / unit, variable) for cost, variable in costs]
        block.objective = pyo.Expression(expr=linear(terms))

    def start(self, block: pyo.Block, instance: SchedulingInstance, solution: Schedule) -> None:
        """Widths, workers and rings of the runs; superfluous workers are left out, and the rest follows."""
        data = self._data(instance)
        runs = {run.job: run for run in solution.runs}
        workers = {i: there for i, run in runs.items() if (there := _useful_workers(run, data))}
        for i, w in block.WIDTHS:
            block.width[i, w].set_value(int(i in workers and sum(count for _, count in workers[i]) == w))
        rings = {i: runs[i].ring if len(there) > 1 else () for i, there in workers.items()}
        self.where(instance, data).start(block, workers, rings)

    def read(self, block: pyo.Block, instance: SchedulingInstance) -> Schedule:
        """The schedule that the values describe.

        Raises
        ------
        SolverError
            If counts are not whole, or what the ring of a job passes over is no ring.
        """
        workers = self.where(instance, self._data(instance)).workers(block)
        runs = tuple(
            Run(job=i, start=0, slots=1, workers=there, ring=self._ring(block, instance, i, [s for s, _ in there]))
            for i, there in sorted(workers.items())
        )
        return Schedule(instance=instance.name, instance_digest=instance.digest, runs=runs)

    def objective_value(self, instance: SchedulingInstance, value: float) -> float:
        """Gain for a gain in units."""
        return value * self._unit(instance)

    def _unit(self, instance: SchedulingInstance) -> float:
        """A hundredth of the most that any job could gain in the slot; of the smallest part of all for ``max_min``."""
        data = self._data(instance)
        if instance.goal.counts_least_part and self.gains is None:
            most = _top(data, _parts(instance, self.done))
        else:
            most = max((max(own.values()) for own in data.gains.values()), default=0.0)
        return most / _LARGEST_GAIN if most > 0 else 1.0

    def _data(self, instance: SchedulingInstance) -> SlotData:
        return slot_data(instance, self.done, self.gains)

    def where(self, instance: SchedulingInstance, data: SlotData) -> Places:
        """How places of workers are modelled."""
        routing: Routing = "none"
        if instance.needs_rings:
            routing = (
                "cuts" if self.routing == "cuts" or (self.routing == "auto" and _is_tree(instance)) else "circulation"
            )
        return places_of(instance, data, routing, self.places)

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


def _is_tree(instance: SchedulingInstance) -> bool:
    return instance.network is not None and instance.network.is_tree(instance.server_count)


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


def _parts(instance: SchedulingInstance, done: Sequence[float]) -> list[float]:
    """Part of its mini-batches that each job has done before."""
    given = done or (0.0,) * len(instance.jobs)
    return [min(1.0, before / job.minibatches) for before, job in zip(given, instance.jobs, strict=True)]


def _top(data: SlotData, parts: Sequence[float]) -> float:
    """The least part that some job can come to in the slot, by itself."""
    return min(part + max(data.gains.get(i, {0: 0.0}).values()) for i, part in enumerate(parts))


def _add_smallest_part(block: pyo.Block, data: SlotData, parts: Sequence[float]) -> None:
    """The smallest part done, of what was done before and what the slot adds."""
    top = _top(data, parts)
    unit = top if top > 0 else 1.0
    block.smallest_part = pyo.Var(bounds=(0, top / unit), doc="of the mini-batches wanted, of all jobs, in units")

    @block.Constraint([i for i in block.JOBS if parts[i] < top], doc="nobody has done less")
    def nobody_has_less(b: Any, i: int) -> Any:
        # More than the least of the jobs can come to is of no use to any.
        gained = [(-min(gain, top - parts[i]) / unit, b.width[i, w]) for w, gain in data.gains[i].items()]
        return linear([(1.0, b.smallest_part), *gained]) <= parts[i] / unit

    block.objective = pyo.Expression(expr=linear([(_LARGEST_GAIN, block.smallest_part)]))
