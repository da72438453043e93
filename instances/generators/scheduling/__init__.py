"""Clusters and jobs of any size; what each kind takes from a paper, and what is ours, stands with its function."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ddlopt.instances.generators.scheduling import hard
from ddlopt.instances.generators.scheduling import random as drawn
from ddlopt.instances.generators.scheduling.jobs import Fields, Kind, enough_slots
from ddlopt.instances.generators.scheduling.small import Small
from ddlopt.instances.generators.scheduling.tiny import Tiny
from ddlopt.instances.options import refuse_odd_value, refuse_unknown
from ddlopt.models.scheduling import Job, SchedulingInstance, ServerGroup

_KINDS: dict[str, type[Kind]] = {
    "elastic": drawn.Elastic,
    "pd-ors-like": drawn.PdOrsLike,
    "sjf-bco": drawn.SjfBco,
    "contended": drawn.Contended,
    "leaf-spine": drawn.Racks,
    "random-network": drawn.RandomNetwork,
    "departures": hard.Departures,
    "caps": hard.Caps,
    "bursty": hard.Bursty,
    "small": Small,
    "tiny": Tiny,
}

KINDS = tuple(_KINDS)
"""What :func:`generate` can make."""

_COMMON = ("name", "objective", "energy_price_per_j", "preemptive", "bandwidth")
"""Fields of an instance that every kind takes as they are."""


def generate(kind: str, seed: int = 0, **options: Any) -> SchedulingInstance:
    """Make a scheduling instance; see :func:`ddlopt.instances.generators.generate`.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`: ``elastic`` (jobs that may have any width, no network), ``pd-ors-like`` (four resources),
        ``sjf-bco`` (rigid gangs, makespan), ``contended``, ``leaf-spine`` and ``random-network`` (placement matters),
        ``departures``, ``caps`` and ``bursty`` (where greedy loses), ``small`` (everything scarce, for
        proofs), ``tiny`` (one feature each, for brute force).
    seed : int
    **options
        What the kind takes (:func:`options_of`), and of the fields of
        :class:`~ddlopt.models.scheduling.instance.SchedulingInstance` ``name``, ``objective``,
        ``energy_price_per_j``, ``preemptive`` and ``bandwidth``, which replace what the kind would choose. Where
        ``objective`` is ``makespan``, ``completion`` or ``finish_time_fairness`` and no ``slots`` are given, every job
        has to finish: deadlines are left out, and the horizon is as long as that needs.
    """
    own = _own_options(kind, options)
    fields = _KINDS[kind](**own).fields(np.random.default_rng(seed))
    if options.get("objective") in ("makespan", "completion", "finish_time_fairness") and "slots" not in own:
        fields |= _until_all_are_done(fields)
    given = {key: value for key, value in options.items() if key in _COMMON}
    everything = options_of(kind) | own | {key: value for key, value in given.items() if key != "name"}
    told = ", ".join(f"{key} {value}" for key, value in everything.items() if value is not None)
    source = f"generated: kind {kind}, seed {seed}, {told}"
    if note := fields.pop("note", ""):
        source += f". {note}"
    data = {"name": _name(kind, seed, fields, own), "source": source, **fields}
    return SchedulingInstance.from_data(data | given)


def _until_all_are_done(fields: Fields) -> Fields:
    """The jobs without deadlines, and slots in which they can all finish, if need be one after the other.

    Where rings take bandwidth, each is counted at the width that one server holds: its ring then leaves no server.
    """
    jobs = [job.model_copy(update={"deadline": None}) for job in fields["jobs"]]
    servers, slot_s = fields["servers"], float(fields["slot_s"])
    if fields.get("network") is None and fields.get("contention") is None and set(jobs[0].demand) == {"gpu"}:
        gpus = sum(int(group.capacity["gpu"]) * group.count for group in servers)
        enough = enough_slots(jobs, gpus, slot_s)
    else:
        widths = [max(job.min_workers, min(job.max_workers, _held_by_one(job, servers))) for job in jobs]
        alone = [
            math.ceil(job.minibatches / (float(job.timing.minibatches_per_s(width)) * slot_s))
            for job, width in zip(jobs, widths, strict=True)
        ]
        enough = max(job.arrival for job in jobs) + sum(alone) + 1
    note = "All jobs can finish in the slots that there are; deadlines are left out"
    told = ". ".join(part for part in (fields.get("note"), note) if part)
    return {"jobs": jobs, "slots": max(int(fields["slots"]), enough), "note": told}


def _held_by_one(job: Job, servers: list[ServerGroup]) -> int:
    """Workers of a job on the server that holds the most of them."""
    return max(
        min(int(group.capacity.get(name, 0) // amount) for name, amount in job.demand.items() if amount > 0)
        for group in servers
    )


def options_of(kind: str) -> dict[str, Any]:
    """What a kind takes besides the fields of an instance, with defaults."""
    return {option.name: option.default for option in dataclasses.fields(_KINDS[kind])}


def _own_options(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the kind's own, each of the type that it is declared with."""
    types = {option.name: option.type for option in dataclasses.fields(_KINDS[kind])}
    own = {key: value for key, value in options.items() if key not in _COMMON}
    refuse_unknown(f"kind '{kind}'", own, sorted({*_COMMON, *types}))
    for option, value in own.items():
        refuse_odd_value(option, value, types[option])
    return own


def _name(kind: str, seed: int, fields: Fields, own: Mapping[str, Any]) -> str:
    if kind == "tiny":
        return f"tiny-{own.get('feature', 'capped')}-s{seed}"
    return f"{kind}-j{len(fields['jobs'])}-t{fields['slots']}-s{seed}"
