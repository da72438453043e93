"""Our own search: strategies that a bound on every topology likes, links for them, strategies for these links."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.formulations.rows.congestion_cuts import most_bytes
from ddlopt.models.codesign.formulations.rows.coupling import plan_of
from ddlopt.models.codesign.formulations.strategy_bound import StrategyBound
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.job import job_of
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InfeasibleError, NoSolutionError, NotApplicableError, OptionError, SolverError
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.models.topology import TopologyDesign
from ddlopt.solvers import chain
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.codesign.fixed_routes import FixedRoutes
from ddlopt.solvers.codesign.half_rounds import best_on_routes, best_strategies, limits_of, nothing_fits
from ddlopt.solvers.codesign.planes import answer_topology
from ddlopt.solvers.codesign.quick_links import quick_links
from ddlopt.solvers.codesign.topoopt.alternating import Alternating
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import CertifiedMethod, Clock
from ddlopt.solvers.topology.link_exchange.link_exchange import STEPS, LinkExchange

Choices = tuple[int, ...]


@dataclass(frozen=True)
class Effort:
    """How far each step of :class:`BoundGuided` goes; counts, so that a seed gives one answer if no limit strikes.

    Parameters
    ----------
    opening, bounding, proposing : float
        Parts of the time that is left for TopoOpt's heuristic, for the bound and for each later program. The bound
        names the first strategies of our own, so that it has most: NCF on 128 servers takes three seconds.
    bound_nodes : int
        Nodes of the program that gives the bound. Most are solved with fewer.
    nodes : int
        Nodes of every later program on strategies: its answer is a proposal that is judged anyway.
    finer : float
        Later programs are solved to the gap that is left over this: closer optima would not tell choices apart.
    links : tuple of float
        Efforts of link exchange for one choice of strategies, in turn; 0 stands for known links that are only balanced,
        which tells good choices from bad ones in a fraction of the time.
    near : float
        Choices within this factor of the best plan are worth the next effort.
    far : float
        So are those within this one once nothing else is left to be tried: first links can be bad for a good choice.
    choices : int
        That are tried. Each adds a cut, and with some dozens the program takes longer than the search for links.
    routed_servers : int
        Servers beyond which a path for every pair that some strategy may use takes too long.
    accurate : int
        Part of the gap asked for, inverted, that the bound's program may leave: the rest is for links.
    compositions : int
        Links that are made for a choice at first: random ones, or of packages the most promising.
    """

    opening: float = 0.2
    bounding: float = 0.5
    proposing: float = 0.25
    bound_nodes: int = 20_000
    nodes: int = 200
    finer: float = 20.0
    links: tuple[float, ...] = (0.0, 0.02, 0.1, 0.4, 1.0)
    near: float = 1.02
    far: float = 1.5
    choices: int = 40
    routed_servers: int = 512
    accurate: int = 8
    compositions: int = 6


@dataclass
class _Served:
    """The best links known for a choice of strategies, and how much effort has gone into them."""

    choices: Choices
    time_s: float = math.inf
    design: TopologyDesign | None = None
    level: int = 0


@dataclass(frozen=True)
class BoundGuided(CertifiedMethod, uses=("seed", "start")):
    """Search over strategies under a bound on every topology, with link exchange for the best of them.

    1. *Opening*: the plan of TopoOpt's heuristic (:class:`.Alternating`), or the one given.
    2. *Bound*: :class:`~ddlopt.models.codesign.formulations.strategy_bound.StrategyBound`, whose optimum no plan beats,
       and whose strategies are the next to be tried.
    3. *Links* for a choice of strategies, by :class:`.LinkExchange` from those of the best plan.
    4. *Descent*: strategies for these routes by
       :class:`~ddlopt.models.codesign.formulations.strategies_on_routes.StrategiesOnRoutes`, links for those, and so on
       while plans get better.
    5. *Proposals*: the bound's program once more, with a cut for every choice tried. The cut takes for granted that no
       links make the choice better than the best plan, so that the program names another one. What it then says is no
       bound.
    6. *Effort*: where no choice is left, those near the best plan have more of link exchange, the best first; then
       those farther away.

    Steps 3 to 6 are repeated until the bound is met, all effort is spent, or the time is up.

    Parameters
    ----------
    effort : float
        Factor on the efforts of link exchange.

    References
    ----------
    J. Hooker and G. Ottosson, "Logic-based Benders decomposition", Math. Program. 96, 2003, for programs that ask each
    other; here the cuts are guesses.
    """

    proves_infeasible: ClassVar[bool] = True

    effort: float = 1.0

    kernels: ClassVar[tuple[str, ...]] = (*Alternating.kernels, *LinkExchange.kernels)

    def __post_init__(self) -> None:
        if not self.effort > 0:
            raise OptionError(f"effort must be positive, got {self.effort}")

    @property
    def name(self) -> str:
        """``bound-guided``."""
        return "bound-guided"

    def kernels_for(self, instance: CodesignInstance) -> tuple[str, ...]:
        """Also those of packages that take part in link exchange."""
        return (*self.kernels, *chain.kernels_of_steps(STEPS))

    def find(self, instance: CodesignInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best plan, and the bound; in the details choices tried, links laid and programs asked.

        Raises
        ------
        NoSolutionError
            If no choice was found for which there are links.
        InfeasibleError
            If no choice of strategies fits and can be sent.
        """
        search = _Search(instance, clock, seed, Effort(links=tuple(self.effort * each for each in Effort().links)))
        search.run(start)
        best = search.best
        if best is None:
            raise NoSolutionError(f"'{instance.name}': no links were found for {len(search.known)} choices")
        details = {"choices": len(search.known), "links_laid": search.laid, "proposals": search.asked}
        return MethodOutput(plan_of(instance, best.choices, best.design), details, search.bound_s)


