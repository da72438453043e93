"""When a worker sends its model to others: exchange times along a recorded trajectory."""

import reprlib
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from ddlopt.models.gossip.family import GossipAnswer, GossipProblem

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LARGEST = 1e100
"""Beyond, squares of distances would be too large for double precision."""


def _points(value: Any) -> Floats:
    """Read a (T, d) array from rows of numbers."""
    if isinstance(value, np.ndarray):
        points = np.array(value, dtype=np.float64)
    else:
        if not isinstance(value, list | tuple) or not value:
            raise ValueError(f"expected a list of points, each a list of numbers, got {reprlib.repr(value)}")
        for t, row in enumerate(value):
            if not isinstance(row, list | tuple):
                raise ValueError(f"row {t} is {reprlib.repr(row)}; expected a list of numbers")
            if len(row) != len(value[0]):
                raise ValueError(f"row {t} has {len(row)} numbers, but row 0 has {len(value[0])}")
            if not set(map(type, row)) <= {int, float}:
                k, bad = next((k, x) for k, x in enumerate(row) if type(x) not in (int, float))
                raise ValueError(f"row {t}, column {k} is {reprlib.repr(bad)}; expected a number")
        try:
            points = np.array(value, dtype=np.float64)
        except OverflowError:
            raise ValueError("a number is too large for double precision") from None
    if points.ndim != 2 or not points.size:
        raise ValueError(f"expected points of one dimension or more, got an array of shape {points.shape}")
    if not np.abs(points).max() <= _LARGEST:
        t, k = np.argwhere(~(np.abs(points) <= _LARGEST))[0].tolist()
        raise ValueError(f"row {t}, column {k} is {points[t, k]:g}; at most {_LARGEST:g}: use another unit")
    points = np.ascontiguousarray(points)
    points.setflags(write=False)
    return points


Points = Annotated[
    npt.NDArray[np.float64],
    BeforeValidator(_points),
    PlainSerializer(lambda points: points.tolist()),
    WithJsonSchema({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}),
]
"""A read-only (T, d) float64 array that travels through JSON as rows."""


class ExchangeInstance(GossipProblem):
    r"""Times at which a worker sends its model, such that what others have of it is as fresh as it can be.

    The model is at :math:`x_t` in step t = 0…T−1. Others know :math:`x_0`; in later steps they have the model that was
    sent last, at :math:`s(t) \le t`. Staleness is

    .. math:: \sum_{t=0}^{T-1} \| x_t - x_{s(t)} \|^2 ,

    or the sum of the plain norms. It is minimised with at most ``sends`` sends, or together with ``send_cost`` for
    each. The trajectory is known in advance, so that the optimum is what rules that see only the past are compared
    with.

    Parameters
    ----------
    points : (T, d) array
        The trajectory: parameters, or a projection of them.
    sends : int, optional
        The most sends, not counting that of :math:`x_0`.
    send_cost : float, optional
        What a send costs, in the unit of staleness; either this or ``sends`` is given.
    norm : {"squared", "plain"}
        Of the deviation of a model: its square, or the norm itself.
    blocks : tuple of int, optional
        Numbers of columns of the model's tensors, in order; for rules that look at each tensor.
    rates : tuple of float, optional
        Learning rate of every step; for rules that look at it.

    References
    ----------
    The problem is ours; it makes precise what an exchange "according to the change of the local model" can gain
    (doi:10.1109/ccgrid.2018.00043, whose rule is not public).
    """

    kind: ClassVar[str] = "exchange instance"

    problem: Literal["exchange"] = "exchange"
    points: Points
    sends: int | None = Field(default=None, ge=0)
    send_cost: float | None = Field(default=None, gt=0)
    norm: Literal["squared", "plain"] = "squared"
    blocks: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        steps, width = self.points.shape
        if (self.sends is None) == (self.send_cost is None):
            given = "none of them is given" if self.sends is None else "both are given"
            raise ValueError(f"either sends or send_cost says how often to send; {given}")
        for place, count in enumerate(self.blocks):
            if count < 1:
                raise ValueError(f"blocks[{place}] is {count}; a tensor has at least 1 column")
        if self.blocks and sum(self.blocks) != width:
            raise ValueError(f"blocks have {sum(self.blocks)} columns together, but points have {width}")
        if self.rates and len(self.rates) != steps:
            raise ValueError(f"rates has {len(self.rates)} entries, but there are {steps} points")
        for place, rate in enumerate(self.rates):
            if not rate > 0:
                raise ValueError(f"rates[{place}] is {rate:g}; a learning rate must be above 0")
        return self

    @property
    def size(self) -> int:
        """Number of steps."""
        return len(self.points)

    @property
    def objective_unit(self) -> str:
        """None."""
        return ""

    @property
    def most_sends(self) -> int:
        """How many sends there can be: ``sends``, or one in each later step."""
        return self.size - 1 if self.sends is None else min(self.sends, self.size - 1)

    @property
    def plain(self) -> bool:
        """Whether norms are not squared."""
        return self.norm == "plain"

    @cached_property
    def tensors(self) -> tuple[int, ...]:
        """First column of each tensor, and the number of columns."""
        return tuple(np.cumsum([0, *(self.blocks or (self.points.shape[1],))]).tolist())


class ExchangeTimes(GossipAnswer):
    """When the model is sent.

    Parameters
    ----------
    times : tuple of int
        Steps, increasing, from 1 on.
    """

    kind: ClassVar[str] = "list of exchange times"

    problem: Literal["exchange"] = "exchange"
    times: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        for place, time in enumerate(self.times):
            before = self.times[place - 1] if place else 0
            if time <= before:
                after = f"times[{place - 1}], which is {before}" if place else "step 0, where the model is known"
                raise ValueError(f"times[{place}] is {time}; it must come after {after}")
        return self


def last_sent(steps: int, times: tuple[int, ...]) -> Ints:
    """(steps,) the step whose model the others have, for every step; times are numbers of steps, so that none tie."""
    sent = np.array((0, *times), dtype=np.int64)
    found: Ints = np.repeat(sent, np.diff(np.append(sent, steps)))
    return found


def staleness(points: Floats, times: tuple[int, ...], plain: bool = False) -> Floats:
    """(T,) squared or plain distances of the models from those that were sent last."""
    squares: Floats = ((points - points[last_sent(len(points), times)]) ** 2).sum(axis=1)
    return np.sqrt(squares) if plain else squares
