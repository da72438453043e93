"""One plane at a time, within what a clock has left: links for strategies, strategies for links."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ddlopt.models.codesign.evaluate import evaluate
from ddlopt.models.codesign.formulations.joint_milp import JointStrategyTopology
from ddlopt.models.codesign.formulations.strategies_on_routes import StrategiesOnRoutes
from ddlopt.models.codesign.formulations.strategy_bound import StrategyBound
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.job import job_of
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.models.topology import TopologyDesign
from ddlopt.solvers.backends.contracts import Backend, Outcome
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.building import built
from ddlopt.solvers.codesign.fixed_routes import FixedRoutes
from ddlopt.solvers.codesign.planes import answer_topology
from ddlopt.solvers.contracts import Limits, ProgressCallback, Status, TracePoint
from ddlopt.solvers.exact import Exact, build_model
from ddlopt.solvers.heuristic import Clock

StrategyPlane = Literal["mcmc", "exact"]
TopologyPlane = Literal["topology-finder", "exact"]

_OF_REST = 0.85
"""Part of the time left that a half-round may use, for its plan has to be laid out and checked."""

_MOST_NODES = 2**31 - 1
"""That HiGHS counts."""


def within_nodes(backend: Backend, nodes: int | None) -> Backend:
    """The back end with a limit of nodes, if it is HiGHS and has none of its own."""
    if nodes is None or not isinstance(backend, Highs):
        return backend
    return replace(backend, options={"mip_max_nodes": min(nodes, _MOST_NODES), **backend.options})


def limits_of(clock: Clock, most_s: float = math.inf) -> Limits:
    """What the clock has left, at most a number of seconds."""
    return Limits(clock.part(_OF_REST, most_s), gap=clock.gap)


def is_late(clock: Clock) -> bool:
    """Whether what is left is needed for laying out and checking the plan in hand."""
    return clock.left_s <= (1 - _OF_REST) * clock.elapsed_s


def links_for(
    instance: CodesignInstance,
    choices: Sequence[int],
    method: str,
    clock: Clock,
    seed: int,
    most_s: float = math.inf,
) -> TopologyDesign | None:
    """Links, rings and routes for the job that a choice of strategies makes, by a method of the family ``topology``.

    Raises
    ------
    NoSolutionError
        If it finds none, also where there is none: other strategies may have one.
    NotApplicableError
        If the method does not cover the job.
    """
    try:
        with clock.lending_ctrl_c():
            design, _, _ = answer_topology(job_of(instance, choices), method, limits_of(clock, most_s), seed)
    except InfeasibleError as proof:
        raise NoSolutionError(str(proof)) from None
    return design


@dataclass(frozen=True)
class Proposed:
    """What a program on strategies says.

    Parameters
    ----------
    choices : tuple of int or None
        None where the limits leave none.
    bound_s : float or None
        On the program's objective.
    outcome : Outcome
        Of the solver, in the program's own units.
    trace : tuple of TracePoint
        The same in seconds of an iteration, from when the building of the program began.
    """

    choices: tuple[int, ...] | None
    bound_s: float | None
    outcome: Outcome
    trace: tuple[TracePoint, ...] = ()

    @property
    def status(self) -> Status:
        """What the solver says."""
        return self.outcome.status


def best_strategies(
    instance: CodesignInstance,
    formulation: StrategyBound | StrategiesOnRoutes,
    clock: Clock,
    seed: int,
    start: Sequence[int] | None = None,
    nodes: int | None = None,
    most_s: float = math.inf,
    watch: ProgressCallback | None = None,
    backend: Backend | None = None,
) -> Proposed:
    """The strategies that a program likes best, by HiGHS where no other ``backend`` is given.

    Parameters
    ----------
    instance : CodesignInstance
    formulation : StrategyBound or StrategiesOnRoutes
    clock : Clock
        Of whoever asks: building the program and solving it take most of what it has left, at most ``most_s`` seconds.
    seed : int
    start : sequence of int, optional
        Index of each layer's strategy: the first incumbent.
    nodes : int, optional
        After which HiGHS stops.
    most_s : float
    watch : callable, optional
        Told of better strategies and bounds, in seconds of an iteration.
    backend : Backend, optional

    Raises
    ------
    SolverError
        If the instance's figures are too far apart for the program.
    """
    began_s, built_s = clock.elapsed_s, min(_OF_REST * clock.left_s, most_s)
    model = built(built_s, lambda: build_model(instance.family, formulation, instance))
    if model is None:
        late = "time limit passed while the model was built"
        return Proposed(None, None, Outcome(Status.NO_SOLUTION, message=late))
    block = model.component(instance.family)
    if start is not None:
        formulation.start(block, instance, tuple(start))
    limits, building_s = limits_of(clock, most_s), clock.elapsed_s - began_s

    def seconds(value: float | None) -> float | None:
        mapped = None if value is None else formulation.objective_value(instance, value)
        return mapped if mapped is not None and math.isfinite(mapped) else None

    def shown(point: TracePoint) -> TracePoint:
        return TracePoint(building_s + point.time_s, seconds(point.incumbent), seconds(point.bound))

    watcher = None if watch is None else lambda point: watch(shown(point))
    with clock.lending_ctrl_c():
        outcome = within_nodes(backend or Highs(), nodes).solve(model, limits, seed, watcher, warm=start is not None)
    clock.interrupted |= outcome.interrupted
    choices = None if outcome.objective is None else formulation.read(block, instance)
    return Proposed(choices, seconds(outcome.bound), outcome, tuple(map(shown, outcome.trace)))


def nothing_fits(instance: CodesignInstance) -> InfeasibleError:
    """What to raise where a bound's program has no solution."""
    return InfeasibleError(
        f"codesign instance '{instance.name}': no choice of strategies fits into the memory of every "
        f"server and can be sent over links of degree {instance.degree}"
    )


def best_on_routes(
    routes: FixedRoutes,
    choices: Sequence[int],
    clock: Clock,
    seed: int,
    most_s: float = math.inf,
    nodes: int | None = None,
) -> tuple[tuple[int, ...], float]:
    """The strategies of least iteration time on fixed routes, and a bound on that time in seconds.

    HiGHS stops after ``nodes`` nodes, if there is a limit. The choice given is the first incumbent, and the answer
    where the limits leave no other.
    """
    formulation = StrategiesOnRoutes(routes.arc_loads)
    found = best_strategies(routes.instance, formulation, clock, seed, choices, nodes, most_s)
    better = tuple(choices) if found.choices is None else found.choices
    return (better if routes.time_s(better) < routes.time_s(choices) else tuple(choices)), found.bound_s or 0.0


def best_on_links(
    instance: CodesignInstance, plan: CodesignPlan, clock: Clock, seed: int, most_s: float = math.inf
) -> CodesignPlan:
    """A plan of less iteration time on the links of a plan, rings and routes included, by an integer program.

    The plan given is the first incumbent, and the answer where the limits leave no other.
    """
    method = Exact("joint-milp", instance.family, JointStrategyTopology(links=plan.design.links))
    with clock.lending_ctrl_c():
        result = method.solve(instance, limits_of(clock, most_s), seed, start=plan)
    before = evaluate(instance, plan).objective
    if before is None or result.objective is None or result.objective >= before:
        return plan
    assert isinstance(result.solution, CodesignPlan)
    return result.solution
