"""The data of one scheduling problem."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ddlopt.models.contracts import Instance, without
from ddlopt.models.scheduling.network import Contention, Network, check_network
from ddlopt.models.scheduling.parts import Job, ServerGroup
from ddlopt.models.scheduling.variants.accelerators import Accelerators
from ddlopt.models.scheduling.variants.changes import Changes
from ddlopt.models.scheduling.variants.goals import GOALS, Goal
from ddlopt.models.sizes import require_memory
from ddlopt.models.tolerances import let_pass

__all__ = ["Job", "Objective", "SchedulingInstance", "ServerGroup", "most_workers"]

Objective = Literal["utility", "max_min", "makespan", "completion", "finish_time_fairness"]


class SchedulingInstance(Instance):
    """Jobs that train with ring all-reduce on a cluster, over slots of time.

    Parameters
    ----------
    slots : int
        T slots, numbered 0..T-1; widths and places change between slots only.
    slot_s : float
        Length of a slot.
    servers : tuple of ServerGroup
        Servers by kind.
    network : Network, optional
        None: bandwidth is no limit. Otherwise the workers of a job on several servers form a ring, a closed walk
        through the network that visits those servers, and it takes the job's bandwidth of every arc each time that it
        passes.
    contention : Contention, optional
        In place of a network: bandwidth is shared, not reserved. Jobs need ``ring`` timing.
    jobs : tuple of Job
        In any order.
    objective : {"utility", "max_min", "makespan", "completion", "finish_time_fairness"}
        ``utility``: maximise the sum of utilities less ``energy_price_per_j`` times the energy. ``max_min``: maximise
        the smallest part done, min(1, Z/F). The others finish every job: ``makespan``, ``completion`` minimise the last
        end, or the weighted sum of the times from arrival to end, in seconds; ``finish_time_fairness`` minimises the
        largest ratio of a job's time from arrival to end to what it would be with its fair share alone (``fair_s``). A
        job ends with the slot in which it finishes.
    energy_price_per_j : float
        Utility that a joule costs.
    preemptive : bool
        If not, a job runs in one piece: consecutive slots, with the same workers and ring throughout.
    bandwidth : {"reserved", "shared"}
        ``reserved``: a ring has the bandwidth of the job's timing. ``shared``: the schedule chooses it for each run.
    mixed_types : bool
        Whether the workers of a job with ``speeds`` may be on several types of accelerators in one slot.
    """

    kind: ClassVar[str] = "scheduling instance"

    family: Literal["scheduling"] = "scheduling"
    slots: int = Field(ge=1)
    slot_s: float = Field(gt=0)
    servers: tuple[ServerGroup, ...] = Field(min_length=1)
    network: Network | None = None
    contention: Contention | None = None
    jobs: tuple[Job, ...] = Field(min_length=1)
    objective: Objective = "utility"
    energy_price_per_j: float = Field(default=0.0, ge=0)
    preemptive: bool = True
    bandwidth: Literal["reserved", "shared"] = "reserved"
    mixed_types: bool = True

    @model_serializer(mode="wrap")
    def _data(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "mixed_types")

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        require_memory(f"slots is {self.slots}: figures of each slot", 200.0 * self.slots)
        servers = sum(group.count for group in self.servers)
        require_memory(f"servers has {servers} servers: figures of each server", 200.0 * servers)
        _check_servers(self)
        for place, job in enumerate(self.jobs):
            _check_job(self, job, place)
        if self.network is not None:
            if self.contention is not None:
                raise ValueError("there are both a network and contention; give the one that limits bandwidth")
            check_network(self.network, self.server_count)
        if self.bandwidth == "shared" and self.network is None:
            raise ValueError("bandwidth is 'shared', but there is no network to share; give one")
        if self.energy_price_per_j and not self.goal.counts_utilities:
            raise ValueError(
                f"energy_price_per_j counts in objective 'utility' only, but objective is {self.objective!r}"
            )
        _check_fair_times(self)
        return self

    def changed(self, **fields: Any) -> Self:
        """The same with other fields; what counts in the objective that it had, and not in the new one, is left out."""
        goal = GOALS.get(fields.get("objective", self.objective))
        if goal is None or not goal.counts_utilities:
            fields["energy_price_per_j"] = 0.0
        if goal is None or not goal.counts_ratios:
            fields["jobs"] = tuple(
                job if job.fair_s is None else job.model_copy(update={"fair_s": None})
                for job in fields.get("jobs", self.jobs)
            )
        return super().changed(**fields)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other fields, which are not validated, and with nothing that was calculated of the old ones."""
        copied = super().model_copy(update=update, deep=deep)
        for name in set(vars(copied)) - set(type(self).model_fields):
            del vars(copied)[name]
        return copied

    @property
    def goal(self) -> Goal:
        """The objective, which says how it counts."""
        return GOALS[self.objective]

    @cached_property
    def accelerators(self) -> Accelerators:
        """What types of accelerators mean for the jobs."""
        return Accelerators(self.servers, self.jobs, self.mixed_types)

    @cached_property
    def changes(self) -> Changes:
        """What jobs lose when they change, and how soon they may."""
        return Changes(self.jobs, self.slots, self.slot_s, self.preemptive)

    def at_their_fastest(self) -> Self:
        """A relaxation without types: every job is everywhere as fast as on its best type."""
        return self.changed(jobs=self.accelerators.everywhere_fastest()) if self.accelerators.matter else self

    @property
    def sense(self) -> Literal["minimize", "maximize"]:
        """Utilities and fairness are maximised, times minimised."""
        return self.goal.sense

    @property
    def objective_unit(self) -> str:
        """Seconds for times; utilities and ratios have no unit."""
        return "s" if self.goal.in_seconds else ""

    @cached_property
    def server_count(self) -> int:
        """S."""
        return sum(group.count for group in self.servers)

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """Names of the resources that some job takes, sorted."""
        return tuple(sorted({name for job in self.jobs for name, amount in job.demand.items() if amount}))

    @cached_property
    def capacity(self) -> npt.NDArray[np.float64]:
        """(S, R) amounts of each resource in each server."""
        rows = [[group.capacity.get(name, 0.0) for name in self.resources] for group in self.servers]
        return np.repeat(np.array(rows), [group.count for group in self.servers], axis=0)

    @cached_property
    def demand(self) -> npt.NDArray[np.float64]:
        """(I, R) amounts that a worker of each job takes."""
        return np.array([[job.demand.get(name, 0.0) for name in self.resources] for job in self.jobs])

    @cached_property
    def idle_w(self) -> npt.NDArray[np.float64]:
        """(S,) power of each server in use."""
        return np.repeat([group.idle_w for group in self.servers], [group.count for group in self.servers])

    @cached_property
    def worker_w(self) -> npt.NDArray[np.float64]:
        """(S,) power of a worker on each server."""
        return np.repeat([group.worker_w for group in self.servers], [group.count for group in self.servers])

    @cached_property
    def widest(self) -> dict[tuple[tuple[str, float], ...], int]:
        """Workers that the empty cluster holds, by demand; filled as jobs are checked."""
        return {}

    @property
    def needs_rings(self) -> bool:
        """Whether jobs on several servers have to be given a ring through the network."""
        return self.network is not None and self.server_count > 1

    def last_slot(self, job: int) -> int:
        """First slot in which a job may no longer run."""
        deadline = self.jobs[job].deadline
        return self.slots if deadline is None else deadline

    def progress(self, job: int, workers: int) -> float:
        """Mini-batches that a job does in one slot at a width, with its own bandwidth; 0 without workers.

        Where types of accelerators matter to it, at pace 1.
        """
        return float(self.jobs[job].timing.minibatches_per_s(workers)) * self.slot_s

    def rate(self, job: int, workers: int, servers: int = 1, competitors: int = 0) -> float:
        """The same of a job on ``servers`` servers: under contention it depends on how many ``competitors`` there are.

        These are the split jobs on its most crowded server, itself included; 0 for a job on one server.
        """
        if self.contention is None or not workers:
            return self.progress(job, workers)
        timing = self.jobs[job].timing
        return float(self.contention.minibatches_per_s(timing, workers, servers, competitors)) * self.slot_s

    @property
    def widths_decide_speed(self) -> bool:
        """Whether, types apart, a job's speed follows from its width: it has its own bandwidth, wherever it is."""
        return self.contention is None and self.bandwidth == "reserved"


