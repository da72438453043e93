"""The methods of the family, and which one is taken where none is named."""

from collections.abc import Callable
from functools import partial
from typing import Any

from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.models.scheduling.pool import pool
from ddlopt.solvers.contracts import Entry, Method, Result, kernels_of, uses_of
from ddlopt.solvers.makers import formulation, heuristic
from ddlopt.solvers.opened import Opened

FAMILY = "scheduling"

_LARGEST = 150_000
"""Choices of a width in a slot beyond which the exact models take longer than anybody waits."""
_MOST_PLANS = 20_000_000
"""Work of the best plans beyond which the linear relaxation leads to better schedules in the same time."""

_formulation = partial(formulation, FAMILY)
_heuristic = partial(heuristic, FAMILY)

_time_indexed = _formulation("time-indexed", "formulations.time_indexed.time_indexed", "TimeIndexed")
_slot_embedding = _formulation("slot-embedding", "formulations.slot_embedding.slot_embedding", "SlotEmbedding")
_rigid_gangs = _formulation("rigid-gangs", "formulations.rigid_gangs.rigid_gangs", "RigidGangs")
_gang_search = _heuristic("gangs.gang_search", "GangSearch")
_gadget = _heuristic("gadget", "Gadget")
_fair_shares = _heuristic("fair_shares", "FairSharing")
_job_plans = _heuristic("job_plans.job_plans", "JobPlans")
_lp_guided = _heuristic("lp_guided", "LpGuided")

_OPENINGS = {
    "gang-search": _gang_search,
    "job-plans": _job_plans,
    "lp-guided": _lp_guided,
    "fair-shares": _fair_shares,
    "gadget": _gadget,
}
"""Heuristics that ``exact`` may start from, the best of those that cover the same instances first."""


def _opening(instance: SchedulingInstance) -> str:
    """The best heuristic that covers the instance."""
    covering = (name for name, make in _OPENINGS.items() if make("").refuses(instance) is None)
    return next((name for name in covering if _suits(name, instance)), "gadget")


def _suits(name: str, instance: SchedulingInstance) -> bool:
    """Whether a heuristic is good at the instance, if it covers it."""
    if name == "job-plans":
        from ddlopt.models.scheduling.bounds import work_of_plans

        return work_of_plans(instance) <= _MOST_PLANS
    return name != "lp-guided" or all(job.utility.concave for job in instance.jobs)


def _exact(solver: str) -> Method:
    return Opened("exact", FAMILY, _Opening(), lambda instance: _model_for(instance, solver))


def _model_for(instance: SchedulingInstance, solver: str) -> Method:
    """The exact model that leaves the least out."""
    for make in (_rigid_gangs, _slot_embedding, _time_indexed):
        method = make(solver)
        if method.refuses(instance) is None:
            return method
    return _time_indexed(solver)


