"""The methods of the family, and which one is taken where none is named."""

from collections.abc import Callable
from typing import Any

from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.models.scheduling.pool import pool
from ddlopt.solvers.contracts import Method, Result, kernels_of, uses_of
from ddlopt.solvers.makers import entries, formulation, heuristic
from ddlopt.solvers.wrappers.warm_started import OPENING_SHARE, WarmStarted

FAMILY = ROOM = "scheduling"

_MODELLED_GANGS = 100
"""With 80 gangs the model still proves what the search leaves open; with 160 the search needs the time."""
_LARGEST = 150_000
"""Choices of a width in a slot beyond which the exact models take longer than anybody waits."""
_LARGEST_AFTER_PLANS = 50_000
"""The same where ``job-plans`` is good: in a minute the model adds nothing to it, and takes two thirds of the time."""
_ASKED_SHARE = 0.9
"""Part of the time for ``fair-deadlines``: the model of deadlines says more than that of the ratio itself."""
_COUNTED_SHARE = 0.85
"""Part of the time for ``slot-counts`` where slots are too large to be listed: no other model comes as near."""
_PATTERNED_SHARE = 0.85
"""Part of the time where plans of jobs within patterns of slots bound better than any model."""
_MOST_PLANS = 20_000_000
"""Work of the best plans beyond which the linear relaxation leads to better schedules in the same time."""


_time_indexed = formulation(ROOM, "time-indexed", "formulations.time_indexed.time_indexed:TimeIndexed")
_slot_embedding = formulation(ROOM, "slot-embedding", "formulations.slot_embedding.slot_embedding:SlotEmbedding")
_rigid_gangs = formulation(ROOM, "rigid-gangs", "formulations.rigid_gangs.rigid_gangs:RigidGangs")
_slot_patterns = formulation(ROOM, "slot-patterns", "formulations.slot_patterns.slot_patterns:SlotPatterns")
_one_piece = formulation(ROOM, "one-piece", "formulations.one_piece.one_piece:OnePiece")
_gang_search = heuristic(ROOM, "gangs.gang_search:GangSearch")
_gadget = heuristic(ROOM, "gadget:Gadget")
_fair_shares = heuristic(ROOM, "fair_shares:FairSharing")
_configurations = heuristic(ROOM, "configurations.configurations:ColumnGeneration")
_job_plans = heuristic(ROOM, "job_plans.job_plans:JobPlans")
_slot_counts = heuristic(ROOM, "slot_counts.slot_counts:SlotCounts")
_lp_guided = heuristic(ROOM, "lp_guided:LpGuided")
_kept_runs = heuristic(ROOM, "kept_runs:KeptRuns")
_fair_deadlines = heuristic(ROOM, "fair_deadlines:FairDeadlines")
_gavel_makespan = heuristic(ROOM, "online.gavel:Gavel", goal="makespan")
_srtf = heuristic(ROOM, "online.baselines:ShortestRemainingTime")
_type_windows = heuristic(ROOM, "type_windows:TypeWindows")

