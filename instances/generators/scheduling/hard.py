"""Where taking the best of every slot, one slot after the other, loses: to jobs that leave, to caps, to bursts."""

from dataclasses import dataclass

import numpy as np

from ddlopt.instances.generators.clusters import gpu_servers
from ddlopt.instances.generators.scheduling.jobs import (
    NETWORK_BYTES_PER_S,
    Fields,
    Kind,
    check_sizes,
    job_of_slots,
    linear_timing,
    network_timing,
    utility_of,
    widths_up_to,
)
from ddlopt.instances.options import part, positive
from ddlopt.models.errors import OptionError
from ddlopt.models.scheduling import Job

_DIGITS = 8
"""Of values: enough for small edges."""


@dataclass(frozen=True)
class Departures(Kind):
    """Half of the value leaves while greedy does what would have waited.

    In each of the first T/2 slots, urgent jobs arrive that could use the whole cluster and leave after that slot; as
    many patient jobs are there from the start, each worth ``edge`` more. A greedy with an exact oracle for each slot
    does the patient jobs first and finds no urgent one left: without ``jitter`` it gets J/2 · (1 + edge), the optimum
    J/2 · (2 + edge), which comes to 1/2 as edge -> 0. A worker does one mini-batch a slot, at every width, so that
    nothing but the departures matters.

    Parameters
    ----------
    jobs : int
        In all; a multiple of the number of slots.
    slots : int
        T, even.
    gpus : int
        A multiple of the jobs of a slot.
    edge : float
        Of a patient job; positive.
    jitter : float
        Urgent jobs are worth 1 - jitter .. 1, uniformly.
    """

    jobs: int = 2
    slots: int = 2
    gpus: int = 2
    edge: float = 0.01
    jitter: float = 0.0

    def fields(self, rng: np.random.Generator) -> Fields:
        """See the class."""
        check_sizes(jobs=self.jobs, slots=self.slots, gpus=self.gpus)
        positive("edge", self.edge)
        part("jitter", self.jitter)
        if self.slots % 2:
            raise OptionError(f"slots is {self.slots}; departures need an even number of them")
        at_once = self.jobs // self.slots
        if self.jobs % self.slots:
            raise OptionError(f"jobs is {self.jobs}; use a multiple of the {self.slots} slots")
        if self.gpus % at_once:
            raise OptionError(f"gpus is {self.gpus}; use a multiple of the {at_once} jobs of a slot")
        width = self.gpus // at_once
        jobs: list[Job] = []
        for slot in range(self.slots // 2):
            for _ in range(at_once):
                value = 1 - self.jitter * rng.random()
                jobs.append(self._job(f"urgent-{len(jobs)}", width, value, arrival=slot, deadline=slot + 1))
        for place in range(len(jobs)):
            jobs.append(self._job(f"patient-{place}", width, 1 + self.edge))
        return {"jobs": jobs, "slots": self.slots, "slot_s": 1.0, "servers": gpu_servers(self.gpus, self.gpus)}

    def _job(self, name: str, width: int, value: float, **when: int) -> Job:
        return job_of_slots(
            name, linear_timing(1.0), width, 1.0, 1.0, utility=utility_of("capped", value, _DIGITS), **when
        )


@dataclass(frozen=True)
class Caps(Kind):
    """Nobody leaves, but narrow jobs run out of time: greedy gets 1 - x + x² of the optimum, at least 3/4.

    A part x of the GPUs can be filled by narrow jobs, of one worker each, that need every slot. Wide jobs, worth
    ``edge`` more for each mini-batch, can use all GPUs and together want what the narrow ones leave. Greedy does the
    wide jobs first; then the narrow ones have too few slots and cannot use the GPUs left over. Without ``spread`` and
    with edge -> 0 the ratio is attained where the wide jobs take a whole number of slots. A worker does one mini-batch
    a slot at every width.

    Parameters
    ----------
    jobs : int
        Wide ones; the narrow ones are ``narrow_part`` of the GPUs, rounded.
    narrow_part : float
        x; a half is the worst.
    spread : float
        Values are multiplied by 1 .. 1 + spread, uniformly, for narrow and for wide jobs.
    """

    jobs: int = 1
    slots: int = 4
    gpus: int = 4
    narrow_part: float = 0.5
    edge: float = 0.01
    spread: float = 0.0

    def fields(self, rng: np.random.Generator) -> Fields:
        """See the class."""
        check_sizes(jobs=self.jobs, slots=self.slots, gpus=self.gpus)
        part("narrow_part", self.narrow_part)
        positive("edge", self.edge)
        if self.spread:
            positive("spread", self.spread)
        narrow = round(self.narrow_part * self.gpus)
        if not 0 < narrow < self.gpus:
            raise OptionError(
                f"narrow_part is {self.narrow_part}, which makes {narrow} of {self.gpus} GPUs; use others"
            )
        jobs = [self._job(rng, f"narrow-{place}", 1, self.slots, 1.0) for place in range(narrow)]
        work = (self.gpus - narrow) * self.slots / self.jobs
        jobs += [self._job(rng, f"wide-{place}", self.gpus, work, 1 + self.edge) for place in range(self.jobs)]
        return {"jobs": jobs, "slots": self.slots, "slot_s": 1.0, "servers": gpu_servers(self.gpus, self.gpus)}

    def _job(self, rng: np.random.Generator, name: str, width: int, work: float, worth: float) -> Job:
        value = worth * work * (1 + self.spread * rng.random())
        return job_of_slots(
            name, linear_timing(1.0), width, work / width, 1.0, utility=utility_of("capped", value, _DIGITS)
        )


@dataclass(frozen=True)
class Bursty(Kind):
    """Bursts of urgent jobs into a cluster whose other work could wait, with iteration times of ring all-reduce.

    There are ``bursts`` bursts at random slots. Each brings jobs that together want ``load`` times the cluster for
    ``urgent_slots`` slots and then leave. The other half of the jobs is there from the start and wants the cluster for
    all slots without a burst, at values 1 .. 1 + edge for a GPU and slot where urgent jobs are worth 1. Widths are
    2, 4, 8, …; iteration times are those of our networks, where width w > 1 does less than w times a worker's work.

    Parameters
    ----------
    bursts : int
        How many.
    urgent_slots : int
        Slots that the jobs of a burst have.
    """

    jobs: int = 40
    slots: int = 24
    gpus: int = 16
    gpus_per_server: int = 8
    slot_s: float = 3600.0
    bursts: int = 6
    urgent_slots: int = 2
    load: float = 1.5
    edge: float = 0.2
    widest: int = 8
    utility: str = "capped"
    bandwidth_bytes_per_s: float = NETWORK_BYTES_PER_S

    def fields(self, rng: np.random.Generator) -> Fields:
        """See the class."""
        self._check()
        starts = self.urgent_slots * np.sort(rng.choice(self.slots // self.urgent_slots, self.bursts, replace=False))
        urgent = self.jobs // 2
        jobs: list[Job] = []
        for start, crowd in zip(starts.tolist(), np.array_split(np.arange(urgent), self.bursts), strict=True):
            wanted = self.load * self.gpus * self.urgent_slots
            when = {"arrival": start, "deadline": start + self.urgent_slots}
            jobs += self._jobs(rng, [f"urgent-{place}" for place in crowd], wanted, 0.0, when)
        calm = self.gpus * (self.slots - self.bursts * self.urgent_slots)
        jobs += self._jobs(rng, [f"patient-{place}" for place in range(self.jobs - urgent)], calm, self.edge, {})
        return {
            "jobs": jobs,
            "slots": self.slots,
            "slot_s": self.slot_s,
            "servers": gpu_servers(self.gpus, self.gpus_per_server),
        }

    def _check(self) -> None:
        check_sizes(slots=self.slots, gpus=self.gpus, bursts=self.bursts, urgent_slots=self.urgent_slots)
        for name in ("slot_s", "load", "edge", "bandwidth_bytes_per_s"):
            positive(name, getattr(self, name))
        if self.jobs < 2 * self.bursts:
            raise OptionError(f"jobs is {self.jobs}; {self.bursts} bursts need at least {2 * self.bursts}")
        if self.bursts * self.urgent_slots >= self.slots:
            raise OptionError(
                f"bursts is {self.bursts}, of {self.urgent_slots} slots each; {self.slots} slots leave no calm between"
            )

    def _jobs(
        self, rng: np.random.Generator, names: list[str], worker_slots: float, edge: float, when: dict[str, int]
    ) -> list[Job]:
        """Jobs that want a number of GPU slots together, all widths and lengths in equal proportion on average."""
        widths = rng.choice(widths_up_to(min(self.widest, self.gpus)), len(names))
        shares = rng.uniform(0.5, 1.5, len(names))
        shares *= worker_slots / shares.sum()
        made = []
        for name, width, share in zip(names, widths.tolist(), shares.tolist(), strict=True):
            utility = utility_of(self.utility, share * (1 + edge * rng.random()))
            timing = network_timing(rng, self.bandwidth_bytes_per_s)
            made.append(job_of_slots(name, timing, width, share / width, self.slot_s, utility=utility, **when))
        return made
