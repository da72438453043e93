"""How much to compress each gradient: ranks, densities and numbers of bits as whole numbers."""

import math
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem, Goal, refuse_disorder
from ddlopt.models.contracts import Part
from ddlopt.models.tolerances import ROUNDING, let_pass


class PointCurve(Part):
    """An error known at some levels; between them its convex interpolation, which only relaxations use.

    Parameters
    ----------
    levels : tuple of int
        Increasing.
    errors : tuple of float
        At the levels; not increasing, and convex up to rounding.
    """

    kind: Literal["points"] = "points"
    levels: tuple[int, ...] = Field(min_length=1)
    errors: tuple[float, ...]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.errors) != len(self.levels):
            raise ValueError(f"errors has {len(self.errors)} entries, but levels has {len(self.levels)}")
        if self.levels[0] < 0 or min(self.errors) < 0:
            raise ValueError("a level or an error is negative")
        slack = ROUNDING * max(self.errors)
        slope = -math.inf
        for place in range(1, len(self.levels)):
            step, rise = self.levels[place] - self.levels[place - 1], self.errors[place] - self.errors[place - 1]
            if step <= 0:
                raise ValueError(f"levels[{place}] is {self.levels[place]}, after {self.levels[place - 1]}")
            if rise > slack:
                raise ValueError(f"errors[{place}] is {self.errors[place]:g}, after {self.errors[place - 1]:g}")
            if rise / step < slope - slack:
                raise ValueError(
                    f"the errors are not convex at levels[{place - 1}]: leave out points above the line between others"
                )
            slope = rise / step
        return self

    @property
    def allowed(self) -> tuple[int, ...]:
        """The levels that may be chosen."""
        return self.levels


class ExponentialCurve(Part):
    r"""An error of :math:`s\, 4^{-b}` at b bits: quantisation steps halve with every bit.

    Parameters
    ----------
    lowest, highest : int
        Ends of the range of levels, both included.
    scale : float
        s.
    """

    kind: Literal["exponential"] = "exponential"
    lowest: int = Field(ge=0)
    highest: int = Field(ge=0, le=64)
    scale: float = Field(ge=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.highest < self.lowest:
            raise ValueError(f"highest is {self.highest}, below lowest, which is {self.lowest}")
        return self

    @property
    def allowed(self) -> tuple[int, ...]:
        """The levels that may be chosen."""
        return tuple(range(self.lowest, self.highest + 1))


Curve = Annotated[PointCurve | ExponentialCurve, Field(discriminator="kind")]


class GradedGradient(Part):
    """A gradient that may be sent at any of its curve's levels.

    Parameters
    ----------
    name : str
    shape : tuple of int
        Of the tensor.
    compressor : {"powersgd", "top_k", "random_k", "qsgd"}
        A level is a rank, a number of entries kept, or a number of bits for each entry.
    ready_s : float
        When the backward pass, delayed by nothing, has it.
    curve : PointCurve or ExponentialCurve
        Error by level.
    encode_s, encode_s_per_level : float
        Computation that delays the rest of the backward pass.
    launch_s, wire_s_per_level : float
        Occupation of the wire.
    """

    name: str
    shape: tuple[int, ...]
    compressor: Literal["powersgd", "top_k", "random_k", "qsgd"]
    ready_s: float = Field(default=0.0, ge=0)
    curve: Curve
    encode_s: float = Field(default=0.0, ge=0)
    encode_s_per_level: float = Field(default=0.0, ge=0)
    launch_s: float = Field(default=0.0, ge=0)
    wire_s_per_level: float = Field(gt=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if any(size < 1 for size in self.shape):
            # As on the timeline, which takes the same gradients with their levels as options.
            raise ValueError(f"'{self.name}' has shape {list(self.shape)}; every dimension is at least 1")
        highest = self.curve.allowed[-1]
        rows, columns = (self.shape[0] if self.shape else 1), math.prod(self.shape[1:])
        if self.compressor == "powersgd" and highest > min(rows, columns):
            raise ValueError(
                f"'{self.name}' has a curve up to rank {highest}, but it is a matrix of {rows} x {columns}; its rank "
                f"is at most {min(rows, columns)}"
            )
        if self.compressor in ("top_k", "random_k") and highest > math.prod(self.shape):
            raise ValueError(
                f"'{self.name}' has a curve up to {highest} entries kept, but it has {math.prod(self.shape)}"
            )
        return self


class LevelInstance(CompressionProblem):
    r"""Gradients on the timeline of :class:`~.CompressionInstance`, without fusion.

    Gradient i at level :math:`l_i` is encoded in :math:`a_i + a'_i l_i`, keeps the wire for :math:`b_i + b'_i l_i`, and
    has the error :math:`E_i(l_i)`, which is convex. Where nothing is encoded and all are ready at 0 the time is the sum
    over the gradients, and the problem a multiple-choice knapsack.

    Parameters
    ----------
    gradients : tuple of GradedGradient
        In the order of the backward pass.
    goal, error_budget, time_budget_s
        As there; the goal's budget is needed.
    """

    kind: ClassVar[str] = "level instance"

    problem: Literal["levels"] = "levels"
    gradients: tuple[GradedGradient, ...] = Field(min_length=1)
    goal: Goal = "time"
    error_budget: float | None = Field(default=None, ge=0)
    time_budget_s: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_disorder([gradient.ready_s for gradient in self.gradients])
        wanted, other = ("error_budget", "time_budget_s") if self.goal == "time" else ("time_budget_s", "error_budget")
        if getattr(self, wanted) is None or getattr(self, other) is not None:
            raise ValueError(f"goal '{self.goal}' needs {wanted}, and no {other}")
        if self.error_budget is not None and let_pass(self.error_budget) < self.least_error:
            raise ValueError(
                f"error_budget is {self.error_budget:.12g}, but no choice of levels has less than {self.least_error!r}"
            )
        return self

    @property
    def size(self) -> int:
        """Number of gradients."""
        return len(self.gradients)

    @property
    def objective_unit(self) -> str:
        """Seconds, or none for an error."""
        return "s" if self.goal == "time" else ""

    @cached_property
    def kept_time_s(self) -> float | None:
        """The time budget, or the least time where that is longer by no more than the check lets pass."""
        if self.time_budget_s is None:
            return None
        encoded, least = 0.0, 0.0
        for each in self.gradients:
            level = each.curve.allowed[0]
            encoded += each.encode_s + each.encode_s_per_level * level
            least = max(least, each.ready_s + encoded) + each.launch_s + each.wire_s_per_level * level
        kept = self.time_budget_s
        return least if kept * (1 + ROUNDING) < least <= let_pass(kept) else kept

    @cached_property
    def least_error(self) -> float:
        """The sum of errors at the highest levels."""
        return math.fsum(error_at(gradient.curve, gradient.curve.allowed[-1]) for gradient in self.gradients)


def error_at(curve: PointCurve | ExponentialCurve, level: int) -> float:
    """Error at one of the curve's levels."""
    if isinstance(curve, ExponentialCurve):
        return curve.scale * 4.0**-level
    return curve.errors[curve.levels.index(level)]


class LevelPlan(CompressionAnswer):
    """The level of every gradient of a :class:`LevelInstance`.

    Parameters
    ----------
    levels : tuple of int
        As many as gradients; each one that the gradient's curve has.
    """

    kind: ClassVar[str] = "level plan"

    problem: Literal["levels"] = "levels"
    levels: tuple[int, ...]