_OPENINGS = {
    "fair-deadlines": _fair_deadlines,
    "gang-search": _gang_search,
    "configurations": _configurations,
    "job-plans": _job_plans,
    "lp-guided": _lp_guided,
    "kept-runs": _kept_runs,
    "type-windows": _type_windows,
    "gavel:goal=makespan": _gavel_makespan,
    "srtf": _srtf,
    "slot-counts": _slot_counts,
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
    if name == "configurations":
        # Without types plans of jobs bound better, and sweeps find what patterns find.
        return instance.typed
    if name == "slot-counts":
        # Slots that can be listed are proven sooner that way.
        return instance.needs_rings and instance.slots > 1 and _slot_patterns("highs").refuses(instance) is not None
    if name in ("gavel:goal=makespan", "srtf"):
        # Of the few that know types and finish all jobs.
        mine = ("completion", "finish_time_fairness") if name == "srtf" else ("makespan",)
        return instance.typed and instance.objective in mine
    return name != "lp-guided" or all(job.utility.concave for job in instance.jobs)


def _exact(solver: str) -> Method:
    return WarmStarted("exact", FAMILY, _Opening(), lambda instance: _model_for(instance, solver), _share)


def _share(instance: SchedulingInstance) -> float:
    """Part of the time for the heuristic: most where a model of so many gangs hardly gets below its root."""
    many = len(instance.jobs) > _MODELLED_GANGS and _gang_search("").refuses(instance) is None
    opening = _opening(instance)
    if opening == "slot-counts":
        return _COUNTED_SHARE
    if opening == "configurations" or (opening == "job-plans" and (instance.changes_cost or instance.runs_are_long)):
        return _PATTERNED_SHARE
    if opening == "fair-deadlines":
        return _ASKED_SHARE
    return 0.9 if many else OPENING_SHARE


def _model_for(instance: SchedulingInstance, solver: str) -> Method:
    """The exact model that leaves the least out."""
    models: tuple[Callable[[str], Method], ...] = (_rigid_gangs, _slot_embedding, _time_indexed)
    if not pool(instance).exact or instance.network is not None:
        # Where places matter, whole patterns and plans are the strongest as long as they can be listed.
        models = (_slot_embedding, _slot_patterns, _one_piece, _rigid_gangs, _time_indexed)
    for make in models:
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


ENTRIES = entries(
    ROOM,
    ("exact", "exact", "a heuristic, then from its schedule the model that fits", _exact),
    ("time-indexed", "exact", "widths in every slot, with places on servers where they matter", "models:formulations.time_indexed.time_indexed:TimeIndexed"),
    ("slot-patterns", "exact", "few jobs and servers: all patterns of speeds, contention and any network included", "models:formulations.slot_patterns.slot_patterns:SlotPatterns"),
    ("one-piece", "exact", "few jobs in one piece: all their plans, contention and any network included", "models:formulations.one_piece.one_piece:OnePiece"),
    ("slot-embedding", "exact", "one slot: widths, places and rings in any network", "models:formulations.slot_embedding.slot_embedding:SlotEmbedding"),
    ("configurations", "exact", "column generation over slot patterns between arrivals", "configurations.configurations:ColumnGeneration"),
    ("slot-counts", "exact", "concave utilities, any network: slots counted together, then more and more of them solved", "slot_counts.slot_counts:SlotCounts"),
    ("rigid-gangs", "exact", "fixed widths in one piece: makespan, with contention", "models:formulations.rigid_gangs.rigid_gangs:RigidGangs"),
    ("bandwidth-shares", "exact", "the best bandwidths for given rings (convex)", "bandwidth_shares:BandwidthSharing"),
    ("fair-shares", "heuristic", "our rounding of the convex relaxation to shares of time", "fair_shares:FairSharing"),
    ("job-plans", "heuristic", "column generation over plans of jobs, then sweeps", "job_plans.job_plans:JobPlans"),
    ("lp-guided", "heuristic", "sweeps over slots that begin at the linear relaxation", "lp_guided:LpGuided"),
    ("kept-runs", "heuristic", "changes cost time: widths of blocks of slots, shorter and shorter", "kept_runs:KeptRuns"),
    ("type-windows", "heuristic", "types of accelerators: a greedy that chooses them, then windows solved exactly", "type_windows:TypeWindows"),
    ("fair-deadlines", "heuristic", "finish-time fairness: a ratio is a deadline for every job", "fair_deadlines:FairDeadlines"),
    ("gadget", "heuristic", "greedy over slots, each slot as exactly as is affordable", "gadget:Gadget"),
    ("rolling-horizon", "heuristic", "an exact model of the next slots, again and again", "rolling_horizon:RollingHorizon"),
    ("primal-dual", "heuristic", "plans each job at arrival, at prices that rise with use", "online.primal_dual:PrimalDual"),
    ("gang-search", "heuristic", "our search over orders of rigid jobs", "gangs.gang_search:GangSearch"),
    ("sjf-bco", "heuristic", "smallest jobs first, balancing contention and overhead", "gangs.sjf_bco:SjfBco"),
    ("list-scheduling", "heuristic", "longest jobs first, as early as they fit", "gangs.list_scheduling:ListScheduling"),
    ("optimus", "heuristic", "the next worker to where it shortens most", "online.worker_by_worker:Optimus"),
    ("drf", "heuristic", "dominant resource fairness", "online.worker_by_worker:DominantResourceFairness"),
    ("gavel", "heuristic", "Gavel's time shares for four goals, on types of accelerators too, kept by rounds", "online.gavel:Gavel"),
    ("allox", "heuristic", "one worker each, by an assignment of jobs to places", "online.allox:AlloX"),
    ("las", "heuristic", "least attained service first (Tiresias)", "online.baselines:LeastAttainedService"),
    ("srtf", "heuristic", "shortest remaining time first", "online.baselines:ShortestRemainingTime"),
    ("fifo", "heuristic", "first in, first out", "online.baselines:Fifo"),
)  # fmt: skip


def default_method(instance: SchedulingInstance) -> str:
    """``exact`` up to some size where a model covers the instance, else the best heuristic."""
    choices = sum((instance.last_slot(i) - job.arrival) * len(job.widths) for i, job in enumerate(instance.jobs))
    places = 1 if pool(instance).exact else instance.server_count
    opening = _opening(instance)
    largest = min(_LARGEST, _LARGEST_AFTER_PLANS) if opening == "job-plans" else _LARGEST
    if choices * places <= largest and _model_for(instance, "highs").refuses(instance) is None:
        return "exact"
    return opening
