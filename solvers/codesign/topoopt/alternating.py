"""TopoOpt's alternating optimization: strategies for the links, links for the strategies, in turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.codesign.evaluate import evaluate
from ddlopt.models.codesign.formulations.rows.coupling import plan_of
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.problem import PROBLEM
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.errors import NoSolutionError, NotApplicableError, OptionError
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.models.topology import TopologyDesign
from ddlopt.solvers import chain
from ddlopt.solvers.codesign.data_parallel import data_parallel
from ddlopt.solvers.codesign.fixed_routes import FixedRoutes
from ddlopt.solvers.codesign.half_rounds import (
    StrategyPlane,
    TopologyPlane,
    best_on_links,
    best_on_routes,
    is_late,
    links_for,
)
from ddlopt.solvers.codesign.topoopt.mcmc import Metropolis
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.names import spelled
from ddlopt.solvers.topology.link_exchange.link_exchange import STEPS, LinkExchange

_FREE_ROUTES = 16
"""Servers up to which the exact strategy plane also chooses rings and routes anew."""


@dataclass(frozen=True)
class Alternating(Heuristic, uses=("seed", "start")):
    """Alternate between the two planes until a round brings nothing.

    It begins with data parallelism and TopologyFinder's links for that. A round is two halves:

    - *Comp × Comm*: better strategies on the links, rings and routes there are (:class:`.FixedRoutes`), by a Metropolis
      walk (:class:`.Metropolis`) or by the integer program
      :class:`~ddlopt.models.codesign.formulations.strategies_on_routes.StrategiesOnRoutes`; up to 16 servers then with
      new rings and routes on the same links, by
      :class:`~ddlopt.models.codesign.formulations.joint_milp.JointStrategyTopology`.
    - *Comm × Topo*: links, rings and routes for these strategies, by TopologyFinder or by the best method that the
      family ``topology`` has for the size. TopologyFinder's links are taken even where they are worse than those in
      hand, as TopoOpt does; those of the other method only where they are better.

    The answer is the best plan met. Strategies that send something for which the links have no way are never taken.

    Parameters
    ----------
    strategies : {"mcmc", "exact"}
    topology : {"topology-finder", "exact"}
    rounds : int
        At most.
    budget : int
        Proposals of each walk.
    alpha, propagation : float
        Of the walk.
    paths_per_pair : int
        Over how many shortest paths a pair is split for which TopologyFinder, or whoever laid the links, had nothing
        to route; 1 as in the released simulator.
    plane_s : float
        Seconds that an exact half-round may take.

    References
    ----------
    W. Wang et al., "TopoOpt: Co-optimizing network topology and parallelization strategy for distributed training
    jobs", NSDI 2023. The exact planes are ours.
    """

    strategies: StrategyPlane = "mcmc"
    topology: TopologyPlane = "topology-finder"
    rounds: int = 10
    budget: int = 4000
    alpha: float = 1.0
    propagation: float = 0.25
    paths_per_pair: int = 1
    plane_s: float = 20.0

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.topology.routing",)

    def __post_init__(self) -> None:
        super().__post_init__()
        for option, least in (("rounds", self.rounds), ("paths_per_pair", self.paths_per_pair)):
            if least < 1:
                raise OptionError(f"{option} must be at least 1, got {least}")
        if not self.plane_s > 0:
            raise OptionError(f"plane_s must be a positive number of seconds, got {self.plane_s}")
        self.walk  # noqa: B018 (its options are checked with it)

    @property
    def name(self) -> str:
        """``alternating``, with what is exact."""
        return spelled("alternating", self, "strategies", "topology")

    @property
    def walk(self) -> Metropolis:
        """The search of the strategy plane."""
        return Metropolis(self.budget, self.alpha, self.propagation)

    def kernels_for(self, instance: CodesignInstance) -> tuple[str, ...]:
        """With an exact plane of links also those of the methods that it asks."""
        if self.topology != "exact":
            return self.kernels
        return (*self.kernels, *chain.kernels("topology"), *LinkExchange.kernels, *chain.kernels_of_steps(STEPS))

    def answer(self, instance: CodesignInstance, seed: int, clock: Clock, start: Any) -> Answer[CodesignPlan]:
        """The best plan met; in the details the objective after each half-round, and which plane improved it last."""
        PROBLEM.tightest_bound(instance)  # the check needs it, and it is to count
        run = _Run(self, instance, clock, np.random.default_rng(seed))
        run.begin(start)
        for number in range(self.rounds):
            before = run.best_s
            if is_late(clock):
                break
            # The links to begin with are TopologyFinder's; the other method has not seen these strategies yet.
            unseen = number == 0 and self.topology == "exact"
            if not run.improve_strategies() and not unseen:
                break
            if is_late(clock) or not run.improve_links():
                break
            if run.best_s >= before * (1 - IMPROVEMENT_TOL):
                break
        assert run.plan is not None  # begin() has made one
        return run.plan, run.details()


class _Run:
    """The state of one run: strategies and design in hand, the best plan, and what happened."""

    def __init__(self, method: Alternating, instance: CodesignInstance, clock: Clock, rng: np.random.Generator) -> None:
        self.method, self.instance, self.clock, self.rng = method, instance, clock, rng
        self.choices: tuple[int, ...] = ()
        self.design: TopologyDesign | None = None
        self.plan: CodesignPlan | None = None
        self.best_s = self.reported_s = np.inf
        self.half_rounds: list[dict[str, Any]] = []
        self.proposed = self.accepted = 0
        self.walked_s = 0.0

    def begin(self, start: CodesignPlan | None) -> None:
        """Begin with a plan, or with data parallelism and TopologyFinder's links, where it has any."""
        if start is not None:
            self.choices, self.design = start.choices(self.instance), start.design
        else:
            self.choices = data_parallel(self.instance, self.clock)
            try:
                self.design = self._links("topology-finder")
            except NotApplicableError:
                self.design = self._links(self.method.topology)
        self._note("start", self.choices, self.design)
        if self.plan is None:
            raise NoSolutionError(f"'{self.instance.name}': the plan to begin with is not feasible")

    def improve_strategies(self) -> bool:
        """Better strategies on the links in hand; False if there are none."""
        routes = FixedRoutes.of(self.instance, self.design, self.choices, self.method.paths_per_pair, self._seed())
        if self.method.strategies == "exact":
            found, _ = best_on_routes(routes, self.choices, self.clock, self._seed(), self.method.plane_s)
        else:
            walked = self.method.walk.search(routes, self.choices, self._seed(), self.clock, self._report)
            self.proposed, self.accepted = self.proposed + walked.proposed, self.accepted + walked.accepted
            self.walked_s += walked.seconds
            found = walked.choices
        changed = found != self.choices
        if changed:
            self.choices, self.design = found, routes.design_for(found)
        if self.method.strategies == "exact" and self.instance.servers <= _FREE_ROUTES:
            changed |= self._free_routes()
        self._note("strategies", self.choices, self.design)
        return changed

    def _free_routes(self) -> bool:
        """Other strategies, rings and routes on the links in hand; whether the strategies are others."""
        plan = plan_of(self.instance, self.choices, self.design)
        found = best_on_links(self.instance, plan, self.clock, self._seed(), self.method.plane_s)
        before, self.choices, self.design = self.choices, found.choices(self.instance), found.design
        return self.choices != before

    def improve_links(self) -> bool:
        """Links for the strategies in hand; False if the method has none."""
        try:
            design = self._links(self.method.topology)
        except (NoSolutionError, NotApplicableError):
            return False
        in_hand = self.half_rounds[-1]["objective_s"]
        found = self._note("topology", self.choices, design)
        if self.method.topology == "topology-finder" or found <= in_hand:
            self.design = design
        return True

    def details(self) -> dict[str, Any]:
        """Figures of the run."""
        halves = self.half_rounds
        improved = [each["plane"] for each in halves if each["improved"]]
        figures: dict[str, Any] = {
            "rounds": sum(each["plane"] == "strategies" for each in halves),
            "half_rounds": [{key: each[key] for key in ("plane", "objective_s", "time_s")} for each in halves],
            "improved_last": improved[-1],
        }
        if self.method.strategies == "mcmc":
            figures["proposals"] = self.proposed
            figures["acceptance"] = self.accepted / max(1, self.proposed)
            # No time at all is a tick of the clock.
            figures["proposals_per_s"] = self.proposed / max(self.walked_s, 1e-9)
        return figures

    def _links(self, method: TopologyPlane) -> TopologyDesign | None:
        most_s = np.inf if method == "topology-finder" else self.method.plane_s
        return links_for(self.instance, self.choices, method, self.clock, self._seed(), most_s)

    def _note(self, plane: str, choices: Sequence[int], design: TopologyDesign | None) -> float:
        """Check a plan and keep it if it is the best; gives its iteration time."""
        plan = plan_of(self.instance, choices, design)
        checked = evaluate(self.instance, plan)
        time_s = float(checked.objective) if checked.feasible and checked.objective is not None else np.inf
        improved = time_s < self.best_s
        if improved:
            self.plan, self.best_s = plan, time_s
            self._report(time_s)
        self.half_rounds.append(
            {"plane": plane, "objective_s": time_s, "time_s": self.clock.elapsed_s, "improved": improved}
        )
        return time_s

    def _report(self, time_s: float) -> None:
        """Tell the clock of a better plan; a choice that a walk meets on fixed routes is one, too."""
        if time_s < self.reported_s * (1 - IMPROVEMENT_TOL):
            self.reported_s = time_s
            self.clock.report(time_s)

    def _seed(self) -> int:
        return int(self.rng.integers(2**31))
