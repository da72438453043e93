"""The linear relaxation of a slot over whole mappings of jobs, rounded at random."""

import time
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ddlopt.frontier.scheduling.slot_rounding.mappings import Mapper, Mapping, mapper_of
from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.models.scheduling.formulations.slot_embedding.widths import slot_data
from ddlopt.models.tolerances import OBJECTIVE_TOL, ZERO_TOL
from ddlopt.solvers.exact import lp_relaxation
from ddlopt.solvers.scheduling.slot.embedding_oracles import (
    NOTHING,
    SlotChoice,
    SlotProblem,
    SlotState,
    slot_problem,
)
from ddlopt.solvers.scheduling.slot.packing import Packer, Place

Floats = npt.NDArray[np.float64]

_CENTRE = 0.5
"""Weight of the prices with the best bound so far; mixed prices keep the search from swinging to and fro."""


@dataclass
class MappingLp:
    r"""Convex combinations of mappings: :math:`\max \sum_k g_k \lambda_k - \sum_s \pi\Delta P_s\, o_s`.

    The mappings of each job have weights :math:`\lambda_k \ge 0` of sum at most 1; together they take no more than each
    row has: 1, or :math:`o_s \le 1` on servers s that cost energy when awake. Mappings come from a mapper at the rows'
    dual prices, until none is worth its price. At any prices :math:`\rho`,

    .. math::
        \sum_i \max_k \bigl(g_k - \rho \cdot r_k\bigr)^+ + \sum_{\text{links}} \rho
        + \sum_s \bigl(\textstyle\sum_{r \in s} \rho_r - \pi \Delta P_s\bigr)^+

    bounds the gain of every choice, provided that the mapper finds the best mappings.
    """

    problem: SlotProblem
    mapper: Mapper
    columns: list[Mapping] = field(default_factory=list)
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    value: float = 0.0
    """Of the relaxation over the mappings found."""
    bound: float = np.inf
    """Of the whole relaxation, and so of every choice; infinite where the mapper is not exact."""
    rounds: int = 0

    def solve(self, deadline: float) -> None:
        """Look for mappings until none is worth its price, or ``time.perf_counter()`` passes the deadline."""
        prices, job_prices = np.zeros(len(self.mapper.servers)), np.zeros(len(self.problem.jobs))
        centre = prices
        while True:
            self.rounds += 1
            mixed = _CENTRE * centre + (1 - _CENTRE) * prices
            found, bound = self._ask(mixed)
            if bound < self.bound:
                self.bound, centre = bound, mixed
            new = self._worth_it(found, prices, job_prices)
            if not new:
                found, bound = self._ask(prices)
                if bound < self.bound:
                    self.bound, centre = bound, prices
                new = self._worth_it(found, prices, job_prices)
            if not new or self.bound <= self.value * (1 + OBJECTIVE_TOL) or time.perf_counter() > deadline:
                break
            self.columns += new
            prices, job_prices = self._solve_master()
        if not self.mapper.exact:
            self.bound = np.inf

    def _ask(self, prices: Floats) -> tuple[list[Mapping], float]:
        """The best mappings at these prices, and the bound that they make."""
        found, total = self.mapper.best(prices)
        paid = float(prices.sum())
        for server, cost in self._idle.items():
            price = float(prices[self.mapper.servers == server].sum())
            paid -= min(price, cost)
        return found, total + paid

    @cached_property
    def _idle(self) -> dict[int, float]:
        """What it costs to wake each server that any row is of."""
        instance = self.problem.instance
        cost = instance.energy_price_per_j * instance.slot_s * instance.idle_w
        return {s: float(cost[s]) for s in np.unique(self.mapper.servers).tolist() if s >= 0 and cost[s] > 0}

    def _worth_it(self, found: list[Mapping], prices: Floats, job_prices: Floats) -> list[Mapping]:
        """Mappings that gain more than they pay."""
        least = OBJECTIVE_TOL * self.value / len(self.problem.jobs) / 10
        return [
            one for one in found if one.gain - float(prices[list(one.rows)] @ one.parts) > job_prices[one.job] + least
        ]

    def _solve_master(self) -> tuple[Floats, Floats]:
        """Weights of the mappings found; the prices of rows and of jobs."""
        rows, columns, idle = len(self.mapper.servers), len(self.columns), list(self._idle.items())
        entries = [
            (row, k, part) for k, one in enumerate(self.columns) for row, part in zip(one.rows, one.parts, strict=True)
        ]
        entries += [(rows + one.job, k, 1.0) for k, one in enumerate(self.columns)]
        limits = np.ones(rows + len(self.problem.jobs))
        for k, (server, _) in enumerate(idle):
            for row in np.flatnonzero(self.mapper.servers == server).tolist():
                entries.append((row, columns + k, -1.0))
                limits[row] = 0.0
        where, what, parts = (np.array(one) for one in zip(*entries, strict=True))
        matrix = csr_array((parts, (where, what)), shape=(len(limits), columns + len(idle)))
        gains = np.array([*(one.gain for one in self.columns), *(-cost for _, cost in idle)])
        unit = float(gains.max()) / 100
        answer = linprog(-gains / unit, A_ub=matrix, b_ub=limits, bounds=(0, 1), method="highs")
        if answer.status != 0:
            raise SolverError(f"the relaxation over mappings for '{self.problem.instance.name}': {answer.message}")
        self.value, self.weights = -float(answer.fun) * unit, answer.x[:columns]
        prices = np.maximum(0.0, -answer.ineqlin.marginals) * unit
        return prices[:rows], prices[rows:]


