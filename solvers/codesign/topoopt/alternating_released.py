"""TopoOpt's search as its authors released it: one Metropolis walk that lays links anew as it goes."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.codesign.formulations.rows.coupling import plan_of
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.job import job_of
from ddlopt.models.codesign.problem import PROBLEM
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import NotApplicableError
from ddlopt.solvers.codesign.data_parallel import data_parallel
from ddlopt.solvers.codesign.fixed_routes import FixedRoutes
from ddlopt.solvers.codesign.half_rounds import is_late
from ddlopt.solvers.codesign.topoopt.mcmc import Metropolis, Proposals
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder

_PATIENCE = 50
"""Proposals that the links outlive which change nothing, before they are laid anew anyway."""
_KEPT_BYTES = 2e8
"""Of networks remembered by their strategies."""


@dataclass(frozen=True)
class AlternatingReleased(Heuristic, uses=("seed", "start")):
    r"""One loop over proposals of strategies, with links laid anew for almost every one that is taken.

    Each proposal (as in :class:`.Metropolis`) is timed on the links that there are. A new best is remembered with the
    links *on which it was timed*. For every proposal accepted, and for others that pass a Metropolis test of the links'
    own (:math:`e^{-\beta\Delta}`, against the last proposal that passed it) or after 50 that did not, the released
    TopologyFinder lays links for the *proposal's* traffic. Every hundredth part of the budget (1 to 1000 proposals) the
    walk goes back to the best strategies and their links.

    So strategies are judged on links made for others, and links are made for strategies that were given up. What the
    released simulator does with tasks and queues is the iteration time of the instance here, and among random choices
    for the same strategies the links of one seed are used.

    Parameters
    ----------
    budget : int
        Proposals; 4000 in most of the released scripts.
    alpha, link_alpha : float
        Of both Metropolis tests, in 1/ms.
    propagation : float

    References
    ----------
    ``FFModel::optimize`` and ``SpMulMat::optimize`` of the released FlexNet code of W. Wang et al., "TopoOpt", NSDI
    2023.
    """

    budget: int = 4000
    alpha: float = 1.0
    link_alpha: float = 0.5
    propagation: float = 0.25

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.topology.routing",)

    def __post_init__(self) -> None:
        Metropolis(self.budget, self.alpha, self.propagation)
        Metropolis(self.budget, self.link_alpha)

    @property
    def name(self) -> str:
        """``alternating-released``."""
        return "alternating-released"

    def answer(self, instance: CodesignInstance, seed: int, clock: Clock, start: Any) -> Answer[CodesignPlan]:
        """The best plan met; in the details proposals, acceptance, and how often links were laid."""
        PROBLEM.tightest_bound(instance)  # the check needs it, and it is to count
        loop = _Loop(instance, seed, clock)
        first = start.choices(instance) if start is not None else data_parallel(instance, clock)
        loop.begin(first)
        span = min(max(self.budget // 100, 1), 1000)
        for number in range(self.budget):
            if is_late(clock):
                break
            if number and number % span == 0:
                loop.back_to_best()
            loop.step(self)
        details = {
            "proposals": loop.proposed,
            "acceptance": loop.accepted / max(1, loop.proposed),
            "links_laid": loop.laid,
            "links_remembered": loop.remembered,
        }
        return plan_of(instance, loop.best, loop.best_routes.design_for(loop.best)), details


@dataclass
class _LinkTest:
    """The links' own Metropolis test."""

    last_ms: float = np.inf
    best_ms: float = np.inf
    idle: int = field(default=0)

    def passes(self, time_ms: float, alpha: float, rng: np.random.Generator, forced: bool) -> bool:
        """Whether to lay links for a proposal that takes so long."""
        slower = time_ms - self.last_ms if np.isfinite(self.last_ms) else -np.inf
        change = slower < 0 or (slower > 0 and rng.random() < np.exp(-alpha * slower)) or time_ms < self.best_ms
        self.best_ms = min(self.best_ms, time_ms)
        if change:
            self.last_ms = time_ms
        else:
            self.idle += 1
        if not (forced or change or self.idle >= _PATIENCE):
            return False
        self.idle = 0
        return True


class _Loop:
    """The state of one run; times in seconds on the links of their moment."""

    def __init__(self, instance: CodesignInstance, seed: int, clock: Clock) -> None:
        self.instance, self.seed, self.clock = instance, seed, clock
        self.rng = np.random.default_rng(seed)
        self.proposals = Proposals(tables_of(instance), seed)
        self.test = _LinkTest()
        self.known: dict[tuple[int, ...], FixedRoutes] = {}
        self.proposed = self.accepted = self.laid = self.remembered = 0

    def begin(self, choices: tuple[int, ...]) -> None:
        """Links for the first strategies, which are the best so far."""
        routes = self._links(choices)
        if routes is None:
            raise NotApplicableError(
                f"alternating-released does not cover '{self.instance.name}': TopologyFinder finds no links for data "
                f"parallelism"
            )
        self.routes = self.best_routes = routes
        self.current = self.best = choices
        self.current_s = self.best_s = routes.time_s(choices)
        self.test.passes(1e3 * self.best_s, 1.0, self.rng, forced=True)
        self.clock.report(self.best_s)

    def back_to_best(self) -> None:
        """The best strategies and the links on which they were timed."""
        self.current, self.current_s, self.routes = self.best, self.best_s, self.best_routes

    def step(self, method: AlternatingReleased) -> None:
        """One proposal."""
        changes = self.proposals.draw(self.current, method.propagation)
        after = tuple(changes.get(layer, a) for layer, a in enumerate(self.current))
        if not changes or not tables_of(self.instance).fits(after):
            return
        time_s = self.routes.time_s(after)
        self.proposed += 1
        forced = False
        if time_s < self.best_s:
            self.best, self.best_s, self.best_routes = after, time_s, self.routes
            self.clock.report(time_s)
        if time_s < self.current_s or self.rng.random() < np.exp(-method.alpha * 1e3 * (time_s - self.current_s)):
            self.accepted += 1
            self.current, self.current_s = after, time_s
            forced = True
        if self.test.passes(1e3 * time_s, method.link_alpha, self.rng, forced):
            self.routes = self._links(after) or self.routes

    def _links(self, choices: tuple[int, ...]) -> FixedRoutes | None:
        """Links for a choice of strategies, laid or remembered; None if they send nothing, or none will do."""
        if choices in self.known:
            self.remembered += 1
            return self.known[choices]
        job = job_of(self.instance, choices)
        if job is None:
            return None
        try:
            design, _ = TopologyFinder("released").answer(job, self.seed, self.clock, None)
        except NotApplicableError:
            return None
        self.laid += 1
        routes = self.known[choices] = FixedRoutes.of(self.instance, design, choices, seed=self.seed)
        if len(self.known) * routes.loads.nbytes > _KEPT_BYTES:
            del self.known[next(iter(self.known))]
        return routes
