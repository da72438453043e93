"""Bounds of uniform plans in whole numbers, rounded down."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from ddlopt.models.deployment.step.evaluate import parameter_copies, way_of
from ddlopt.models.deployment.step.instance import FULL, StepBlock, StepInstance, StepOption, StepPlan, Way
from ddlopt.models.deployment.step.places import chunk_share, chunk_sizes
from ddlopt.models.tolerances import let_pass

UNIT = 2**100
"""Parts of the claim, and of a device's memory: a step has far fewer terms to be rounded."""


Row = tuple[int, ...]
"""A number for every kind of block."""


class Shape(NamedTuple):
    """How stages are made: p, v, d."""

    pipeline: int
    interleaving: int
    data: int


class Stage(NamedTuple):
    """Blocks of a stage by kind, those that are made again and the others, and whether it has the ends."""

    plain: tuple[int, ...]
    again: tuple[int, ...]
    first: bool
    last: bool


class Bounds:
    """Of all plans with some degrees of blocks and an option for those that are not made again in full.

    Parameters
    ----------
    instance : StepInstance
    degrees : StepPlan
        Its tensor, context and expert degrees, micro-batch, sequence and option count.
    claim : Fraction
        Above 0.
    """

    def __init__(self, instance: StepInstance, degrees: StepPlan, claim: Fraction) -> None:
        self.instance, self.degrees, self.claim = instance, degrees, claim
        self.room = let_pass(Fraction(instance.memory_bytes))
        """What the check lets pass, in bytes."""
        found = [self._used(block) for block in (*instance.blocks, instance.embedding, instance.head)]
        self.known = all(found)
        if not self.known:
            return
        used = [each for each in found if each is not None]
        self.blocks, self.ends = used[: len(instance.blocks)], used[len(instance.blocks) :]
        """Ways with options: that of the plan, and ``full``."""
        firsts = [way.options[0].name for way, _, _ in self.blocks]
        self.recomputes = set(firsts) == {degrees.option} and all(full is not None for _, _, full in self.blocks)
        """Whether some blocks may be made again beside others that are not."""
        self.samples = instance.global_batch // degrees.micro_batch
        """Micro-batches of all copies together."""

    def _used(self, block: StepBlock) -> tuple[Way, StepOption, StepOption | None] | None:
        way = way_of(block, self.degrees)
        if way is None:
            return None
        options = {option.name: option for option in way.options}
        if block is self.instance.embedding or block is self.instance.head:
            return way, way.options[0], None
        if self.degrees.option not in options:
            return None
        return way, options[self.degrees.option], options.get(FULL)

    def _time(self, option: StepOption) -> int:
        """Of a micro-batch, with messages on the fastest tier."""
        fastest = max(Fraction(tier.bandwidth_bytes_per_s) for tier in self.instance.tiers)
        plan = self.degrees
        sent = Fraction(option.tensor_bytes) * (plan.tensor > 1) + Fraction(option.context_bytes) * (plan.context > 1)
        sent += Fraction(option.expert_bytes) * (plan.expert - 1) / plan.expert
        return int((Fraction(option.forward_s) + Fraction(option.backward_s) + sent / fastest) / self.claim * UNIT)

    @cached_property
    def times(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, int]]:
        """By kind of block, with the plan's option and made again; of the ends."""
        plain = tuple(self._time(option) for _, option, _ in self.blocks)
        again = tuple(self._time(full) if full is not None else 0 for _, _, full in self.blocks)
        first, last = (self._time(option) for _, option, _ in self.ends)
        return plain, again if self.recomputes else plain, (first, last)

    @cached_property
    def least(self) -> tuple[int, ...]:
        """By kind of block, however it is run."""
        return tuple(map(min, self.times[0], self.times[1]))

    @cached_property
    def total(self) -> int:
        """Of all blocks, however they are run, and the ends."""
        blocks = zip(self.instance.blocks, self.least, strict=True)
        return sum(block.count * time for block, time in blocks) + sum(self.times[2])

    def all_are_slow(self) -> bool:
        """Whether K devices compute too long with these degrees."""
        share = self.degrees.tensor * self.degrees.context
        return self.samples * share * self.total >= UNIT * self.instance.devices

    def shapes(self) -> Iterator[Shape]:
        """Stages, chunks and copies; those are left out whose stages are too long on average."""
        instance, share = self.instance, self.degrees.tensor * self.degrees.context
        for data in range(1, min(self.samples, instance.devices // share) + 1):
            if self.samples % data or share * data % self.degrees.expert:
                continue
            rounds, most = self.samples // data, min(instance.size, instance.devices // (share * data))
            for pipeline in range(max(1, rounds * self.total // UNIT), most + 1):
                chunks = min(instance.interleaving, instance.size // pipeline) if pipeline > 1 else 1
                for interleaving in range(1, chunks + 1):
                    if interleaving == 1 or rounds % pipeline == 0:
                        yield Shape(pipeline, interleaving, data)

    def is_slow(self, shape: Shape) -> bool:
        """Whether the steady state and the ramp of a shape are too long, however blocks are run."""
        stages = set(stages_of(self.instance, shape.pipeline, shape.interleaving, 0))
        first, last = self.times[2]
        longest = max(
            sum(map(int.__mul__, stage.plain, self.least)) + first * stage.first + last * stage.last for stage in stages
        )
        return self._taken(shape, longest, self.total) >= UNIT

    def takes(self, shape: Shape, recomputed: int, inside: list[dict[str, int]]) -> int:
        """Parts of the claim: the same with some blocks of every chunk made again, on the tiers that groups span."""
        plain, again, (first, last), handed = self._placed(shape, inside)
        total = longest = 0
        for stage in stages_of(self.instance, shape.pipeline, shape.interleaving, recomputed):
            time = sum(map(int.__mul__, stage.plain, plain)) + sum(map(int.__mul__, stage.again, again))
            time += first * stage.first + last * stage.last + shape.interleaving * handed
            total, longest = total + time, max(longest, time)
        return self._taken(shape, longest, total)

    def _placed(self, shape: Shape, inside: list[dict[str, int]]) -> tuple[Row, Row, tuple[int, int], int]:
        """Times of blocks by kind, plain and made again, of the ends, and of both messages of a chunk to neighbours."""
        key = shape.pipeline, tuple(tuple(sorted(each.items())) for each in inside)
        if key not in self._times:
            plan = self.degrees
            ways = [self._way(group, inside) for group in ("tensor", "context", "expert")]

            def time(option: StepOption) -> int:
                seconds = Fraction(option.forward_s) + Fraction(option.backward_s)
                sizes = (option.tensor_bytes, option.context_bytes, option.expert_bytes)
                for size, (per_byte, latency_s) in zip(sizes, ways, strict=True):
                    seconds += Fraction(size) * per_byte + option.messages * latency_s * (size > 0)
                return int(seconds / self.claim * UNIT)

            plain = tuple(time(option) for _, option, _ in self.blocks)
            again = tuple(time(full) if full is not None else 0 for _, _, full in self.blocks)
            handed = Fraction(0)
            if shape.pipeline > 1:
                pairs = zip(self.instance.tiers, inside, strict=True)
                tier = next(tier for tier, own in pairs if own["pipeline"] == shape.pipeline)
                share = plan.context * (plan.tensor if plan.sequence_parallel else 1)
                size = Fraction(self.instance.handed_bytes) * plan.micro_batch / share
                handed = 2 * (size / Fraction(tier.bandwidth_bytes_per_s) + Fraction(tier.latency_s))
            first, last = (time(option) for _, option, _ in self.ends)
            again = again if self.recomputes else plain
            self._times[key] = plain, again, (first, last), int(handed / self.claim * UNIT)
        return self._times[key]

    def _way(self, group: str, inside: list[dict[str, int]]) -> tuple[Fraction, Fraction]:
        """Seconds of a byte that a group sends, and of a message."""
        below, per_byte, latency_s = 1, Fraction(0), Fraction(0)
        for tier, own in zip(self.instance.tiers, inside, strict=True):
            if own[group] > below:
                expert = self.degrees.expert
                part = Fraction(expert - below, expert) if group == "expert" else Fraction(1, below)
                per_byte = max(per_byte, part / Fraction(tier.bandwidth_bytes_per_s))
                latency_s, below = Fraction(tier.latency_s), own[group]
        return per_byte, latency_s

    def _taken(self, shape: Shape, longest: int, total: int) -> int:
        """Steady state and ramp."""
        ramp = chunk_share(self.instance.size, shape.pipeline, shape.interleaving)
        rounds = self.samples // shape.data
        steady = (rounds * ramp.denominator - ramp.numerator) * longest
        return (steady + ramp.numerator * total) // ramp.denominator

    def is_large(self, shape: Shape, recomputed: int, sharding: int) -> bool:
        """Whether state, activations and what a running block needs besides are beyond the room in a stage."""
        size, (p, v, data) = self.instance.size, shape
        rounds, ramp = self.samples // data, chunk_share(size, p, v)
        held = self._held(sharding, data)
        for place, stage in enumerate(stages_of(self.instance, p, v, recomputed)):
            flying = min(rounds, p - place) if v == 1 else min(rounds * v, 2 * (p - 1 - place) + (v - 1) * p + 1)
            kept = sum(map(int.__mul__, stage.plain, self._kept[0])) + sum(map(int.__mul__, stage.again, self._kept[1]))
            blocks = map(int.__add__, stage.plain, stage.again)
            state = sum(map(int.__mul__, blocks, held)) + stage.first * (held[-2] + self._kept[2][0])
            # A tied head has the weights of the embedding where one stage has both.
            state += stage.last * (held[-1] * (not (self.instance.tied and stage.first)) + self._kept[2][1])
            state += self._besides(stage, sharding)
            if kept * flying * ramp.numerator > (UNIT - state) * ramp.denominator:
                return True
        return False

    def _besides(self, stage: Stage, sharding: int) -> int:
        """What the block that needs most has while it runs, and the weights of two where these are sharded."""
        plain, again, gathered = self._transient
        counts = *stage.plain, stage.first, stage.last
        most = max(size for count, size in zip(counts, plain, strict=True) if count) if any(counts) else 0
        most = max([most, *(size for count, size in zip(stage.again, again, strict=True) if count)])
        if sharding < 3:
            return most
        both = (*map(int.__add__, stage.plain, stage.again), stage.first, stage.last)
        sizes = (size for count, size in zip(both, gathered, strict=True) for size in [size] * min(2, count))
        return most + sum(sorted(sizes)[-2:])

    @cached_property
    def _transient(self) -> tuple[Row, Row, Row]:
        """Parts of the memory: of a running block and the ends, of a block that is made again, and of all weights."""
        every = (*self.blocks, *self.ends)
        plain = [option.transient_bytes for _, option, _ in every]
        again = [full.transient_bytes if full else option.transient_bytes for _, option, full in self.blocks]
        weights = [Fraction(way.parameters) + Fraction(way.expert_parameters) for way, _, _ in every]
        weight = Fraction(self.instance.weight_bytes)
        return self._parts(plain), self._parts(again), self._parts(weight * each for each in weights)

    def _parts(self, sizes: Iterable[float | Fraction]) -> Row:
        """Parts of the memory."""
        return tuple(int(Fraction(size) / self.room * UNIT) for size in sizes)

    @cached_property
    def _kept(self) -> tuple[Row, Row, Row]:
        """Parts of the memory that blocks keep of a micro-batch, with either option, and that the ends keep."""
        plain = self._parts(option.kept_bytes for _, option, _ in self.blocks)
        again = self._parts(full.kept_bytes if full else 0.0 for _, _, full in self.blocks)
        return plain, again if self.recomputes else plain, self._parts(option.kept_bytes for _, option, _ in self.ends)

    def _held(self, sharding: int, data: int) -> list[int]:
        """Parts of the memory that the state of blocks and of the ends takes."""
        key = sharding, data
        if key not in self._states:
            sizes = (
                (self.instance.weight_bytes, 3),
                (self.instance.gradient_bytes, 2),
                (self.instance.optimizer_bytes, 1),
            )
            copies = parameter_copies(self.degrees.model_copy(update={"data": data}))
            each = [
                sum(Fraction(size) / (count if sharding >= level else 1) for size, level in sizes) for count in copies
            ]
            self._states[key] = [
                int((Fraction(way.parameters) * each[0] + Fraction(way.expert_parameters) * each[1]) / self.room * UNIT)
                for way, _, _ in (*self.blocks, *self.ends)
            ]
        return self._states[key]

    @cached_property
    def _times(self) -> dict[Any, tuple[Row, Row, tuple[int, int], int]]:
        return {}

    @cached_property
    def _states(self) -> dict[tuple[int, int], list[int]]:
        return {}


@lru_cache(10_000)
def _cut(kinds: tuple[int, ...], count: int, pipeline: int, interleaving: int, recomputed: int) -> tuple[Stage, ...]:
    sizes = chunk_sizes(len(kinds), pipeline * interleaving)
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    found = []
    for stage in range(pipeline):
        numbers = [[0] * count, [0] * count]
        for start, size in list(zip(starts, sizes, strict=True))[stage::pipeline]:
            for place in range(size):
                numbers[place < recomputed][kinds[start + place]] += 1
        found.append(Stage(tuple(numbers[0]), tuple(numbers[1]), stage == 0, stage == pipeline - 1))
    return tuple(found)


def stages_of(instance: StepInstance, pipeline: int, interleaving: int, recomputed: int) -> tuple[Stage, ...]:
    """Stages with a number of blocks of every chunk made again."""
    return _cut(instance.kinds, len(instance.blocks), pipeline, interleaving, recomputed)
