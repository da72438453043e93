"""Jobs that share the servers of a cluster, with a table of step times each."""

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ddlopt.models.cluster.family import ClusterAnswer, ClusterProblem
from ddlopt.models.contracts import Part
from ddlopt.models.sizes import require_memory

Goal = Literal["makespan", "weighted_completion", "weighted_tardiness"]
Step = Annotated[float, Field(gt=0)] | None
_MOST_SERVERS = 100_000
"""What is larger is a slip of the pen."""
MOST_SLOTS = 10_000
"""That all jobs may take one after the other: a schedule names every slot of a job."""


class ClusterJob(Part):
    """A training job.

    Parameters
    ----------
    name : str
    iterations : float
    arrival_s : float
    weight : float
    deadline_s : float, optional
        For tardiness: lateness counts from then on.
    step_s : tuple of float or None
        Time of an iteration on 1, 2, … servers; None where it cannot have that number. A plan's time: it can be kept.
    least_s : tuple of float or None
        Time below which no plan is, for the same numbers of servers; empty: the plans are the best ones.
    """

    name: str = Field(min_length=1)
    iterations: float = Field(gt=0)
    arrival_s: float = Field(default=0.0, ge=0)
    weight: float = Field(default=1.0, ge=0)
    deadline_s: float | None = None
    step_s: tuple[Step, ...] = Field(min_length=1)
    least_s: tuple[Step, ...] = ()

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Numbers of servers that it can have."""
        return tuple(width for width, step in enumerate(self.step_s, start=1) if step is not None)

    @cached_property
    def _lengths(self) -> dict[int, Fraction]:
        return {width: Fraction(self.iterations) * Fraction(self.step_s[width - 1] or 0) for width in self.widths}

    def length_s(self, width: int) -> Fraction:
        """All iterations on a number of servers, at the plan's time."""
        return self._lengths[width]


