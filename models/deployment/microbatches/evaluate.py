"""The independent check of an order of micro-batches, from the problem statement."""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.microbatches.solution import (
    FORWARD,
    INPUTS,
    WEIGHTS,
    WHOLE,
    MicroBatchOrder,
    Pass,
    kinds_of,
    pass_of,
)
from ddlopt.models.tolerances import let_pass

Figures = type[Fraction] | type[float]
Waits = Mapping[Pass, list[tuple[Pass, Number]]]
"""For every pass those that it waits for, and how long after their ends."""


def evaluate_order(instance: MicroBatchInstance, solution: MicroBatchOrder, exact: bool = False) -> Evaluation:
    """The objective with the best timing of the order, and what is wrong.

    Makespans are those of passes that run as early as they can. The span is what it can be made by beginning later:
    with :math:`D_{de}` the longest path from the beginning of a device's first pass to the end of the last one of
    device e, the mean of D over the cycle of devices where it is largest.

    Parameters
    ----------
    instance : MicroBatchInstance
    solution : MicroBatchOrder
    exact : bool
        In rational numbers; of memory the same is let pass as in floating point.

    Returns
    -------
    Evaluation
        Without an objective where passes are missing, or wait for each other in a circle.
    """
    number: Figures = Fraction if exact else float
    orders, wrong = _read(instance, solution)
    if wrong:
        return Evaluation(None, tuple(wrong))
    waits = _waits(instance, orders, number)
    try:
        line = list(
            TopologicalSorter({each: [one for one, _ in found] for each, found in waits.items()}).static_order()
        )
    except CycleError as circle:
        names = " -> ".join(str(each) for each in reversed(circle.args[1][-4:]))
        return Evaluation(None, (Violation("no pass waits for itself", names, 1, 0),))
    peaks = [_peak(instance, order, number) for order in orders]
    for device, peak in enumerate(peaks):
        limit = number(instance.memory_bytes[device])
        if peak > let_pass(limit):
            wrong.append(Violation("memory suffices", f"device {device}", peak, limit))
    times = {each: _time(instance, each, number) for each in waits}
    place = {each: k for k, each in enumerate(line)}
    before = [[(place[one], lag) for one, lag in waits[each]] for each in line]
    own = [times[each] for each in line]
    ends: list[Number] = []
    for found, took in zip(before, own, strict=True):
        ends.append(max((ends[one] + lag for one, lag in found), default=number(0)) + took)
    makespan = max(ends)
    details: dict[str, Number] = {"makespan_s": makespan}
    value: Number = makespan
    if instance.objective == "span":
        value = details["span_s"] = _span(
            [(place[order[0]], place[order[-1]]) for order in orders], before, own, number
        )
    details |= {"largest_memory_bytes": max(peaks), "bubble": _bubble(orders, value, times)}
    if instance.objective == "barrier":
        value += max(number(each) for each in instance.optimizer_s)
    return Evaluation(value, tuple(wrong), details)


def _read(instance: MicroBatchInstance, solution: MicroBatchOrder) -> tuple[list[list[Pass]], list[Violation]]:
    """The passes of every device, and which are unknown, missing, twice or elsewhere."""
    wrong = []
    if len(solution.orders) != instance.devices:
        wrong.append(Violation("every device has an order", "orders", len(solution.orders), instance.devices))
    orders: list[list[Pass]] = []
    seen: Counter[Pass] = Counter()
    for device, names in enumerate(solution.orders):
        orders.append([])
        for place, name in enumerate(names):
            found, where = pass_of(name), f"'{name[:20]}', {place} of device {device}"
            if found is None or not _is_known(instance, found):
                wrong.append(Violation("passes are known", where, 0, 1))
                continue
            own = instance.chunks[found.chunk].device
            if own != device:
                wrong.append(Violation("passes run on the device of their chunk", where, device, own))
            orders[device].append(found)
            seen[found] += 1
    for chunk in range(len(instance.chunks)):
        for kind in kinds_of(instance, chunk):
            for micro_batch in range(instance.micro_batches):
                count = seen[Pass(chunk, kind, micro_batch)]
                if count != 1:
                    wrong.append(Violation("every pass runs once", f"{chunk}{kind}{micro_batch}", count, 1))
    return orders, wrong