def most_workers(capacity: npt.NDArray[np.float64], demand: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """(S,) workers with ``demand`` (R,) on servers with ``capacity`` (S, R): as many as the check lets pass."""
    return workers_within(let_pass(capacity), demand)


def workers_within(room: npt.NDArray[np.float64], demand: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """(S,) workers with ``demand`` (R,) in the ``room`` (S, R) that others leave.

    Capacities are raised before anything is taken off (:func:`~ddlopt.models.tolerances.let_pass_at_least`): what the
    check lets pass is a part of the whole.
    """
    wanted = demand > 0
    if not wanted.any():
        raise ValueError("a worker that takes nothing")
    held: npt.NDArray[np.float64] = (room[:, wanted] / demand[wanted]).min(axis=1)
    return np.floor(np.maximum(held, 0.0)).astype(np.int64)


def _check_fair_times(instance: SchedulingInstance) -> None:
    """Times with a fair share count where they matter, and are given where a share alone does not say them."""
    given = [place for place, job in enumerate(instance.jobs) if job.fair_s is not None]
    if not instance.goal.counts_ratios:
        if given:
            raise ValueError(
                f"jobs[{given[0]}].fair_s counts in objective 'finish_time_fairness' only, but objective is "
                f"{instance.objective!r}"
            )
        return
    shared = not instance.widths_decide_speed
    for place, job in enumerate(instance.jobs):
        if job.fair_s is None and (shared or instance.accelerators.matter_to(place)):
            what = "bandwidth is shared" if shared else "its speed depends on the type of accelerators"
            raise ValueError(
                f"jobs[{place}] '{job.name}': {what}, so its time with a fair share is not known; give its fair_s"
            )


def _check_servers(instance: SchedulingInstance) -> None:
    for place, group in enumerate(instance.servers):
        if not group.capacity:
            raise ValueError(f"servers[{place}].capacity is empty; give amounts such as {{'gpu': 8}}")
        for name, amount in group.capacity.items():
            if not (math.isfinite(amount) and amount >= 0):
                raise ValueError(f"servers[{place}].capacity['{name}'] is {amount}; it must be finite and >= 0")


def _check_job(instance: SchedulingInstance, job: Job, index: int) -> None:
    place = f"jobs[{index}] '{job.name}'"
    if job.arrival >= instance.slots:
        raise ValueError(
            f"{place}: arrival is {job.arrival}, but there are {instance.slots} slots (0..{instance.slots - 1})"
        )
    if job.deadline is not None and not job.arrival < job.deadline <= instance.slots:
        raise ValueError(
            f"{place}: deadline is {job.deadline}, but the arrival is {job.arrival} and there are {instance.slots} "
            f"slots; use a deadline of {job.arrival + 1}..{instance.slots}"
        )
    if job.min_workers > job.max_workers:
        raise ValueError(f"{place}: min_workers is {job.min_workers}, more than max_workers {job.max_workers}")
    instance.changes.check(index, place)
    if not any(job.demand.values()):
        raise ValueError(f"{place}: demand is empty; a worker needs something, such as {{'gpu': 1}}")
    for name, amount in job.demand.items():
        if not (math.isfinite(amount) and amount >= 0):
            raise ValueError(f"{place}: demand['{name}'] is {amount}; it must be finite and >= 0")
        if amount and all(name not in group.capacity for group in instance.servers):
            known = ", ".join(sorted({name for group in instance.servers for name in group.capacity}))
            raise ValueError(f"{place}: demand names '{name}', but the servers have {known}")
    room = instance.widest.get(tuple(sorted(job.demand.items())))
    row = np.array([job.demand.get(name, 0.0) for name in instance.resources])
    if room is None:
        room = instance.widest[tuple(sorted(job.demand.items()))] = int(most_workers(instance.capacity, row).sum())
    if instance.accelerators.matter_to(index):
        if not instance.widths_decide_speed:
            also = "contention" if instance.contention is not None else "shared bandwidth"
            raise ValueError(f"{place}: there are both speeds and {also}, which are not modelled together; remove one")
        room = instance.accelerators.room(index, most_workers(instance.capacity, row), place)
    if job.max_workers > room:
        raise ValueError(
            f"{place}: max_workers is {job.max_workers}, but the cluster holds {room} of its workers; lower it or add "
            "servers"
        )
    if instance.contention is not None and job.timing.kind != "ring":
        raise ValueError(f"{place}: timing is '{job.timing.kind}', but contention needs 'ring' timing")
    if instance.bandwidth == "shared" and job.timing.kind != "ring":
        raise ValueError(f"{place}: timing is '{job.timing.kind}', but shared bandwidth needs 'ring' timing")
