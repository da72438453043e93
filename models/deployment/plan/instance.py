"""Deployment of one training job: its operators in groups that are placed together, and the devices there are."""

import heapq
from collections.abc import Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from ddlopt.models.contracts import Matrix, Part
from ddlopt.models.deployment.family import DeploymentProblem
from ddlopt.models.sizes import require_memory

# The whole mini-batch only.
_SHARES = (1.0,)


class Operator(Part):
    """A piece of work of one training step, forward or backward.

    Parameters
    ----------
    name : str
    group : int
        Which group it belongs to; all operators of a group have the same placement.
    times_s : dict of str to tuple of float
        By device type, seconds for each share of the batch in ``DeploymentInstance.shares``.
    gradient_bytes : float
        Of the parameter gradients that it produces, which replicas must reduce; 0 for other operators.
    resident_bytes : float
        Weights and optimiser state that each of its devices keeps for the whole step.
    """

    name: str
    group: int = Field(ge=0)
    times_s: dict[str, tuple[float, ...]] = Field(min_length=1)
    gradient_bytes: float = Field(default=0.0, ge=0)
    resident_bytes: float = Field(default=0.0, ge=0)


class Tensor(Part):
    """What an operator hands to others.

    Parameters
    ----------
    producer : int
        Place in ``operators``.
    consumers : tuple of int
        Places in ``operators``, each once.
    size_bytes : float
        For the whole batch; a replica that has a share of the batch makes, or needs, that share of it.
    """

    producer: int = Field(ge=0)
    consumers: tuple[int, ...] = Field(min_length=1)
    size_bytes: float = Field(ge=0)


class DeviceGroup(Part):
    """Identical devices in one machine, or in identical machines.

    Parameters
    ----------
    type : str
        As in ``Operator.times_s``.
    count : int
        Devices of the group.
    memory_bytes : float
        Of each device.
    bandwidth_bytes_per_s : float
        Of the link from each of its devices to each other one; every ordered pair has a link of its own.
    """

    type: str
    count: int = Field(ge=1)
    memory_bytes: float = Field(gt=0)
    bandwidth_bytes_per_s: float = Field(gt=0)


class CollectiveCost(Part):
    r"""Seconds of an all-reduce: the largest of several lines in its bytes, scaled by the bandwidth.

    .. math:: \max_k (a_k\, s + b_k)\; B_0 / B

    for s bytes, where B is the bandwidth within the device group, or the least one between any two of several.

    Parameters
    ----------
    s_per_byte, fixed_s : tuple of float
        a and b of each line.
    at_bytes_per_s : float
        Bandwidth for which they hold.
    """

    s_per_byte: tuple[float, ...] = Field(min_length=1)
    fixed_s: tuple[float, ...] = Field(min_length=1)
    at_bytes_per_s: float = Field(gt=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.s_per_byte) != len(self.fixed_s):
            raise ValueError(f"s_per_byte has {len(self.s_per_byte)} lines, but fixed_s has {len(self.fixed_s)}")
        if min(*self.s_per_byte, *self.fixed_s, 0) < 0:
            raise ValueError("s_per_byte and fixed_s must not be negative")
        return self


TAG_ALL_REDUCE = CollectiveCost(
    s_per_byte=(0.043420241e-6 / 1024, 0.277668025e-6 / 1024),
    fixed_s=(368.20136e-6, 211.91926e-6),
    at_bytes_per_s=2.81e9,
)
"""The lines that TAG's released simulator has for NCCL."""


