"""What a deployment has devices, links and the collective channel do in one training step, and what waits for what."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple

from ddlopt.models.contracts import Number
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS, NumberType, Replica, placed, time_at
from ddlopt.models.deployment.plan.solution import Deployment

Kind = Literal["compute", "transfer", "collective"]


class Resource(NamedTuple):
    """What does one task at a time: a device, a link within a device group or between two, or the collective channel.

    ``source`` and ``target`` are devices of a ``link``, device groups of a ``group link``; a ``device`` has the first
    only, the ``collective`` channel none.
    """

    kind: Literal["device", "link", "group link", "collective"]
    source: int = -1
    target: int = -1

    def __str__(self) -> str:
        return " ".join([self.kind, *(str(place) for place in self[1:] if place >= 0)])


@dataclass(slots=True, eq=False)
class Buffer:
    """Bytes on a device, from the end of the task that makes them to the end of the last task that needs them."""

    device: int
    size: Number
    users: int = 0


@dataclass(slots=True, eq=False)
class Task:
    """One piece of work for one resource.

    Parameters
    ----------
    number : int
        Place among all tasks.
    kind : {"compute", "transfer", "collective"}
    operator : int
        That runs, or whose output or gradient is sent or reduced.
    tensor : int
        Place in ``tensors`` of what is sent; -1 otherwise.
    resource : Resource
    duration : Fraction
        Seconds.
    size : float or Fraction
        Bytes that are sent or reduced; 0 for computations.
    source, target : int
        Devices: where it runs, or from where to where it sends; -1 where there is none.
    waits : int
        How many tasks it waits for.
    next : list of Task
        Tasks that wait for it, in ascending number.
    makes, needs : list of Buffer
        That are there from its end, and that must stay until then.
    """

    number: int
    kind: Kind
    operator: int
    tensor: int
    resource: Resource
    duration: Fraction
    size: Number
    source: int
    target: int
    waits: int = 0
    next: list["Task"] = field(default_factory=list)
    makes: list[Buffer] = field(default_factory=list)
    needs: list[Buffer] = field(default_factory=list)


@dataclass(slots=True)
class _Holder:
    """A replica of a producer: its task and its part of one tensor."""

    replica: Replica
    task: Task
    buffer: Buffer


class Expansion:
    """All tasks of a deployment, numbered operator by operator in ``DeploymentInstance.order``.

    For each device of an operator first the transfers of its inputs that are not under way yet, tensor by tensor and by
    sending device, then its computation; after those of all devices the synchronisation of its gradient.

    Parameters
    ----------
    instance : DeploymentInstance
    deployment : Deployment
        Must fit.
    number : type
        Of bytes, ``float`` or ``Fraction``; durations are exact always.
    """

    def __init__(self, instance: DeploymentInstance, deployment: Deployment, number: NumberType) -> None:
        self.instance = instance
        self.number = number
        self.tasks: list[Task] = []
        self.where = placed(instance, deployment)
        self._groups = instance.device_group_of.tolist()
        self._holders: list[list[_Holder]] = [[] for _ in instance.tensors]
        self._sent: dict[tuple[int, int, int, int, int], Task] = {}
        # Many tasks take equally long, and fractions are slow.
        self._computing_s: dict[tuple[int, str, int], Fraction] = {}
        self._sending_s: dict[tuple[float, int, float], Fraction] = {}
        self._latency_s = Fraction(instance.latency_s)
        for place in instance.order:
            computations = [self._compute(place, replica) for replica in self.where[place]]
            for tensor in instance.outputs[place]:
                self._hold(tensor, computations)
            self._synchronise(place, deployment, computations)

    def _add(
        self,
        kind: Kind,
        operator: int,
        resource: Resource,
        duration: Fraction,
        size: Number,
        source: int = -1,
        target: int = -1,
        tensor: int = -1,
    ) -> Task:
        task = Task(len(self.tasks), kind, operator, tensor, resource, duration, size, source, target)
        self.tasks.append(task)
        return task

    def _wait(self, task: Task, before: Task, buffer: Buffer | None) -> None:
        task.waits += 1
        before.next.append(task)
        if buffer is not None:
            buffer.users += 1
            task.needs.append(buffer)

    def _compute(self, place: int, replica: Replica) -> Task:
        instance = self.instance
        inputs = [
            self._brought(tensor, holder, replica.device, first, last)
            for tensor in instance.inputs[place]
            for holder, first, last in self._sources(self._holders[tensor], replica)
        ]
        key = place, instance.device_groups[self._groups[replica.device]].type, replica.units
        duration = self._computing_s.get(key)
        if duration is None:
            times = instance.operators[place].times_s[key[1]]
            duration = self._computing_s[key] = Fraction(time_at(instance.shares, times, replica.units, Fraction))
        task = self._add("compute", place, Resource("device", replica.device), duration, self.number(0), replica.device)
        for before, buffer in inputs:
            self._wait(task, before, buffer)
        return task

    def _send(self, operator: int, tensor: int, whole: float, units: int, source: int, target: int) -> Task:
        """A transfer of a part of a tensor between two devices, which makes a buffer on the second."""
        a, b = self._groups[source], self._groups[target]
        if a == b:
            resource, bandwidth = Resource("link", source, target), self.instance.device_groups[a].bandwidth_bytes_per_s
        else:
            resource, bandwidth = Resource("group link", a, b), float(self.instance.bandwidth_bytes_per_s[a, b])
        key = whole, units, bandwidth
        duration = self._sending_s.get(key)
        if duration is None:
            duration = Fraction(whole) * units / UNITS / Fraction(bandwidth) + self._latency_s
            self._sending_s[key] = duration
        size = self._part(whole, units)
        task = self._add("transfer", operator, resource, duration, size, source, target, tensor)
        task.makes.append(Buffer(target, size))
        return task

    def _synchronise(self, place: int, deployment: Deployment, computations: Sequence[Task]) -> None:
        operator = self.instance.operators[place]
        if not operator.gradient_bytes:
            return
        size = self.number(operator.gradient_bytes)
        gradients = [Buffer(task.source, size) for task in computations]
        for task, buffer in zip(computations, gradients, strict=True):
            task.makes.append(buffer)
        plan = deployment.groups[operator.group]
        if len(computations) < 2 or place in deployment.duplicated:
            return
        if plan.mode == "all_reduce":
            exact = Fraction(operator.gradient_bytes)
            duration = Fraction(all_reduce_s(self.instance, plan.device_groups, exact, Fraction))
            reduction = self._add("collective", place, Resource("collective"), duration, size)
            for task, buffer in zip(computations, gradients, strict=True):
                self._wait(reduction, task, buffer)
            return
        self._through_server(place, computations, gradients)

    def _through_server(self, place: int, computations: Sequence[Task], gradients: Sequence[Buffer]) -> None:
        size = self.instance.operators[place].gradient_bytes
        server = place % len(computations)
        at = computations[server].source
        others = [i for i in range(len(computations)) if i != server]
        arrivals = []
        for i in others:
            sent = self._send(place, -1, size, UNITS, computations[i].source, at)
            self._wait(sent, computations[i], gradients[i])
            arrivals.append(sent)
        for i in others:
            back = self._send(place, -1, size, UNITS, at, computations[i].source)
            self._wait(back, computations[server], gradients[server])
            for sent in arrivals:
                self._wait(back, sent, sent.makes[0])

    def _hold(self, tensor: int, computations: Sequence[Task]) -> None:
        """What the replicas of a producer make."""
        for replica, task in zip(self.where[self.instance.tensors[tensor].producer], computations, strict=True):
            buffer = Buffer(replica.device, self._part(self.instance.tensors[tensor].size_bytes, replica.units))
            task.makes.append(buffer)
            self._holders[tensor].append(_Holder(replica, task, buffer))

    def _part(self, whole: float, units: int) -> Number:
        """Bytes of a part of the batch."""
        return self.number(whole) * (self.number(units) / UNITS)

    def _sources(self, holders: Sequence[_Holder], reader: Replica) -> Iterable[tuple[_Holder, int, int]]:
        """Who gives a reader which part of what it needs."""
        if all(holder.replica.units == UNITS for holder in holders):
            near = [holder for holder in holders if holder.replica.device == reader.device] or [
                holder for holder in holders if self._groups[holder.replica.device] == self._groups[reader.device]
            ]
            yield (near or holders)[0], reader.first, reader.last
            return
        # Parts are in the order of the batch, one after the other.
        begin = bisect_right(holders, reader.first, key=lambda holder: holder.replica.last)
        for place in range(begin, len(holders)):
            holder = holders[place]
            first, last = max(holder.replica.first, reader.first), min(holder.replica.last, reader.last)
            if first >= reader.last:
                return
            if first < last:
                yield holder, first, last

    def _brought(self, tensor: int, holder: _Holder, device: int, first: int, last: int) -> tuple[Task, Buffer | None]:
        """What a reader on ``device`` waits for: the computation itself, or a transfer from it."""
        source = holder.replica.device
        if source == device:
            return holder.task, holder.buffer
        size = self.instance.tensors[tensor].size_bytes
        if not size:
            return holder.task, None
        key = (tensor, source, device, first, last)
        if key not in self._sent:
            sent = self._send(holder.task.operator, tensor, size, last - first, source, device)
            self._wait(sent, holder.task, holder.buffer)
            self._sent[key] = sent
        return self._sent[key], self._sent[key].makes[0]


def all_reduce_s(
    instance: DeploymentInstance, device_groups: Sequence[int], size: Number, number: NumberType
) -> Number:
    """Seconds of an all-reduce of ``size`` bytes over all devices of the device groups."""
    cost = instance.all_reduce
    lines = [number(a) * size + number(b) for a, b in zip(cost.s_per_byte, cost.fixed_s, strict=True)]
    return max(lines) * (number(cost.at_bytes_per_s) / number(collective_bandwidth(instance, device_groups)))


def collective_bandwidth(instance: DeploymentInstance, device_groups: Sequence[int]) -> float:
    """Within the only device group, or the least between any two."""
    if len(device_groups) == 1:
        return instance.device_groups[device_groups[0]].bandwidth_bytes_per_s
    matrix = instance.bandwidth_bytes_per_s
    return min(float(matrix[i, j]) for i in device_groups for j in device_groups if i != j)
