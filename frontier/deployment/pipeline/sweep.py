"""An order in which the layers of a graph are looked at one by one, with few of them open at a time."""

from typing import Any, NamedTuple

import numpy as np

from ddlopt.models.deployment.pipeline.instance import PipelineInstance

_HUB = 8
"""Edges from which on a layer may be open from the beginning."""
_HUBS = 2
"""How many such layers at most."""


class Sweep(NamedTuple):
    """The order, and what stays open in it.

    Parameters
    ----------
    order : (l,) array
        Layers.
    slot, freed, first, other : arrays
        See :func:`~ddlopt.frontier.deployment.pipeline.price_kernels.least_loads`.
    edges : (e,) array
        Edges of the instance that are looked at, and whether the later of the two layers makes them.
    made : (e,) array
    width : int
        Slots.
    """

    order: Any
    slot: Any
    freed: Any
    first: Any
    other: Any
    edges: Any
    made: Any
    width: int


def sweep(instance: PipelineInstance, widest: int) -> Sweep:
    """A sweep with ``widest`` slots at most; edges without room are left out, those with the fewest bytes."""
    around: list[dict[int, int]] = [{} for _ in range(instance.size)]
    for number, edge in enumerate(instance.edges):
        around[edge.maker][edge.user] = around[edge.user][edge.maker] = number
    hubs = sorted(range(instance.size), key=lambda layer: -len(around[layer]))[:_HUBS]
    tried = [
        _swept(instance, around, [layer for layer in hubs[:count] if len(around[layer]) > _HUB], widest, straight)
        for count in range(_HUBS + 1)
        for straight in (True, False)
    ]
    return min(tried, key=lambda each: (each[0], each[1].width))[1]


def _swept(
    instance: PipelineInstance, around: list[dict[int, int]], hubs: list[int], widest: int, straight: bool
) -> tuple[float, Sweep]:
    """Bytes of the edges left out, and the sweep: in the order of the layers, or that next which leaves fewest open."""
    size = instance.size
    left = [set(others) for others in around]
    waiting = [layer for layer in range(size) if layer not in hubs]
    order, slots, frees, first = [], [], [], [0]
    other: list[int] = []
    edges: list[int] = []
    made: list[bool] = []
    opened: dict[int, int] = {}
    lost, width = 0.0, 0

    def openings(layer: int) -> int:
        closed = sum(left[each] == {layer} for each in opened)
        return int(any(each not in opened for each in left[layer])) - closed

    for place in range(size):
        if place < len(hubs):
            layer = hubs[place]
        else:
            layer = waiting[0] if straight else min(waiting, key=openings)
            waiting.remove(layer)
        for each in sorted(opened):
            if layer in left[each]:
                number = around[each][layer]
                edges.append(number)
                made.append(instance.edges[number].maker == layer)
                other.append(opened[each])
                left[each].discard(layer)
                left[layer].discard(each)
        # Layers that are done and no longer open have been left out of these already.
        before = set(opened.values())
        own = -1
        if left[layer]:
            own = next(number for number in range(size) if number not in before)
            opened[layer] = own
        free = 0
        for each in [each for each in opened if not left[each]]:
            free |= 1 << opened.pop(each)
        if len(opened) > widest or own >= widest:
            cheapest = min(
                opened, key=lambda each: sum(instance.edges[around[each][to]].size_bytes for to in left[each])
            )
            lost += sum(instance.edges[around[cheapest][to]].size_bytes for to in left[cheapest])
            for to in left[cheapest]:
                left[to].discard(cheapest)
            left[cheapest] = set()
            free |= 1 << opened.pop(cheapest)
        order.append(layer)
        slots.append(own)
        frees.append(free)
        first.append(len(other))
        width = max(width, own + 1)
    whole = (np.array(each, dtype=np.int64) for each in (order, slots, frees, first, other, edges))
    fields = dict(zip(("order", "slot", "freed", "first", "other", "edges"), whole, strict=True))
    return lost, Sweep(**fields, made=np.array(made, dtype=np.bool_), width=width)
