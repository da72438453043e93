"""Generators without a proof: powers, TopoOpt's geometric choice of rings, draws, exchanges."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.contracts import Solution
from ddlopt.models.gossip.circulant.instance import CirculantInstance, Floats
from ddlopt.models.tolerances import ROUNDING
from ddlopt.models.topology.permutations import totients
from ddlopt.solvers.gossip.circulant.weights import best_weights, graph_of
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

# The best of them is taken; it ends earlier when time is up.
_DRAWS = 200
# Random sets from which exchanges begin.
_STARTS = 12


def counts(instance: CirculantInstance) -> tuple[int, tuple[int, ...]]:
    """Generators with two links, and n/2 where one link is left for it."""
    pairs = min(instance.degree // 2, (instance.nodes - 1) // 2)
    half = instance.nodes % 2 == 0 and instance.degree > 2 * pairs
    return pairs, (instance.nodes // 2,) if half else ()


@dataclass(frozen=True)
class Powers(Heuristic, uses=()):
    """1, b, b², … with b the root of n as high as there are generators: the digits of a number in base b."""

    name: ClassVar[str] = "powers"
    covers: ClassVar[type[Any]] = CirculantInstance

    def answer(self, instance: CirculantInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The nearest unused generators to the powers."""
        pairs, half = counts(instance)
        base = instance.nodes ** (1.0 / pairs)
        return graph_of(instance, _nearest(instance, [base**place for place in range(pairs)]) + half), {}


@dataclass(frozen=True)
class GeometricRings(Heuristic, uses=()):
    """Rings through all workers whose generators are nearest to a geometric series from 1 to n/2.

    The idea of TopoOpt's choice of permutations (W. Wang et al., NSDI 2023), with only those generators that are prime
    to n, as long as there are enough of them.
    """

    name: ClassVar[str] = "geometric-rings"
    covers: ClassVar[type[Any]] = CirculantInstance

    def answer(self, instance: CirculantInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The rings."""
        pairs, half = counts(instance)
        ratio = (instance.nodes / 2.0) ** (1.0 / pairs)
        rings = [g for g in totients(instance.nodes) if 2 * g < instance.nodes]
        wanted = [ratio**place for place in range(pairs)]
        chosen = _nearest(instance, wanted[: len(rings)], rings)
        if len(chosen) < pairs:
            chosen += _nearest(instance, wanted[len(chosen) :], None, chosen)
        return graph_of(instance, chosen + half), {"rings": min(pairs, len(rings))}


@dataclass(frozen=True)
class RandomGenerators(Heuristic, uses=("seed",)):
    """The best of 200 draws."""

    name: ClassVar[str] = "random-generators"
    covers: ClassVar[type[Any]] = CirculantInstance

    def answer(self, instance: CirculantInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """Draws until the time is up."""
        rng, (pairs, half) = np.random.default_rng(seed), counts(instance)
        best, least = (), -np.inf
        for drawn in range(_DRAWS):
            if drawn and clock.expired:
                break
            pool = np.arange(1, (instance.nodes + 1) // 2)
            tried = (*sorted(rng.choice(pool, pairs, replace=False).tolist()), *half)
            value = worth(instance, tried)
            if value > least:
                best, least = tried, value
        return graph_of(instance, best), {}


@dataclass(frozen=True)
class GeneratorExchange(Heuristic, uses=("seed",)):
    """Exchange one generator for the best other one while that helps, from powers and from draws."""

    name: ClassVar[str] = "generator-exchange"
    covers: ClassVar[type[Any]] = CirculantInstance

    def answer(self, instance: CirculantInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The best of 12 descents."""
        return graph_of(instance, exchanged(instance, seed, clock)), {}


def exchanged(instance: CirculantInstance, seed: int, clock: Clock) -> tuple[int, ...]:
    """Generators for which no single exchange makes the gap larger, the best of 12 descents.

    Also for goal ``averaging``, where the gap over the largest eigenvalue is what counts with one weight for all.
    """
    rng, (pairs, half) = np.random.default_rng(seed), counts(instance)
    pool = np.arange(1, (instance.nodes + 1) // 2)
    base = instance.nodes ** (1.0 / pairs)
    best: tuple[int, ...] = ()
    best_value = -np.inf
    for begun in range(_STARTS):
        if begun and clock.expired:
            break
        chosen = list(_nearest(instance, [base**place for place in range(pairs)]))
        if begun:
            chosen = rng.choice(pool, pairs, replace=False).tolist()
        value = _descend(instance, chosen, half, clock)
        if value > best_value:
            best_value, best = value, (*sorted(chosen), *half)
    return best


def _descend(instance: CirculantInstance, chosen: list[int], half: tuple[int, ...], clock: Clock) -> float:
    characters = instance.characters
    others = characters[:, : (instance.nodes - 1) // 2]
    columns = [g - 1 for g in (*chosen, *half)]
    value = float(_scores(instance, characters[:, columns].sum(axis=1)[:, None])[0])
    improved = True
    while improved and not clock.expired:
        improved = False
        for place in range(len(chosen)):
            kept = [g - 1 for g in (*chosen[:place], *chosen[place + 1 :], *half)]
            scores = _scores(instance, others + characters[:, kept].sum(axis=1)[:, None])
            scores[[g - 1 for g in chosen]] = -np.inf
            if len(scores) and scores.max() > value * (1 + ROUNDING) + ROUNDING:
                chosen[place], value, improved = int(scores.argmax()) + 1, float(scores.max()), True
    return value


def _scores(instance: CirculantInstance, spectra: Floats) -> Floats:
    """(columns,) worth of spectra (k, columns) with weights of 1."""
    least = spectra.min(axis=0)
    found: Floats = least if instance.goal == "gap" else least / spectra.max(axis=0)
    return found


def worth(instance: CirculantInstance, generators: tuple[int, ...]) -> float:
    """The gap, or minus the factor with the best weights."""
    characters = instance.characters[:, [g - 1 for g in generators]]
    if instance.goal == "gap":
        return float(characters.sum(axis=1).min())
    weights, _ = best_weights(characters)
    return -float(np.abs(1.0 - characters @ weights).max())


def _nearest(
    instance: CirculantInstance,
    wanted: list[float],
    among: list[int] | None = None,
    used: tuple[int, ...] = (),
) -> tuple[int, ...]:
    """Different generators with two links, each the nearest that is left to a wanted number."""
    pool = [g for g in (among or range(1, (instance.nodes + 1) // 2)) if g not in used]
    chosen = []
    for number in wanted:
        if pool:
            chosen.append(min(pool, key=lambda g: (abs(g - number), g)))
            pool.remove(chosen[-1])
    return tuple(sorted(chosen))