@dataclass
class _Search:
    """The state of one run."""

    instance: CodesignInstance
    clock: Clock
    seed: int
    effort: Effort = Effort()
    known: dict[Choices, _Served] = field(default_factory=dict)
    best: _Served | None = None
    bound_s: float | None = None
    laid: int = 0
    asked: int = 0

    def run(self, start: CodesignPlan | None) -> None:
        """All steps, until the bound is met, all effort is spent, or the time is up."""
        self._open(start)
        proposed = self._bound()
        while not self.done:
            if proposed is not None:
                self._try(proposed)
            deepened = not self.done and self._deepen(self.effort.near)
            proposed = None if self.done or len(self.known) >= self.effort.choices else self._propose()
            if proposed is None and not deepened and (self.done or not self._deepen(self.effort.far)):
                return

    @property
    def done(self) -> bool:
        """Whether the bound is met, or the time is up."""
        met = self.best is not None and self.bound_s is not None and self.bound_s >= self.best_s * (1 - self.clock.gap)
        return met or self.clock.expired

    @property
    def best_s(self) -> float:
        """Iteration time of the best plan; infinite without one."""
        return math.inf if self.best is None else self.best.time_s

    def _open(self, start: CodesignPlan | None) -> None:
        """TopoOpt's plan, which is there soon; a plan given is kept where it is better."""
        clock = self._part(self.effort.opening)
        for begin in dict.fromkeys((start, None), None):
            try:
                plan, _ = Alternating().answer(self.instance, self.seed, clock, begin)
            except (NoSolutionError, NotApplicableError):
                continue
            self._note_plan(plan)
        self.clock.interrupted |= clock.interrupted

    def _note_plan(self, plan: CodesignPlan) -> None:
        choices = plan.choices(self.instance)
        routes = FixedRoutes.of(self.instance, plan.design, choices, seed=self.seed)
        self._note(self._served(choices), routes.time_s(choices), routes.design_for(choices))

    def _bound(self) -> Choices | None:
        """The choice that the bound likes best, or one that comes close; notes the bound."""
        clock = self._part(self.effort.bounding, self.clock.gap / self.effort.accurate)
        first = None if self.best is None else self.best.choices
        try:
            found = best_strategies(self.instance, StrategyBound(), clock, self.seed, first, self.effort.bound_nodes)
        except SolverError:  # bytes too far apart for a program
            return None
        if found.status is Status.INFEASIBLE:
            raise nothing_fits(self.instance)
        self.bound_s = found.bound_s
        self._report()
        return found.choices if found.choices not in self.known else self._propose()

    def _propose(self) -> Choices | None:
        """A choice that has not been tried and may beat the best plan; None if the program knows none."""
        cuts = tuple((each.choices, load) for each in self.known.values() if (load := self._uninteresting(each)) > 0)
        self.asked += 1
        first = None if self.best is None else self.best.choices
        clock = self._part(self.effort.proposing)
        try:
            found = best_strategies(self.instance, StrategyBound(cuts=cuts), clock, self.seed, first, self.effort.nodes)
        except SolverError:
            return None
        hopeless = found.bound_s is not None and found.bound_s >= self.best_s * (1 - self.clock.gap / 2)
        return None if hopeless or found.choices in self.known else found.choices

    def _uninteresting(self, served: _Served) -> float:
        """Bytes on the busiest link with which a choice is just as good as the best plan, as is taken for granted."""
        instance, tables = self.instance, tables_of(self.instance)
        if self.best is None:
            return float(demand_of(tables).sent.sum(axis=0) @ most_bytes(tables))
        hidden = tables.compute_of(served.choices) if instance.overlap == "none" else 0.0
        return (self.best_s - hidden) * instance.link_bandwidth_bytes_per_s

    def _try(self, choices: Choices) -> None:
        """Links for a choice, then strategies and links in turn while plans get better."""
        served = self._served(choices)
        self._serve(served)
        while not self.done and math.isfinite(served.time_s) and served.time_s <= self.best_s * self.effort.near:
            other = self._descended(served)
            if other is None:
                return
            served = other
            self._serve(served)

    def _descended(self, served: _Served) -> _Served | None:
        """Better strategies for the routes of a plan; None if there are none."""
        if self.instance.servers > self.effort.routed_servers:
            return None
        routes = FixedRoutes.of(self.instance, served.design, served.choices, seed=self.seed)
        clock = self._part(self.effort.proposing)
        try:
            choices, _ = best_on_routes(routes, served.choices, clock, self.seed, nodes=self.effort.nodes)
        except SolverError:  # bytes too far apart for a program: nothing is lost without it
            return None
        if choices == served.choices:
            return None
        other = self._served(choices)
        self._note(other, routes.time_s(choices), routes.design_for(choices))
        return other

    def _deepen(self, within: float) -> bool:
        """More effort on links for the best choice within a factor of the best plan; False if all of it is spent."""
        near = [each for each in self.known.values() if each.time_s <= self.best_s * within]
        open_ones = [each for each in near if each.level < len(self.effort.links)]
        if not open_ones:
            return False
        picked = min(open_ones, key=lambda each: (each.level, each.time_s))
        before = self.best_s
        self._serve(picked)
        if self.best is picked and self.best_s < before:
            other = self._descended(picked)
            if other is not None:
                self._try(other.choices)
        return True

    def _serve(self, served: _Served) -> None:
        """Links for a choice by the next effort of link exchange, from its own links or those of the best plan."""
        if served.level >= len(self.effort.links):
            return
        job, effort = job_of(self.instance, served.choices), self.effort.links[served.level]
        begin = served.design or (None if self.best is None else self.best.design)
        if begin is not None and served.design is None:
            begin = begin.model_copy(update={"rings": (), "routes": (), "instance_digest": None})
        served.level += 1
        self.laid += 1
        design: TopologyDesign | None
        try:
            if effort == 0 and job is not None:
                design, busiest = quick_links(job, self.seed, begin, self.clock, self.effort.compositions)
            else:
                method, limits = LinkExchange(effort or 1.0), limits_of(self.clock)
                design, busiest, _ = answer_topology(job, method, limits, self.seed, begin, self.clock)
        except (InfeasibleError, NoSolutionError, NotApplicableError):
            return
        compute_s = tables_of(self.instance).compute_of(served.choices)
        self._note(served, self.instance.iteration_time_s(compute_s, busiest), design)

    def _served(self, choices: Choices) -> _Served:
        return self.known.setdefault(choices, _Served(choices))

    def _note(self, served: _Served, time_s: float, design: TopologyDesign | None) -> None:
        """Keep links of a choice if they are its best, and the choice if it is the best of all."""
        if time_s < served.time_s * (1 - IMPROVEMENT_TOL):
            served.time_s, served.design = time_s, design
        if served.time_s < self.best_s or self.best is served:
            self.best = served
        self._report()

    def _report(self) -> None:
        best = self.best
        plan: Callable[[], CodesignPlan] | None = None
        if best is not None:
            choices, design = best.choices, best.design
            plan = lambda: plan_of(self.instance, choices, design)  # noqa: E731
        self.clock.report(None if best is None else best.time_s, self.bound_s, plan)

    def _part(self, share: float, gap: float | None = None) -> Clock:
        """A clock with a part of the time that is left, or without a limit if there is none."""
        return Clock(Limits(self.clock.part(share), self._fine_gap if gap is None else gap), None)

    @property
    def _fine_gap(self) -> float:
        """Relative gap of programs that only propose."""
        if self.best is None or self.bound_s is None or not self.best_s:
            return self.clock.gap
        return max(self.clock.gap, (1 - self.bound_s / self.best_s) / self.effort.finer)
