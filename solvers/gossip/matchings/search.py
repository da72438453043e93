"""Probabilities, weights and matchings together: a local search, as the joint problem is not convex."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from ddlopt.models.gossip.matchings.bounds import matchings_bound
from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.models.gossip.spectral.laplacians import Floats, Ints
from ddlopt.models.tolerances import IMPROVEMENT_TOL, ROUNDING
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, relative_gap
from ddlopt.solvers.gossip.matchings.activation import Matchings, Plan, most_connected
from ddlopt.solvers.gossip.matchings.decompositions import Kempe, colours_of, grouped
from ddlopt.solvers.gossip.matchings.exact import certified_bound, decomposed, plan_of
from ddlopt.solvers.gossip.matchings.moment_newton import Mixed, best_weights
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    rough: float = 1e-5
    """Relative gap of steps on the way: finer than what tells two plans apart, coarse enough to be quick."""
    fine: float = 1e-9
    """Relative gap of what is answered."""
    least: float = 1e-5
    """Probability below which the slope of a matching that is never active would be hidden."""
    dropped: float = 1e-3
    """A matching this rare is tried without."""
    worse: float = 0.02
    """Of a factor, how much worse a step of a walk may be at first."""
    first: float = 0.4
    """Part of the time for matchings at their most connected probabilities: exchanges at the best ones gain more."""
    small: int = 150
    """Edges up to which other matchings are tried: beyond, a single factor takes seconds."""


_EFFORT = Effort()


class Candidate(NamedTuple):
    """A plan and its factor."""

    plan: Plan
    probabilities: Floats
    mixed: Mixed


@dataclass(frozen=True)
class MatchingsSearch(CertifiedMethod, uses=("threads", "seed")):
    r"""Starts from MATCHA with a weight for each edge, and improves all three.

    *Matchings*, where they are not given: two of them are exchanged along a path or cycle of their edges (a Kempe
    chain); worse ones are taken too, less and less.

    *Probabilities*: the factor of the best weights, as a function of p, has the derivative
    :math:`\langle X, \partial_{p_j} \mathbb{E}[W^2] \rangle` with the matrix X of the certificate where that is unique;
    sequential quadratic programming goes along it. The factor is not convex in p: this finds local optima. One of them
    is a global one where its factor meets the bound, the square of that of fastest averaging. Matchings are exchanged
    again at these probabilities, and both in turn as long as that helps.

    Where a single matching is active, probabilities and weights are exact for each set of matchings, and the bound is
    that of fractional matchings.

    Parameters
    ----------
    moves : int
        Matchings that are tried.
    starts : int
        Probabilities from which the last improvement starts.
    """

    moves: int = 150
    starts: int = 3

    name: ClassVar[str] = "matchings-search"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.gossip.spectral.kernels",)
    covers: ClassVar[type[Any]] = MatchingsInstance

    def find(self, instance: MatchingsInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best plan found, and a bound on all plans."""
        rng = np.random.default_rng(seed)
        with threadpool_limits(limits.threads):
            bound = certified_bound(instance, limits, clock)
            bound = max(matchings_bound(instance), bound)
            matchings, fewest = decomposed(instance, clock)
            best = _valued(instance, matchings, clock)
            clock.report(best.mixed.factor, bound)
            reached = _reached(bound, limits.gap)
            tried = 0
            if not instance.matchings and len(instance.network.edges) <= _EFFORT.small:
                best, tried = self._other_matchings(best, fewest + 1, rng, clock, reached)
            best = _refined(best, clock)
            if not best.plan.single:
                best = self._other_probabilities(best, rng, clock, reached)
                if not instance.matchings and len(instance.network.edges) <= _EFFORT.small:
                    best = self._exchanged(best, rng, clock, reached)
        clock.report(best.mixed.factor, bound)
        answer = plan_of(instance, best.plan, best.probabilities, best.mixed.weights)
        return MethodOutput(answer, {"fewest_matchings": fewest, "decompositions": tried + 1}, bound)

    def _other_matchings(
        self, best: Candidate, most: int, rng: np.random.Generator, clock: Clock, reached: Callable[[float], bool]
    ) -> tuple[Candidate, int]:
        instance = best.plan.instance
        kempe, current = Kempe(instance.network), best
        at = colours_of(best.plan.matchings, len(instance.network.edges))
        if most < 2:
            return best, 0
        later_s = 0.0 if np.isinf(clock.left_s) else (1.0 - _EFFORT.first) * clock.left_s
        known: dict[frozenset[tuple[int, ...]], Candidate] = {}  # few edges have few matchings, which soon come again
        for move in range(self.moves):
            if clock.expired or clock.left_s < later_s or reached(best.mixed.factor):
                return best, move
            there = kempe.moved(at, rng, most)
            allowed = current.mixed.factor * (1.0 + _EFFORT.worse * (1.0 - move / self.moves) ** 2 * rng.random())
            matchings = grouped(there.tolist())
            split = frozenset(matchings)
            found = known.get(split) or _valued(instance, matchings, clock, allowed)
            known[split] = found
            if found.mixed.factor <= allowed:
                at, current = there, found
            if found.mixed.factor < best.mixed.factor * (1.0 - IMPROVEMENT_TOL):
                best = found
                clock.report(best.mixed.factor)
        return best, self.moves

    def _other_probabilities(
        self, best: Candidate, rng: np.random.Generator, clock: Clock, reached: Callable[[float], bool]
    ) -> Candidate:
        plan = best.plan
        if plan.everything() is not None or len(plan.times) == 1:
            # With p_e w_e unchanged, E[W²] falls as p_e grows: all that is paid for is best, and the weights are exact.
            return best
        starts = [best.probabilities, np.full(len(plan.times), plan.instance.budget / plan.times.sum())]
        while len(starts) < self.starts:
            share = rng.dirichlet(np.ones(len(plan.times)))
            starts.append(share * plan.instance.budget / plan.times)
        for begin in starts[: self.starts]:
            if clock.expired or reached(best.mixed.factor):
                break
            found = _improved(plan, plan.kept(begin), clock)
            if found.mixed.factor < best.mixed.factor:
                best = _refined(found, clock)
                clock.report(best.mixed.factor)
        return best

    def _exchanged(
        self, best: Candidate, rng: np.random.Generator, clock: Clock, reached: Callable[[float], bool]
    ) -> Candidate:
        """Other matchings for the probabilities, and probabilities for these, in turn."""
        while not (clock.expired or reached(best.mixed.factor)):
            found = self._with_chains(best, rng, clock)
            if found is None:
                break
            best = min(found, _refined(_improved(found.plan, found.probabilities, clock), clock), key=_factor_of)
            clock.report(best.mixed.factor)
        return best

    def _with_chains(self, begin: Candidate, rng: np.random.Generator, clock: Clock) -> Candidate | None:
        """The best plan on a walk along Kempe chains at given probabilities; None where none is better."""
        instance, chances = begin.plan.instance, begin.probabilities
        kempe, current, best = Kempe(instance.network), begin, begin
        at = colours_of(begin.plan.matchings, len(instance.network.edges))
        known: dict[bytes, Candidate] = {}
        for move in range(self.moves if len(chances) > 1 else 0):
            if clock.expired:
                break
            there = kempe.moved(at, rng, len(chances))
            changed = chances[there] != chances[at]
            if not changed.any() or max(chances[there][changed].max(), chances[at][changed].max()) < _EFFORT.dropped:
                at = there
                continue
            allowed = current.mixed.factor * (1.0 + _EFFORT.worse * (1.0 - move / self.moves) ** 2 * rng.random())
            coloured = there.tobytes()
            found = known.get(coloured) or _coloured(instance, there, chances, clock, allowed)
            known[coloured] = found
            if found.mixed.factor <= allowed:
                at, current = there, found
            if found.mixed.factor < best.mixed.factor * (1.0 - 10.0 * _EFFORT.rough):
                best = found
        return None if best is begin else best