@dataclass(frozen=True)
class RoundingOracle:
    r"""LP relaxation over mappings and randomised rounding, in the manner of Rost and Schmid.

    Each job takes one of its mappings, k with probability :math:`\lambda_k`, or does not run with the rest. Mappings
    that no longer fit when their turn comes, the largest gains first, are left out, or with ``repair`` put where they
    still fit, smaller if need be; so is every job that gains something in what is left. The best of several tries is
    the answer. It always fits, other than in their analysis, which lets capacities be exceeded and so has a guarantee;
    this has none. The relaxation is a bound on every choice; on networks that are no tree, where mappings come from a
    heuristic, the bound is that of the relaxation of
    :class:`~ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding.SlotEmbedding`.

    Parameters
    ----------
    tries : int
    repair : bool

    References
    ----------
    M. Rost, S. Schmid, "Virtual network embedding approximations: leveraging randomized rounding", IEEE/ACM ToN 27(5),
    2019. Mappings by pricing, and repairs, are ours.
    """

    tries: int = 30
    repair: bool = True

    def choose(self, state: SlotState, rng: np.random.Generator, time_s: float | None) -> SlotChoice:
        """Relax, round, repair; after half of the time rounding starts with the mappings found."""
        began = time.perf_counter()
        problem = slot_problem(state)
        if problem is None:
            return NOTHING
        half = np.inf if time_s is None else time_s / 2
        relaxation = relax(problem, began + half)
        bound = min(problem.limit, relaxation.bound)
        if not relaxation.mapper.exact and time.perf_counter() < began + half:
            formulation = SlotEmbedding(gains=problem.gains)
            bound = min(bound, lp_relaxation(formulation, problem.instance).objective)
        tries = _Tries(relaxation, self.repair)
        best = tries.round(None)
        for _ in range(self.tries):
            if time.perf_counter() > began + 2 * half:
                break
            best = max(best, tries.round(rng), key=lambda one: one[0])
        _, places = best
        workers, rings = (
            {i: place.workers for i, place in places.items()},
            {i: place.ring for i, place in places.items()},
        )
        return problem.choice(workers, rings, bound)


def relax(problem: SlotProblem, deadline: float = np.inf) -> MappingLp:
    """The solved relaxation of a problem; on time, if ``time.perf_counter()`` does not pass the deadline before."""
    data = slot_data(problem.instance, gains=problem.gains)
    relaxation = MappingLp(problem, mapper_of(problem.instance, data))
    relaxation.solve(deadline)
    return relaxation


class _Tries:
    """Rounds a relaxation, again and again."""

    def __init__(self, relaxation: MappingLp, repair: bool) -> None:
        self.problem, self.repair = relaxation.problem, repair
        instance = self.problem.instance
        self._price = instance.energy_price_per_j * instance.slot_s
        self._packer = Packer(instance)
        self._mappings: dict[int, list[tuple[Mapping, float]]] = {}
        for one, weight in zip(relaxation.columns, relaxation.weights.tolist(), strict=True):
            if weight > ZERO_TOL:
                self._mappings.setdefault(one.job, []).append((one, weight))
        share = (instance.demand / instance.capacity.sum(axis=0)).max(axis=1)
        widest = [int(np.argmax(row)) for row in self.problem.gains]
        worth = [
            row[width] / width / part if width else 0.0
            for row, width, part in zip(self.problem.gains, widest, share, strict=True)
        ]
        self._fillers = [(job, widest[job]) for job in np.argsort(worth)[::-1].tolist() if worth[job] > 0]

    def round(self, rng: np.random.Generator | None) -> tuple[float, dict[int, Place]]:
        """Gain and places; without ``rng`` every job takes its heaviest mapping, if it has half of the weight."""
        packer = self._packer
        for job in list(packer.placed):
            packer.remove(job)
        chosen = [one for options in self._mappings.values() if (one := _draw(options, rng)) is not None]
        for one in sorted(chosen, key=lambda one: (-one.gain, one.job)):
            place = Place(one.workers, one.ring) if one.workers else packer.find(one.job, one.width)
            if place is not None and packer.fits(one.job, place):
                packer.put(one.job, place)
            elif self.repair:
                self._put(one.job, one.width)
        if self.repair:
            for job, width in self._fillers:
                if job not in packer.placed:
                    self._put(job, width)
        places = dict(packer.placed)
        return self.problem.gain({job: place.workers for job, place in places.items()}), places

    def _put(self, job: int, width: int) -> None:
        """Put a job where as many workers as possible still fit, if that gains something."""
        place = self._packer.largest(job, width)
        if place is not None and self.problem.gains[job][place.width] > self._packer.energy_w(place) * self._price:
            self._packer.put(job, place)


def _draw(options: list[tuple[Mapping, float]], rng: np.random.Generator | None) -> Mapping | None:
    """One of the mappings, each with its weight as probability, or none with what is left of 1."""
    if rng is None:
        one, weight = max(options, key=lambda option: option[1])
        return one if weight >= 0.5 else None
    point = rng.random()
    for one, weight in options:
        point -= weight
        if point < 0:
            return one
    return None
