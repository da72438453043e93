"""What stages can be, and the fastest options of each: whole numbers, so that nothing depends on an order of adding."""

from collections import Counter
from fractions import Fraction
from functools import cached_property
from math import inf, lcm
from typing import Any

from ddlopt.models.deployment.pipeline.instance import LayerOption, PipelineInstance, PlanStage
from ddlopt.models.deployment.pipeline.knapsack import NOTHING, Mix, best_mixes, fastest_mixes
from ddlopt.models.tolerances import let_pass

Way = tuple[int, int, int, int]
"""An option in a stage: time of a sample on one replica, what each further replica adds to it, and memory for each
sample in flight and besides."""
Kind = tuple[Way, ...]
"""All options of a layer in a stage."""


class Stages:
    """Stages of an instance as sets of layers, bit by bit; see :class:`PipelineInstance` for what they cost.

    Parameters
    ----------
    instance : PipelineInstance
    """

    def __init__(self, instance: PipelineInstance) -> None:
        self.instance = instance
        rate, samples = Fraction(instance.bandwidth_bytes_per_s), instance.micro_batches
        options = [option for layer in instance.layers for menu in layer.menus for option in menu.options]
        times = [Fraction(option.time_s) * rate * samples for option in options]
        moved = [Fraction(edge.size_bytes) for edge in instance.edges]
        moved += [Fraction(size) for option in options for _, size in (*option.gathered, *option.scattered)]
        moved += [Fraction(option.weight_bytes) for option in options]
        self._scale = lcm(rate.denominator, *(each.denominator for each in (*times, *moved)))
        unit = rate * samples * self._scale
        self._unit = unit.numerator
        memories = [Fraction(size) for option in options for size in (option.kept_bytes, option.fixed_bytes)]
        self.memory_scale = lcm(*(each.denominator for each in memories))
        # What the check lets pass as rounding is a plan too: 0.1 and 0.2 bytes fit into 0.3.
        room = let_pass(Fraction(instance.memory_bytes))
        self.memory = int(room * self.memory_scale)
        self._kinds: dict[tuple[int, int], Counter[Kind] | None] = {}
        self._mixes: dict[tuple[Kind, int, int, int], tuple[Mix, ...]] = {}
        self._fastest: dict[tuple[int, int, int], tuple[float, int, int]] = {}
        self._kind_of: dict[tuple[int, int, int], Kind] = {}
        self._neighbours = [0] * instance.size
        for edge in instance.edges:
            self._neighbours[edge.maker] |= 1 << edge.user
            self._neighbours[edge.user] |= 1 << edge.maker
        self._loads: dict[tuple[int, int, int, int], float] = {}

    @cached_property
    def before(self) -> tuple[int, ...]:
        """Layers that each one reads, as a set."""
        found = [0] * self.instance.size
        for edge in self.instance.edges:
            found[edge.user] |= 1 << edge.maker
        return tuple(found)

    def ideals(self, most: int) -> tuple[int, ...] | None:
        """Sets of layers with all that come before them, the smaller ones first; None if there are more than ``most``.

        A stage is what one of them has beyond another one within it.
        """
        level, found = {0}, [0]
        while level:
            level = {
                ideal | 1 << layer
                for ideal in level
                for layer, needed in enumerate(self.before)
                if not ideal >> layer & 1 and needed & ~ideal == 0
            }
            found += sorted(level)
            if len(found) > most:
                return None
        return tuple(found)

    def prefixes(self) -> tuple[int, ...]:
        """Ideals of one topological order: of the layers that may come next, the first."""
        found, ideal = [0], 0
        while len(found) <= self.instance.size:
            ready = (
                layer for layer, needed in enumerate(self.before) if not ideal >> layer & 1 and needed & ~ideal == 0
            )
            ideal |= 1 << next(ready)
            found.append(ideal)
        return tuple(found)

    def kinds(self, piece: int, tensor: int) -> "Counter[Kind] | None":
        """How many layers with which options a stage has; None where a layer has no menu of that degree."""
        key = piece, tensor
        if key not in self._kinds:
            found = [self.kind(layer, piece, tensor) for layer in members(piece)]
            self._kinds[key] = None if not all(found) else Counter(found)
        return self._kinds[key]

    def kind(self, layer: int, piece: int, tensor: int) -> Kind:
        """The options of a layer in a stage."""
        outside = self._neighbours[layer] & ~piece
        key = layer, tensor, outside
        if key not in self._kind_of:
            options = self.instance.layers[layer].menu(tensor)
            self._kind_of[key] = tuple(self._way(layer, option, outside) for option in options)
        return self._kind_of[key]

    def _way(self, layer: int, option: LayerOption, outside: int) -> Way:
        gathered, scattered = dict(option.gathered), dict(option.scattered)
        moved = Fraction(0)
        for edge in self.instance.edges:
            if edge.user == layer and outside >> edge.maker & 1:
                moved += Fraction(edge.size_bytes) + Fraction(gathered.get(edge.maker, 0))
            elif edge.maker == layer and outside >> edge.user & 1:
                moved += Fraction(edge.size_bytes) + Fraction(scattered.get(edge.user, 0))
        samples = self.instance.micro_batches
        work = Fraction(option.time_s) * Fraction(self.instance.bandwidth_bytes_per_s) * samples
        return (
            int((work + 2 * samples * moved) * self._scale),
            int(4 * Fraction(option.weight_bytes) * self._scale),
            int(Fraction(option.kept_bytes) * self.memory_scale),
            int(Fraction(option.fixed_bytes) * self.memory_scale),
        )

    def seconds(self, time: int, replicas: int) -> float:
        """Of a sample, from the sum of a stage's whole numbers."""
        return time / (replicas * self._unit)

    def fastest_s(self, piece: int, tensor: int, replicas: int) -> float:
        """Time of a sample if memory did not matter; infinite where a layer has no menu."""
        return self._fastest_of(piece, tensor, replicas)[0]

    def _fastest_of(self, piece: int, tensor: int, replicas: int) -> tuple[float, int, int]:
        """That time, and the memory of the options for each sample in flight and besides."""
        key = piece, tensor, replicas
        if key not in self._fastest:
            kinds, more = self.kinds(piece, tensor), replicas - 1
            if kinds is None:
                self._fastest[key] = inf, 0, 0
            else:
                time = kept = fixed = 0
                for kind, count in kinds.items():
                    way = min(kind, key=lambda each: (each[0] + more * each[1], each[2] + each[3]))
                    time += count * (way[0] + more * way[1])
                    kept += count * way[2]
                    fixed += count * way[3]
                self._fastest[key] = self.seconds(time, replicas), kept, fixed
        return self._fastest[key]

    def load_s(self, piece: int, tensor: int, replicas: int, flying: int) -> float:
        """Least time of a sample, given how many are in flight on a replica; infinite where nothing fits."""
        seconds, kept, fixed = self._fastest_of(piece, tensor, replicas)
        if kept * flying + fixed <= self.memory:
            return seconds
        key = piece, tensor, replicas, flying
        if key not in self._loads:
            found = self.mix(piece, tensor, replicas, flying)
            self._loads[key] = inf if found is None else self.seconds(found.time, replicas)
        return self._loads[key]

    def mix(self, piece: int, tensor: int, replicas: int, flying: int) -> Mix | None:
        """The fastest options that fit; None if none do."""
        kinds = self.kinds(piece, tensor)
        if kinds is None:
            return None
        least = sum(count * min(way[2] * flying + way[3] for way in kind) for kind, count in kinds.items())
        if least > self.memory:
            return None
        groups = [self._copies(kind, count, replicas, flying) for kind, count in kinds.items()]
        if not all(groups):
            return None
        time = memory = 0
        chosen: Any = None
        for kind, own in zip(kinds, fastest_mixes(groups, self.memory), strict=True):
            time, memory, chosen = time + own.time, memory + own.memory, (chosen, kind, own.chosen)
        return Mix(memory, time, chosen)

    def _copies(self, kind: Kind, count: int, replicas: int, flying: int) -> tuple[Mix, ...]:
        """All that is worth considering for a number of identical layers."""
        if not count:
            return NOTHING
        key = kind, count, replicas, flying
        if key not in self._mixes:
            fewer = self._copies(kind, count - 1, replicas, flying)
            more = replicas - 1
            pairs = (
                Mix(mix.memory + way[2] * flying + way[3], mix.time + way[0] + more * way[1], (mix.chosen, number))
                for mix in fewer
                for number, way in enumerate(kind)
            )
            self._mixes[key] = best_mixes(pairs, self.memory)
        return self._mixes[key]

    def stage(self, piece: int, tensor: int, replicas: int, flying: int) -> PlanStage:
        """The stage with the fastest options that fit."""
        found = self.mix(piece, tensor, replicas, flying)
        assert found is not None
        left: dict[Kind, list[int]] = {}
        chosen = found.chosen
        while chosen is not None:
            chosen, kind, numbers = chosen
            left[kind] = _numbers(numbers)
        names = []
        for layer in members(piece):
            number = left[self.kind(layer, piece, tensor)].pop()
            names.append(self.instance.layers[layer].menu(tensor)[number].name)
        return PlanStage(layers=tuple(members(piece)), replicas=replicas, tensor=tensor, options=tuple(names))


def members(piece: int) -> list[int]:
    """Layers of a set, ascending."""
    return [layer for layer in range(piece.bit_length()) if piece >> layer & 1]


def _numbers(chosen: Any) -> list[int]:
    found: list[int] = []
    while chosen is not None:
        chosen, number = chosen
        found.append(number)
    return found