class _Opening:
    """The heuristic that exact methods start from."""

    name = "opening"
    family = FAMILY

    def _of(self, instance: SchedulingInstance) -> Method:
        return _OPENINGS[_opening(instance)]("")

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Why the heuristic does not cover the instance."""
        return self._of(instance).refuses(instance)

    def kernels_for(self, instance: SchedulingInstance) -> tuple[str, ...]:
        """What the heuristic that fits calls."""
        return kernels_of(self._of(instance), instance)

    def uses_for(self, instance: SchedulingInstance) -> frozenset[str] | None:
        """What the heuristic that fits uses."""
        return uses_of(self._of(instance), instance)

    def solve(self, instance: SchedulingInstance, *arguments: Any) -> Result:
        """Answer by the heuristic that fits."""
        return self._of(instance).solve(instance, *arguments)


def _entry(name: str, kind: str, summary: str, make: Callable[[str], Method]) -> Entry:
    return Entry(name, FAMILY, kind, summary, make)


ENTRIES = (
    _entry("exact", "exact", "a heuristic, then from its schedule the model that fits", _exact),
    _entry("time-indexed", "exact", "widths in every slot, with places on servers where they matter", _time_indexed),
    _entry("slot-embedding", "exact", "one slot: widths, places and rings in any network", _slot_embedding),
    _entry(
        "configurations",
        "exact",
        "column generation over slot patterns between arrivals",
        _heuristic("configurations.configurations", "ColumnGeneration"),
    ),
    _entry("rigid-gangs", "exact", "fixed widths in one piece: makespan, with contention", _rigid_gangs),
    _entry(
        "bandwidth-shares",
        "exact",
        "the best bandwidths for given rings (convex)",
        _heuristic("bandwidth_shares", "BandwidthSharing"),
    ),
    _entry("fair-shares", "heuristic", "our rounding of the convex relaxation to shares of time", _fair_shares),
    _entry("job-plans", "heuristic", "column generation over plans of jobs, then sweeps", _job_plans),
    _entry("lp-guided", "heuristic", "sweeps over slots that begin at the linear relaxation", _lp_guided),
    _entry("gadget", "heuristic", "greedy over slots, each slot as exactly as is affordable", _gadget),
    _entry(
        "gadget-milp",
        "heuristic",
        "greedy, slots by an exact model",
        _heuristic("gadget", "Gadget", oracle="embedding"),
    ),
    _entry(
        "gadget-rounding",
        "heuristic",
        "greedy, slots by a linear relaxation and randomized rounding",
        _heuristic("gadget", "Gadget", oracle="rounding"),
    ),
    _entry(
        "gadget-packing",
        "heuristic",
        "greedy, slots by greedy packing",
        _heuristic("gadget", "Gadget", oracle="packing"),
    ),
    _entry(
        "rolling-horizon",
        "heuristic",
        "an exact model of the next slots, again and again",
        _heuristic("rolling_horizon", "RollingHorizon"),
    ),
    _entry(
        "primal-dual",
        "heuristic",
        "plans each job at arrival, at prices that rise with use",
        _heuristic("online.primal_dual", "PrimalDual"),
    ),
    _entry("gang-search", "heuristic", "our search over orders of rigid jobs", _gang_search),
    _entry(
        "sjf-bco",
        "heuristic",
        "smallest jobs first, balancing contention and overhead",
        _heuristic("gangs.sjf_bco", "SjfBco"),
    ),
    _entry(
        "list-scheduling",
        "heuristic",
        "longest jobs first, as early as they fit",
        _heuristic("gangs.list_scheduling", "ListScheduling"),
    ),
    _entry(
        "optimus",
        "heuristic",
        "the next worker to where it shortens most",
        _heuristic("online.worker_by_worker", "Optimus"),
    ),
    _entry(
        "drf",
        "heuristic",
        "dominant resource fairness",
        _heuristic("online.worker_by_worker", "DominantResourceFairness"),
    ),
    _entry(
        "gavel-max-min",
        "heuristic",
        "Gavel's max-min time shares, kept by rounds",
        _heuristic("online.gavel", "Gavel", goal="max_min"),
    ),
    _entry(
        "gavel-makespan",
        "heuristic",
        "Gavel's makespan time shares, kept by rounds",
        _heuristic("online.gavel", "Gavel", goal="makespan"),
    ),
    _entry(
        "allox", "heuristic", "one worker each, by an assignment of jobs to places", _heuristic("online.allox", "AlloX")
    ),
    _entry(
        "las",
        "heuristic",
        "least attained service first (Tiresias)",
        _heuristic("online.baselines", "LeastAttainedService"),
    ),
    _entry(
        "srtf", "heuristic", "shortest remaining time first", _heuristic("online.baselines", "ShortestRemainingTime")
    ),
    _entry("fifo", "heuristic", "first in, first out", _heuristic("online.baselines", "Fifo")),
)


def default_method(instance: SchedulingInstance) -> str:
    """``exact`` up to some size where a model covers the instance, else the best heuristic."""
    choices = sum((instance.last_slot(i) - job.arrival) * len(job.widths) for i, job in enumerate(instance.jobs))
    places = 1 if pool(instance).exact else instance.server_count
    if choices * places <= _LARGEST and _model_for(instance, "highs").refuses(instance) is None:
        return "exact"
    return _opening(instance)
