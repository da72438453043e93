"""What copies of a stage send each other and the optimizer take at least, in whole numbers, rounded down."""

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from ddlopt.certificates.deployment.step.lower import UNIT, Bounds, Row, Shape, Stage, stages_of
from ddlopt.models.deployment.step.evaluate import parameter_copies
from ddlopt.models.deployment.step.instance import StepOption

GROUPS = ("copies", "expert copies")


class Exchange(NamedTuple):
    """Of one group: what a kind of block takes, the ends last; nothing is sent where there is one copy.

    Parameters
    ----------
    copies : int
    known : tuple of bool
        Whether it has any such parameters.
    gathered, scattered, added : tuple of int
        Weights, and gradients, of which each keeps its part, or all the sum.
    latency : int
    updated : tuple of int
    """

    copies: int
    known: tuple[bool, ...]
    gathered: Row
    scattered: Row
    added: Row
    latency: int
    updated: Row


class Hidden(NamedTuple):
    """By kind of block, the ends last, what is hidden at most: behind the backward pass, and behind a micro-batch."""

    backward: Row
    computation: Row


class Ends:
    """Of all plans with some degrees of blocks.

    After the last micro-batch each stage has to send what is not hidden, and to update; the step is as long as the
    longest of these. What is sent is rounded down, and what is hidden rounded up.

    Parameters
    ----------
    bounds : Bounds
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._groups: dict[Any, Exchange] = {}

    @cached_property
    def _hidden(self) -> tuple[Hidden, Hidden]:
        """Of blocks with the plan's option and the ends, and of blocks that are made again."""
        every = (*self.bounds.blocks, *self.bounds.ends)
        plain, again = [option for _, option, _ in every], [full or option for _, option, full in every]
        return self._hidden_by(plain), self._hidden_by(again)

    def _hidden_by(self, options: Iterable[StepOption]) -> Hidden:
        times = [(Fraction(option.forward_s), Fraction(option.backward_s)) for option in options]
        return Hidden(
            tuple(self._up(backward) for _, backward in times),
            tuple(self._up(forward + backward) for forward, backward in times),
        )

    def _group(self, number: int, data: int, inside: list[dict[str, int]]) -> Exchange:
        """Copies of parameters, or of those of experts."""
        group = GROUPS[number]
        count = parameter_copies(self.bounds.degrees.model_copy(update={"data": data}))[number]
        key = number, count, tuple(each[group] for each in inside)
        if key not in self._groups:
            instance, ways = self.bounds.instance, [way for way, _, _ in (*self.bounds.blocks, *self.bounds.ends)]
            own = [Fraction((way.parameters, way.expert_parameters)[number]) for way in ways]
            once, twice, latency_s = self._way(group, count, inside)
            weight, gradient = Fraction(instance.weight_bytes), Fraction(instance.gradient_bytes)
            rates = weight * once, gradient * once, gradient * twice, Fraction(instance.optimizer_s)
            gathered, scattered, added, updated = (tuple(self._down(each * rate) for each in own) for rate in rates)
            known = tuple(each > 0 for each in own)
            self._groups[key] = Exchange(count, known, gathered, scattered, added, self._down(latency_s), updated)
        return self._groups[key]

    def _way(self, group: str, count: int, inside: list[dict[str, int]]) -> tuple[Fraction, Fraction, Fraction]:
        """Seconds of a byte that is gathered or scattered, of one that is added up, and of the message."""
        below, once, twice, latency_s = 1, Fraction(0), Fraction(0), Fraction(0)
        for tier, own in zip(self.bounds.instance.tiers, inside, strict=True):
            if own[group] > below:
                part = Fraction(1) if tier.collective == "switch" else Fraction(count - 1, count)
                per_byte = part / (below * Fraction(tier.bandwidth_bytes_per_s))
                once = max(once, per_byte)
                twice = max(twice, per_byte if tier.collective == "switch" else 2 * per_byte)
                latency_s, below = Fraction(tier.latency_s), own[group]
        return once, twice, latency_s

    def _down(self, seconds: Fraction) -> int:
        return int(seconds / self.bounds.claim * UNIT)

    def _up(self, seconds: Fraction) -> int:
        """What overlap hides."""
        return self._down(seconds * Fraction(self.bounds.instance.overlap)) + 1

    def least(self, shape: Shape, recomputed: int, sharding: int, inside: list[dict[str, int]]) -> int:
        """Of the stage where it takes longest, in parts of the claim."""
        groups = [self._group(number, shape.data, inside) for number in range(len(GROUPS))]
        stages = set(stages_of(self.bounds.instance, shape.pipeline, shape.interleaving, recomputed))
        rounds = self.bounds.samples // shape.data
        return max(self._of(stage, groups, rounds, sharding) for stage in stages)

    def _of(self, stage: Stage, groups: list[Exchange], rounds: int, sharding: int) -> int:
        blocks = tuple(map(int.__add__, stage.plain, stage.again))
        both = stage.first and stage.last and self.bounds.instance.tied
        at_end = each_round = updated = 0
        for number, group in enumerate(groups):
            # A tied head has the weights of the embedding where one stage has both.
            counts = (*blocks, int(stage.first), int(stage.last and not (both and number == 0)))
            updated += _sum(counts, group.updated) // (group.copies if sharding else 1)
            if group.copies == 1 or not any(count and own for count, own in zip(counts, group.known, strict=True)):
                continue
            gathered = _sum(counts, group.gathered) + group.latency
            scattered = _sum(counts, group.scattered) + group.latency
            match sharding:
                case 0:
                    at_end += _sum(counts, group.added) + group.latency
                case 1:
                    at_end += scattered + gathered
                case 2:
                    at_end, each_round = at_end + gathered, each_round + scattered
                case _:
                    each_round += scattered + 2 * gathered
        plain, again = self._hidden
        counts = (*stage.plain, int(stage.first), int(stage.last))
        backward = _sum(counts, plain.backward) + _sum(stage.again, again.backward)
        computation = _sum(counts, plain.computation) + _sum(stage.again, again.computation)
        return max(0, at_end - backward) + rounds * max(0, each_round - computation) + updated


def _sum(counts: Row, each: Row) -> int:
    return sum(map(int.__mul__, counts, each))
