"""Which parameters of sparse models live on which switch, where their updates are added up."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema, model_validator

from ddlopt.models.aggregation.family import AggregationAnswer, AggregationProblem
from ddlopt.models.contracts import Part, Sense

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

_MOST_REGISTERS = 2**53
"""Of all parameters: sums of as many are right in whole numbers of 64 bits and in floating point."""


def _reals(value: Any) -> Reals:
    """A read-only vector of finite numbers."""
    array = _vector(value, (int, float), "numbers").astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ValueError(f"[{bad[0]}] is {array[bad[0]]}; every number must be finite")
    array.setflags(write=False)
    return array


def _whole(value: Any) -> Whole:
    """A read-only vector of whole numbers."""
    array = _vector(value, (int,), "whole numbers").astype(np.int64)
    array.setflags(write=False)
    return array


def _one_or_many(value: Any) -> Whole:
    return _whole([value] if isinstance(value, int) and not isinstance(value, bool) else value)


def _vector(value: Any, types: tuple[type, ...], wanted: str) -> npt.NDArray[Any]:
    if isinstance(value, np.ndarray):
        if value.ndim != 1 or value.dtype.kind not in ("iuf" if float in types else "iu"):
            raise ValueError(f"expected a list of {wanted}, got an array of {value.ndim} dimensions, {value.dtype}")
        return value
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected a list of {wanted}")
    if not set(map(type, value)) <= set(types):
        place, bad = next((i, x) for i, x in enumerate(value) if type(x) not in types)
        raise ValueError(f"[{place}] is {bad!r}; expected a list of {wanted}")
    try:
        return np.array(value, dtype=np.float64 if float in types else np.int64)
    except OverflowError:
        raise ValueError("a number is too large") from None


def _list_schema(kind: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": kind}}


RealArray = Annotated[
    Reals,
    BeforeValidator(_reals),
    PlainSerializer(lambda array: array.tolist()),
    WithJsonSchema(_list_schema("number")),
]
"""A read-only float64 vector that travels through JSON as a list."""
WholeArray = Annotated[
    Whole,
    BeforeValidator(_whole),
    PlainSerializer(lambda array: array.tolist()),
    WithJsonSchema(_list_schema("integer")),
]
"""A read-only int64 vector that travels through JSON as a list."""
WholeOrArray = Annotated[
    Whole,
    BeforeValidator(_one_or_many),
    PlainSerializer(lambda array: int(array[0]) if len(array) == 1 else array.tolist()),
    WithJsonSchema({"anyOf": [{"type": "integer"}, _list_schema("integer")]}),
]
"""The same, where a number stands for a vector of one."""


class HotJob(Part):
    """A job that trains a sparse model: each worker sends updates of the parameters that its batch touches.

    Parameters
    ----------
    name : str
    workers : int
        Number of workers that send gradients.
    frequencies : (P,) array
        Probability that a worker touches each parameter in an iteration.
    registers : int or (P,) array of int
        What each parameter takes on a switch, and numbers in its message; one for all, or of each.
    iterations_per_s : float
        How fast the job is, or its weight; 1 leaves values those of an iteration.
    saved_messages : (P,) array, optional
        Measured instead of derived from ``frequencies``: for each parameter, workers that touch it in an iteration
        less 1 if any does, on average.
    labels : tuple of str, optional
        What each parameter is called; empty: they have no names.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str
    workers: int = Field(ge=1)
    frequencies: RealArray
    registers: WholeOrArray = Field(default=1, validate_default=True)
    iterations_per_s: float = Field(default=1.0, gt=0)
    saved_messages: RealArray | None = None
    labels: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        count = len(self.frequencies)
        if not count:
            raise ValueError("frequencies is empty; a job has at least one parameter")
        _check_range("frequencies", self.frequencies, 0, 1, "a probability is in 0..1")
        if len(self.registers) not in (1, count):
            raise ValueError(
                f"registers has {len(self.registers)} numbers, but there are {count} frequencies; give one for all, or "
                "one of each parameter"
            )
        if self.labels and len(self.labels) != count:
            raise ValueError(f"labels has {len(self.labels)} names for {count} frequencies; name each, or none")
        _check_range("registers", self.registers, 1, math.inf, "a parameter takes at least 1")
        if self.saved_messages is not None:
            if len(self.saved_messages) != count:
                raise ValueError(
                    f"saved_messages has {len(self.saved_messages)} numbers, but there are {count} frequencies; give "
                    "one of each parameter"
                )
            most = self.workers - 1
            why = f"of the messages of {self.workers} workers, 0..{most} can be saved"
            _check_range("saved_messages", self.saved_messages, 0, most, why)
        return self

    @cached_property
    def widths(self) -> Whole:
        """Registers of each parameter, (P,)."""
        return np.broadcast_to(self.registers, self.frequencies.shape)


