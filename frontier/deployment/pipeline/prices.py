"""A bound by prices of layers: no sequence of stages that take no longer than a time is worth all of them."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ddlopt.frontier.deployment.pipeline.price_kernels import dearest, least_loads, mixed_values
from ddlopt.frontier.deployment.pipeline.sweep import sweep
from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.models.deployment.pipeline.stages import Stages, members
from ddlopt.models.tolerances import BOUND_MARGIN, TINY, let_pass_at_most

_FINE, _COARSE = 16, 8
"""Samples in flight up to which each number counts by itself; beyond, that many in each doubling."""
_WEIGHTS = np.array([0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 4.0, 16.0])
"""Of memory beside time, each as a part of what a stage has of it."""
_WIDEST = 8
"""Layers that are open at a time."""
_PLACES = 32
"""Places of a stage that are told apart, by the devices up to it."""
_ANYWHERE = -1
"""In place of one of them: layers may be from anywhere."""

Stage = tuple[int, int, int, int]
"""Numbers of its degrees, of the samples in flight, and of its place."""


class Told(NamedTuple):
    """Whether a time is excluded, and otherwise the stages of the dearest sequence."""

    excluded: bool
    stages: list[Stage]


class Prices:
    r"""Bounds by prices of layers.

    Let every layer v have a price :math:`\pi_v`, a whole number. Replicas are counted from the last stage on, so a plan
    is a sequence of degrees with :math:`y_i = \lceil D_i / d_i \rceil` samples in flight,
    :math:`D_i = d_1 + \dots + d_i`, and :math:`U_i = d_1 t_1 + \dots + d_i t_i` devices up to stage i, at most k. Let
    :math:`V_T(t, d, y, U)` be at least the price of any such stage that fits and takes at most T. If no sequence has
    :math:`\sum_i V_T(t_i, d_i, y_i, U_i) \ge \sum_v \pi_v`, every plan takes longer than T: its stages have each
    layer once.

    *Where a layer can be.* Let w(S) be the sum over layers of the least device-seconds of an option. A stage that takes
    at most T has :math:`w \le d t T`. What reads a layer v, directly or not, is in its stage or behind it, so
    :math:`w(v \text{ and its readers}) \le U_i T`, and in the same way :math:`w(v \text{ and what it reads}) \le
    (k - U_{i-1}) T`. Layers for which one of these does not hold at U are not in the stage.

    *What a stage is worth.* For a weight :math:`\mu \ge 0` let

    .. math::
        h(q) = \min \Bigl\{ \sum_{v \in S} \min_o \bigl( \tau_{vo} + \mu\, m_{vo} \bigr) + \sum_{e \text{ cut by } S}
        \kappa_e : \sum_{v \in S} \pi_v = q \Bigr\}

    over all sets S of layers that can be there, with :math:`\tau` the time of an option on d replicas, m its memory and
    :math:`\kappa` the least time of an edge. A stage that fits into the memory M and takes at most T has
    :math:`h(\pi(S)) \le T d + \mu M`, so the largest q with that is such a V. Sets are looked at layer by layer
    (:func:`~ddlopt.frontier.deployment.pipeline.sweep.sweep`); the dynamic program knows which of the open layers are
    in S, and the price of S. Edges for which there is no room count as free. A bound without edges, with layers in
    parts, is a V, too, and so is h over layers from anywhere; sequences are looked for with these first, and what the
    dearest one has is then looked at more closely.

    Parameters
    ----------
    instance : PipelineInstance
    high_s : float
        Times from there on are of no interest.
    """

    def __init__(self, instance: PipelineInstance, high_s: float) -> None:
        self.instance, self.high_s = instance, high_s
        self.most = min(instance.devices, instance.micro_batches)
        self.flying, self.row = _rows(self.most)
        self.place, self.parts = _places(instance.devices)
        self.window = _windows(instance, high_s)
        self.memory = let_pass_at_most(instance.memory_bytes)
        self.sweep = sweep(instance, _WIDEST)
        self.tensors = np.array(instance.tensors, dtype=np.int64)
        self.replicas = np.array(instance.replicas, dtype=np.int64)
        self._options = [_options(instance, tensor) for tensor in instance.tensors]
        self._edges = [_edges(instance, self.sweep, tensor) for tensor in instance.tensors]
        self.kinds = [
            (degree, number, place)
            for degree, tensor in enumerate(instance.tensors)
            for number, d in enumerate(instance.replicas)
            if tensor * d <= instance.devices
            for place, flying in enumerate(self.flying)
            if flying <= -(-self.most // d)
        ]
        self._of = {kind: number for number, kind in enumerate(self.kinds)}
        self.devices = np.array([instance.tensors[t] * instance.replicas[d] for t, d, _ in self.kinds], dtype=np.int64)
        self.own = np.zeros((0, 0))
        self.worth = np.zeros(len(self.kinds))
        self.price = np.zeros(instance.size, dtype=np.int64)
        self._loads: dict[Stage, Any] = {}
        self._order = np.zeros((0, 0), dtype=np.int64)

    def begin(self, price: Any) -> None:
        """Take prices, of which all loads are forgotten."""
        self.price = price
        self._loads.clear()
        if not self.own.size:
            self._weigh()
        self._order = np.argsort(-price / np.maximum(self.own, TINY), axis=1, kind="stable")

    def _weigh(self) -> None:
        """Choose what memory is worth in stages of each kind, so that a bound without edges is least."""
        own, worth = [], []
        for kind in self.kinds:
            d = self.instance.replicas[kind[1]]
            tried = [self._weighted(kind, weight) for weight in _WEIGHTS]
            values = [_most(each, self.price, (self.high_s * d + its) * (1 + BOUND_MARGIN)) for each, its in tried]
            best = int(np.argmin(values))
            own.append(tried[best][0])
            worth.append(tried[best][1])
        self.own, self.worth = np.array(own), np.array(worth)

    def _weighted(self, kind: tuple[int, int, int], weight: float) -> tuple[Any, float]:
        """What each layer adds at least to time and weighted memory, and what the memory of a device is worth."""
        degree, number, place = kind
        time, reduced, kept, fixed = self._options[degree]
        d = self.instance.replicas[number]
        size = kept * self.flying[place] + fixed
        rate = weight * self.high_s * d / self.memory
        both = np.where(size <= self.memory, time + (d - 1) * reduced + rate * size, np.inf)
        return both.min(axis=1), rate * self.memory

    def _room(self, number: int, limit_s: float) -> float:
        return float(
            (limit_s * self.instance.replicas[self.kinds[number][1]] + self.worth[number]) * (1 + BOUND_MARGIN)
        )

    def values(self, limit_s: float) -> Any:
        """By kind of a stage and its place, the value known."""
        rooms = np.array([self._room(number, limit_s) for number in range(len(self.kinds))])
        mixed = np.zeros((len(self.kinds), len(self.parts)), dtype=np.int64)
        price = self.price.astype(np.float64)
        mixed_values(self._order, self.own, price, rooms, self.devices, self.window, self.parts, mixed)
        shape = len(self.tensors), len(self.replicas), len(self.flying), len(self.parts)
        found = np.full(shape, -1, dtype=np.int64)
        for kind, own in zip(self.kinds, mixed, strict=True):
            anywhere = (*kind, _ANYWHERE)
            found[kind] = np.minimum(own, self._value(anywhere, limit_s)) if anywhere in self._loads else own
        for stage in self._loads:
            if stage[3] != _ANYWHERE:
                found[stage] = self._value(stage, limit_s)
        return found

    def _value(self, stage: Stage, limit_s: float) -> int:
        return int(np.flatnonzero(self._loads[stage] <= self._room(self._of[stage[:3]], limit_s))[-1])

    def ask(self, limit_s: float, stop: Callable[[], bool]) -> Told | None:
        """Whether a time is excluded; None if there is no time to find out."""
        whole = int(self.price.sum())
        values = self.values(limit_s)
        stages = np.zeros((self.most, 4), dtype=np.int64)
        while True:
            best = dearest(values, self.row, self.place, self.tensors, self.replicas, self.most, stages)
            if best < whole:
                return Told(True, [])
            line = [(int(t), int(d), int(y), int(p)) for t, d, y, p in stages if t >= 0]
            unknown = [stage for stage in dict.fromkeys(line) if stage not in self._loads]
            if not unknown:
                return Told(False, line)
            for stage in unknown:
                if stop():
                    return None
                # A set of layers from anywhere is a bound for all places, and often enough.
                anywhere = (*stage[:3], _ANYWHERE)
                asked = stage if anywhere in self._loads else anywhere
                self._loads[asked] = self._swept(asked, _NOTHING)
                value = self._value(asked, limit_s)
                if asked is stage:
                    values[stage] = value
                else:
                    values[stage[:3]] = np.minimum(values[stage[:3]], value)

    def _swept(self, stage: Stage, chosen: Any) -> Any:
        number = self._of[stage[:3]]
        inside, outside = self._edges[stage[0]]
        own = np.where(self._here(stage), self.own[number], np.inf)
        room = self._room(number, self.high_s)
        dear = int(_most(own, self.price, room) * (1 + BOUND_MARGIN) + BOUND_MARGIN)
        way = self.sweep
        return least_loads(
            way.slot, way.freed, way.first, way.other, inside, outside,
            own[way.order], self.price[way.order], way.width, dear, room, chosen,
        )  # fmt: skip

    def fits(self, stage: Stage, other: Stage, layers: Any) -> bool:
        """Whether layers that fit another stage fit this one: the same degrees, no more in flight, a place for each."""
        if stage[:2] != other[:2] or stage[2] > other[2]:
            return False
        return bool(self._here(stage)[layers].all())

    def _here(self, stage: Stage) -> Any:
        """By layer, whether a stage at that place may have it."""
        if stage[3] == _ANYWHERE:
            return np.ones(self.instance.size, dtype=np.bool_)
        number, (fewest, most) = self._of[stage[:3]], self.parts[stage[3]]
        return (self.window[:, 0] <= most) & (fewest - self.devices[number] <= self.window[:, 1])

    def sets(self, stages: list[Stage], limit_s: float) -> dict[Stage, Any]:
        """By stage of a sequence, the layers of a dearest set."""
        return {stage: self._set(stage, limit_s) for stage in dict.fromkeys(stages)}

    def _set(self, stage: Stage, limit_s: float) -> Any:
        value = self._value(stage, limit_s)
        chosen = np.zeros((self.instance.size, 1 << self.sweep.width, len(self._loads[stage])), dtype=np.uint16)
        self._swept(stage, chosen)
        found, mask = [], 0
        for place in range(self.instance.size - 1, -1, -1):
            came = int(chosen[place, mask, value])
            mask = came >> 1
            if came & 1:
                layer = int(self.sweep.order[place])
                found.append(layer)
                value -= int(self.price[layer])
        return np.array(sorted(found), dtype=np.int32)


_NOTHING = np.zeros((0, 0, 0), dtype=np.uint16)


def _most(own: Any, price: Any, room: float) -> float:
    """The largest price of parts of layers whose loads are within a room."""
    own, price = own[np.isfinite(own)], price[np.isfinite(own)]
    order = np.argsort(-price / np.maximum(own, TINY), kind="stable")
    loads, prices = np.cumsum(own[order]), np.cumsum(price[order])
    place = int(np.searchsorted(loads, room, side="right"))
    before = (loads[place - 1], prices[place - 1]) if place else (0.0, 0.0)
    if place == len(loads):
        return float(before[1])
    return float(before[1] + price[order[place]] * (room - before[0]) / own[order[place]])


def _places(devices: int) -> tuple[Any, Any]:
    """The place of each number of devices up to a stage, and the fewest and most of each place."""
    step = -(-devices // _PLACES)
    place = np.arange(devices + 1, dtype=np.int64) // step
    first = np.arange(place[-1] + 1, dtype=np.int64) * step
    return place, np.ascontiguousarray(np.stack((first, np.minimum(first + step - 1, devices)), axis=1))


def _windows(instance: PipelineInstance, high_s: float) -> Any:
    """By layer, devices of its stage and those behind it at least, and devices behind its stage at most.

    What reads a layer, directly or not, is in its stage or behind it; what it reads is in its stage or before it.
    """
    work = [
        min(menu.tensor * option.time_s for menu in layer.menus for option in menu.options) for layer in instance.layers
    ]
    stages = Stages(instance)
    order = [(then & ~ideal).bit_length() - 1 for ideal, then in pairwise(stages.prefixes())]
    read, readers = [1 << layer for layer in range(instance.size)], [1 << layer for layer in range(instance.size)]
    for layer in order:
        for other in members(stages.before[layer]):
            read[layer] |= read[other]
    for layer in reversed(order):
        for other in members(stages.before[layer]):
            readers[other] |= readers[layer]
    found = np.zeros((instance.size, 2), dtype=np.int64)
    for layer in range(instance.size):
        behind, before = (sum(work[each] for each in members(own[layer])) / high_s for own in (readers, read))
        found[layer] = np.ceil(behind * (1 - BOUND_MARGIN)), instance.devices - np.ceil(before * (1 - BOUND_MARGIN))
    return found


def _rows(most: int) -> tuple[list[int], Any]:
    """Numbers of samples in flight that are looked at, and which stands for each: none that is larger."""
    flying, step = [1], 1.0
    while flying[-1] < most:
        last = flying[-1]
        step = 1 if last < _FINE else max(1, last // _COARSE)
        flying.append(last + int(step))
    flying = [each for each in flying if each <= most]
    row = np.zeros(most + 1, dtype=np.int64)
    for number in range(1, most + 1):
        row[number] = max(place for place, each in enumerate(flying) if each <= number)
    return flying, row


def _options(instance: PipelineInstance, tensor: int) -> tuple[Any, ...]:
    """By layer and option of a degree: time, what a further replica adds, and memory; infinite where there is none."""
    count = max(len(layer.menu(tensor)) for layer in instance.layers)
    shape = instance.size, count
    time, reduced, kept, fixed = np.full(shape, np.inf), np.zeros(shape), np.zeros(shape), np.zeros(shape)
    share = 4 / instance.micro_batches / instance.bandwidth_bytes_per_s
    for layer in range(instance.size):
        for number, option in enumerate(instance.layers[layer].menu(tensor)):
            time[layer, number], reduced[layer, number] = option.time_s, share * option.weight_bytes
            kept[layer, number], fixed[layer, number] = option.kept_bytes, option.fixed_bytes
    return time, reduced, kept, fixed


def _edges(instance: PipelineInstance, way: Any, tensor: int) -> tuple[Any, Any]:
    """What each edge of a sweep adds at least if only its later layer is in a set, and if only the earlier one is."""
    twice = 2 / instance.bandwidth_bytes_per_s
    inside, outside = np.zeros(len(way.edges)), np.zeros(len(way.edges))
    for place, (number, made) in enumerate(zip(way.edges, way.made, strict=True)):
        edge = instance.edges[number]
        makes, uses = instance.layers[edge.maker].menu(tensor), instance.layers[edge.user].menu(tensor)
        sent = min((dict(option.scattered).get(edge.user, 0.0) for option in makes), default=0.0)
        read = min((dict(option.gathered).get(edge.maker, 0.0) for option in uses), default=0.0)
        of_maker, of_user = twice * (edge.size_bytes + sent), twice * (edge.size_bytes + read)
        inside[place], outside[place] = (of_maker, of_user) if made else (of_user, of_maker)
    return inside, outside
