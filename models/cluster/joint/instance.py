"""Jobs that share the servers of a cluster, each with a plan for its servers that is decided, too."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from ddlopt.models.catalogue import family
from ddlopt.models.cluster.family import ClusterAnswer, ClusterProblem
from ddlopt.models.cluster.jobs.instance import Goal, JobsInstance, JobsSchedule, Stretch
from ddlopt.models.cluster.joint.fabric import Fabric
from ddlopt.models.contracts import Instance, Part, Solution, without
from ddlopt.models.errors import DdloptError, InstanceError
from ddlopt.models.problem import path_of

PLANNED = ("codesign", "deployment/step", "deployment/pipeline")
"""Problems whose answer is a job's plan on given servers, and whose objective is the time of a step or a sample."""
NESTED = ("deployment/step", "deployment/pipeline")
"""Those that say how many devices there are at most: a plan for fewer of them is one for more."""
_MOST_SERVERS = 100_000
"""What is larger is a slip of the pen."""


def _document(data: Any, kind: str) -> Any:
    """An instance or a solution of any family, from its data."""
    if isinstance(data, Instance | Solution):
        return data
    if not isinstance(data, Mapping) or not isinstance(data.get("family"), str):
        raise ValueError("expected an object with a field family, as files of instances and solutions are")
    try:
        return getattr(family(data["family"]), kind).from_data(dict(data), kind)
    except DdloptError as fault:
        raise ValueError(str(fault)) from None


def _data(document: Any) -> Any:
    return document.model_dump(mode="json")


InnerInstance = Annotated[
    Any,
    BeforeValidator(lambda data: _document(data, "instance")),
    PlainSerializer(_data),
    WithJsonSchema({"type": "object", "title": "an instance of a family"}),
]
InnerSolution = Annotated[
    Any,
    BeforeValidator(lambda data: _document(data, "solution")),
    PlainSerializer(_data),
    WithJsonSchema({"type": "object", "title": "a solution of a family"}),
]


Count = Annotated[int, Field(ge=0)]


class Choice(Part):
    """A number of servers that jobs of a workload may have, and what is to be planned on them.

    Parameters
    ----------
    servers : int
        w.
    problem : int, optional
        Place in the instance's ``problems``: a plan of it is a plan on these servers.
    devices : int, optional
        Of the problem, in place of its own number (``deployment/step``, ``deployment/pipeline``).
    step_s : float, optional
        Time of an iteration where nothing is to be planned; then there is no ``problem``.
    crossing_bytes : float
        X: what an iteration sends, in each direction, over the uplink of each group of a ``fabric`` that has some of
        the job's servers and not all of them; whatever the plan.
    """

    servers: int = Field(ge=1)
    problem: int | None = Field(default=None, ge=0)
    devices: int | None = Field(default=None, ge=1)
    step_s: float | None = Field(default=None, gt=0)
    crossing_bytes: float = Field(default=0.0, ge=0)

    @model_serializer(mode="wrap")
    def _written(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "crossing_bytes")


class Workload(Part):
    """What jobs train.

    Parameters
    ----------
    name : str
    choices : tuple of Choice
        From few servers to many.
    """

    name: str = Field(min_length=1)
    choices: tuple[Choice, ...] = Field(min_length=1)

    def choice(self, servers: int) -> Choice | None:
        """The one with this number of servers; None if there is none."""
        return next((each for each in self.choices if each.servers == servers), None)


class JointJob(Part):
    """A training job.

    Parameters
    ----------
    name : str
    workload : int
        Place in the instance's ``workloads``.
    iterations : float
        How many times what its problems' objective is the time of.
    arrival_s, weight : float
    deadline_s : float, optional
        For tardiness: lateness counts from then on.
    """

    name: str = Field(min_length=1)
    workload: int = Field(ge=0)
    iterations: float = Field(gt=0)
    arrival_s: float = Field(default=0.0, ge=0)
    weight: float = Field(default=1.0, ge=0)
    deadline_s: float | None = None


