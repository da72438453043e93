"""Heuristics that fill switches with parameters in some order."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.aggregation.hot.instance import HotInstance, Reals, Whole
from ddlopt.models.aggregation.hot.items import Items, items_of, registers_of
from ddlopt.models.aggregation.hot.kernels import place
from ddlopt.models.aggregation.hot.prices import best_prices
from ddlopt.models.aggregation.hot.values import groups_of
from ddlopt.models.contracts import Solution
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.aggregation.hot.knapsack import best_choice
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

_MOST_CELLS = 30_000_000
"""Of the table of a switch's choice."""


@dataclass(frozen=True)
class HotPrices(Heuristic, uses=()):
    """Ours: parameters go where they gain most at the prices of registers that prove the Lagrangian bound.

    They choose in two orders (:meth:`Items.orders`). Then, in turn, each switch makes the best choice among its own
    parameters and those that are on none (:class:`HotKnapsack`'s), until none changes anything. The better answer
    counts.
    """

    name: ClassVar[str] = "hot-prices"
    covers: ClassVar[type[Any]] = HotInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.aggregation.hot.kernels",)

    def answer(self, instance: HotInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The better of two passes, each with choices of the switches."""
        items = items_of(instance, groups_of(instance))
        prices = best_prices(instance).prices
        found = []
        for order in items.orders(prices):
            found.append(_with_best_choices(instance, items, items.placed_by(instance, prices, order), clock))
            if clock.expired:
                break
        best = max(found, key=items.worth)
        clock.report(items.worth(best))
        return items.answer(instance, best), {}


@dataclass(frozen=True)
class HotDensity(Heuristic, uses=()):
    """The parameter that saves most a register goes first, to the switch with room where it saves most."""

    name: ClassVar[str] = "hot-density"
    covers: ClassVar[type[Any]] = HotInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.aggregation.hot.kernels",)

    def answer(self, instance: HotInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One pass."""
        items = items_of(instance, groups_of(instance))
        return items.answer(instance, by_density(instance, items)), {}


@dataclass(frozen=True)
class HotFrequency(Heuristic, uses=()):
    """Libra's hot set: the parameters that are touched most, whatever they take and save.

    The paper has one job and one switch. Here those of all jobs are in one order, and each goes to the switch with room
    that most of its workers' messages pass.
    """

    name: ClassVar[str] = "hot-frequency"
    covers: ClassVar[type[Any]] = HotInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.aggregation.hot.kernels",)

    def answer(self, instance: HotInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One pass."""
        items = items_of(instance, groups_of(instance))
        order = np.argsort(-_frequencies(instance, items), kind="stable")
        return items.answer(instance, _placed(items, registers_of(instance), order)), {}


@dataclass(frozen=True)
class HotQuota(Heuristic, uses=()):
    """Each job has an equal part of every switch, for the parameters that it touches most.

    Jobs of which no messages that could be added up pass a switch have none of it.
    """

    name: ClassVar[str] = "hot-quota"
    covers: ClassVar[type[Any]] = HotInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.aggregation.hot.kernels",)

    def answer(self, instance: HotInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One pass for each job."""
        items = items_of(instance, groups_of(instance))
        frequencies = _frequencies(instance, items)
        passing = np.array(instance.passing) > 1
        quota = registers_of(instance) // np.maximum(1, passing.sum(axis=1))
        placed = np.full(len(items.width), -1)
        for number in range(len(instance.jobs)):
            own = np.flatnonzero(items.job == number)
            order = own[np.argsort(-frequencies[own], kind="stable")]
            room = np.where(passing[:, number], quota, 0)
            placed[own] = _placed(items, room, order)[own]
        return items.answer(instance, placed), {}


@dataclass(frozen=True)
class HotRandom(Heuristic, uses=("seed",)):
    """Parameters at random (a baseline), to the switch with room where each saves most."""

    name: ClassVar[str] = "hot-random"
    covers: ClassVar[type[Any]] = HotInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.aggregation.hot.kernels",)

    def answer(self, instance: HotInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One pass."""
        items = items_of(instance, groups_of(instance))
        order = np.random.default_rng(seed).permutation(len(items.width))
        return items.answer(instance, _placed(items, registers_of(instance), order)), {}


@dataclass(frozen=True)
class HotSampled(Heuristic, uses=("seed",)):
    """As ``hot-density``, but with the frequencies of a sample.

    Each worker's batch is drawn ``samples`` times: a parameter is touched as often as its frequency says (a binomial
    draw of each). ``capture`` in the details is what the set saves, relative to what ``hot-density`` saves with the
    true frequencies.

    Parameters
    ----------
    samples : int
        Batches of each job.
    """

    samples: int = 100

    name: ClassVar[str] = "hot-sampled"
    covers: ClassVar[type[Any]] = HotInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.aggregation.hot.kernels",)

    def answer(self, instance: HotInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One sample and one pass."""
        rng = np.random.default_rng(seed)
        seen = tuple(rng.binomial(self.samples, job.frequencies) / self.samples for job in instance.jobs)
        guessed = items_of(instance, groups_of(instance, seen))
        placed = by_density(instance, guessed)
        truth = items_of(instance, groups_of(instance))
        oracle = truth.worth(by_density(instance, truth))
        saved = truth.worth(_moved(guessed, placed, truth))
        details = {"samples": float(self.samples), "capture": saved / oracle if oracle else 1.0}
        return guessed.answer(instance, placed), details


def _with_best_choices(instance: HotInstance, items: Items, placed: Whole, clock: Clock) -> Whole:
    """The placement, after best choices of all switches in turn, until none changes anything."""
    unchanged, turn, switches = 0, 0, len(instance.switches)
    while unchanged < switches and not clock.expired:
        better = _with_best_choice(instance, items, placed, turn % switches)
        unchanged = 0 if better is not None else unchanged + 1
        placed = placed if better is None else better
        turn += 1
    return placed


def _with_best_choice(instance: HotInstance, items: Items, placed: Whole, switch: int) -> Whole | None:
    """The placement with a switch's best choice among its own items and those on none; None if it saves no more."""
    free = np.flatnonzero(((placed == switch) | (placed < 0)) & (items.values[:, switch] > 0))
    values = np.ascontiguousarray(items.values[free, switch])
    taken, _, _ = best_choice(items.width[free], values, instance.switches[switch].registers, _MOST_CELLS)
    before = float(values[placed[free] == switch].sum())
    if float(values[taken].sum()) <= before * (1 + ROUNDING):
        return None
    changed = placed.copy()
    changed[free] = np.where(taken, switch, -1)
    return changed


def by_density(instance: HotInstance, items: Items) -> Whole:
    """Switch of each item, -1 for none: those first that save most a register, each where it saves most."""
    prices = np.zeros(len(instance.switches))
    return items.placed_by(instance, prices, items.orders(prices)[0])


def _placed(items: Items, room: Whole, order: Whole) -> Whole:
    placed: Whole = place(order, items.width, items.values, np.zeros(len(room)), room.copy())
    return placed


def _frequencies(instance: HotInstance, items: Items) -> Reals:
    found = np.empty(len(items.width))
    for number, job in enumerate(instance.jobs):
        own = items.job == number
        found[own] = job.frequencies[items.parameter[own]]
    return found


def _moved(guessed: Items, placed: Whole, truth: Items) -> Whole:
    """The placement of items, for another row of them."""
    found = np.full(len(truth.width), -1)
    for number in np.unique(guessed.job):
        mine, theirs = guessed.job == number, truth.job == number
        top = 1 + max(int(guessed.parameter[mine].max()), int(truth.parameter[theirs].max(initial=0)))
        where = np.full(top, -1)
        where[guessed.parameter[mine]] = placed[mine]
        found[theirs] = where[truth.parameter[theirs]]
    return found
