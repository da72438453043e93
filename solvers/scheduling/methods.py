"""The methods of the family, and which one is taken where none is named."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.scheduling.refusals import not_gangs
from ddlopt.solvers import chain
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import Maker, entries, formulation, heuristic
from ddlopt.solvers.wrappers.by_problem import exact_of
from ddlopt.solvers.wrappers.warm_started import OPENING_SHARE, WarmStarted

FAMILY = ROOM = "scheduling"


@dataclass(frozen=True)
class Effort:
    """Up to which size the default has a model."""

    modelled_gangs: int = 100
    """With 80 gangs the model still proves what the search leaves open; with 160 the search needs the time."""
    choices: int = 150_000
    """Of a width in a slot: with more the exact models take longer than anybody waits."""


_EFFORT = Effort()

_time_indexed = formulation(ROOM, "time-indexed", "formulations.time_indexed.time_indexed:TimeIndexed")
_slot_embedding = formulation(ROOM, "slot-embedding", "formulations.slot_embedding.slot_embedding:SlotEmbedding")
_list_scheduling = heuristic(ROOM, "gangs.list_scheduling:ListScheduling")
_gadget = heuristic(ROOM, "gadget:Gadget")
_gavel_makespan = heuristic(ROOM, "online.gavel:Gavel", goal="makespan")
_srtf = heuristic(ROOM, "online.baselines:ShortestRemainingTime")

OPENINGS = {
    "list-scheduling": _list_scheduling,
    "gavel:goal=makespan": _gavel_makespan,
    "srtf": _srtf,
    "gadget": _gadget,
}
"""Heuristics that ``exact`` may start from, the best of those that cover the same instances first."""


def opening(
    instance: SchedulingInstance,
    openings: Mapping[str, Maker] | None = None,
    good: Callable[[str, SchedulingInstance], bool] | None = None,
) -> str:
    """The name of the first heuristic that covers the instance and is good at it."""
    among, is_good = OPENINGS if openings is None else openings, suits if good is None else good
    covering = (name for name, make in among.items() if make("").refuses(instance) is None)
    return next((name for name in covering if is_good(name, instance)), "gadget")


def suits(name: str, instance: SchedulingInstance) -> bool:
    """Whether a heuristic is good at the instance, if it covers it."""
    if name == "list-scheduling":
        return are_gangs(instance)
    if name in ("gavel:goal=makespan", "srtf"):
        # Of the few that know types and finish all jobs.
        mine = instance.goal.must_finish and instance.goal.counts_last_end == (name != "srtf")
        return instance.accelerators.matter and mine
    return True


def best(instance: SchedulingInstance, solver: str) -> Method:
    """What links of the chain say; else a heuristic, then from its schedule the model that fits."""
    return chain.exact(ROOM, instance, solver, _own)


def _own(instance: SchedulingInstance, solver: str) -> Method:
    first = OPENINGS[opening(instance)]("")
    return WarmStarted("exact", FAMILY, first, lambda asked: model_for(asked, solver), share)


def share(instance: SchedulingInstance) -> float:
    """Part of the time for the heuristic: most where the model has many gangs and hardly gets below its root."""
    return 0.9 if len(instance.jobs) > _EFFORT.modelled_gangs and are_gangs(instance) else OPENING_SHARE


def are_gangs(instance: SchedulingInstance) -> bool:
    """Whether all jobs have one width and run in one piece, and nothing but their ends counts."""
    return not_gangs(instance) is None


def model_for(instance: SchedulingInstance, solver: str) -> Method:
    """The exact model that leaves the least out."""
    for make in (_slot_embedding, _time_indexed):
        method = make(solver)
        if method.refuses(instance) is None:
            return method
    return _time_indexed(solver)


ENTRIES = (
    Entry("exact", FAMILY, "exact", "a heuristic, then from its schedule the model that fits", exact_of(FAMILY).make),
    *entries(
    ROOM,
    ("time-indexed", "exact", "widths in every slot, with places on servers where they matter", "models:formulations.time_indexed.time_indexed:TimeIndexed"),
    ("slot-embedding", "exact", "one slot: widths, places and rings in any network", "models:formulations.slot_embedding.slot_embedding:SlotEmbedding"),
    ("gadget", "heuristic", "greedy over slots, each slot as exactly as is affordable", "gadget:Gadget"),
    ("primal-dual", "heuristic", "plans each job at arrival, at prices that rise with use", "online.primal_dual:PrimalDual"),
    ("sjf-bco", "heuristic", "smallest jobs first, balancing contention and overhead", "gangs.sjf_bco:SjfBco"),
    ("list-scheduling", "heuristic", "longest jobs first, as early as they fit", "gangs.list_scheduling:ListScheduling"),
    ("optimus", "heuristic", "the next worker to where it shortens most", "online.worker_by_worker:Optimus"),
    ("drf", "heuristic", "dominant resource fairness", "online.worker_by_worker:DominantResourceFairness"),
    ("gavel", "heuristic", "Gavel's time shares for four goals, on types of accelerators too, kept by rounds", "online.gavel:Gavel"),
    ("allox", "heuristic", "one worker each, by an assignment of jobs to places", "online.allox:AlloX"),
    ("las", "heuristic", "least attained service first (Tiresias)", "online.baselines:LeastAttainedService"),
    ("srtf", "heuristic", "shortest remaining time first", "online.baselines:ShortestRemainingTime"),
    ("fifo", "heuristic", "first in, first out", "online.baselines:Fifo"),
)
)  # fmt: skip


def default_method(instance: SchedulingInstance) -> str:
    """``exact`` up to some size where a model covers the instance, else the best heuristic."""
    method = best(instance, "highs")
    choices = sum((instance.last_slot(i) - job.arrival) * len(job.widths) for i, job in enumerate(instance.jobs))
    places = 1 if pool(instance).exact else instance.server_count
    if not isinstance(method, WarmStarted):
        return "exact"
    # A heuristic may know that after it no model adds anything, from a size of its own on.
    largest = min(_EFFORT.choices, getattr(method.opening, "most_modelled", _EFFORT.choices))
    small = choices * places <= largest and method.model(instance).refuses(instance) is None
    return "exact" if small else method.opening.name
