"""Bandwidths for the rings of a schedule: feasible ones, and the best."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ddlopt.frontier.scheduling.formulations.bandwidth_shares import BandwidthShares
from ddlopt.frontier.scheduling.formulations.rings_on_links import RingsOnLinks
from ddlopt.models.errors import SolutionError
from ddlopt.models.scheduling import Schedule, SchedulingInstance, evaluate
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock


@dataclass(frozen=True)
class Found:
    """What the convex program gave."""

    schedule: Schedule | None
    bound: float | None
    details: dict[str, Any]
    solver: str = ""
    message: str = ""


def best_bandwidths(
    instance: SchedulingInstance, given: Schedule, limits: Limits, clock: Clock, solver: str = "clarabel"
) -> Found:
    """The same workers, rings and times with the best bandwidths, or as much of them as there is.

    Parameters
    ----------
    given : Schedule
        Feasible, see :func:`feasible`.
    solver : {"clarabel", "scs"}
    """
    model = BandwidthShares()
    rings = len(RingsOnLinks(instance, given).runs)
    if not rings:
        return Found(given, value_of(instance, given), {"rings": 0})
    if clock.expired:
        return Found(None, None, {"rings": rings}, message="no time was left for the bandwidths")
    problem = model.problem(instance, given)
    left = limits if limits.time_s is None else replace(limits, time_s=max(clock.left_s, 1e-3))
    outcome = Convex(solver).solve(problem, left)
    bound = model.bound(problem, instance, given)
    if outcome.status not in (Status.OPTIMAL, Status.FEASIBLE):
        return Found(None, bound, {"rings": rings}, outcome.solver, outcome.message)
    dear = sorted((p for p in model.prices(problem, instance, given) if p.price > 0), key=lambda p: -p.price)
    # An interior point method leaves such prices where there are none.
    full = [[*p.arc, p.start, p.end, p.price] for p in dear if p.price > 1e-6 * dear[0].price]
    details = {"rings": rings, "link_prices": full, **outcome.figures}
    return Found(model.read(problem, instance, given), bound, details, outcome.solver, outcome.message)


def feasible(instance: SchedulingInstance, given: Schedule) -> Schedule:
    """The schedule itself if its bandwidths will do, else with what its rings can have all cut by the same rule.

    Raises
    ------
    SolutionError
        If other constraints are broken.
    """
    given.belongs_to(instance)
    if evaluate(instance, given).feasible:
        return given
    rings = RingsOnLinks(instance, given)
    cut = rings.schedule(rings.fitted([1.0] * len(rings.runs)))
    violations = evaluate(instance, cut).violations
    if violations:
        raise SolutionError(f"the schedule to start from fails the check: {violations[0]}")
    return cut


def best_with_bandwidths(
    instance: SchedulingInstance,
    candidates: Sequence[Schedule],
    limits: Limits,
    clock: Clock,
    bound: float,
    solver: str = "clarabel",
) -> Schedule:
    """The best of feasible schedules, as they are or with the best bandwidths; the first, if none is better."""
    best, value = candidates[0], value_of(instance, candidates[0])
    for given in candidates:
        for improved in (given, best_bandwidths(instance, given, limits, clock, solver).schedule):
            # The convex program leaves its last digits.
            if improved is not None and evaluate(instance, improved).feasible:
                objective = value_of(instance, improved)
                if objective > value:
                    best, value = improved, objective
                    clock.report(value, bound)
    return best


def with_bandwidths_of(instance: SchedulingInstance, schedule: Schedule) -> Schedule:
    """A schedule for the same jobs and servers under another rule of bandwidths, as one of ``instance``."""
    return schedule.model_copy(update={"instance": instance.name, "instance_digest": instance.digest})


def value_of(instance: SchedulingInstance, schedule: Schedule) -> float:
    """The objective."""
    objective = evaluate(instance, schedule).objective
    assert objective is not None
    return float(objective)
