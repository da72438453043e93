"""Search where graphs are wide: the dynamic program over ideals that lie near those of a good plan."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.deployment.pipeline.bounds import pipeline_bound
from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.models.deployment.pipeline.stages import Stages, members
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.deployment.pipeline.chains import Piece, best_chain
from ddlopt.solvers.deployment.pipeline.ideal_labels import LabelChains
from ddlopt.solvers.heuristic import Clock, Heuristic


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    noises: tuple[float, ...] = (0.0, 0.3, 0.6)
    """By how much bytes are off in beams, in natural logarithms: 0 follows the cheapest cuts, 0.6 leaves them."""
    first: int = 6
    """Breadth of the beams for the first ideals: chains take time that is quadratic in their number."""
    then: int = 2
    """Breadth of the beams between stages, of which there are many."""
    moves: float = 0.4
    """Chance that a move is the last one, of ideals around one: three and a half moves on average."""
    ideals: int = 600
    """Ideals in a neighbourhood: chains take time that is quadratic in it."""
    spare: int = 8
    """One device more for that many, in plans that show the way: with too many more the way leads back nowhere."""
    first_goals: tuple[float, ...] = (0.04, 0.01, 0.002)
    """By how much plans of the first ideals are to be better: large steps while they are easy."""
    goal: float = 0.02
    """By how much later plans are to be better, at first."""
    least: float = 1e-4
    """By how much in the end: less than that is not worth a neighbourhood."""
    patience: int = 4
    """Neighbourhoods in a row that lead no further, after which less is asked for."""


_EFFORT = Effort()


@dataclass(frozen=True)
class NearIdeals(Heuristic, uses=("seed",)):
    """Dynamic programs over ideals that leave little to be sent, then over those near a plan's.

    The first ideals are the prefixes of one topological order, and of each size those that leave the least to be sent,
    by a beam. A tensor that is read far behind is sent once, though it lies across many cuts, so its bytes count less.
    Then each neighbourhood has the ideals between the stages of a plan, what they become by giving away or taking a few
    layers, and those of narrow beams from one cut to the next but one. The program over all of them is asked for the
    chain with the fewest devices in which every stage is faster by some per cent than the best plan's slowest. A few
    devices more than there are may be used: of chains with as few of them or fewer the next neighbourhood is taken, so
    that the search goes on where no plan is better. Where it leads no further, less is asked for.

    Parameters
    ----------
    patience : int
        Neighbourhoods in a row that lead no further, after which less is asked for.
    """

    patience: int = _EFFORT.patience

    name: ClassVar[str] = "near-ideals"
    covers: ClassVar[type[PipelineInstance]] = PipelineInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.pipeline.kernels",)

    def answer(self, instance: PipelineInstance, seed: int, clock: Clock, start: Any) -> Any:
        """The plan.

        Raises
        ------
        NoSolutionError
            If none is found.
        """
        low_s, rng = pipeline_bound(instance), np.random.default_rng(seed)
        stages = Stages(instance)
        known = set(stages.prefixes())
        chain = best_chain(LabelChains(stages, _sorted(known), clock), low_s, clock).chain
        graph = Graph(stages)
        for noise in _EFFORT.noises:
            known |= graph.beam(rng, _EFFORT.first, noise, 0, graph.whole)
        if chain is None:
            chain = best_chain(LabelChains(stages, _sorted(known), clock), low_s, clock).chain
        if chain is None:
            raise NoSolutionError("no plan was found that fits into the memory")
        best, best_s = chain, _load_s(stages, chain)
        for goal in _EFFORT.first_goals:
            while best_s > low_s and (found := _within(stages, known, best_s * (1 - goal), clock)) is not None:
                best, best_s = found, _load_s(stages, found)
                clock.report(best_s, low_s)
        # A plan with a few devices too many shows the way to one that has enough.
        lavish = Stages(instance.changed(devices=instance.devices + max(1, instance.devices // _EFFORT.spare)))
        chain, used, goal, tried, idle = best, inf, _EFFORT.goal, 0, 0
        while goal >= _EFFORT.least and not clock.expired and best_s > low_s:
            found = _within(lavish, graph.near(rng, chain, _EFFORT.ideals), best_s * (1 - goal), clock)
            tried += 1
            need = inf if found is None else _devices(found)
            idle = 0 if need < used else idle + 1
            if found is not None and need <= instance.devices:
                chain = best = found
                best_s, used, idle = _load_s(stages, chain), inf, 0
                clock.report(best_s, low_s)
            elif found is not None and need <= used:
                chain, used = found, need
            if idle >= self.patience:
                chain, goal, used, idle = best, goal / 2, inf, 0
        return LabelChains(stages, (0, graph.whole), clock).plan(best), {"neighbourhoods": float(tried)}


def _load_s(stages: Stages, chain: list[Piece]) -> float:
    return max(stages.load_s(*piece) for piece in chain)


def _devices(chain: list[Piece]) -> int:
    return sum(piece.tensor * piece.replicas for piece in chain)


def _within(stages: Stages, ideals: Iterable[int], limit_s: float, clock: Clock) -> list[Piece] | None:
    """A chain of these ideals in which every stage takes less; None if there is none, or the time is up."""
    try:
        return LabelChains(stages, _sorted(ideals), clock).within(limit_s)
    except NoSolutionError:
        return None


def _sorted(ideals: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(ideals), key=lambda ideal: (ideal.bit_count(), ideal)))


class Graph:
    """Ideals of a graph of layers, as sets bit by bit, and what is sent between one and the rest.

    Parameters
    ----------
    stages : Stages
    """

    def __init__(self, stages: Stages) -> None:
        instance = stages.instance
        self.before, self.size = stages.before, instance.size
        self.whole = (1 << self.size) - 1
        self.after = [0] * self.size
        for edge in instance.edges:
            self.after[edge.maker] |= 1 << edge.user
        level = [0] * self.size
        for ideal, then in pairwise(stages.prefixes()):
            layer = (then & ~ideal).bit_length() - 1
            level[layer] = 1 + max((level[other] for other in members(self.before[layer])), default=0)
        near = max(level) / min(instance.devices, instance.micro_batches)
        self.bytes: list[dict[int, float]] = [{} for _ in range(self.size)]
        for edge in instance.edges:
            size = edge.size_bytes / max(1.0, (level[edge.user] - level[edge.maker]) / max(1.0, near))
            self.bytes[edge.maker][edge.user] = self.bytes[edge.user][edge.maker] = size

    def gain(self, ideal: int, layer: int) -> float:
        """Bytes that are sent out of the ideal besides, if it takes a layer that may be next."""
        return sum(-size if ideal >> other & 1 else size for other, size in self.bytes[layer].items())

    def beam(self, rng: np.random.Generator, breadth: int, noise: float, low: int, high: int) -> set[int]:
        """Ideals between two, of each size those that leave least to be sent, by bytes that are somewhat off."""
        weight = np.exp(noise * rng.standard_normal(self.size)).tolist()
        level = {low: 0.0}
        found = {low}
        ready = {low: self.next(low, high)}
        while high not in level:
            longer: dict[int, float] = {}
            came: dict[int, tuple[int, int]] = {}
            for ideal, sent in level.items():
                for layer in ready[ideal]:
                    then = ideal | 1 << layer
                    if then not in longer:
                        more = 0.0
                        for other, size in self.bytes[layer].items():
                            more += -size * weight[other] if ideal >> other & 1 else size * weight[layer]
                        longer[then] = sent + more
                        came[then] = ideal, layer
            best = sorted(longer, key=lambda ideal: (longer[ideal], ideal))[:breadth]
            level = {ideal: longer[ideal] for ideal in best}
            ready, old = {}, ready
            for ideal in best:
                before, layer = came[ideal]
                ready[ideal] = [each for each in old[before] if each != layer] + [
                    each for each in members(self.after[layer] & high & ~ideal) if self.before[each] & ~ideal == 0
                ]
            found |= set(best)
        return found

    def next(self, ideal: int, within: int) -> list[int]:
        """Layers that the ideal may take, of a set."""
        return [layer for layer in members(within & ~ideal) if self.before[layer] & ~ideal == 0]

    def last(self, ideal: int) -> list[int]:
        """Layers that it may give away."""
        return [layer for layer in members(ideal) if self.after[layer] & ideal == 0]

    def near(self, rng: np.random.Generator, chain: list[Piece], most: int) -> set[int]:
        """Ideals near those between the stages of a chain."""
        cuts, ideal = [0], 0
        for piece in chain:
            ideal |= piece.layers
            cuts.append(ideal)
        found = set(cuts)
        breadth = min(_EFFORT.first, max(_EFFORT.then, most // (4 * self.size)))
        for low, high in zip([0, *cuts[:-1]], [*cuts[1:], self.whole], strict=True):
            found |= self.beam(rng, breadth, float(rng.choice(_EFFORT.noises)), low, high)
        share = max(4, (most - len(found)) // max(1, len(cuts) - 2))
        for cut in cuts[1:-1]:
            found |= self._around(rng, cut, share)
        return found

    def _around(self, rng: np.random.Generator, ideal: int, count: int) -> set[int]:
        """Ideals that differ from one in a few layers."""
        found: set[int] = set()
        for _ in range(4 * count):
            if len(found) >= count:
                break
            now = ideal
            for _ in range(1 + int(rng.geometric(_EFFORT.moves))):
                now = self._step(rng, now)
            found.add(now)
        return found

    def _step(self, rng: np.random.Generator, ideal: int) -> int:
        """The ideal with a layer more or less: of two drawn ones that which leaves less to be sent."""
        grows = rng.random() < 0.5
        offered = self.next(ideal, self.whole) if grows else self.last(ideal)
        if not offered:
            return ideal
        drawn = [offered[int(rng.integers(len(offered)))] for _ in range(2)]
        sign = 1 if grows else -1
        layer = min(drawn, key=lambda each: sign * self.gain(ideal, each))
        return ideal ^ 1 << layer
