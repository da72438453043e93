"""One training step under a deployment, event by event; TAG's rules."""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from ddlopt.models.contracts import Number
from ddlopt.models.deployment.plan.check import require_fit
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import NumberType
from ddlopt.models.deployment.plan.simulator.tasks import Buffer, Expansion, Kind, Resource, Task
from ddlopt.models.deployment.plan.solution import Deployment


class TimelineTask(NamedTuple):
    """One piece of work of the step; places and devices are -1 where there is none.

    ``operator`` runs, or its output (``tensor``) or gradient (``tensor`` is -1) is sent or reduced. ``source`` is the
    device that computes or sends, ``target`` the one that receives; ``size_bytes`` are sent or reduced.
    """

    kind: Kind
    name: str
    resource: Resource
    start: Number
    finish: Number
    operator: int
    tensor: int
    source: int
    target: int
    size_bytes: Number


@dataclass(frozen=True)
class Timeline:
    """What happens in one step.

    Parameters
    ----------
    tasks : tuple of TimelineTask
        In the order in which they became ready, which is that of their starts on each resource.
    time_s : float or Fraction
        When the last of them ends.
    peak_bytes : tuple of float or Fraction
        Most memory that each device needs at once.
    busy_s : mapping of Resource to float or Fraction
        Seconds for which each resource that does anything works.
    """

    tasks: tuple[TimelineTask, ...]
    time_s: Number
    peak_bytes: tuple[Number, ...]
    busy_s: Mapping[Resource, Number]


def simulate(instance: DeploymentInstance, deployment: Deployment, exact: bool = False) -> Timeline:
    """One training step under a deployment, event by event.

    *Replicas.* In the modes ``all_reduce`` and ``parameter_server`` there is a replica of every operator of the group
    on every device of its device groups. In the order of the devices they hold consecutive parts of the batch, even or
    by speed (:func:`~ddlopt.models.deployment.plan.shares.parts`); those of a duplicated operator all have the whole
    batch, and so has an operator on the one device that ``model_parallel`` gives it. Times are
    :func:`~ddlopt.models.deployment.plan.shares.time_at` of the part.

    *Data.* A replica needs the part of its inputs that belongs to its part of the batch. It takes what its device
    holds from there, and the rest from the devices that hold it: exactly the part that it lacks from each. Of several
    that hold everything, as replicas of a duplicated producer do, it takes the first in its device group, or else the
    first. What several consumers on one device want in the same part from the same device is sent once. A tensor of 0
    bytes is not sent, but orders its producers and consumers all the same.

    *Transfers* within a device group have a link for each ordered pair of devices, others share one for each ordered
    pair of device groups. They take bytes / bandwidth + latency, and keep the link for all of that.

    *Gradients* of an operator with two replicas or more, that is not duplicated, are reduced by one collective when all
    have computed, or, with ``parameter_server``, sent to one replica, in turn the first, second, … by the operator's
    place, which sends the sum to each when it has all. Collectives are done one at a time, wherever they are. No
    operator waits for them, but the step does.

    *Order.* A task that has all that it waits for is *ready*, and reserves its resource at once: it starts when that
    has done all tasks that were ready before. Ends of tasks are taken in the order of time, and at the same time in the
    order in which the tasks became ready. What becomes ready by the same end, or at the beginning, does so in the order
    of :class:`~ddlopt.models.deployment.plan.simulator.tasks.Expansion`.

    *Memory.* A device has ``resident_bytes`` of its operators all the time, and besides: what an operator makes, from
    its end until the last computation on the same device that reads it and the last transfer of it have ended; what is
    received, from the end of the transfer until the last computation that reads it has ended; gradients until they are
    reduced or sent, and at the server until the sum has been sent to all. What is made is there before anything that
    the same task used is given up. So a tensor that nobody on the device needs counts at the moment of its making only.

    *Time* is counted in whole numbers of one unit of which all durations are multiples, also where ``exact`` is False:
    another order of two ends at the same time may mean another order of all that follows, and sums of floats, as of
    three thirds, part what is at the same time.

    TAG's released simulator has these rules for the order, the links, the one collective channel and memory. Where its
    description is silent they are ours: what exactly is sent between splits that differ, ties, and servers.

    Parameters
    ----------
    exact : bool
        Give rational numbers; otherwise the nearest floats, with bytes added up in floats.

    Raises
    ------
    SolutionError
        If the deployment names what does not exist.
    """
    require_fit(instance, deployment)
    number: NumberType = Fraction if exact else float
    expansion = Expansion(instance, deployment, number)
    run = _run(expansion)

    def seconds(units: int) -> Number:
        return Fraction(units, run.per_s) if exact else _quotient(units, run.per_s)

    records = tuple(_record(instance, task, seconds(start), seconds(finish)) for task, start, finish in run.log)
    busy_s = {resource: seconds(units) for resource, units in run.busy.items()}
    return Timeline(records, seconds(run.now), tuple(run.peak), busy_s)


