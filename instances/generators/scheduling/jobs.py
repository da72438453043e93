"""Jobs drawn at random, and the parts that all kinds of scheduling instances share."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.instances.options import at_least, one_of, part, positive
from ddlopt.instances.workloads.cluster_models import CLUSTER_MODELS, cluster_model
from ddlopt.models.scheduling import (
    AllOrNothing,
    Capped,
    Fair,
    Job,
    Logarithmic,
    LossCurve,
    PolluxTiming,
    RingTiming,
)

Fields = dict[str, Any]
"""Fields of an instance that a kind decides; ``note`` goes into its source."""

_UTILITIES = {
    "capped": Capped,
    "logarithmic": Logarithmic,
    "loss_curve": LossCurve,
    "fair": Fair,
    "all_or_nothing": AllOrNothing,
}

UTILITIES = tuple(_UTILITIES)
"""Utilities by name, with their default shapes."""

NETWORK_BYTES_PER_S = 12.5e9
"""100 Gb/s."""


def figure(value: float, digits: int = 4) -> float:
    """Rounded to significant digits, which keeps files short."""
    return float(f"{value:.{digits}g}")


def utility_of(kind: str, value: float, digits: int = 4) -> Capped | Logarithmic | LossCurve | Fair | AllOrNothing:
    """A utility of :data:`UTILITIES`; its value is rounded to significant digits."""
    one_of("utility", kind, UTILITIES)
    return _UTILITIES[kind](value=figure(value, digits))  # type: ignore[no-any-return]


def arrivals(rng: np.random.Generator, jobs: int, slots: int, arrival_part: float) -> list[int]:
    """Sorted slots, uniform in the first part of the horizon; the first job is there from the start."""
    part("arrival_part", arrival_part)
    last = max(1, math.ceil(arrival_part * slots))
    return [0, *sorted(rng.integers(0, last, jobs - 1).tolist())]


def network_timing(rng: np.random.Generator, bandwidth_bytes_per_s: float, latency_s: float = 0.0) -> RingTiming:
    """Of one of our networks, each with the same probability."""
    name = CLUSTER_MODELS[rng.integers(len(CLUSTER_MODELS))]
    return cluster_model(name).timing(bandwidth_bytes_per_s, latency_s)


def linear_timing(slot_s: float) -> RingTiming:
    """A worker does one mini-batch a slot, however many there are."""
    return RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=slot_s)


def job_of_slots(
    name: str, timing: RingTiming | PolluxTiming, width: int, at_full_width: float, slot_s: float, **fields: Any
) -> Job:
    """A job that takes a number of slots at its full width."""
    minibatches = float(timing.minibatches_per_s(width)) * slot_s * at_full_width
    return Job(name=name, timing=timing, max_workers=width, minibatches=figure(minibatches), **fields)


def slots_wanted(
    rng: np.random.Generator, widths: npt.NDArray[np.int64], worker_slots: float, spread: float = 1.0
) -> npt.NDArray[np.float64]:
    """Log-normal numbers of slots at full width, which add up to ``worker_slots``; at least a tenth of a slot each."""
    drawn = rng.lognormal(0.0, spread, len(widths))
    return np.maximum(0.1, drawn * worker_slots / (drawn @ widths))


WIDTHS = ("powers", "any")


def widths_up_to(widest: int, which: str = "powers") -> npt.NDArray[np.int64]:
    """2, 4, 8, … or 2, 3, 4, … as far as allowed; 1 where nothing else is."""
    at_least("widest", widest, 1)
    one_of("widths", which, WIDTHS)
    found = [2**k for k in range(1, widest.bit_length())] if which == "powers" else list(range(2, widest + 1))
    return np.array(found or [1])


def deadline_after(arrival: int, at_full_width: float, slack: float, slots: int) -> int:
    """The slot that leaves ``slack`` times the slots at full width, rounded up; not past the horizon."""
    return min(slots, arrival + max(1, math.ceil(slack * at_full_width)))


def check_sizes(**sizes: int) -> None:
    """Raise OptionError unless each is at least 1."""
    for name, value in sizes.items():
        at_least(name, value, 1)


@dataclass(frozen=True)
class Kind:
    """A kind of instance as its options; they are given by name and have defaults."""

    def fields(self, rng: np.random.Generator) -> Fields:
        """The fields of an instance that the kind decides; ``note`` goes into its source."""
        raise NotImplementedError


@dataclass(frozen=True)
class ElasticJobs(Kind):
    """Jobs of our networks that may have any width up to their own or, where ``rigid``, that width only.

    Their own widths are 2, 4, 8, … or, with ``widths`` "any", 2, 3, 4, …, each with the same probability up to the
    widest. Together they want ``load`` times the worker slots that there are; how long they take at full width is
    log-normal. They arrive uniformly in the first part of the horizon. Values are uniform in 1..10, ``by_size`` times
    the worker slots that the job wants over their mean; a part of the jobs has a deadline, ``slack`` times the time at
    full width after the arrival. Every job loses ``change_s`` seconds when it changes; None: nothing. It goes on
    unchanged for ``least_run_slots`` slots; None: it may change in every slot.

    Parameters
    ----------
    jobs : int
        How many.
    slots : int
        Slots of the horizon.
    slot_s : float
        Seconds of a slot.
    widest : int
        Workers of the widest jobs, at most as many as the cluster holds.
    widths : {"powers", "any"}
        Whether jobs have 2, 4, 8, … or 2, 3, 4, … workers.
    load : float
        Worker slots that all jobs want together, over those that there are.
    arrival_part : float
        Part of the horizon in which jobs arrive.
    utility : {"logarithmic", "capped", "linear", …}
        How the value of a job grows with the work that is done.
    by_size : bool
        Whether larger jobs are worth more.
    deadline_part : float
        Part of the jobs that have a deadline.
    slack : float
        Time from arrival to deadline, over the time that the job takes at full width.
    bandwidth_bytes_per_s : float
        Of the network between servers.
    latency_s : float
        Seconds of a message besides.
    rigid : bool
        Whether a job has its own width or does not run.
    change_s : float, optional
        Seconds that a job loses when its width changes.
    least_run_slots : int, optional
        Slots in which a job goes on unchanged.
    """

    jobs: int = 20
    slots: int = 20
    slot_s: float = 3600.0
    widest: int = 8
    widths: str = "powers"
    load: float = 1.5
    arrival_part: float = 0.6
    utility: str = "logarithmic"
    by_size: bool = False
    deadline_part: float = 0.0
    slack: float = 2.0
    bandwidth_bytes_per_s: float = NETWORK_BYTES_PER_S
    latency_s: float = 0.0
    rigid: bool = False
    change_s: float | None = None
    least_run_slots: int | None = None

    def draw(self, rng: np.random.Generator, workers: int) -> list[Job]:
        """The jobs, for a cluster that holds a number of workers."""
        self._check()
        widths = rng.choice(widths_up_to(min(self.widest, workers), self.widths), self.jobs)
        wanted = slots_wanted(rng, widths, self.load * workers * self.slots)
        due = rng.random(self.jobs) < self.deadline_part
        sizes = widths * wanted
        worth = sizes / sizes.mean() if self.by_size else np.ones(self.jobs)
        made = []
        for place, arrival in enumerate(arrivals(rng, self.jobs, self.slots, self.arrival_part)):
            width = int(widths[place])
            job = job_of_slots(
                f"job-{place}",
                network_timing(rng, self.bandwidth_bytes_per_s, self.latency_s),
                width,
                float(wanted[place]),
                self.slot_s,
                arrival=arrival,
                deadline=deadline_after(arrival, float(wanted[place]), self.slack, self.slots) if due[place] else None,
                min_workers=width if self.rigid else 1,
                utility=utility_of(self.utility, rng.uniform(1, 10) * float(worth[place])),
                change_s=self.change_s or 0.0,
                least_run_slots=1 if self.least_run_slots is None else self.least_run_slots,
            )
            made.append(job)
        return made

    def _check(self) -> None:
        check_sizes(jobs=self.jobs, slots=self.slots)
        part("deadline_part", self.deadline_part)
        for name in ("load", "slack", "slot_s", "bandwidth_bytes_per_s"):
            positive(name, getattr(self, name))
        at_least("latency_s", self.latency_s, 0)
        at_least("change_s", self.change_s or 0.0, 0)
        if self.least_run_slots is not None:
            at_least("least_run_slots", self.least_run_slots, 1)


def enough_slots(jobs: list[Job], gpus: int, slot_s: float, slowest: float = 1.0) -> int:
    """A horizon in which list scheduling finishes rigid jobs, whatever its order, where only GPUs limit it.

    Let it need C slots after the last arrival, h = ceil(C / 2), and let every job take at most h slots. A job that runs
    in slot t + h started after slot t, when it did not fit: the GPUs busy in the two slots together are more than there
    are. Half of the slots have such a partner, so that C is at most twice the area over the GPUs, plus 1; and if some
    job takes more than h slots, C is at most twice its length.

    Parameters
    ----------
    slowest : float
        How many times longer than by its own timing a job may take.
    """
    taken = [
        math.ceil(job.minibatches * slowest / (float(job.timing.minibatches_per_s(job.max_workers)) * slot_s))
        for job in jobs
    ]
    area = sum(length * job.max_workers for length, job in zip(taken, jobs, strict=True))
    return max(job.arrival for job in jobs) + 2 * max(math.ceil(area / gpus), *taken, 1) + 1
