"""From the jobs of a trace to an instance: what the readers of all traces share.

Time is cut into slots from the start of a window on; a job may run from the slot in which it arrives. How large the
cluster was and what connected it, no trace says: both are options, with rules for what is left open.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.instances.generators.clusters import gpu_servers, network_of
from ddlopt.instances.generators.scheduling.jobs import enough_slots, utility_of
from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.models.scheduling import Job, PolluxTiming, RingTiming, SchedulingInstance, ServerGroup
from ddlopt.models.tolerances import ROUNDING, WHOLE_TOL

GPU = {"gpu": 1.0}
ANYWHERE: Mapping[str, float] = {}
"""Speeds of a job to which types of GPUs make no difference."""
# A definition.
HOUR_S = 3600.0
OBJECTIVES = ("utility", "max_min", "makespan", "completion", "finish_time_fairness")


class TraceJob(NamedTuple):
    """A job as its row tells it.

    Parameters
    ----------
    row : int
        In the file, for messages.
    arrival_s, duration_s : float
        ``duration_s`` is the time that it took with ``max_workers``.
    minibatches : float
        What it did in that time.
    due_s : float, optional
        When it should have ended.
    speeds : mapping
        By type of GPU, where the cluster has several, relative to ``timing``.
    """

    row: int
    name: str
    arrival_s: float
    duration_s: float
    min_workers: int
    max_workers: int
    timing: RingTiming | PolluxTiming
    minibatches: float
    value: float = 1.0
    due_s: float | None = None
    demand: Mapping[str, float] = GPU
    speeds: Mapping[str, float] = ANYWHERE

    @property
    def gpus(self) -> float:
        """GPUs that it takes at full width."""
        return self.max_workers * self.demand.get("gpu", 0.0)


@dataclass(frozen=True)
class Setting:
    """What a trace leaves open.

    Parameters
    ----------
    start_s : float, optional
        Begin of the window in the file's clock; None: the first arrival.
    hours : float, optional
        Length of the window; jobs that arrive in it are taken. None: all from the start on, until the last of them ends
        if each runs at once and for as long as recorded.
    tail_hours : float, optional
        What the horizon has after the window. None: nothing where utilities or fairness count, and where all jobs have
        to finish as much as list scheduling needs at most if GPUs alone limit it.
    slot_s : float
    gpus : int, optional
        Of the cluster. None: as many as the jobs of the window would use for ``busy_quantile`` of the time if each ran
        at once and for as long as recorded; at least what the widest job takes; whole servers.
    gpus_per_server : int
    per_server : mapping, optional
        Everything that a server has, where it is more than GPUs.
    servers : tuple of ServerGroup, optional
        In place of the two.
    types : mapping, optional
        GPUs by type, in place of ``gpus``. One type is as good as none: jobs then have no speeds.
    mixed_types : bool
        Whether a job may be on several at once.
    network : str
        ``none``, ``star`` or ``leaf-spine`` (racks of 4 servers, 2:1 oversubscribed).
    nic_bytes_per_s : float
        Of a server in the network.
    slack : float, optional
        Jobs without a deadline of their own get one: ``slack`` times their recorded duration after their arrival.
        None: at the end of the horizon; over months, nearly any schedule then does nearly everything.
    fair : {"share", "count"}
        A job's time with its fair share, for the objective ``finish_time_fairness``. ``share``: that of the instance,
        of the N-th part of all GPUs. ``count``: its recorded duration times N over the GPUs, at least 1, however wide
        it is.
    """

    path: Path
    start_s: float | None = None
    hours: float | None = None
    tail_hours: float | None = None
    slot_s: float = HOUR_S
    gpus: int | None = None
    gpus_per_server: int = 8
    per_server: Mapping[str, float] | None = None
    busy_quantile: float = 0.9
    servers: tuple[ServerGroup, ...] | None = None
    types: Mapping[str, int] | None = None
    mixed_types: bool = True
    network: str = "none"
    nic_bytes_per_s: float = 50e9
    slack: float | None = None
    objective: str = "utility"
    utility: str = "capped"
    preemptive: bool = True
    fair: str = "share"
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        positive("slot_s", self.slot_s)
        positive("nic_bytes_per_s", self.nic_bytes_per_s)
        at_least("gpus_per_server", self.gpus_per_server, 1)
        one_of("objective", self.objective, OBJECTIVES)
        one_of("fair", self.fair, ("share", "count"))
        if self.fair != "share" and self.objective != "finish_time_fairness":
            raise OptionError(
                f"fair is {self.fair!r}, which counts in objective 'finish_time_fairness' only; leave it out"
            )
        utility_of(self.utility, 1.0)
        if self.hours is not None:
            positive("hours", self.hours)
        if self.slack is not None:
            positive("slack", self.slack)
        if self.tail_hours is not None:
            at_least("tail_hours", self.tail_hours, 0)
        if self.gpus is not None:
            at_least("gpus", self.gpus, 1)
        if not 0 < self.busy_quantile <= 1:
            raise OptionError(f"busy_quantile is {self.busy_quantile}; it must be above 0 and at most 1")

    def window(self, jobs: Sequence[TraceJob], clock: str = "s") -> tuple[list[TraceJob], float]:
        """The jobs that arrive in the window, by arrival, and its start.

        Parameters
        ----------
        clock : {"s", "date"}
            How the file's times look in messages.

        Raises
        ------
        InstanceError
            If there is none.
        """
        if not jobs:
            raise InstanceError(f"{self.path}: there is no job in it")
        times = [job.arrival_s for job in jobs]
        start_s = min(times) if self.start_s is None else self.start_s
        end_s = math.inf if self.hours is None else start_s + self.hours * HOUR_S
        taken = sorted((job for job in jobs if start_s <= job.arrival_s < end_s), key=lambda job: job.arrival_s)
        if not taken:
            length = "" if self.hours is None else f" within {self.hours:g} hours"
            start, first, last = (_shown(clock, time) for time in (start_s, min(times), max(times)))
            raise InstanceError(
                f"{self.path}: no job arrives from {start} on{length}; arrivals are from {first} to {last}"
            )
        return taken, start_s

    def instance(self, taken: Sequence[TraceJob], start_s: float, name: str, source: str) -> SchedulingInstance:
        """The instance of jobs in the order of their arrivals.

        Parameters
        ----------
        source : str
            What they are; how the rest was chosen is added.

        Raises
        ------
        InstanceError
            If a job is wider than the cluster, or the numbers make no instance.
        """
        arrivals = [int((job.arrival_s - start_s) // self.slot_s) for job in taken]
        slots = self._slots(max(job.arrival_s + job.duration_s for job in taken) - start_s, arrivals[-1])
        servers = self.servers or self._servers(taken, start_s, slots * self.slot_s)
        held = int(sum(group.count * group.capacity.get("gpu", 0.0) for group in servers))
        made = [self._job(job, arrival, start_s) for job, arrival in zip(taken, arrivals, strict=True)]
        if self.fair == "count":
            sharing = max(1.0, len(taken) / held)
            made = [
                job.model_copy(update={"fair_s": sharing * each.duration_s})
                for job, each in zip(made, taken, strict=True)
            ]
            self.notes.append(f"with its fair share a job takes {sharing:g} times as long as alone, however wide it is")
        slots += self._tail(made, held)
        if self.slack is not None:
            self.notes.append(f"due {self.slack:g} times its duration after its arrival, which is synthetic")
        network = network_of(self.network, sum(group.count for group in servers), self.nic_bytes_per_s)
        if network is not None:
            self.notes.append(f"the network is synthetic: {self.network}")
        return SchedulingInstance.from_data(
            {
                "name": name,
                "source": "; ".join([f"{source}, {len(taken)} jobs", *self.notes]),
                "slots": slots,
                "slot_s": self.slot_s,
                "servers": servers,
                "network": network,
                "jobs": [_within(job, slots) for job in made],
                "objective": self.objective,
                "preemptive": self.preemptive,
                **({"mixed_types": self.mixed_types} if self._typed else {}),
            },
            str(self.path),
        )

    @property
    def _typed(self) -> bool:
        return self.types is not None and len(self.types) > 1

    def _slots(self, last_end_s: float, last_arrival: int) -> int:
        if self.hours is not None:
            return math.ceil(self.hours * HOUR_S / self.slot_s)
        return max(last_arrival + 1, math.ceil(last_end_s / self.slot_s - WHOLE_TOL))

    def _servers(self, jobs: Sequence[TraceJob], start_s: float, length_s: float) -> tuple[ServerGroup, ...]:
        widest = max(jobs, key=lambda job: job.gpus)
        if self.types is not None:
            return self._servers_of_types(jobs, self.types)
        if self.gpus is not None:
            if widest.gpus > self.gpus:
                raise InstanceError(
                    f"{self.path}: row {widest.row} takes {widest.gpus:g} GPUs, but the cluster has {self.gpus}; "
                    f"give gpus={math.ceil(widest.gpus)} or more, or leave such jobs out"
                )
            return gpu_servers(self.gpus, self.gpus_per_server)
        used = busy_quantile(
            np.array([job.arrival_s - start_s for job in jobs]),
            np.array([job.duration_s for job in jobs]),
            np.array([job.gpus for job in jobs]),
            length_s,
            self.busy_quantile,
        )
        servers = max(1, math.ceil(max(used, widest.gpus) / self.gpus_per_server))
        self.notes.append(
            f"{servers} servers of {self.gpus_per_server} GPUs: the {self.busy_quantile:g} quantile over time of GPUs "
            f"in use had every job run at once as recorded ({used:g}), at least the widest job ({widest.gpus:g})"
        )
        if self.per_server is not None:
            return (ServerGroup(count=servers, capacity=dict(self.per_server)),)
        return gpu_servers(servers * self.gpus_per_server, self.gpus_per_server)

    def _servers_of_types(self, jobs: Sequence[TraceJob], types: Mapping[str, int]) -> tuple[ServerGroup, ...]:
        for job in jobs:
            # A single type has no speeds.
            runs_on = [count for name, count in types.items() if job.speeds.get(name, 1.0)]
            most = sum(runs_on) if self.mixed_types else max(runs_on)
            if job.gpus > most:
                raise InstanceError(
                    f"{self.path}: row {job.row} takes {job.gpus:g} GPUs, but there are {most} on which it can be at "
                    "once; give types more GPUs, or leave such jobs out"
                )
        return tuple(
            group.model_copy(update={"type": name})
            for name, count in types.items()
            for group in gpu_servers(count, self.gpus_per_server)
        )

    def _job(self, job: TraceJob, arrival: int, start_s: float) -> Job:
        due, due_s = None, job.due_s
        if due_s is None and self.slack is not None:
            due_s = job.arrival_s + self.slack * job.duration_s
        if due_s is not None:
            due = max(arrival + 1, math.ceil((due_s - start_s) / self.slot_s - WHOLE_TOL))
        return Job(
            name=job.name,
            arrival=arrival,
            deadline=due,
            min_workers=job.min_workers,
            max_workers=job.max_workers,
            timing=job.timing,
            minibatches=job.minibatches,
            demand=dict(job.demand),
            utility=utility_of(self.utility, job.value),
            speeds=dict(job.speeds) if self._typed else {},
        )

    def _tail(self, jobs: list[Job], gpus: int) -> int:
        """Slots after the window."""
        if self.tail_hours is not None:
            return math.ceil(self.tail_hours * HOUR_S / self.slot_s)
        if self.objective in ("utility", "max_min"):
            return 0
        if self._typed:
            return max(0, self._enough_slots_of_types(jobs) - jobs[-1].arrival)
        return max(0, enough_slots(jobs, max(gpus, 1), self.slot_s) - jobs[-1].arrival)

    def _enough_slots_of_types(self, jobs: list[Job]) -> int:
        """What list scheduling needs at most on each type, of jobs that stay on one: the one least full with it.

        Jobs for which no single type is wide enough run by themselves after all others, at the pace of the slowest.
        """
        assert self.types is not None
        on: dict[str, list[Job]] = {name: [] for name in self.types}
        area, alone_slots = dict.fromkeys(self.types, 0.0), 0
        length = {id(job): job.minibatches / float(job.timing.minibatches_per_s(job.max_workers)) for job in jobs}
        for job in sorted(jobs, key=lambda job: -length[id(job)] * job.max_workers):
            work = length[id(job)] * job.max_workers
            wide = [name for name, count in self.types.items() if job.speeds[name] and job.max_workers <= count]
            if not wide:
                pace = min(speed for speed in job.speeds.values() if speed)
                alone_slots += math.ceil(length[id(job)] / pace / self.slot_s)
                continue
            least = {name: (area[name] + work / job.speeds[name]) / self.types[name] for name in wide}
            best = min(least, key=lambda name: least[name])
            area[best] += work / job.speeds[best]
            on[best].append(job.model_copy(update={"minibatches": job.minibatches / job.speeds[best]}))
        ends = [enough_slots(own, self.types[name], self.slot_s) for name, own in on.items() if own]
        return max([*ends, jobs[-1].arrival + 1]) + alone_slots


def _within(job: Job, slots: int) -> Job:
    """The job with a deadline in the horizon or, past it, with none."""
    if job.deadline is None or job.deadline < slots:
        return job
    return job.model_copy(update={"deadline": None})


def _shown(clock: str, time_s: float) -> str:
    if clock == "date":
        return np.datetime64(round(time_s), "s").item().isoformat(" ")
    return f"{time_s:g} s"


def busy_quantile(
    starts_s: npt.NDArray[np.float64],
    lengths_s: npt.NDArray[np.float64],
    gpus: npt.NDArray[np.float64],
    horizon_s: float,
    quantile: float,
) -> float:
    """The fewest GPUs that suffice for a part of the time in 0..``horizon_s``.

    Parameters
    ----------
    starts_s, lengths_s, gpus : (I,) arrays
        When each job begins, for how long it runs and with how many GPUs.
    quantile : float
        The part of the time.
    """
    ends_s = np.minimum(starts_s + lengths_s, horizon_s)
    times = np.concatenate([starts_s, ends_s, [0.0, horizon_s]])
    order = np.argsort(times, kind="stable")
    level = np.cumsum(np.concatenate([gpus, -gpus, [0.0, 0.0]])[order])[:-1]
    held_s = np.diff(times[order])
    by_level = np.argsort(level, kind="stable")
    until_s = np.cumsum(held_s[by_level])
    place = int(np.searchsorted(until_s, quantile * horizon_s * (1 - ROUNDING)))
    return float(level[by_level[min(place, len(level) - 1)]])


def seconds(option: str, value: str | float | None) -> float | None:
    """An option in seconds, which the command line gives as a word."""
    if value is None:
        return None
    try:
        number = float(value)
    except ValueError:
        raise OptionError(f"{option} is {value!r}; in this format it is a number of seconds") from None
    if not math.isfinite(number):
        raise OptionError(f"{option} is {value!r}; it must be finite")
    return number
