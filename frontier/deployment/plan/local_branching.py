"""Ours: neighbourhoods of a plan searched by the makespan bound, every plan of which the simulator judges."""

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo

from ddlopt.models.deployment import Deployment, DeploymentInstance, DeploymentProblem
from ddlopt.models.deployment.plan.formulations.makespan_bound import MakespanBound
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import OBJECTIVE_TOL
from ddlopt.solvers.backends.contracts import Backend, Outcome
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.plan.certified_plan import CertifiedPlan
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.deployment.plan.search import PlanSearch, Walk, forward_order
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

Ints = npt.NDArray[np.int64]

_OPENING_SHARE = 0.3
"""Part of the time for the plan that the neighbourhoods are around at first."""
_BOUND_SHARE = 0.4
"""Part of the time left then for the program of all plans."""
_GAP = 0.01
"""Within which a neighbourhood's program is solved: the simulator judges anyway."""
_PATIENCE = 3
"""Plans in vain before the radius grows."""


class PartOfTime(Clock):
    """Some of the time that another clock has left; what is reported goes on to that one, if ``telling``."""

    def __init__(self, whole: Clock, seconds: float, telling: bool = True) -> None:
        self._whole = whole
        seconds = min(seconds, whole.left_s)
        limits = Limits(None if math.isinf(seconds) else max(seconds, 1e-3), gap=whole.gap)
        super().__init__(limits, (lambda point: whole.report(point.incumbent, point.bound)) if telling else None)

    @property
    def interrupted(self) -> bool:
        """Whether somebody pressed Ctrl-C: of both clocks."""
        return self._whole.interrupted

    @interrupted.setter
    def interrupted(self, value: bool) -> None:
        self._whole.interrupted = self._whole.interrupted or value


class Neighbourhood:
    r"""The makespan bound with rows that keep it near a plan, below a time, and away from what has been rated.

    Only the groups ``free`` may change, at most ``radius`` of them: with x the decisions and a(g) those of the plan,

    .. math::
        x_{g,a(g)} = 1 \ (g \notin F), \qquad \sum_{g \in F} (1 - x_{g,a(g)}) \le k, \qquad
        \sum_g x_{g,s(g)} \le G - 1 \ \text{ for every s rated.}

    Parameters
    ----------
    instance : DeploymentInstance
    formulation : MakespanBound
    """

    def __init__(self, instance: DeploymentInstance, formulation: MakespanBound) -> None:
        self.instance, self.formulation = instance, formulation
        self.model = build_model("deployment", formulation, instance)
        self.block = self.model.component("deployment")
        self.model.was_rated = pyo.ConstraintList(doc="no-good cuts")
        self._rated: set[tuple[int, ...]] = set()

    def decisions(self, plan: Deployment) -> tuple[int, ...]:
        """Places of the decisions of all groups among those of the formulation."""
        self.formulation.start(self.block, self.instance, plan)
        chosen = {g: a for (g, a), variable in self.block.decided.items() if variable.value > 0.5}
        return tuple(chosen[g] for g in range(self.instance.groups))

    def cut_off(self, plan: Deployment) -> None:
        """Never find the decisions of a plan again."""
        chosen = self.decisions(plan)
        if chosen not in self._rated:
            self._rated.add(chosen)
            self.model.was_rated.add(sum(self.block.decided[g, a] for g, a in enumerate(chosen)) <= len(chosen) - 1)

    def solve(
        self, plan: Deployment, free: Iterable[int], radius: int, below_s: float, backend: Backend, limits: Limits
    ) -> Outcome:
        """The least bound near a plan; infeasible where no plan there can take less than ``below_s``."""
        chosen, free = self.decisions(plan), frozenset(free)
        for (g, a), variable in self.block.decided.items():
            variable.unfix() if g in free else variable.fix(int(chosen[g] == a))
        # A row, as the presolve of HiGHS 1.15.1 was seen to crash on a variable whose bounds differ by 1e-9.
        most = (1 - OBJECTIVE_TOL) * below_s / self.formulation.objective_value(self.instance, 1.0)
        self.model.cap = pyo.Constraint(expr=self.block.time <= most, doc="less time than the best plan")
        stayed = sum(self.block.decided[g, chosen[g]] for g in sorted(free))
        self.model.ball = pyo.Constraint(expr=stayed >= len(free) - radius, doc="few decisions change")
        try:
            return backend.solve(self.model, limits)
        finally:
            self.model.del_component("ball")
            self.model.del_component("cap")

    def read(self) -> Deployment:
        """The plan found."""
        return self.formulation.read(self.block, self.instance)


class Judge:
    """The simulator's time of plans, and local descents from them."""

    def __init__(self, instance: DeploymentInstance, rng: np.random.Generator) -> None:
        self.instance, self.rng = instance, rng
        self.simulator, self.rater = Simulator(instance), PlanRater(instance)

    def time_s(self, plan: Deployment) -> float:
        """Infinite where memory does not suffice."""
        choice = self.simulator.choice(plan)
        run = self.simulator.run(choice.action, choice.duplicated, choice.device)
        return run.time_s if run.excess_bytes <= 0 else math.inf

    def descended(self, plan: Deployment, clock: Clock) -> Deployment:
        """Where single groups and runs of groups lead from a plan's actions; what is duplicated stays so."""
        choice = self.simulator.choice(plan)
        self.rater.forget()
        self.rater.duplicated = choice.duplicated
        walk = Walk(self.rater, PartOfTime(clock, math.inf, telling=False), self.rng)
        row, _ = walk.descend(choice.action, self.rater.rate(choice.action))
        return self.simulator.deployment(row, choice.duplicated)


