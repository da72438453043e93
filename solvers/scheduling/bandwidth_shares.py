"""Bandwidths of given rings, as good as they can be."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ddlopt.models.errors import SolutionError
from ddlopt.models.scheduling import Schedule, SchedulingInstance, evaluate
from ddlopt.models.scheduling.formulations.bandwidth_shares import BandwidthShares
from ddlopt.models.scheduling.rings.rings_on_links import RingsOnLinks
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, Method, Status
from ddlopt.solvers.heuristic import CertifiedMethod, Clock
from ddlopt.solvers.scheduling.fair_shares import FairSharing
from ddlopt.solvers.scheduling.gadget import Gadget

SCOPE = "bandwidths of given rings"


@dataclass(frozen=True)
class BandwidthSharing(CertifiedMethod, uses=("seed", "start")):
    """:class:`~ddlopt.models.scheduling.formulations.bandwidth_shares.BandwidthShares` on a schedule's rings.

    The schedule is the start, or that of :class:`~ddlopt.solvers.scheduling.fair_shares.FairSharing` with every ring's
    own bandwidth reserved (GADGET-style greedy where it does not cover the instance). Workers, rings and times stay;
    the bound within the scope is one on all bandwidths for them.

    Details: ``rings`` over several servers; ``link_prices``, rows of (from, to, first slot, slot after the last, what
    one more byte/s there is worth), the dearest first, links with room to spare left out.

    Parameters
    ----------
    solver : {"clarabel", "scs"}
    """

    solver: str = "clarabel"

    name: ClassVar[str] = "bandwidth-shares"

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """See the formulation."""
        return BandwidthShares().refuses(instance)

    def find(
        self, instance: SchedulingInstance, limits: Limits, seed: int, clock: Clock, start: Schedule | None
    ) -> MethodOutput:
        """See the class.

        Raises
        ------
        SolutionError
            If the start breaks constraints other than bandwidths.
        """
        given = self._first(instance, limits, seed, clock) if start is None else start
        best = _feasible(instance, given)
        clock.report(_value(instance, best))
        found = self._shares(instance, best, limits, clock)
        if found.schedule is not None and _value(instance, found.schedule) > _value(instance, best):
            best = found.schedule
            clock.report(_value(instance, best))
        return MethodOutput(
            best,
            details=found.details,
            scope=SCOPE,
            scope_bound=found.bound,
            versions={"solver": found.solver} if found.solver else {},
            message=found.message,
        )

    def _first(self, instance: SchedulingInstance, limits: Limits, seed: int, clock: Clock) -> Schedule:
        """A schedule with the rings' own bandwidths, in half of the time."""
        reserved = instance.model_copy(update={"bandwidth": "reserved"})
        method: Method = FairSharing(self.solver)
        if method.refuses(reserved) is not None:
            method = Gadget()
        half = limits if limits.time_s is None else replace(limits, time_s=max(clock.left_s / 2, 1e-3))
        schedule = method.solve(reserved, half, seed).solution
        assert isinstance(schedule, Schedule)
        return schedule.model_copy(update={"instance": instance.name, "instance_digest": instance.digest})

    def _shares(self, instance: SchedulingInstance, given: Schedule, limits: Limits, clock: Clock) -> "_Found":
        """The convex program's answer, or as much of it as there is."""
        model = BandwidthShares()
        rings = len(RingsOnLinks(instance, given).runs)
        if not rings:
            return _Found(given, _value(instance, given), {"rings": 0})
        if clock.expired:
            return _Found(None, None, {"rings": rings}, message="no time was left for the bandwidths")
        problem = model.problem(instance, given)
        left = limits if limits.time_s is None else replace(limits, time_s=max(clock.left_s, 1e-3))
        outcome = Convex(self.solver).solve(problem, left)
        bound = model.bound(problem, instance, given)
        if outcome.status not in (Status.OPTIMAL, Status.FEASIBLE):
            return _Found(None, bound, {"rings": rings}, outcome.solver, outcome.message)
        dear = sorted((p for p in model.prices(problem, instance, given) if p.price > 0), key=lambda p: -p.price)
        # An interior point method leaves such prices where there are none.
        full = [[*p.arc, p.start, p.end, p.price] for p in dear if p.price > 1e-6 * dear[0].price]
        details = {"rings": rings, "link_prices": full, **outcome.figures}
        return _Found(model.read(problem, instance, given), bound, details, outcome.solver, outcome.message)


@dataclass(frozen=True)
class _Found:
    """What the convex program gave."""

    schedule: Schedule | None
    bound: float | None
    details: dict[str, Any]
    solver: str = ""
    message: str = ""


def _feasible(instance: SchedulingInstance, given: Schedule) -> Schedule:
    """The schedule itself if its bandwidths will do, else with what its rings can have all cut by the same rule."""
    given.belongs_to(instance)
    if evaluate(instance, given).feasible:
        return given
    rings = RingsOnLinks(instance, given)
    cut = rings.schedule(rings.fitted([1.0] * len(rings.runs)))
    violations = evaluate(instance, cut).violations
    if violations:
        raise SolutionError(f"the schedule to start from fails the check: {violations[0]}")
    return cut


def _value(instance: SchedulingInstance, schedule: Schedule) -> float:
    objective = evaluate(instance, schedule).objective
    assert objective is not None
    return float(objective)