def _is_known(instance: MicroBatchInstance, found: Pass) -> bool:
    return (
        found.chunk < len(instance.chunks)
        and found.kind in kinds_of(instance, found.chunk)
        and found.micro_batch < instance.micro_batches
    )


def _time(instance: MicroBatchInstance, which: Pass, number: Figures) -> Number:
    chunk = instance.chunks[which.chunk]
    seconds = {FORWARD: chunk.forward_s, INPUTS: chunk.backward_s, WEIGHTS: chunk.weights_s, WHOLE: chunk.backward_s}
    return number(seconds[which.kind] or 0)


def _waits(instance: MicroBatchInstance, orders: list[list[Pass]], number: Figures) -> Waits:
    waits: dict[Pass, list[tuple[Pass, Number]]] = {each: [] for order in orders for each in order}
    for order in orders:
        for one, then in pairwise(order):
            waits[then].append((one, number(0)))
    back = {chunk: kinds_of(instance, chunk)[1] for chunk in range(len(instance.chunks))}
    for n in range(instance.micro_batches):
        for chain in instance.chains:
            for maker, user in pairwise(chain):
                forward, backward = instance.transfers[maker, user]
                waits[Pass(user, FORWARD, n)].append((Pass(maker, FORWARD, n), number(forward)))
                waits[Pass(maker, back[maker], n)].append((Pass(user, back[user], n), number(backward)))
            for chunk in chain:
                # On all but the last chunk this follows from the others.
                waits[Pass(chunk, back[chunk], n)].append((Pass(chunk, FORWARD, n), number(0)))
                if back[chunk] == INPUTS:
                    waits[Pass(chunk, WEIGHTS, n)].append((Pass(chunk, INPUTS, n), number(0)))
    return waits


def _span(
    devices: list[tuple[int, int]], before: list[list[tuple[int, Number]]], times: list[Number], number: Figures
) -> Number:
    """The largest mean of longest paths over a cycle of devices, by Karp's recursion.

    Of the passes in an order in which each comes behind those that it waits for; of each device the first and the last.
    """
    count = len(devices)
    paths: list[dict[int, Number]] = []
    for first, _ in devices:
        ends: dict[int, Number] = {first: times[first]}
        for each in range(first + 1, len(times)):
            starts = [ends[one] + lag for one, lag in before[each] if one in ends]
            if starts:
                ends[each] = max(starts) + times[each]
        paths.append({device: ends[last] for device, (_, last) in enumerate(devices) if last in ends})
    # Walks begin anywhere: as if one more place led to each device in no time.
    walks: list[dict[int, Number]] = [dict.fromkeys(range(count), number(0))]
    for _ in range(count):
        longer: dict[int, Number] = {}
        for device, length in walks[-1].items():
            for other, path in paths[device].items():
                if other not in longer or length + path > longer[other]:
                    longer[other] = length + path
        walks.append(longer)
    return max(
        min((length - walks[k][device]) / (count - k) for k in range(count) if device in walks[k])
        for device, length in walks[count].items()
    )


def _peak(instance: MicroBatchInstance, order: list[Pass], number: Figures) -> Number:
    taken, peak = number(0), number(0)
    for each in order:
        chunk = instance.chunks[each.chunk]
        held, freed = number(chunk.held_bytes), number(chunk.freed_bytes)
        if each.kind == FORWARD:
            taken += held
            peak = max(peak, taken)
        else:
            taken -= {INPUTS: freed, WEIGHTS: held - freed, WHOLE: held}[each.kind]
    return peak


def _bubble(orders: list[list[Pass]], length: Number, times: Mapping[Pass, Number]) -> Number:
    """The part of the span or makespan in which the busiest device waits."""
    work = max(sum((times[each] for each in order), length * 0) for order in orders)
    return 1 - work / length if length else length