def _factor_of(candidate: Candidate) -> float:
    return candidate.mixed.factor


def _reached(bound: float, gap: float) -> Callable[[float], bool]:
    def reached(factor: float) -> bool:
        left = relative_gap(factor, bound)
        return factor < ROUNDING or (left is not None and left <= gap)

    return reached


def _valued(instance: MatchingsInstance, matchings: Matchings, clock: Clock, most: float = np.inf) -> Candidate:
    """The most connected probabilities and their best weights, roughly, and more roughly above a factor."""
    plan = Plan(instance, matchings)
    # The first plan is finished in any case.
    active = most_connected(plan, _EFFORT.rough, lambda: clock.expired and bool(clock.trace))
    if plan.single:
        half = np.full(len(instance.network.edges), 0.5)
        value = 1.0 - active.connectivity / 2.0
        return Candidate(plan, active.probabilities, Mixed(half, value, 0.0, np.eye(instance.size)))
    moment = plan.moment(active.probabilities)
    return Candidate(plan, active.probabilities, best_weights(moment, _EFFORT.rough, None, lambda: clock.expired, most))


def _coloured(instance: MatchingsInstance, colours: Ints, chances: Floats, clock: Clock, most: float) -> Candidate:
    """Matchings by colour, at the probabilities of the colours, with their best weights; roughly, as above."""
    used = np.unique(colours)
    plan = Plan(instance, [np.flatnonzero(colours == colour).tolist() for colour in used])
    kept = plan.kept(chances[used])
    return Candidate(plan, kept, best_weights(plan.moment(kept), _EFFORT.rough, None, lambda: clock.expired, most))