class HotSwitch(Part):
    """A switch between workers and their servers.

    Parameters
    ----------
    name : str
    registers : int
        Its memory.
    workers : tuple of int, optional
        For each job, how many of its workers' messages pass the switch before any have been added up. Empty: all of
        every job.
    """

    name: str
    registers: int = Field(ge=0)
    workers: tuple[Annotated[int, Field(ge=0)], ...] = ()


class HotInstance(AggregationProblem):
    r"""Which parameters of which job are on which switch.

    A switch adds up the updates of the parameters that it holds, and sends one message on where it got several. Let
    worker messages of job j pass switch s from :math:`m_{js}` workers, each of which touches parameter i in an
    iteration with probability :math:`p_i`, independently. With i on s, the server gets, of these workers, one message
    if any of them touches i. The messages saved in an iteration are

    .. math:: f(p_i, m_{js}) = m_{js} p_i - \bigl[1 - (1 - p_i)^{m_{js}}\bigr].

    With :math:`s_i` registers of parameter i, which are as many numbers in its message, and :math:`r_j` iterations in
    a second, the numbers that servers need not receive in a second,

    .. math:: \sum_s \sum_{(j, i) \text{ on } s} r_j s_i f(p_i, m_{js}),

    are maximised. Each parameter is on at most one switch, and those on a switch fit into its registers.

    Parameters
    ----------
    jobs : tuple of HotJob
        That share the registers.
    switches : tuple of HotSwitch
        With their registers.

    References
    ----------
    "Libra: In-network gradient aggregation for speeding up distributed sparse deep training", arXiv 2205.05243v1, 2022,
    has the parameters that are updated most on the switch. The value of a parameter, and several jobs and switches, are
    ours.
    """

    kind: ClassVar[str] = "hot parameters"

    problem: Literal["hot"] = "hot"
    jobs: tuple[HotJob, ...] = Field(min_length=1)
    switches: tuple[HotSwitch, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        taken = sum(sum(job.widths.tolist()) for job in self.jobs)
        if taken > _MOST_REGISTERS:
            raise ValueError(f"all parameters take {taken} registers; at most {_MOST_REGISTERS} are counted")
        for place, switch in enumerate(self.switches):
            if switch.workers:
                self._check_workers(f"switches[{place}] ('{switch.name}')", switch.workers)
        return self

    def _check_workers(self, where: str, workers: Sequence[int]) -> None:
        if len(workers) != len(self.jobs):
            raise ValueError(f"{where}.workers has {len(workers)} numbers for {len(self.jobs)} jobs; give one for each")
        for number, (count, job) in enumerate(zip(workers, self.jobs, strict=True)):
            if count > job.workers:
                raise ValueError(
                    f"{where}.workers[{number}] is {count}, but job '{job.name}' has {job.workers} workers; lower it"
                )
            if job.saved_messages is not None and count not in (0, job.workers):
                raise ValueError(
                    f"{where}.workers[{number}] is {count} of {job.workers}, but what job '{job.name}' saves was "
                    "measured with all workers; let all of them or none pass, or leave saved_messages out"
                )

    @property
    def sense(self) -> Sense:
        """What is saved is maximised."""
        return "maximize"

    @property
    def objective_unit(self) -> str:
        """None: numbers that servers need not receive, in a second."""
        return ""

    @property
    def size(self) -> int:
        """Number of parameters of all jobs."""
        return sum(len(job.frequencies) for job in self.jobs)

    @cached_property
    def passing(self) -> tuple[tuple[int, ...], ...]:
        """For each switch and job, workers whose messages pass."""
        everybody = tuple(job.workers for job in self.jobs)
        return tuple(switch.workers or everybody for switch in self.switches)


class HotSet(AggregationAnswer):
    """The parameters on each switch.

    Parameters
    ----------
    placed : tuple of tuples of arrays
        For each switch and job, numbers of the parameters of this job on this switch.
    """

    kind: ClassVar[str] = "hot set"

    problem: Literal["hot"] = "hot"
    placed: tuple[tuple[WholeArray, ...], ...]


def _check_range(field: str, values: npt.NDArray[Any], least: float, most: float, why: str) -> None:
    bad = np.flatnonzero((values < least) | (values > most))
    if bad.size:
        raise ValueError(f"{field}[{bad[0]}] is {values[bad[0]]:.15g}; {why}")
