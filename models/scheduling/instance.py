"""The data of one scheduling problem."""

import math
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ddlopt.models.contracts import Instance, Part, without
from ddlopt.models.scheduling.network import Contention, Network, check_network
from ddlopt.models.scheduling.timing import Timing
from ddlopt.models.scheduling.utility import Capped, Utility
from ddlopt.models.sizes import require_memory
from ddlopt.models.tolerances import FEASIBILITY_TOL

Objective = Literal["utility", "max_min", "makespan", "completion", "finish_time_fairness"]


class ServerGroup(Part):
    """``count`` equal servers.

    Parameters
    ----------
    count : int
        Servers of the group.
    capacity : mapping
        Resource (``"gpu"``, ``"cpu"``, …) -> amount of it in each server.
    idle_w, worker_w : float
        Power of a server while at least one worker is on it, and of each worker besides.
    type : str
        Of the accelerators, such as ``"v100"``; jobs with ``speeds`` have one for each.
    """

    count: int = Field(default=1, ge=1)
    capacity: dict[str, float]
    idle_w: float = Field(default=0.0, ge=0)
    worker_w: float = Field(default=0.0, ge=0)
    type: str = ""

    @model_serializer(mode="wrap")
    def _data(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "type")


class Job(Part):
    """A training job.

    Parameters
    ----------
    name : str
    arrival : int
        First slot in which it may run.
    deadline : int, optional
        First slot in which it may no longer run; None: the end of the horizon.
    min_workers, max_workers : int
        Its width in a slot is 0 or between the two.
    timing : RingTiming or PolluxTiming
        How fast a ring is, by its number of workers.
    minibatches : float
        Mini-batches wanted, of all workers together: epochs times samples divided by the mini-batch.
    demand : mapping
        Resource -> amount that each worker takes of its server.
    utility : Utility
        Its ``value`` is also the job's weight in the total completion time.
    change_s : float
        Seconds of a slot that are lost when it changes: it goes on after a pause, with another number of workers or on
        other servers. Its first start is no change, nor is another ring or bandwidth. At most a slot: that then does
        nothing. Jobs in one piece never change.
    least_run_slots : int
        Fewest slots from a start or a change to the next: it then goes on with the same workers on every server, unless
        it has finished or its last slot has passed. Preemptive jobs only.
    speeds : mapping
        Type of accelerator -> how fast the job is there, times the mini-batches of its ``timing``: throughputs, as in
        Gavel, so that all of the iteration is scaled, its communication too. Workers on several types all wait for the
        slowest. It has every type of the cluster; 0: the job cannot run there. Empty: types make no difference to it.
    fair_s : float, optional
        Seconds from its arrival to its end if its fair share of the cluster were its own, for the objective
        ``finish_time_fairness``. None: with the N-th part of all resources, N the number of jobs
        (:func:`~ddlopt.models.scheduling.fair_time.fair_s`).
    """

    name: str
    arrival: int = Field(default=0, ge=0)
    deadline: int | None = None
    min_workers: int = Field(default=1, ge=1)
    max_workers: int = Field(ge=1)
    timing: Timing
    minibatches: float = Field(gt=0)
    demand: dict[str, float] = Field(default_factory=lambda: {"gpu": 1.0})
    utility: Utility = Capped()
    change_s: float = Field(default=0.0, ge=0)
    least_run_slots: int = Field(default=1, ge=1)
    speeds: dict[str, float] = Field(default={})
    fair_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    @model_serializer(mode="wrap")
    def _data(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "change_s", "least_run_slots", "speeds", "fair_s")

    @property
    def widths(self) -> range:
        """The widths it may have in a slot, 0 apart."""
        return range(self.min_workers, self.max_workers + 1)


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
        require_memory(f"slots is {self.slots}: so many slots", 200.0 * self.slots)
        servers = sum(group.count for group in self.servers)
        require_memory(f"servers has {servers} servers: so many servers", 200.0 * servers)
        _check_servers(self)
        for place, job in enumerate(self.jobs):
            _check_job(self, job, f"jobs[{place}] '{job.name}'")
        if self.network is not None:
            if self.contention is not None:
                raise ValueError("there are both a network and contention; give the one that limits bandwidth")
            check_network(self.network, self.server_count)
        if self.bandwidth == "shared" and self.network is None:
            raise ValueError("bandwidth is 'shared', but there is no network to share; give one")
        if self.energy_price_per_j and self.objective != "utility":
            raise ValueError(
                f"energy_price_per_j counts in objective 'utility' only, but objective is {self.objective!r}"
            )
        _check_fair_times(self)
        return self

    def changed(self, **fields: Any) -> Self:
        """The same with other fields; what counts in the objective that it had, and not in the new one, is left out."""
        objective = fields.get("objective", self.objective)
        if objective != "utility":
            fields["energy_price_per_j"] = 0.0
        if objective != "finish_time_fairness":
            fields["jobs"] = tuple(
                job if job.fair_s is None else job.model_copy(update={"fair_s": None})
                for job in fields.get("jobs", self.jobs)
            )
        return super().changed(**fields)

    @property
    def must_finish(self) -> bool:
        """Whether every job has to be finished."""
        return self.objective in ("makespan", "completion", "finish_time_fairness")

    @property
    def sense(self) -> Literal["minimize", "maximize"]:
        """Utilities and fairness are maximised, times minimised."""
        return "maximize" if self.objective in ("utility", "max_min") else "minimize"

    @property
    def objective_unit(self) -> str:
        """Seconds for times; utilities and ratios have no unit."""
        return "s" if self.objective in ("makespan", "completion") else ""

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

    @property
    def typed(self) -> bool:
        """Whether the speed of some job depends on the type of the accelerators that it is on."""
        return any(job.speeds for job in self.jobs)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """(S,) type of the accelerators of each server."""
        return tuple(group.type for group in self.servers for _ in range(group.count))

    @cached_property
    def paces(self) -> npt.NDArray[np.float64]:
        """(I, S) how fast each job is on each server, relative to its timing; 0: it cannot run there."""
        return np.array([[job.speeds.get(name, 1.0) for name in self.types] for job in self.jobs])

    @property
    def changes_cost(self) -> bool:
        """Whether some job may change, and loses time when it does."""
        return self.preemptive and self.slots > 1 and any(job.change_s for job in self.jobs)

    @property
    def runs_are_long(self) -> bool:
        """Whether some job may not change in every slot."""
        return self.slots > 1 and any(job.least_run_slots > 1 for job in self.jobs)

    def part_after_change(self, job: int) -> float:
        """The part of a slot that a job works in which it changes."""
        return 1 - self.jobs[job].change_s / self.slot_s if self.preemptive else 1.0