@dataclass(frozen=True)
class LocalBranching(CertifiedMethod, uses=("threads", "seed", "start")):
    """A plan by local search and the makespan bound, then neighbourhoods of it, one integer program after the other.

    1. ``plan-search``, unless a start is given, and then
       :class:`~ddlopt.models.deployment.plan.formulations.makespan_bound.MakespanBound` for all plans from there: the
       better plan, and a bound for all plans.
    2. A run of 2k groups at random, of which at most k may change (:class:`Neighbourhood`), under the bound that the
       time of the best plan sets. What the program finds is rated as it is and after a local descent, and cut off. A
       better plan takes the place of the best. The radius k grows where a neighbourhood has nothing left, or after
       three plans in vain, and shrinks where the program is not solved in time.

    The answer is never worse than the start. Where a neighbourhood of everything has nothing left, the search ends.

    Parameters
    ----------
    rounds : int
        Programs of neighbourhoods; fewer where the time is up.
    radius : int
        k at first.
    program_s : float
        Most seconds for each of these programs; ten times that for the one of all plans where there is no time limit.
    formulation : MakespanBound
    backend : Backend

    References
    ----------
    M. Fischetti, A. Lodi, "Local branching", Mathematical Programming 98, 2003, for neighbourhoods as rows.
    """

    rounds: int = 40
    radius: int = 2
    program_s: float = 20.0
    formulation: MakespanBound = field(default_factory=MakespanBound)
    backend: Backend = field(default_factory=lambda: Highs({"mip_lp_solver": "ipm"}))

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.plan.simulator.run",)

    def __post_init__(self) -> None:
        if self.rounds < 0 or self.radius < 1 or not self.program_s > 0:
            raise ValueError(
                f"rounds is {self.rounds}, radius {self.radius}, program_s {self.program_s}; they must be at least 0, "
                f"at least 1 and positive"
            )

    @property
    def name(self) -> str:
        """As in the catalogue."""
        return "local-branching"

    def refuses(self, instance: DeploymentProblem) -> str | None:
        """As the formulation."""
        return self.formulation.refuses(instance)

    def find(self, instance: DeploymentInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best plan, and the bound for all plans."""
        plan = start if start is not None else self._opening(instance, seed, clock)
        share = PartOfTime(clock, 10 * self.program_s if limits.time_s is None else _BOUND_SHARE * clock.left_s)
        within = dataclasses.replace(limits, time_s=max(share.left_s, 1e-3))
        certified = CertifiedPlan(self.formulation, self.backend).find(instance, within, seed, share, plan)
        judge = Judge(instance, np.random.default_rng(seed))
        begun = certified.solution
        assert isinstance(begun, Deployment)
        begun_s = judge.time_s(begun)
        details = {**certified.details, "before_s": begun_s}
        if clock.expired or (certified.bound is not None and begun_s - certified.bound <= limits.gap * begun_s):
            return dataclasses.replace(certified, details=details)
        best, figures = self._branch(instance, judge, begun, clock, limits)
        return dataclasses.replace(certified, solution=best, details=details | figures)

    def _opening(self, instance: DeploymentInstance, seed: int, clock: Clock) -> Deployment | None:
        try:
            return PlanSearch().answer(instance, seed, PartOfTime(clock, _OPENING_SHARE * clock.left_s), None)[0]
        except NoSolutionError:
            return None

    def _branch(
        self, instance: DeploymentInstance, judge: Judge, best: Deployment, clock: Clock, limits: Limits
    ) -> tuple[Deployment, dict[str, float]]:
        """Neighbourhood after neighbourhood."""
        near, order = Neighbourhood(instance, self.formulation), forward_order(instance)
        near.cut_off(best)
        time_s, radius, rounds, better, vain = judge.time_s(best), min(self.radius, instance.groups), 0, 0, 0
        while rounds < self.rounds and not clock.expired:
            rounds += 1
            width = min(2 * radius, instance.groups)
            first = int(judge.rng.integers(instance.groups - width + 1))
            free = order[first : first + width].tolist()
            program = Limits(max(min(self.program_s, clock.left_s), 1e-3), _GAP, limits.threads)
            with clock.lending_ctrl_c():
                outcome = near.solve(best, free, radius, time_s, self.backend, program)
            clock.interrupted = clock.interrupted or outcome.interrupted
            if outcome.status is Status.INFEASIBLE:
                if radius == instance.groups:
                    break
                radius, vain = min(radius + 1, instance.groups), 0
                continue
            found = None if outcome.objective is None else self._judged(near, judge, clock)
            if found is not None and found[0] < time_s:
                (time_s, best), better, vain = found, better + 1, 0
                clock.report(time_s)
                continue
            vain += 1
            if outcome.status is not Status.OPTIMAL:
                radius, vain = max(1, radius - 1), 0
            elif vain == _PATIENCE:
                radius, vain = min(radius + 1, instance.groups), 0
        return best, {"programs": rounds, "better": better, "radius": radius}

    def _judged(self, near: Neighbourhood, judge: Judge, clock: Clock) -> tuple[float, Deployment]:
        """The better of the plan that the program found and of where it leads."""
        plan = near.read()
        after = judge.descended(plan, clock)
        for each in (plan, after):
            near.cut_off(each)
        return min(((judge.time_s(each), each) for each in (plan, after)), key=lambda rated: rated[0])
