"""In which order gradients are sent, and in how many parts, where the next forward pass waits for them."""

import itertools
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem
from ddlopt.models.compression.timeline.instance import CompressionInstance


class ForwardInstance(CompressionProblem):
    r"""A backward pass, the wire, and the forward pass of the next step, layer by layer.

    Gradient i is encoded at :math:`P_i = R_i + \sum_{k \le i} e_k`, as on the timeline, and cut into :math:`k_i` equal
    parts, each of which keeps the wire busy for :math:`h_i + (w_i + d_i) / k_i`, with launching h, wire w and decoding
    d of the option chosen. The wire sends one part after the other, in an order that is chosen, none before it is
    encoded, none interrupted. The forward pass goes through the layers against the order of the backward pass; with
    :math:`A_i` when the last part of gradient i is there and :math:`f_i` the computation that needs it,

    .. math:: N_i = \max(N_{i+1}, A_i) + f_i,\qquad N_{n+1} = 0,

    and the time is :math:`N_1`: a step of the steady state, from the start of one backward pass to that of the next.

    Parameters
    ----------
    timeline : CompressionInstance
        Gradients in the order of the backward pass, their options, and a budget of error; one wire, goal ``time``, no
        fusion.
    forward_s : tuple of float
        For every gradient, how long the next forward pass computes from where it is needed up to where that before it
        in ``gradients`` is; 0 where another gradient of the same layer comes before it.
    parts : tuple of int
        Into how many parts a gradient may be cut; increasing, from 1.

    References
    ----------
    A. Jayarajan et al., "Priority-based parameter propagation for distributed DNN training", MLSys 2019; Y. Peng et
    al., "A generic communication scheduler for distributed DNN training acceleration", SOSP 2019.
    """

    kind: ClassVar[str] = "forward instance"

    problem: Literal["forward"] = "forward"
    timeline: CompressionInstance
    forward_s: tuple[Annotated[float, Field(ge=0)], ...]
    parts: tuple[int, ...] = (1,)

    @model_validator(mode="after")
    def _check(self) -> Self:
        timeline = self.timeline
        if timeline.lanes or timeline.fusion or timeline.goal != "time":
            wrong = "lanes" if timeline.lanes else "fusion" if timeline.fusion else "goal 'error'"
            raise ValueError(f"timeline has {wrong}; a forward instance has one wire, no fusion and goal 'time'")
        if len(self.forward_s) != timeline.size:
            raise ValueError(f"forward_s has {len(self.forward_s)} entries, but there are {timeline.size} gradients")
        if self.parts[:1] != (1,) or any(b <= a for a, b in itertools.pairwise(self.parts)):
            raise ValueError(f"parts are {list(self.parts)}; give increasing numbers, the first of them 1")
        return self

    @property
    def size(self) -> int:
        """Number of gradients."""
        return self.timeline.size

    @cached_property
    def tails_s(self) -> npt.NDArray[np.float64]:
        """(n,) computation of the forward pass that cannot begin before gradient i is there."""
        return np.cumsum(self.forward_s)


class ForwardPlan(CompressionAnswer):
    """What is chosen for a :class:`ForwardInstance`.

    Parameters
    ----------
    choices : tuple of int
        For every gradient the place of its option in its menu.
    parts : tuple of int
        For every gradient into how many parts it is cut.
    order : tuple of int
        The wire's parts, one after the other: the gradient of each, every gradient as often as it has parts.
    """

    kind: ClassVar[str] = "forward plan"

    problem: Literal["forward"] = "forward"
    choices: tuple[int, ...]
    parts: tuple[int, ...]
    order: tuple[int, ...]