def most_workers(capacity: npt.NDArray[np.float64], demand: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """(S,) workers with ``demand`` (R,) on servers with ``capacity`` (S, R) left: as many as the check lets pass."""
    wanted = demand > 0
    if not wanted.any():
        raise ValueError("a worker that takes nothing")
    held: npt.NDArray[np.float64] = (capacity[:, wanted] / demand[wanted]).min(axis=1)
    return np.floor(np.maximum(held, 0.0) * (1 + FEASIBILITY_TOL)).astype(np.int64)


def _check_fair_times(instance: SchedulingInstance) -> None:
    """Times with a fair share count where they matter, and are given where a share alone does not say them."""
    given = [place for place, job in enumerate(instance.jobs) if job.fair_s is not None]
    if instance.objective != "finish_time_fairness":
        if given:
            raise ValueError(
                f"jobs[{given[0]}].fair_s counts in objective 'finish_time_fairness' only, but objective is "
                f"{instance.objective!r}"
            )
        return
    shared = instance.contention is not None or instance.bandwidth == "shared"
    for place, job in enumerate(instance.jobs):
        if job.fair_s is None and (shared or job.speeds):
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


def _check_job(instance: SchedulingInstance, job: Job, place: str) -> None:
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
    if job.change_s > instance.slot_s:
        raise ValueError(
            f"{place}: change_s is {job.change_s:g}, longer than a slot of {instance.slot_s:g} s; lower it, "
            "or use longer slots"
        )
    if job.least_run_slots > 1 and not instance.preemptive:
        raise ValueError(
            f"{place}: least_run_slots is {job.least_run_slots}, but jobs run in one piece and never change; leave it "
            "out"
        )
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
    if job.speeds:
        room = _check_speeds(instance, job, place, most_workers(instance.capacity, row))
    if job.max_workers > room:
        raise ValueError(
            f"{place}: max_workers is {job.max_workers}, but the cluster holds {room} of its workers; lower it or add "
            "servers"
        )
    if instance.contention is not None and job.timing.kind != "ring":
        raise ValueError(f"{place}: timing is '{job.timing.kind}', but contention needs 'ring' timing")
    if instance.bandwidth == "shared" and job.timing.kind != "ring":
        raise ValueError(f"{place}: timing is '{job.timing.kind}', but shared bandwidth needs 'ring' timing")


def _check_speeds(instance: SchedulingInstance, job: Job, place: str, held: npt.NDArray[np.int64]) -> int:
    """The most workers of a job with speeds, of those ``held`` by each server."""
    if instance.contention is not None or instance.bandwidth == "shared":
        also = "contention" if instance.contention is not None else "shared bandwidth"
        raise ValueError(f"{place}: there are both speeds and {also}, which are not modelled together; remove one")
    known = set(instance.types)
    for name in sorted(known - set(job.speeds)):
        raise ValueError(f"{place}: speeds has no type '{name}', but servers have it; add it, 0 if it cannot run there")
    for name in sorted(set(job.speeds) - known):
        raise ValueError(f"{place}: speeds names type '{name}', but the servers have {', '.join(sorted(known))}")
    for name, speed in job.speeds.items():
        if not (math.isfinite(speed) and speed >= 0):
            raise ValueError(f"{place}: speeds['{name}'] is {speed}; it must be finite and >= 0")
    of_type = {name: sum(int(n) for n, own in zip(held, instance.types, strict=True) if own == name) for name in known}
    rooms = [of_type[name] for name, speed in job.speeds.items() if speed]
    if not rooms:
        raise ValueError(f"{place}: speeds are all 0; it can run nowhere")
    return sum(rooms) if instance.mixed_types else max(rooms)
