"""How long a job would take if its fair share of the cluster were its own: what finish-time fairness divides by."""

import math
from fractions import Fraction

from ddlopt.models.contracts import Number
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.utility import DONE


def fair_s(instance: SchedulingInstance, job: int, number: type[float] | type[Fraction] = float) -> Number:
    r"""Seconds from a job's arrival to its end with its fair share alone: its ``fair_s``, if it has one.

    Otherwise the share is the N-th part of all servers' resources, N the number of jobs of the instance, for the whole
    time, and the job divides time between widths: with b workers in the share and :math:`\varphi(0) = 0` it does

    .. math::
        \max \sum_w x_w \varphi(w) \quad\text{with}\quad \sum_w w x_w \le b,\quad \sum_w x_w \le 1,\quad x \ge 0

    mini-batches in a slot, for a job of one width :math:`\min(1, b / w)\, \varphi(w)`, as in Gavel's isolated policy.
    It ends with the slot in which it finishes, as in a schedule.

    Parameters
    ----------
    number : type
        Arithmetic: floats or rational numbers.
    """
    one = instance.jobs[job]
    if one.fair_s is not None:
        return number(one.fair_s)
    share = min(
        sum(number(group.capacity.get(name, 0.0)) * group.count for group in instance.servers) / number(amount)
        for name, amount in one.demand.items()
        if amount
    ) / len(instance.jobs)
    slot_s = number(instance.slot_s)
    rates = {width: one.timing.minibatches_per_s(width, None, number) * slot_s for width in one.widths}
    below: dict[int, Number] = {0: number(0)} | {width: rate for width, rate in rates.items() if width <= share}
    best = max(below.values())
    for width, rate in rates.items():
        if width > share:
            # Between any two widths around the share; the best pair is on the concave envelope.
            best = max(best, *(low + (rate - low) * (share - w) / (width - w) for w, low in below.items()))
    # A share that is a width, up to rounding, is next to the line between widths; DONE leaves room at whole slots.
    enough = number(one.minibatches) * (DONE if number is Fraction else float(DONE))
    return max(1, math.ceil(enough / best)) * slot_s


def fair_slots(instance: SchedulingInstance) -> list[float]:
    """The same of all jobs, in slots."""
    return [float(fair_s(instance, job)) / instance.slot_s for job in range(len(instance.jobs))]