def _refined(candidate: Candidate, clock: Clock) -> Candidate:
    plan = candidate.plan
    if plan.single:
        probabilities = most_connected(plan, _EFFORT.fine).probabilities
        value = 1.0 - plan.connectivity(probabilities) / 2.0
        return candidate._replace(probabilities=probabilities, mixed=candidate.mixed._replace(factor=value))
    found = best_weights(plan.moment(candidate.probabilities), _EFFORT.fine, None, lambda: clock.expired)
    return candidate._replace(mixed=found) if found.factor <= candidate.mixed.factor else candidate


def descended(plan: Plan, start: Floats, clock: Clock) -> tuple[Floats, Floats]:
    """Probabilities and weights of a local optimum from a start."""
    found = _refined(_improved(plan, start, clock), clock)
    return found.probabilities, found.mixed.weights


class _TimeUpError(Exception):
    pass


def _improved(plan: Plan, start: Floats, clock: Clock) -> Candidate:
    """A local optimum of probabilities; the best of those on the way."""
    seen: list[Candidate] = []

    def value(probabilities: Floats) -> tuple[float, Floats]:
        if clock.expired and seen:
            raise _TimeUpError
        kept = plan.kept(probabilities)
        moment = plan.moment(kept)
        # Finer than the search that uses its slopes ends at.
        found = best_weights(moment, 1e-7, None, lambda: clock.expired)
        seen.append(Candidate(plan, kept, found))
        multiplier = found.multiplier - found.multiplier.sum() / found.multiplier.size
        slopes = moment.slopes(found.weights, multiplier / np.trace(multiplier))
        return found.factor, plan.mixing.T @ slopes

    share = plan.times / plan.instance.budget
    rows = [{"type": "ineq", "fun": lambda p: 1.0 - p @ share, "jac": lambda _: -share}]
    try:
        minimize(
            value,
            np.clip(start, _EFFORT.least, plan.most),
            jac=True,
            method="SLSQP",
            bounds=[(min(_EFFORT.least, most), most) for most in plan.most],
            constraints=rows,
            # Finer than the gaps between the factors that are compared afterwards.
            options={"maxiter": 50, "ftol": 1e-8},
        )
        best = min(seen, key=lambda each: each.mixed.factor)
        value(np.where(best.probabilities < _EFFORT.dropped, 0.0, best.probabilities))
    except _TimeUpError:
        pass
    return min(seen, key=lambda each: each.mixed.factor)
