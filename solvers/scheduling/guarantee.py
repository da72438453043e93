"""What is proven of a greedy over slots: its share of the optimum beforehand, and a bound on the optimum afterwards."""

import numpy as np

from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.models.scheduling.fastest import fastest_rates
from ddlopt.models.scheduling.sweep import contention_levels
from ddlopt.models.tolerances import BOUND_MARGIN
from ddlopt.solvers.scheduling.slot.oracles import PoolBound
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints, in_company
from ddlopt.solvers.scheduling.slot.worth import Gains, Utilities


def refusal(instance: SchedulingInstance) -> str | None:
    """Which assumption of the greedy's guarantee the instance breaks; None if it keeps them all.

    Assumed are the objective ``utility`` with concave, non-decreasing utilities and nothing to subtract, and slots that
    are coupled by nothing but each job's progress.
    """
    if instance.objective != "utility":
        return f"the objective is {instance.objective!r}, not 'utility'"
    if instance.energy_price_per_j and (instance.worker_w.any() or instance.idle_w.any()):
        return "energy has a price, so utility may fall when a job gets more workers"
    for place, job in enumerate(instance.jobs):
        if not job.utility.concave:
            return f"the utility of jobs[{place}] '{job.name}', {job.utility.kind}, is not concave"
    if not instance.preemptive:
        return "jobs run in one piece, which couples slots"
    if instance.contention is not None:
        return "with contention a job's progress depends on the others"
    if instance.bandwidth == "shared":
        return "jobs share bandwidth, so progress depends on more than the width"
    if instance.changes_cost:
        return "changes cost time, which couples the slots"
    return None


def guarantee(instance: SchedulingInstance, beta: float) -> float | None:
    r"""The part of the optimum that the greedy over slots reaches with an oracle within ``beta`` of each slot's best.

    It is :math:`\beta / (1 + \beta)`: the utility U of the greedy's actions G grows by at least beta times what the
    optimum's action :math:`O_t` would have added in each slot, and

    .. math::
        \mathrm{OPT} \le U(G \cup O) \le U(G) + \sum_t \bigl[U(G \cup O_t) - U(G)\bigr]
        \le U(G) + \sum_t \bigl[U(G_{<t} \cup O_t) - U(G_{<t})\bigr] \le \Bigl(1 + \frac1\beta\Bigr) U(G).

    None where the assumptions do not hold; :func:`refusal` says which.

    References
    ----------
    M. Fisher, G. Nemhauser, L. Wolsey, "An analysis of approximations for maximizing submodular set functions II",
    1978 (a greedy over the parts of a partition matroid).
    """
    if refusal(instance) is not None or not 0 <= beta <= 1:
        return None
    return beta / (1 + beta)


def certified_bound(instance: SchedulingInstance, schedule: Schedule) -> float | None:
    r"""An upper bound on the utility of every schedule, from the progress Z that any one ``schedule`` makes.

    With :math:`\hat u_i` the utilities (the concave envelope v p of those that are not) and :math:`\hat\varphi_i` the
    fastest progress at any placement,

    .. math::
        \mathrm{OPT} \le \sum_i \hat u_i(Z_i)
        + \sum_t \max_{x_t} \sum_i \bigl[\hat u_i(Z_i + \hat\varphi_i(w_i)) - \hat u_i(Z_i)\bigr],

    the first two steps of the guarantee's proof, which hold for any Z. The maximum is that of the pool of resources
    over jobs in their window, least cost of energy subtracted: a relaxation of what fits on servers and links.

    Returns
    -------
    float or None
        None for objectives that are no sum of utilities.
    """
    if instance.objective != "utility":
        return None
    utilities = Utilities([job.utility for job in instance.jobs], envelope=True)
    jobs = np.arange(len(instance.jobs))
    wanted = np.array([job.minibatches for job in instance.jobs])
    done = minibatches_done(instance, schedule)
    gains = _end_gains(instance, utilities, done, wanted)
    bound = float(utilities.of(jobs, done / wanted).sum())
    relaxed = PoolBound(instance)
    for here, slots in _stretches(instance, gains):
        bound += slots * relaxed.best(here)[0]
    return bound + BOUND_MARGIN * max(1.0, abs(bound))


def minibatches_done(instance: SchedulingInstance, schedule: Schedule) -> Floats:
    """(I,) mini-batches of each job."""
    done = np.zeros(len(instance.jobs))
    for run, _, slots, competitors in contention_levels(instance, schedule):
        if instance.contention is not None:
            rate = in_company(instance, instance.contention, run.job, run.width, len(run.workers), competitors)
        else:
            bandwidth = run.bandwidth_bytes_per_s if len(run.workers) > 1 else None
            rate = float(instance.jobs[run.job].timing.minibatches_per_s(run.width, bandwidth)) * instance.slot_s
        done[run.job] += rate * slots
    return done


def _end_gains(instance: SchedulingInstance, utilities: Utilities, done: Floats, wanted: Floats) -> Gains:
    """What one more slot would gain, of the jobs that gain anything."""
    fastest: dict[object, Floats] = {}
    rows, jobs = [], []
    for place, job in enumerate(instance.jobs):
        if done[place] < wanted[place]:
            key = job.timing, job.min_workers, job.max_workers, tuple(instance.demand[place])
            if key not in fastest:
                fastest[key] = np.array([0.0, *([-np.inf] * (job.min_workers - 1)), *fastest_rates(instance, place)])
            rows.append(fastest[key])
            jobs.append(place)
    starts = np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=np.int64)))
    chosen = np.array(jobs, dtype=np.int64)
    each = np.repeat(chosen, np.diff(starts))
    rates = np.concatenate(rows) if rows else np.zeros(0)
    allowed = np.isfinite(rates)
    before = done[each]
    after = before + np.where(allowed, rates, 0.0)
    gained = utilities.of(each, after / wanted[each]) - utilities.of(each, before / wanted[each])
    return Gains(chosen, starts, np.where(allowed, gained, -np.inf))


def _stretches(instance: SchedulingInstance, gains: Gains) -> list[tuple[Gains, int]]:
    """(gains of the jobs that may run, number of slots) of every stretch of slots in which these are the same."""
    arrival = np.array([instance.jobs[job].arrival for job in gains.jobs.tolist()], dtype=np.int64)
    last = np.array([instance.last_slot(job) for job in gains.jobs.tolist()], dtype=np.int64)
    cuts = np.unique(np.concatenate((arrival, last)))
    found = []
    for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        here: Ints = np.flatnonzero((arrival <= start) & (last > start))
        if len(here):
            found.append((gains.of_places(here), end - start))
    return found