def _run(expansion: Expansion) -> "_Run":
    """All tasks, to the end of the last."""
    run = _Run(_resident(expansion), math.lcm(*{task.duration.denominator for task in expansion.tasks}))
    for task in expansion.tasks:
        if not task.waits:
            run.reserve(task)
    run.to_the_end()
    return run


def _quotient(units: int, per_s: int) -> float:
    """The nearest float, infinite where it is too large."""
    try:
        return units / per_s
    except OverflowError:
        return math.inf


@dataclass
class _Run:
    """State of the simulation: what devices hold, when resources are free, and what is under way.

    Times are whole numbers of a unit, of which ``per_s`` make a second.
    """

    used: list[Number]
    per_s: int
    now: int = 0
    peak: list[Number] = field(init=False)
    free: dict[Resource, int] = field(default_factory=dict)
    busy: dict[Resource, int] = field(default_factory=dict)
    log: list[tuple[Task, int, int]] = field(default_factory=list)
    under_way: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.peak = list(self.used)

    def reserve(self, task: Task) -> None:
        """Give a task that is ready its time on its resource."""
        length = task.duration.numerator * (self.per_s // task.duration.denominator)
        start = max(self.now, self.free.get(task.resource, self.now))
        finish = start + length
        self.free[task.resource] = finish
        self.busy[task.resource] = self.busy.get(task.resource, 0) + length
        heapq.heappush(self.under_way, (finish, len(self.log)))
        self.log.append((task, start, finish))

    def to_the_end(self) -> None:
        """Take the ends of tasks one by one."""
        while self.under_way:
            self.now, place = heapq.heappop(self.under_way)
            task = self.log[place][0]
            self._account(task)
            for later in task.next:
                later.waits -= 1
                if not later.waits:
                    self.reserve(later)

    def _account(self, task: Task) -> None:
        for buffer in task.makes:
            self.used[buffer.device] += buffer.size
            self.peak[buffer.device] = max(self.peak[buffer.device], self.used[buffer.device])
        for buffer in task.makes:
            if not buffer.users:
                self._give_up(buffer)
        for buffer in task.needs:
            buffer.users -= 1
            if not buffer.users:
                self._give_up(buffer)

    def _give_up(self, buffer: Buffer) -> None:
        self.used[buffer.device] -= buffer.size


def _resident(expansion: Expansion) -> list[Number]:
    """What every device keeps all the time."""
    used: list[Number] = [expansion.number(0)] * expansion.instance.devices
    for operator, replicas in zip(expansion.instance.operators, expansion.where, strict=True):
        for replica in replicas:
            used[replica.device] += expansion.number(operator.resident_bytes)
    return used


def _record(instance: DeploymentInstance, task: Task, start: Number, finish: Number) -> TimelineTask:
    operator = instance.operators[task.operator].name
    name = operator if task.kind == "compute" or task.tensor >= 0 else f"gradient of {operator}"
    return TimelineTask(
        task.kind, name, task.resource, start, finish, task.operator, task.tensor, task.source, task.target, task.size
    )
