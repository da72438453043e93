"""What is proven of a greedy over slots beforehand: its part of the optimum."""

from ddlopt.models.scheduling import SchedulingInstance


def refusal(instance: SchedulingInstance) -> str | None:
    """Which assumption of the greedy's guarantee the instance breaks; None if it keeps them all.

    Assumed are the objective ``utility`` with concave, non-decreasing utilities and nothing to subtract, and slots that
    are coupled by nothing but each job's progress.
    """
    if not instance.goal.counts_utilities:
        return f"the objective is {instance.objective!r}, not 'utility'"
    if instance.energy_price_per_j and (instance.worker_w.any() or instance.idle_w.any()):
        return "energy has a price, so utility may fall when a job gets more workers"
    for place, job in enumerate(instance.jobs):
        if not job.utility.concave:
            return f"the utility of jobs[{place}] '{job.name}', {job.utility.kind}, is not concave"
    if not instance.preemptive:
        return "jobs run in one piece, which couples slots"
    if not instance.widths_decide_speed:
        return "jobs share bandwidth, so that progress depends on more than the width"
    if instance.changes.cost_time:
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
