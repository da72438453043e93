"""A lower bound on the makespan where accelerators are of several types, in rational numbers."""

import math
from fractions import Fraction

from ddlopt.frontier.scheduling.prices.fluid import Fluid, fluid
from ddlopt.frontier.scheduling.prices.offers import Offers, offers_of, typed_pool
from ddlopt.models.errors import InfeasibleError, NotApplicableError, SolverError
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.tolerances import let_pass

_MOST_OFFERS = 50_000
"""Of all jobs in a slot: more take minutes."""


def typed_makespan_bound(instance: SchedulingInstance) -> float | None:
    """Seconds before which no schedule ends; None elsewhere, and where a job's speed is no rational number.

    Raises
    ------
    InfeasibleError
        If not all jobs can be finished in the slots that there are.
    """
    if not instance.accelerators.matter or not instance.goal.counts_last_end:
        return None
    try:
        slots = typed_makespan_slots(instance)
    except NotApplicableError:
        return None
    if slots is None:
        return None
    if slots > instance.slots:
        raise InfeasibleError(
            f"'{instance.name}': to finish all jobs takes {slots} slots at least, but there are {instance.slots}"
        )
    return slots * instance.slot_s


def typed_makespan_slots(instance: SchedulingInstance) -> int | None:
    r"""Slots that every schedule takes which finishes all jobs; None where types make no difference.

    With prices :math:`p_{tkr} \ge 0` on the resources of each type, :math:`q_{it} \ge 0` on a job's own time and
    :math:`y_i` the least that a mini-batch of job i costs, over all its offers o (a width on a class of types, with its
    workers on the cheapest of them) and slots t from its arrival on,

    .. math::
        y_i = \min_{ot} \frac{q_{it} + c_{ot}}{\varphi_{io}},\qquad
        \sum_i F_i\, y_i \le \sum_{t < T} \Bigl(\sum_i q_{it} + \sum_{kr} C_{kr}\, p_{tkr}\Bigr) .

    Prices are the same in all slots from the last arrival on, which gives T. They are those of
    :func:`~ddlopt.frontier.scheduling.prices.fluid.fluid`, and the inequality is evaluated in rational numbers, as it
    holds for any.

    Raises
    ------
    NotApplicableError
        If a job's speed is no rational number.
    """
    if not instance.accelerators.matter:
        return None
    cluster = typed_pool(instance)
    offers = [offers_of(instance, cluster, place) for place in range(len(instance.jobs))]
    if sum(len(each.widths) for each in offers) > _MOST_OFFERS:
        return None
    try:
        found = fluid(instance)
    except SolverError:
        return None
    # A price that is rounded is a price; those of floating point have long denominators.
    prices = [[[_price(each) for each in row] for row in block] for block in found.prices.tolist()]
    times = [[_price(each) for each in row] for row in found.times.tolist()]
    capacity = [[let_pass(Fraction(each)) for each in row] for row in cluster.capacity.tolist()]
    if (cluster.demand == 1).all():
        capacity = [[Fraction(each) for each in row] for row in cluster.capacity.tolist()]
    rent = [
        sum(
            price * held for own, row in zip(block, capacity, strict=True) for price, held in zip(own, row, strict=True)
        )
        for block in prices
    ]
    need, paid = Fraction(0), Fraction(0)
    rooms, demand = cluster.rooms.tolist(), cluster.demand.tolist()
    for i, job in enumerate(instance.jobs):
        least = None
        for b in range(len(prices)):
            length = int(found.firsts[b + 1]) - max(int(found.firsts[b]), job.arrival)
            if length <= 0:
                continue
            by_type = [
                sum((price * each for price, each in zip(own, map(Fraction, demand[i]), strict=True)), Fraction(0))
                for own in prices[b]
            ]
            here = _least(instance, i, offers[i], rooms[i], by_type, times[i][b])
            least = here if least is None else min(least, here)
            if b < len(prices) - 1:
                paid += times[i][b] * length
        assert least is not None
        need += least * Fraction(job.minibatches) * DONE
    paid += sum((rent[b] * _length(found, b) for b in range(len(prices) - 1)), Fraction(0))
    by_slot = rent[-1] + sum(row[-1] for row in times)
    if not by_slot:
        return None
    return int(found.firsts[-2]) + max(0, math.ceil((need - paid) / by_slot))


def _length(found: Fluid, block: int) -> int:
    return int(found.firsts[block + 1] - found.firsts[block])


def _price(value: float) -> Fraction:
    return Fraction(round(value * 2**60), 2**60)


def _least(
    instance: SchedulingInstance, job: int, offers: Offers, rooms: list[int], prices: list[Fraction], time: Fraction
) -> Fraction:
    """What a mini-batch costs at least."""
    timing, least = instance.jobs[job].timing, None
    for place, width in zip(offers.of_class.tolist(), offers.widths.tolist(), strict=True):
        rate = timing.minibatches_per_s(width, None, Fraction)
        if not isinstance(rate, Fraction):
            raise NotApplicableError(f"the speed of job '{instance.jobs[job].name}' is no rational number")
        cost, left = time, width
        for k in sorted(offers.types[place], key=lambda k: prices[k]):
            taken = min(left, rooms[k])
            cost += taken * prices[k]
            left -= taken
        each = cost / (rate * Fraction(instance.slot_s) * Fraction(offers.paces[place]))
        least = each if least is None else min(least, each)
    assert least is not None
    return least
