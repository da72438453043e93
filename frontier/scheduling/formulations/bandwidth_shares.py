"""The best bandwidths of rings that are already placed: a convex program."""

from dataclasses import dataclass
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from ddlopt.frontier.scheduling.formulations.concave import largest_less_price, sum_of_utilities
from ddlopt.frontier.scheduling.formulations.rings_on_links import Arc, Floats, RingsOnLinks
from ddlopt.models.covering import Covering
from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.solution import Schedule
from ddlopt.models.tolerances import ROUNDING


class LinkPrice(NamedTuple):
    """What one more byte/s of an arc in slots ``start`` to ``end - 1`` would be worth, in units of the objective."""

    arc: Arc
    start: int
    end: int
    price: float


@dataclass(frozen=True)
class BandwidthShares(Covering):
    r"""Bandwidths of the rings of a given schedule, for instances whose bandwidth is ``shared``.

    Workers, rings and times of all runs stay. With :math:`w_r` workers and :math:`L_r` slots of :math:`\Delta` seconds,
    run r has bandwidth :math:`b_r` on every link of its ring and does

    .. math::
        z_r = \frac{L_r \Delta w_r}{c_r + a_r / b_r} = \frac{L_r \Delta w_r}{c_r}
        \Bigl(1 - \frac{a_r}{c_r b_r + a_r}\Bigr), \qquad a_r = \frac{2 (w_r - 1)}{w_r} m

    mini-batches, where :math:`c_r` is the part of an iteration that bandwidth does not change: computation, reduction,
    overhead, latency. That is concave in :math:`b_r`. With :math:`n_{re}` passes of ring r over arc e,

    .. math::
        \max \sum_i u_i(p_i), \qquad p_i \le 1, \quad p_i \le \frac1{F_i} \sum_{r \in i} z_r, \qquad
        \sum_{r \text{ in slot } t} n_{re} b_r \le B_e \quad \forall e, t,

    or :math:`\max \min_i p_i`. Of stretches of slots whose rings are all in a neighbouring one, the row is left out.
    Energy does not depend on bandwidths and is left out too. Utilities have to be concave.

    Ports
    -----
    ``share``
        Variable: :math:`b_r` by the most that the ring could have if it were alone, in the order of
        :attr:`~ddlopt.frontier.scheduling.formulations.rings_on_links.RingsOnLinks.runs`.
    ``part``
        Variable: :math:`p_i`.
    ``constraints[0]``
        Link rows, divided by :math:`B_e`, in the order of
        :attr:`~ddlopt.frontier.scheduling.formulations.rings_on_links.RingsOnLinks.rows`.
    ``constraints[1]``
        Progress rows.
    ``smallest`` : objective ``max_min``
        Variable: the smallest part.
    ``constraints[2]`` : objective ``max_min``
        The smallest part is at most each part.
    ``objective``
        Sum of utilities, or the smallest part, to be maximised.

    References
    ----------
    F. Kelly, "Charging and rate control for elastic traffic", 1997 (utility maximisation over shared links). That
    progress of rings is concave in their bandwidth, and the model, are ours.
    """

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Instances without shared bandwidth, times, and utilities that are not concave."""
        if instance.bandwidth != "shared":
            return f"its bandwidth is '{instance.bandwidth}'; bandwidths are chosen where it is 'shared'"
        if instance.changes.must_wait:
            return "jobs may not change in every slot, unless they are over, which depends on bandwidths"
        if instance.changes.cost_time:
            return "changes cost time, which the progress of given rings leaves out"
        if instance.sense != "maximize":
            return f"objective '{instance.objective}' counts whole slots and is not concave in bandwidths"
        if instance.goal.counts_utilities:
            for place, job in enumerate(instance.jobs):
                if not job.utility.concave:
                    return f"the utility of jobs[{place}] '{job.name}', {job.utility.kind}, is not concave"
        return None

    def problem(self, instance: SchedulingInstance, schedule: Schedule) -> cp.Problem:
        """The program for the runs of ``schedule``, at least one of which has a ring; see the class for its ports."""
        rings = RingsOnLinks(instance, schedule)
        share = cp.Variable(len(rings.runs), nonneg=True, name="share")
        part = cp.Variable(len(instance.jobs), name="part")
        progress = cp.multiply(rings.most, 1 - cp.inv_pos(1 + cp.multiply(rings.steepness, share)))
        rows = [rings.loads @ share <= 1, part <= rings.fixed + rings.of_job @ progress]
        if instance.goal.counts_least_part:
            smallest = cp.Variable(name="smallest")
            return cp.Problem(cp.Maximize(smallest), [*rows, smallest <= part, part <= 1])
        goal = sum_of_utilities([job.utility for job in instance.jobs], part)
        return cp.Problem(cp.Maximize(goal), [*rows, part <= 1])

    def read(self, problem: cp.Problem, instance: SchedulingInstance, schedule: Schedule) -> Schedule:
        """The schedule with the bandwidths of a solved ``problem``, smaller where rounding made links over-full."""
        rings, share = RingsOnLinks(instance, schedule), problem.var_dict["share"].value
        if share is None:
            raise SolverError("the problem has no values; solve it first")
        return rings.schedule(rings.fitted(share))

    def prices(self, problem: cp.Problem, instance: SchedulingInstance, schedule: Schedule) -> list[LinkPrice]:
        """Price of every link row of a solved ``problem``."""
        rings = RingsOnLinks(instance, schedule)
        return [
            LinkPrice(row.arc, row.start, row.end, price / row.bandwidth_bytes_per_s)
            for row, price in zip(rings.rows, _multipliers(problem, 0, len(rings.rows)).tolist(), strict=True)
        ]

    def bound(self, problem: cp.Problem, instance: SchedulingInstance, schedule: Schedule) -> float:
        r"""Upper bound on the objective of all bandwidths, from the multipliers of a solved ``problem`` alone.

        For any :math:`\lambda \ge 0` of link rows and :math:`q \ge 0` of progress rows the objective is at most

        .. math::
            \sum_k \lambda_k + \sum_i \max_{0 \le p \le 1} [u_i(p) - q_i p]
            + \sum_r \max_{0 \le \beta \le 1} [q_{i(r)} p_r(\beta) - \lambda^T A_r \beta],

        with loads A and shares :math:`\beta`; for ``max_min``, :math:`u_i(p) = \omega_i p` with weights that sum to 1.
        The inner maxima are bounded by tangents, so that nothing rests on the solver's accuracy. Nor is the bound
        above what all rings get if each of them is alone.
        """
        rings = RingsOnLinks(instance, schedule)
        links = _multipliers(problem, 0, len(rings.rows))
        parts = _multipliers(problem, 1, len(instance.jobs))
        alone = rings.parts(np.ones(len(rings.runs)))
        if instance.goal.counts_least_part:
            weights = _multipliers(problem, 2, len(instance.jobs))
            weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(weights), 1 / len(weights))
            worth, most, energy = np.maximum(0.0, weights - parts), float(alone.min()), 0.0
        else:
            pairs = zip(instance.jobs, parts.tolist(), strict=True)
            worth = np.array([largest_less_price(job.utility, price) for job, price in pairs])
            most = sum(float(job.utility.of(part)) for job, part in zip(instance.jobs, alone.tolist(), strict=True))
            energy = instance.energy_price_per_j * _energy_j(instance, schedule)
        terms = np.concatenate([links, worth, parts * rings.fixed, _largest_progress(rings, parts, links)])
        best = min(float(terms.sum() + ROUNDING * np.abs(terms).sum()), most * (1 + ROUNDING))
        return best - energy + ROUNDING * energy


def _energy_j(instance: SchedulingInstance, schedule: Schedule) -> float:
    """Energy of the workers, and of the servers in the slots in which they have any, in joules."""
    used = np.zeros((len(instance.idle_w), max((run.end for run in schedule.runs), default=0)), dtype=np.bool_)
    worker_slots = np.zeros(len(used))
    for run in schedule.runs:
        for server, count in run.workers:
            used[server, run.start : run.end] = True
            worker_slots[server] += count * run.slots
    return float(used.sum(axis=1) @ instance.idle_w + worker_slots @ instance.worker_w) * instance.slot_s


def _multipliers(problem: cp.Problem, place: int, count: int) -> Floats:
    """(count,) multipliers of a constraint, none below 0; zeros where the solver gave none."""
    value = problem.constraints[place].dual_value
    return np.zeros(count) if value is None else np.maximum(0.0, np.nan_to_num(np.asarray(value).reshape(count)))


def _largest_progress(rings: RingsOnLinks, parts: Floats, links: Floats) -> Floats:
    """(R,) upper bounds on the progress of each ring at the price ``parts`` of its job less what its links cost."""
    worth, cost = parts[rings.job] * rings.most, rings.loads.T @ links
    best = np.where(cost > 0, np.sqrt(worth * rings.steepness / np.where(cost > 0, cost, 1.0)) - 1, np.inf)
    share = np.clip(best / rings.steepness, 0.0, 1.0)
    slope = worth * rings.steepness / (1 + rings.steepness * share) ** 2 - cost
    value = worth * (1 - 1 / (1 + rings.steepness * share)) - cost * share
    rise: Floats = np.maximum(0.0, slope) * (1 - share) + np.maximum(0.0, -slope) * share
    return np.asarray(value + rise)
