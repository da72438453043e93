"""Special methods for schedules, and when ``exact`` asks them."""

from ddlopt.frontier.scheduling.bounds import work_of_plans
from ddlopt.frontier.scheduling.formulations.slot_patterns.slot_patterns import SlotPatterns
from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.models.scheduling.pool import pool
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import formulation, heuristic
from ddlopt.solvers.scheduling.methods import FAMILY, OPENINGS, ROOM, model_for, opening, share, suits
from ddlopt.solvers.wrappers.warm_started import OPENING_SHARE, WarmStarted

_ASKED_SHARE = 0.9
"""Part of the time for ``fair-deadlines``: the model of deadlines says more than that of the ratio itself."""
_COUNTED_SHARE = 0.85
"""Part of the time for ``slot-counts`` where slots are too large to be listed: no other model comes as near."""
_PATTERNED_SHARE = 0.85
"""Part of the time where plans of jobs within patterns of slots bound better than any model."""
_MOST_PLANS = 20_000_000
"""Work of the best plans beyond which the linear relaxation leads to better schedules in the same time."""
_OWN = {
    "fair-deadlines": heuristic(ROOM, "fair_deadlines:FairDeadlines", "frontier"),
    "gang-search": heuristic(ROOM, "gangs.gang_search:GangSearch", "frontier"),
    "configurations": heuristic(ROOM, "configurations.configurations:ColumnGeneration", "frontier"),
    "job-plans": heuristic(ROOM, "job_plans.job_plans:JobPlans", "frontier"),
    "lp-guided": heuristic(ROOM, "lp_guided:LpGuided", "frontier"),
    "kept-runs": heuristic(ROOM, "kept_runs:KeptRuns", "frontier"),
    "type-windows": heuristic(ROOM, "type_windows:TypeWindows", "frontier"),
    "fair-shares": heuristic(ROOM, "shares.fair_shares:FairSharing", "frontier"),
    "slot-counts": heuristic(ROOM, "slot_counts.slot_counts:SlotCounts", "frontier"),
}
_LISTED = (
    formulation(ROOM, "slot-patterns", "formulations.slot_patterns.slot_patterns:SlotPatterns", "frontier"),
    formulation(ROOM, "one-piece", "formulations.one_piece.one_piece:OnePiece", "frontier"),
)
"""Models of whole patterns of slots and whole plans: where places matter, the strongest as long as these are few."""
_SLOT = formulation(ROOM, "counted-slot", "formulations.server_patterns.counted_slot:CountedSlot", "frontier")
"""The model of one slot."""
_RIGID = formulation(ROOM, "rigid-gangs", "formulations.rigid_gangs.rigid_gangs:RigidGangs", "frontier")
_ORDER = (
    *("fair-deadlines", "gang-search", "configurations", "job-plans", "lp-guided", "kept-runs", "type-windows"),
    *("gavel:goal=makespan", "srtf", "slot-counts", "fair-shares", "gadget"),
)
"""Openings of ``exact``, the best of those that cover the same instances first."""


def link(instance: SchedulingInstance, solver: str) -> Method | None:
    """A heuristic, then from its schedule the model that fits; None where neither is one of those here."""
    name = opening(instance, {name: _OWN.get(name) or OPENINGS[name] for name in _ORDER}, _suits)
    if name not in _OWN and _special(instance, solver) is None:
        return None
    first = (_OWN.get(name) or OPENINGS[name])("")
    return WarmStarted(
        "exact", FAMILY, first, lambda asked: _model_for(asked, solver), lambda asked: _share(name, asked)
    )


def _model_for(instance: SchedulingInstance, solver: str) -> Method:
    """The exact model that leaves the least out."""
    return _special(instance, solver) or model_for(instance, solver)


def _special(instance: SchedulingInstance, solver: str) -> Method | None:
    """The model of a slot, of whole patterns, whole plans or gangs that covers an instance."""
    if SlotEmbedding().refuses(instance) is None:
        return _SLOT(solver)
    places_matter = not pool(instance).exact or instance.network is not None
    methods = (make(solver) for make in (*(_LISTED if places_matter else ()), _RIGID))
    return next((method for method in methods if method.refuses(instance) is None), None)


def _suits(name: str, instance: SchedulingInstance) -> bool:
    """Whether a heuristic is good at the instance, if it covers it."""
    if name == "job-plans":
        return work_of_plans(instance) <= _MOST_PLANS
    if name == "configurations":
        # Without types plans of jobs bound better, and sweeps find what patterns find.
        return instance.accelerators.matter
    if name == "slot-counts":
        # Slots that can be listed are proven sooner that way.
        return instance.needs_rings and instance.slots > 1 and SlotPatterns().refuses(instance) is not None
    if name == "lp-guided":
        return all(job.utility.concave for job in instance.jobs)
    return suits(name, instance)


def _share(name: str, instance: SchedulingInstance) -> float:
    """Part of the time for the heuristic of that name."""
    if name == "slot-counts":
        return _COUNTED_SHARE
    if name == "configurations" or (name == "job-plans" and (instance.changes.matter)):
        return _PATTERNED_SHARE
    if name == "fair-deadlines":
        return _ASKED_SHARE
    return share(instance) if name == "gang-search" else OPENING_SHARE
