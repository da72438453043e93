"""Orders of the wire for options and parts that are given, and parts that suit them."""

import heapq
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from ddlopt.models.compression.forward.instance import ForwardInstance, ForwardPlan

Rule = Literal["ready", "needed"]
"""Of what is encoded the wire sends what was ready first, or what is needed first."""

_HALVINGS = 10
"""Sizes of parts that are tried: the longest gradient's time on the wire, halved so often; a thousandth is short."""


class Sent(NamedTuple):
    """What is on the wire for how long, and when it may start: arrays of n."""

    encoded_s: list[float]
    launch_s: list[float]
    payload_s: list[float]


def sent_by(instance: ForwardInstance, choices: Sequence[int]) -> Sent:
    """The figures of options that are chosen."""
    options = [instance.timeline.option(i, choice) for i, choice in enumerate(choices)]
    encoded = instance.timeline.ready_s + np.cumsum([option.encode_s for option in options])
    return Sent(
        encoded.tolist(),
        [option.launch_s for option in options],
        [option.wire_s + option.decode_s for option in options],
    )


def served(instance: ForwardInstance, sent: Sent, parts: Sequence[int], rule: Rule) -> tuple[float, tuple[int, ...]]:
    """The time and the order if the wire, whenever it is free, sends a part by the rule, and does not wait for one."""
    count = instance.size
    sign = 1 if rule == "ready" else -1
    waiting: list[int] = []
    left, there, order = list(parts), [0.0] * count, []
    wire, coming = 0.0, 0
    while waiting or coming < count:
        if not waiting:
            wire = max(wire, sent.encoded_s[coming])
        while coming < count and sent.encoded_s[coming] <= wire:
            heapq.heappush(waiting, sign * coming)
            coming += 1
        place = sign * waiting[0]
        wire += sent.launch_s[place] + sent.payload_s[place] / parts[place]
        there[place] = wire
        order.append(place)
        left[place] -= 1
        if not left[place]:
            heapq.heappop(waiting)
    time = 0.0
    for place in reversed(range(count)):
        time = max(time, there[place]) + instance.forward_s[place]
    return time, tuple(order)


def cut_to(instance: ForwardInstance, lengths: Sequence[float], longest: float) -> tuple[int, ...]:
    """For every gradient the least number of parts of which none is longer, or the largest number that there is."""
    return tuple(next((k for k in instance.parts if length <= k * longest), instance.parts[-1]) for length in lengths)


def planned(instance: ForwardInstance, choices: Sequence[int]) -> ForwardPlan:
    """The gradient needed first, in parts no longer than the best of some lengths; all in one part is one of them."""
    sent = sent_by(instance, choices)
    longest = max(sent.payload_s)
    cuts = {cut_to(instance, sent.payload_s, longest / 2**power): None for power in range(_HALVINGS + 1)}
    tried = [(*served(instance, sent, cut, "needed"), cut) for cut in cuts]
    _, order, parts = min(tried, key=lambda each: each[0])
    return plan(instance, choices, parts, order)


def plan(instance: ForwardInstance, choices: Sequence[int], parts: Sequence[int], order: Sequence[int]) -> ForwardPlan:
    """The answer, with the instance that it answers."""
    return ForwardPlan(
        instance=instance.name,
        instance_digest=instance.digest,
        choices=tuple(choices),
        parts=tuple(parts),
        order=tuple(order),
    )


class Piece(NamedTuple):
    """A part on the wire, or a layer's forward pass: of which gradient, from when to when."""

    place: int
    start_s: float
    end_s: float


def shown(instance: ForwardInstance, solution: ForwardPlan) -> tuple[list[Piece], list[Piece]]:
    """What a plan that makes sense does: parts in the order of the wire, and forward passes by gradient."""
    sent = sent_by(instance, solution.choices)
    pieces: list[Piece] = []
    wire = 0.0
    there = [0.0] * instance.size
    for place in solution.order:
        start = max(wire, sent.encoded_s[place])
        wire = there[place] = start + sent.launch_s[place] + sent.payload_s[place] / solution.parts[place]
        pieces.append(Piece(place, start, wire))
    layers: list[Piece] = []
    time = 0.0
    for place in reversed(range(instance.size)):
        start = max(time, there[place])
        time = start + instance.forward_s[place]
        layers.append(Piece(place, start, time))
    return pieces, layers[::-1]