class DeploymentInstance(DeploymentProblem):
    r"""Where the operators of a training step run, how the batch is split, and how gradients are synchronised.

    Each group of operators is given device groups and one of three modes (see
    :class:`~ddlopt.models.deployment.plan.solution.GroupPlan`); the objective is the time of one training step as
    :func:`~ddlopt.models.deployment.plan.simulator.simulate.simulate` finds it, and no device may need more memory than
    it has.

    Parameters
    ----------
    operators : tuple of Operator
        Of a training step, each in a group.
    tensors : tuple of Tensor
        Together with the operators an acyclic graph.
    device_groups : tuple of DeviceGroup
        Equal devices that are near each other.
    bandwidth_bytes_per_s : (m, m) array
        Between device groups; one link for each ordered pair, which all their devices share. The diagonal is not used.
    shares : tuple of float
        Shares of the batch for which times are given, from 1 downwards.
    latency_s : float
        Of a transfer, in which it keeps its link busy.
    all_reduce : CollectiveCost
        What synchronising a gradient costs.
    batch : int
        Samples of a step; for information.

    References
    ----------
    S. Zhang et al., "Expediting distributed DNN training with device topology-aware graph deployment" (TAG), IEEE TPDS
    34(4), 2023 (arXiv:2302.06126), and its released code.
    """

    kind: ClassVar[str] = "deployment instance"

    problem: Literal["plan"] = "plan"
    operators: tuple[Operator, ...] = Field(min_length=1)
    tensors: tuple[Tensor, ...] = ()
    device_groups: tuple[DeviceGroup, ...] = Field(min_length=1)
    bandwidth_bytes_per_s: Matrix
    shares: tuple[float, ...] = _SHARES
    latency_s: float = Field(default=0.0, ge=0)
    all_reduce: CollectiveCost = TAG_ALL_REDUCE
    batch: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        devices = sum(group.count for group in self.device_groups)
        require_memory(f"device_groups has {devices} devices: links between them", 32.0 * devices**2)
        _check_shares(self.shares)
        self._check_operators()
        self._check_tensors()
        self._check_bandwidths()
        self._check_memory()
        return self

    @property
    def size(self) -> int:
        """Number of operator groups."""
        return self.groups

    @property
    def groups(self) -> int:
        """Number of operator groups."""
        return 1 + max(operator.group for operator in self.operators)

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """Operators of each group, in the order of ``order``."""
        members: list[list[int]] = [[] for _ in range(self.groups)]
        for place in self.order:
            members[self.operators[place].group].append(place)
        return tuple(map(tuple, members))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Operators such that each comes after those it reads from, otherwise as listed."""
        readers = self.readers
        left = [0] * len(self.operators)
        for consumers in readers:
            for node in consumers:
                left[node] += 1
        ready = [node for node, count in enumerate(left) if not count]
        order: list[int] = []
        while ready:
            node = heapq.heappop(ready)
            order.append(node)
            for after in readers[node]:
                left[after] -= 1
                if not left[after]:
                    heapq.heappush(ready, after)
        return tuple(order)

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """Operators that read what each operator hands on, each once, in order."""
        readers: list[set[int]] = [set() for _ in self.operators]
        for tensor in self.tensors:
            readers[tensor.producer].update(tensor.consumers)
        return tuple(tuple(sorted(nodes)) for nodes in readers)

    @cached_property
    def outputs(self) -> tuple[tuple[int, ...], ...]:
        """Places in ``tensors`` of what each operator produces, ascending."""
        return self._tensors_of([(tensor.producer,) for tensor in self.tensors])

    @cached_property
    def inputs(self) -> tuple[tuple[int, ...], ...]:
        """Places in ``tensors`` of what each operator consumes, ascending."""
        return self._tensors_of([tensor.consumers for tensor in self.tensors])

    def _tensors_of(self, operators: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.operators]
        for tensor, places in enumerate(operators):
            for place in places:
                found[place].append(tensor)
        return tuple(map(tuple, found))

    @cached_property
    def device_group_of(self) -> npt.NDArray[np.int64]:
        """(devices,) device group of each device; devices are counted through the groups in order."""
        return np.repeat(np.arange(len(self.device_groups)), [group.count for group in self.device_groups])

    @property
    def devices(self) -> int:
        """Number of devices."""
        return sum(group.count for group in self.device_groups)

    def devices_of(self, groups: Sequence[int]) -> tuple[int, ...]:
        """Devices of some device groups, in ascending order."""
        chosen = set(groups)
        return tuple(device for device, group in enumerate(self.device_group_of.tolist()) if group in chosen)

    def _check_operators(self) -> None:
        types = {group.type for group in self.device_groups}
        for place, operator in enumerate(self.operators):
            for kind in sorted(types - set(operator.times_s)):
                raise ValueError(
                    f"operators[{place}].times_s ('{operator.name}') has no times for device type '{kind}'"
                )
            for kind, times in operator.times_s.items():
                if len(times) != len(self.shares):
                    raise ValueError(
                        f"operators[{place}].times_s['{kind}'] has {len(times)} times, but there are "
                        f"{len(self.shares)} shares of the batch"
                    )
                if min(times) < 0:
                    raise ValueError(f"operators[{place}].times_s['{kind}'] has the negative time {min(times):g}")
        present = {operator.group for operator in self.operators}
        first_missing = next(number for number in range(len(present) + 1) if number not in present)
        if first_missing < max(present):
            raise ValueError(f"no operator belongs to group {first_missing}, but groups go up to {max(present)}")

    def _check_tensors(self) -> None:
        count = len(self.operators)
        before: dict[int, set[int]] = {}
        for place, tensor in enumerate(self.tensors):
            for role, node in (("producer", tensor.producer), *(("consumers", node) for node in tensor.consumers)):
                if not 0 <= node < count:
                    raise ValueError(
                        f"tensors[{place}].{role} names operator {node}, but there are {count} operators "
                        f"(0..{count - 1})"
                    )
            if len(set(tensor.consumers)) < len(tensor.consumers):
                raise ValueError(f"tensors[{place}].consumers names an operator twice: {list(tensor.consumers)}")
            for node in tensor.consumers:
                before.setdefault(node, set()).add(tensor.producer)
        try:
            TopologicalSorter(before).prepare()
        except CycleError as problem:
            cycle = " -> ".join(self.operators[node].name for node in problem.args[1])
            raise ValueError(f"the operators form a cycle: {cycle}; a step's operators must be acyclic") from None

    def _check_bandwidths(self) -> None:
        size = len(self.device_groups)
        matrix = self.bandwidth_bytes_per_s
        if matrix.shape != (size, size):
            raise ValueError(
                f"bandwidth_bytes_per_s is {matrix.shape[0]} x {matrix.shape[1]}, but there are {size} device groups"
            )
        for i, j in np.argwhere(~np.isfinite(matrix)).tolist():
            raise ValueError(f"bandwidth_bytes_per_s[{i}][{j}] is {matrix[i, j]}; every figure must be finite")
        for i, j in np.argwhere(~(matrix > 0)).tolist():
            if i != j:
                raise ValueError(
                    f"bandwidth_bytes_per_s[{i}][{j}] is {matrix[i, j]:g}: device group {i} "
                    f"('{self.device_groups[i].type}') has no bandwidth to device group {j}"
                )

    def _check_memory(self) -> None:
        """An operator runs on one device at least, and keeps its weights there."""
        largest = max(group.memory_bytes for group in self.device_groups)
        for operator in self.operators:
            if operator.resident_bytes > largest:
                raise ValueError(
                    f"operator '{operator.name}' of group {operator.group} keeps {operator.resident_bytes:.6g} bytes, "
                    f"but no device has more than {largest:.6g}"
                )


def _check_shares(shares: tuple[float, ...]) -> None:
    if not shares or shares[0] != 1:
        raise ValueError(f"shares starts with {shares[0] if shares else 'nothing'}; the first share is the whole, 1")
    for before, after in pairwise(shares):
        if not 0 < after < before:
            raise ValueError(f"shares has {after:g} after {before:g}; give them from 1 downwards, all positive")