class JobsInstance(ClusterProblem):
    r"""When each job runs, and on how many servers.

    Job j has :math:`q_j` iterations of :math:`t_j(w)` seconds on w servers, and may start at :math:`r_j`. At no time do
    jobs have more than K servers together. Two ways to run:

    * ``rigid``: a job runs in one piece on w servers, from its start :math:`S_j \ge r_j` to
      :math:`C_j = S_j + q_j t_j(w)`;
    * ``slots``: time is cut into slots of length s. In each slot that begins at :math:`r_j` or later a job has some
      number of servers, or none, all through the slot; w of them do :math:`s / t_j(w)` iterations. It completes within
      the slot in which its iterations are done, and its servers are idle for the rest of that slot.

    Minimised are the ``makespan`` :math:`\max_j C_j`, the ``weighted_completion`` :math:`\sum_j w_j C_j`, or the
    ``weighted_tardiness`` :math:`\sum_j w_j \max(0, C_j - d_j)`.

    Step times are those of plans that are known. Where no plan is proven to be the best, ``least_s`` of a job bounds
    its step times from below: a schedule with these times instead bounds every schedule with any plans.

    Parameters
    ----------
    servers : int
        K.
    jobs : tuple of ClusterJob
    mode : {"rigid", "slots"}
    slot_s : float, optional
        s; of ``slots`` only.
    objective : {"makespan", "weighted_completion", "weighted_tardiness"}
    """

    kind: ClassVar[str] = "instance of cluster jobs"

    problem: Literal["jobs"] = "jobs"
    servers: int = Field(ge=1, le=_MOST_SERVERS)
    jobs: tuple[ClusterJob, ...] = Field(min_length=1)
    mode: Literal["rigid", "slots"] = "rigid"
    slot_s: float | None = Field(default=None, gt=0)
    objective: Goal = "makespan"

    @model_validator(mode="after")
    def _check(self) -> Self:
        require_memory(f"{len(self.jobs)} jobs on {self.servers} servers", 64.0 * len(self.jobs) * self.servers)
        names = [job.name for job in self.jobs]
        for place, job in enumerate(self.jobs):
            where = f"jobs[{place}] ('{job.name}')"
            if names.index(job.name) != place:
                raise ValueError(f"{where} is named like jobs[{names.index(job.name)}]; names must differ")
            self._check_times(where, job)
            if self.objective == "weighted_tardiness" and job.deadline_s is None:
                raise ValueError(f"{where} has no deadline_s, which weighted_tardiness needs")
            if job.deadline_s is not None and job.deadline_s < job.arrival_s:
                raise ValueError(
                    f"{where}: its deadline, {job.deadline_s:g} s, is before its arrival, {job.arrival_s:g} s"
                )
        if (self.mode == "slots") != (self.slot_s is not None):
            raise ValueError(f"slot_s is {self.slot_s}, and mode is {self.mode}; slots have a length, rigid jobs none")
        if self.slot_s is not None:
            longest = sum(max(job.length_s(width) for width in job.widths) for job in self.jobs)
            slots = (longest + Fraction(max(job.arrival_s for job in self.jobs))) / Fraction(self.slot_s)
            if slots > MOST_SLOTS:
                raise ValueError(
                    f"slot_s is {self.slot_s:g}: jobs may take {float(slots):.3g} slots, at most {MOST_SLOTS}"
                )
        return self

    def _check_times(self, where: str, job: ClusterJob) -> None:
        if len(job.step_s) > self.servers:
            raise ValueError(f"{where}: step_s has {len(job.step_s)} widths, and there are {self.servers} servers")
        if not job.widths:
            raise ValueError(f"{where} fits nowhere: step_s has no time for any number of servers")
        if job.least_s and len(job.least_s) != len(job.step_s):
            raise ValueError(f"{where}: least_s has {len(job.least_s)} widths, and step_s {len(job.step_s)}")
        for width, (least, step) in enumerate(zip(job.least_s, job.step_s, strict=False), start=1):
            if least is not None and step is not None and least > step:
                raise ValueError(
                    f"{where}: on {width} servers least_s is {least:g} and step_s {step:g}; no plan is below"
                )
            if least is None and step is not None:
                raise ValueError(
                    f"{where}: on {width} servers step_s is {step:g}, and least_s says that there is no plan"
                )

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.jobs)

    @property
    def objective_unit(self) -> str:
        """Seconds of a makespan; the others are times with weights."""
        return "s" if self.objective == "makespan" else ""

    def cost(self, completions: Iterable[Fraction]) -> Fraction:
        """The objective of the jobs' completions, in their order."""
        ends = list(completions)
        if self.objective == "makespan":
            return max(ends)
        late = self.objective == "weighted_tardiness"
        dues = [Fraction(job.deadline_s or 0) if late else Fraction(0) for job in self.jobs]
        return sum(
            (
                Fraction(job.weight) * max(Fraction(0), end - due)
                for job, end, due in zip(self.jobs, ends, dues, strict=True)
            ),
            Fraction(0),
        )

    def first_twin(self, place: int) -> int | None:
        """The last job before one that is identical but for its name; None if there is none."""
        told = [job.model_dump(exclude={"name"}) for job in self.jobs[: place + 1]]
        return next((other for other in range(place - 1, -1, -1) if told[other] == told[place]), None)

    def at_least_times(self) -> "JobsInstance":
        """The same jobs with the times below which no plan is: its optimum bounds every schedule with any plans."""
        jobs = [job.model_dump() | {"step_s": job.least_s or job.step_s, "least_s": ()} for job in self.jobs]
        return self.changed(name=f"{self.name}-least", jobs=jobs)


class Stretch(Part):
    """Servers that a job has for some time.

    Parameters
    ----------
    start : str
        Of a rigid job the second at which it begins, a fraction such as ``"1182/13"``; otherwise the number of a slot.
    servers : int
    """

    start: str = Field(pattern=r"^[0-9]{1,600}(/[1-9][0-9]{0,599})?$")
    servers: int = Field(ge=1)


class JobsSchedule(ClusterAnswer):
    """When each job has how many servers.

    Parameters
    ----------
    runs : tuple of tuple of Stretch
        Of each job: one for a rigid job, one for each slot in which it has servers otherwise.
    """

    kind: ClassVar[str] = "schedule of cluster jobs"

    problem: Literal["jobs"] = "jobs"
    runs: tuple[tuple[Stretch, ...], ...]
