"""Strategies on given links, rings and routes by a Metropolis walk, as FlexFlow searches them."""

import math
import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ddlopt.models.codesign.tables import Floats, Tables, tables_of
from ddlopt.models.errors import NoSolutionError, OptionError
from ddlopt.solvers.codesign.fixed_routes import FixedRoutes
from ddlopt.solvers.heuristic import Clock

CONTINUE = 0.75
"""Chance that a strategy handed on to a neighbour is handed on further."""

_KEPT_FLOATS = 4_000_000
"""In the sums of choices that were proposed lately: most walks propose the same ones again and again."""
_KEPT_PROPOSALS = 1000
"""After as many these sums are forgotten, so that rounding does not add up in them."""


@dataclass(frozen=True)
class Walked:
    """What a walk found.

    Parameters
    ----------
    choices : tuple of int
        The best it met.
    time_s : float
        Their iteration time on the given routes.
    proposed, accepted : int
        Proposals that change something, and those taken.
    seconds : float
    """

    choices: tuple[int, ...]
    time_s: float
    proposed: int
    accepted: int
    seconds: float


@dataclass(frozen=True)
class Metropolis:
    r"""A Metropolis walk over the strategies of all layers at fixed links, rings and routes.

    A proposal gives a random layer a random other strategy or, with probability ``propagation``, hands the strategy of
    a random layer on to neighbours: along a random edge (the heavier the likelier) the next layer gets the strategy of
    the same name, if it has one, and so on with probability 3/4. A proposal that is slower by :math:`\Delta`
    milliseconds is accepted with probability :math:`e^{-\alpha \Delta}`; one that does not fit into memory, or sends
    what has no way, never is. Every hundredth part of the budget (1 to 1000 proposals) the walk starts again from the
    best. The load of every link, the time and the memory of every server are kept up to date (:class:`Sums`), so that a
    proposal costs a few vectors of the length of the arcs.

    Parameters
    ----------
    proposals : int
    alpha : float
        In 1/ms; 1 is the released code's default, of which TopoOpt's experiments with BERT depart (0.2).
    propagation : float

    References
    ----------
    Z. Jia, M. Zaharia and A. Aiken, "Beyond data and model parallelism for deep neural networks", MLSys 2019; the walk,
    its restarts and ``propagate`` as in the released FlexNet code (``FFModel::optimize``, ``FFModel::rewrite``), where
    parallel degrees are handed on instead of names.
    """

    proposals: int = 4000
    alpha: float = 1.0
    propagation: float = 0.25

    def __post_init__(self) -> None:
        if self.proposals < 1:
            raise OptionError(f"the budget must be at least 1 proposal, got {self.proposals}")
        if not self.alpha > 0:
            raise OptionError(f"alpha must be positive, got {self.alpha}")
        if not 0 <= self.propagation <= 1:
            raise OptionError(f"propagation is a probability, got {self.propagation}")

    def search(
        self,
        routes: FixedRoutes,
        choices: Sequence[int],
        seed: int,
        clock: Clock | None = None,
        watch: Callable[[float], None] | None = None,
    ) -> Walked:
        """Walk from a choice of strategies.

        Parameters
        ----------
        routes : FixedRoutes
        choices : sequence of int
        seed : int
        clock : Clock, optional
            The walk ends soon after it has expired.
        watch : callable, optional
            Told the time of every better choice.

        Raises
        ------
        NoSolutionError
            If the first choice does not fit into memory, loses too much, or sends what has no way.
        """
        began = time.perf_counter()
        proposals, best = Proposals(tables_of(routes.instance), seed), tuple(choices)
        best_s = routes.time_s(best)
        if not math.isfinite(best_s):
            raise NoSolutionError(f"'{routes.instance.name}': its links cannot serve the strategies to begin with")
        span = min(max(self.proposals // 100, 1), 1000)
        proposed = accepted = 0
        now, known = Sums.of(routes, best), dict[tuple[int, ...], Sums]()
        most = _KEPT_FLOATS // (len(now.load) + 2 * len(now.busy))
        for number in range(self.proposals):
            if number % _KEPT_PROPOSALS == 0 or len(known) > most:
                known.clear()
            if number % span == 0:
                if clock is not None and clock.expired:
                    break
                now = Sums.of(routes, best)
            changes = proposals.draw(now.choices, self.propagation)
            if not changes:
                continue
            proposed += 1
            chosen = tuple(changes.get(layer, a) for layer, a in enumerate(now.choices))
            after = known.get(chosen)
            if after is None:
                after = known[chosen] = now.changed(changes)
            if after.time_s >= now.time_s and proposals.rng.random() >= math.exp(
                -self.alpha * 1e3 * (after.time_s - now.time_s)
            ):
                continue
            accepted, now = accepted + 1, after
            if now.time_s < best_s:
                # Rounding in the sums must not make a choice of one that just does not fit.
                made_anew = routes.time_s(now.choices)
                if made_anew < best_s:
                    best, best_s = now.choices, made_anew
                    if watch is not None:
                        watch(best_s)
        return Walked(best, best_s, proposed, accepted, time.perf_counter() - began)


class Proposals:
    """Random changes of a choice of strategies.

    Parameters
    ----------
    tables : Tables
    seed : int
    """

    def __init__(self, tables: Tables, seed: int) -> None:
        self.tables, self.rng = tables, random.Random(seed)
        instance = tables.instance
        self._names = [[strategy.name for strategy in layer.strategies] for layer in instance.layers]
        self._joined: list[list[tuple[int, float]]] = [[] for _ in instance.layers]
        for (source, target), amount in zip(instance.edges, tables.edge_bytes.tolist(), strict=True):
            self._joined[source].append((target, amount))
            self._joined[target].append((source, amount))

    def draw(self, choices: Sequence[int], propagation: float) -> dict[int, int]:
        """New strategies by layer; none if the proposal changes nothing."""
        if self.rng.random() < propagation:
            return self._handed_on(choices)
        layer = self.rng.randrange(len(choices))
        size = self.tables.sizes[layer]
        if size == 1:
            return {}
        new = self.rng.randrange(size - 1)
        return {layer: new + (new >= choices[layer])}

    def _handed_on(self, choices: Sequence[int]) -> dict[int, int]:
        """From a random layer walk along edges and give those met the strategy of the same name, where they have it."""
        layer = self.rng.randrange(len(choices))
        seen, changes = {layer}, dict[int, int]()
        while True:
            following = [each for each in self._joined[layer] if each[0] not in seen]
            if not following:
                return changes
            left = self.rng.random() * sum(amount for _, amount in following)
            for neighbour, amount in following:  # noqa: B007 (the last one, where none moves anything)
                left -= amount
                if left < 0:
                    break
            name, names = self._names[layer][changes.get(layer, choices[layer])], self._names[neighbour]
            if name in names and names.index(name) != choices[neighbour]:
                changes[neighbour] = names.index(name)
            layer = neighbour
            seen.add(layer)
            if self.rng.random() >= CONTINUE:
                return changes


@dataclass(frozen=True, eq=False)
class Sums:
    """A choice of strategies on fixed routes, with the sums that its iteration time follows from.

    Parameters
    ----------
    routes : FixedRoutes
    choices : tuple of int
    load : (arcs,) array
        Bytes on each link of every arc.
    busy, memory : (n,) arrays
        Time and memory of every server.
    error : float
    time_s : float
        Infinite where it does not fit into memory, loses too much, or sends what has no way.
    """

    routes: FixedRoutes
    choices: tuple[int, ...]
    load: Floats
    busy: Floats
    memory: Floats
    error: float
    time_s: float

    @classmethod
    def of(cls, routes: FixedRoutes, choices: Sequence[int]) -> "Sums":
        """The sums of a choice that can be sent, made anew."""
        tables = tables_of(routes.instance)
        amounts = np.concatenate(tables.bytes_of(choices))
        return cls(
            routes,
            tuple(choices),
            amounts @ routes.loads,
            tables.busy_of(choices),
            tables.memory_of(choices),
            tables.error_of(choices),
            routes.time_s(choices),
        )

    def changed(self, changes: Mapping[int, int]) -> "Sums":
        """The sums with other strategies of some layers."""
        tables, routes = tables_of(self.routes.instance), self.routes
        busy, memory, error = self.busy.copy(), self.memory.copy(), self.error
        sent: dict[int, float] = defaultdict(float)
        edges = {e for e, ends in enumerate(tables.instance.edges) if not changes.keys().isdisjoint(ends)}
        after = tuple(changes.get(layer, a) for layer, a in enumerate(self.choices))
        for choices, sign in ((self.choices, -1.0), (after, 1.0)):
            for layer in changes:
                a = choices[layer]
                on = tables.runs_on[layer][a]
                busy[on] += sign * tables.compute_s[layer][a]
                memory[on] += sign * tables.memory_bytes[layer][a]
                error += sign * float(tables.errors[layer][a])
                for figure, amount in tables.own[layer][a].items():
                    sent[figure] += sign * amount
            for e in edges:
                source, target = tables.instance.edges[e]
                pattern = int(tables.moves[e][choices[source], choices[target]])
                if pattern >= 0:
                    sent[len(tables.groups_of) + pattern] += sign * float(tables.edge_bytes[e])
        figures = [figure for figure, amount in sent.items() if amount]
        load = self.load + np.array([sent[figure] for figure in figures]) @ routes.loads[figures]
        time_s = math.inf
        instance = tables.instance
        fits = error <= instance.most_error and bool(memory.max() <= instance.most_memory_bytes)
        if fits and not any(sent[figure] > 0 and routes.without_way[figure] for figure in figures):
            path = tables.path_s([times[a] for times, a in zip(tables.compute_s, after, strict=True)])
            compute = max(float(busy.max()), path)
            time_s = instance.iteration_time_s(compute, float(load.max(initial=0.0)))
        return Sums(routes, after, load, busy, memory, error, time_s)
