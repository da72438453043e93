"""Bounds on the makespan and the span of every order that need no search."""

from fractions import Fraction

from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.microbatches.ticks import B, F, Ticks, W, exact_ticks
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import ROUNDING


def order_bound(instance: MicroBatchInstance) -> float:
    """Seconds below which no order is; see :func:`ticks_bound`.

    Raises
    ------
    InfeasibleError
        If a device cannot hold one micro-batch.
    """
    return float(exact_order_bound(instance)) * (1 - ROUNDING)


def exact_order_bound(instance: MicroBatchInstance) -> Fraction:
    """The same in rational numbers."""
    require_room(instance)
    ticks = exact_ticks(instance)
    return ticks.seconds(ticks_bound(ticks))


def require_room(instance: MicroBatchInstance) -> None:
    """Raise InfeasibleError unless every device can hold a micro-batch of each chain on all its chunks.

    That much is needed: before the first B of a chain on a device, all its F of a micro-batch are there. And it
    suffices: run one micro-batch after another.
    """
    ticks = exact_ticks(instance)
    for device in range(instance.devices):
        for chain in instance.chains:
            own = [chunk for chunk in chain if ticks.device[chunk] == device]
            need = sum(instance.chunks[chunk].held_bytes for chunk in own)
            if sum(ticks.cells[chunk, F] for chunk in own) > ticks.loose_room[device]:
                raise InfeasibleError(
                    f"'{instance.name}': memory_bytes[{device}] is {instance.memory_bytes[device]:g}, less than the "
                    f"{need:g} bytes that one micro-batch takes on the chunks of device {device}; give it at least that"
                )


def ticks_bound(ticks: Ticks) -> int:
    r"""The largest of these, in ticks.

    * A micro-batch by itself: on a device from its first F to its last pass (span), or all in all (makespan).
    * A device's work; for makespans from the earliest that something begins there, and on to the least that is behind
      what it ends with.
    * *Ramp*: on a device nothing but F runs before its first B, which is R after its first F at the earliest, once
      there and back. Of these F there are n, and no more than memory lets be in flight; so from its first F on a device
      takes at least its work and :math:`R - a`, with a the most time that these F fill. With unit times this is the
      theorem :math:`3 n + \max(0, 2 p - 1 - \min(n, \lfloor M \rfloor))`.
    * *Rounds*: where k micro-batches fill a device's memory F is again and again the round R and B behind the k-th
      F before it; after the last of them its round is still to come, and what is left to do.
    """
    instance = ticks.instance
    require_room(instance)
    span = instance.objective == "span"
    best = 0
    for device, own in enumerate(ticks.on):
        first = 0 if span else min(ticks.head[each] for each in own if each[1] == F)
        last = 0 if span else min(ticks.tail[each] for each in own)
        best = max(best, first + ticks.work[device] + _ramp(ticks, device) + last)
        best = max(best, first + _rounds(ticks, device))
        best = max(best, first + _alone(ticks, device))
    return best


def _own_chains(ticks: Ticks, device: int) -> list[list[int]]:
    """Of every chain the chunks that the device has, where it has any."""
    found = [[each for each in chain if ticks.device[each] == device] for chain in ticks.instance.chains]
    return [own for own in found if own]


def _round(ticks: Ticks, own: list[int]) -> int:
    """Ticks from the beginning of a micro-batch's first F on a device to that of its first B there."""
    return ticks.head[own[-1], B] - ticks.head[own[0], F]


def _alone(ticks: Ticks, device: int) -> int:
    """A micro-batch from its first F on a device to its end there, or anywhere for makespans."""
    longest = 0
    for own in _own_chains(ticks, device):
        begin = ticks.head[own[0], F]
        for each in ticks.on[device]:
            if each[0] in own:
                behind = 0 if ticks.instance.objective == "span" else ticks.tail[each]
                longest = max(longest, ticks.head[each] + ticks.time[each] + behind - begin)
    return longest


def _ramp(ticks: Ticks, device: int) -> int:
    """Ticks in which a device must wait before its first B."""
    least = min(_round(ticks, own) for own in _own_chains(ticks, device))
    n, room = ticks.instance.micro_batches, ticks.loose_room[device]
    filled: int | Fraction = 0
    forwards = [each for each in ticks.on[device] if each[1] == F]
    if len(forwards) == 1:
        filled = ticks.time[forwards[0]] * _in_flight(ticks, forwards[0][0])
    else:
        # A knapsack whose items may be cut: those with most time a cell first. Who takes no time fills nothing.
        timed = [each for each in forwards if ticks.time[each]]
        dear = sorted(timed, key=lambda each: Fraction(ticks.cells[each], ticks.time[each]))
        left = Fraction(room)
        for each in dear:
            size = ticks.cells[each]
            count = Fraction(n) if not size else min(Fraction(n), left / size)
            filled += count * ticks.time[each]
            left -= count * size
    return max(0, least - int(filled))


def _in_flight(ticks: Ticks, chunk: int) -> int:
    """The most micro-batches that have begun F of a device's only chunk and not B."""
    size, n = ticks.cells[chunk, F], ticks.instance.micro_batches
    return min(n, ticks.loose_room[ticks.device[chunk]] // size) if size else n


def _rounds(ticks: Ticks, device: int) -> int:
    """Ticks that a device with one chunk takes from its first F on, where memory makes it wait again and again.

    With room for k micro-batches, m - k of them have had their B before F of the m-th, and before a B are its F and a
    round. After the last F there is its round to come, its B and what is behind that.
    """
    own = [each for each in ticks.on[device] if each[1] == F]
    if len(own) != 1:
        return 0
    chunk, n, room = own[0][0], ticks.instance.micro_batches, ticks.loose_room[device]
    size, freed = ticks.cells[chunk, F], ticks.cells[chunk, B]
    if not size:
        return 0
    freed = size if (chunk, W) not in ticks.time else freed
    forward, backward = ticks.time[chunk, F], ticks.time[chunk, B]
    weights = ticks.time.get((chunk, W), 0)
    gap = _round(ticks, [chunk])
    begins: list[int] = []
    ends: list[int] = []
    for m in range(n):
        begin = begins[-1] + forward if begins else 0
        # This number of B must have ended, even if they gave back all: at least (m + 1) size - room.
        lacking = max(0, (m + 1) * size - room)
        need = -(-lacking // size)
        if need:
            begin = max(begin, ends[need - 1])
            if lacking > (need - 1) * size + freed:
                # That B alone gives too little back, whatever was done before: its W follows, or another B.
                begin = max(begin, ends[need - 1] + min(weights, backward))
        begins.append(begin)
        ends.append(max(begin + gap, ends[-1] if ends else 0) + backward)
    return ends[-1] + (weights if ticks.instance.objective == "span" else ticks.tail[chunk, B])