class JointInstance(ClusterProblem):
    r"""When each job runs, on how many servers, and by which plan.

    Job j of workload k has :math:`q_j` iterations and may start at :math:`r_j`. For every number w of servers that its
    workload has a choice for, there is a problem of its own: a co-design (strategy of each layer, links, rings,
    routes), or a large model's degrees, or stages. Any plan :math:`\pi` that solves it takes :math:`t(\pi)` for an
    iteration. A job runs in one piece on w servers with such a plan, from :math:`S_j \ge r_j` to
    :math:`C_j = S_j + q_j t`, where t is the time that is reserved for a step, :math:`t(\pi) \le t`. At no time do jobs
    have more than K servers together, and each has servers of its own: plans of different jobs do not meet.

    With a ``fabric`` a job also has certain hosts, :math:`n_{jr}` of rack r, which add up to w; at no time do jobs have
    more hosts of a rack than it has. For as long as it runs, the job has a rate :math:`X_{jw} / t` reserved on the
    uplink of every group g with :math:`0 < n_{jg} < w`, in each direction, and at no time do rates on an uplink add up
    to more than its :math:`B_g`. A job may be slowed down: t may be longer than its plan's.

    Minimised are the ``makespan`` :math:`\max_j C_j`, the ``weighted_completion`` :math:`\sum_j w_j C_j`, or the
    ``weighted_tardiness`` :math:`\sum_j w_j \max(0, C_j - d_j)`.

    Parameters
    ----------
    servers : int
        K.
    problems : tuple of Instance
        Of any of the problems in :data:`PLANNED`.
    workloads : tuple of Workload
    jobs : tuple of JointJob
    objective : {"makespan", "weighted_completion", "weighted_tardiness"}
    fabric : Fabric, optional
        The network that jobs share, with K hosts; None: each job has links of its own, between any servers.
    """

    kind: ClassVar[str] = "instance of jobs with plans"

    problem: Literal["joint"] = "joint"
    servers: int = Field(ge=1, le=_MOST_SERVERS)
    problems: tuple[InnerInstance, ...] = ()
    workloads: tuple[Workload, ...] = Field(min_length=1)
    jobs: tuple[JointJob, ...] = Field(min_length=1)
    objective: Goal = "makespan"
    fabric: Fabric | None = None

    @model_serializer(mode="wrap")
    def _written(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "fabric")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.fabric is not None and self.fabric.hosts != self.servers:
            raise ValueError(
                f"fabric has {self.fabric.hosts} hosts, and servers is {self.servers}; each server is a host of a rack"
            )
        for place, each in enumerate(self.problems):
            if path_of(each) not in PLANNED:
                raise ValueError(
                    f"problems[{place}] ('{each.name}') is of {path_of(each)}; plans of jobs are answers of one of: "
                    f"{', '.join(PLANNED)}"
                )
        for place, workload in enumerate(self.workloads):
            self._check_workload(f"workloads[{place}] ('{workload.name}')", workload)
        for place, job in enumerate(self.jobs):
            if job.workload >= len(self.workloads):
                raise ValueError(
                    f"jobs[{place}] ('{job.name}'): workload is {job.workload}, and there are {len(self.workloads)}"
                )
        try:
            self.at(lambda workload, choice: 1.0)
        except InstanceError as fault:
            raise ValueError(str(fault).partition(": ")[2]) from None
        return self

    def _check_workload(self, where: str, workload: Workload) -> None:
        widths = [choice.servers for choice in workload.choices]
        if sorted(set(widths)) != widths:
            raise ValueError(f"{where}: choices are for {widths} servers; list each number once, ascending")
        if widths[-1] > self.servers:
            raise ValueError(f"{where} has a choice for {widths[-1]} servers, and the cluster has {self.servers}")
        for choice in workload.choices:
            here = f"{where}, {choice.servers} servers"
            if (choice.problem is None) == (choice.step_s is None):
                raise ValueError(f"{here}: give either problem or step_s")
            if choice.problem is None:
                continue
            if choice.problem >= len(self.problems):
                raise ValueError(f"{here}: problem is {choice.problem}, and there are {len(self.problems)}")
            inner = self.problems[choice.problem]
            if choice.devices is not None and path_of(inner) not in NESTED:
                raise ValueError(f"{here}: devices is for {' and '.join(NESTED)}; '{inner.name}' is of another problem")
            try:
                self.inner(choice)
            except InstanceError as fault:
                raise ValueError(f"{here}: {fault}") from None

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.jobs)

    @property
    def objective_unit(self) -> str:
        """Seconds of a makespan; the others are times with weights."""
        return "s" if self.objective == "makespan" else ""

    @cached_property
    def _inner(self) -> dict[tuple[int, int | None], Instance]:
        return {}

    def inner(self, choice: Choice) -> Instance | None:
        """The problem that is to be planned with this choice; None where nothing is."""
        if choice.problem is None:
            return None
        key = (choice.problem, choice.devices)
        if key not in self._inner:
            found: Instance = self.problems[choice.problem]
            if choice.devices is not None:
                found = found.changed(name=f"{found.name}-k{choice.devices}", devices=choice.devices)
            self._inner[key] = found
        return self._inner[key]

    def crossing_s(self, choice: Choice) -> float:
        """What an iteration takes at least for what it sends over uplinks, wherever the job is, by any plan."""
        if self.fabric is None:
            return 0.0
        return choice.crossing_bytes / self.fabric.widest(choice.servers)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Numbers of servers of all choices."""
        return tuple(sorted({choice.servers for workload in self.workloads for choice in workload.choices}))

    def sent_bytes(self, job: int, servers: int) -> float:
        """What a job sends in all of its iterations over each uplink that it crosses."""
        choice = self.workloads[self.jobs[job].workload].choice(servers)
        return 0.0 if choice is None else self.jobs[job].iterations * choice.crossing_bytes

    def at(
        self, step_s: Callable[[int, Choice], float | None], name: str = "jobs", crossing: bool = False
    ) -> JobsInstance:
        """Jobs with a table of step times, which ``step_s(workload, choice)`` gives; None where it cannot run so.

        With ``crossing`` no time is below :meth:`crossing_s`.

        Raises
        ------
        InstanceError
            If a job then fits nowhere, or jobs have what does not go together.
        """
        tables = []
        for place, workload in enumerate(self.workloads):
            table: list[float | None] = [None] * workload.choices[-1].servers
            for choice in workload.choices:
                step = choice.step_s if choice.problem is None else step_s(place, choice)
                table[choice.servers - 1] = max(step, self.crossing_s(choice)) if crossing and step else step
            tables.append(table)
        jobs = [job.model_dump(exclude={"workload"}) | {"step_s": tables[job.workload]} for job in self.jobs]
        data = {"name": name, "servers": self.servers, "jobs": jobs, "objective": self.objective}
        return JobsInstance.from_data(data, self.name)

    def reserved(self, answer: "JointPlan") -> JobsInstance:
        """Jobs with the step times that are reserved for each of them."""
        steps = answer.steps()
        jobs = self.at(lambda workload, choice: steps.get((workload, choice.servers)))
        if all(run.step_s is None for run in answer.runs):
            return jobs
        made = []
        for job, run in zip(jobs.jobs, answer.runs, strict=True):
            table = list(job.step_s)
            table[run.servers - 1] = run.step_s or table[run.servers - 1]
            made.append(job.model_dump() | {"step_s": table})
        return jobs.changed(jobs=made)


class WorkloadPlan(Part):
    """How a workload's jobs run on a number of servers.

    Parameters
    ----------
    workload : int
    servers : int
    step_s : float
        What is reserved for a step: at least what the plan takes.
    least_s : float
        What no plan takes less than, as far as whoever made this knew; for people, and not checked.
    answer : Solution, optional
        The plan; None where nothing was to be planned.
    """

    workload: int = Field(ge=0)
    servers: int = Field(ge=1)
    step_s: float = Field(gt=0)
    least_s: float = Field(default=0.0, ge=0)
    answer: InnerSolution | None = None


class Run(Stretch):
    """When a job runs, on how many servers, and in a fabric on which.

    Parameters
    ----------
    start : str
        The second at which it begins, a fraction such as ``"1182/13"``.
    servers : int
    step_s : float, optional
        What is reserved for a step where it is more than that of the plan; None: that of the plan.
    places : tuple of (int, int)
        Racks of the fabric, by their places among its groups, and how many hosts the job has there.
    """

    step_s: float | None = Field(default=None, gt=0)
    places: tuple[tuple[Count, Count], ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _of_a_schedule(cls, data: Any) -> Any:
        """A rigid job's stretch is a run, by its plan and without places."""
        return {"start": data.start, "servers": data.servers} if type(data) is Stretch else data

    @model_serializer(mode="wrap")
    def _written(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "step_s", "places")


def runs_of(schedule: JobsSchedule) -> tuple[Run, ...]:
    """Runs of rigid jobs as a schedule has them, by their plans and without places."""
    return tuple(Run.model_validate(run) for (run,) in schedule.runs)


class JointPlan(ClusterAnswer):
    """When each job runs, on how many servers, and the plans for these.

    Parameters
    ----------
    runs : tuple of Run
        Of each job.
    plans : tuple of WorkloadPlan
        One for each workload and number of servers that a job runs with.
    """

    kind: ClassVar[str] = "schedule with plans"

    problem: Literal["joint"] = "joint"
    runs: tuple[Run, ...]
    plans: tuple[WorkloadPlan, ...]

    def steps(self) -> dict[tuple[int, int], float]:
        """Time that is reserved for a step, by workload and number of servers."""
        return {(plan.workload, plan.servers): plan.step_s for plan in self.plans}

    def schedule(self) -> JobsSchedule:
        """The same as a schedule of :meth:`JointInstance.at`."""
        runs = tuple((Stretch(start=run.start, servers=run.servers),) for run in self.runs)
        return JobsSchedule(instance="jobs", runs=runs)
