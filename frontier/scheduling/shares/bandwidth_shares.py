"""Bandwidths of given rings, as good as they can be."""

from dataclasses import dataclass, replace
from typing import ClassVar

from ddlopt.frontier.scheduling.formulations.bandwidth_shares import BandwidthShares
from ddlopt.frontier.scheduling.shares.bandwidths import best_bandwidths, feasible, value_of, with_bandwidths_of
from ddlopt.frontier.scheduling.shares.fair_shares import FairSharing
from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, Method
from ddlopt.solvers.heuristic import CertifiedMethod, Clock
from ddlopt.solvers.scheduling.gadget import Gadget

SCOPE = "bandwidths of given rings"


@dataclass(frozen=True)
class BandwidthSharing(CertifiedMethod, uses=("seed", "start")):
    """:class:`~ddlopt.frontier.scheduling.formulations.bandwidth_shares.BandwidthShares` on a schedule's rings.

    The schedule is the start, or that of :class:`~ddlopt.frontier.scheduling.shares.fair_shares.FairSharing` with every
    ring's own bandwidth reserved (GADGET-style greedy where it does not cover the instance). Workers, rings and times
    stay; the bound within the scope is one on all bandwidths for them.

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
        best = feasible(instance, given)
        clock.report(value_of(instance, best))
        found = best_bandwidths(instance, best, limits, clock, self.solver)
        if found.schedule is not None and value_of(instance, found.schedule) > value_of(instance, best):
            best = found.schedule
            clock.report(value_of(instance, best))
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
        reserved = instance.changed(bandwidth="reserved")
        method: Method = FairSharing(self.solver)
        if method.refuses(reserved) is not None:
            method = Gadget()
        half = limits if limits.time_s is None else replace(limits, time_s=max(clock.left_s / 2, 1e-3))
        schedule = method.solve(reserved, half, seed).solution
        assert isinstance(schedule, Schedule)
        return with_bandwidths_of(instance, schedule)
