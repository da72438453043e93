"""Which compressor for which gradient, where communication overlaps the backward pass."""

import math
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem, Goal, refuse_disorder
from ddlopt.models.contracts import Part

Compressor = Literal["none", "fp16", "top_k", "dgc", "random_k", "qsgd", "sign", "onebit", "powersgd", "sfb"]


class Cluster(Part):
    """Where an instance's times come from; heuristics with rules about hardware read it, nothing else does.

    Parameters
    ----------
    nodes, gpus_per_node : int
        Numbers of them.
    intra : {"nvlink", "pcie"}
        What connects the GPUs of a node.
    intra_bandwidth_bytes_per_s, inter_bandwidth_bytes_per_s : float
        Of a GPU inside its node, and of a node's network card.
    latency_s : float
        Of a message.
    """

    nodes: int = Field(ge=1)
    gpus_per_node: int = Field(default=1, ge=1)
    intra: Literal["nvlink", "pcie"] = "nvlink"
    intra_bandwidth_bytes_per_s: float = Field(gt=0)
    inter_bandwidth_bytes_per_s: float = Field(gt=0)
    latency_s: float = Field(default=0.0, ge=0)

    @property
    def workers(self) -> int:
        """GPUs in all."""
        return self.nodes * self.gpus_per_node


class Option(Part):
    """One way to send a gradient.

    Parameters
    ----------
    label : str
        What people call it, e.g. ``"dgc 1 % inter"``; no two options of a menu have the same.
    compressor : str
        One of :data:`Compressor`.
    scope : {"all", "inter", "intra"}
        Whether what travels everywhere is compressed, or only between nodes, or only within them.
    device : {"gpu", "cpu"}
        Where it is compressed.
    ratio : float, optional
        Part of the numbers that is kept (top-k, DGC, random-k).
    rank : int, optional
        Of PowerSGD.
    levels : int, optional
        Of QSGD, sign apart.
    encode_s : float
        Computation before the gradient can be sent. It delays the rest of the backward pass; what does not (another
        stream or processor) is part of ``wire_s``.
    launch_s : float
        Of sending one message, paid once for gradients that are fused.
    wire_s : float
        Time on the wire, launching apart.
    decode_s : float
        What must happen before the next message can be sent.
    error : float
        What is lost of the gradient, in a measure that adds up over gradients, such as expected squared distance.
    """

    label: str
    compressor: Compressor = "none"
    scope: Literal["all", "inter", "intra"] = "all"
    device: Literal["gpu", "cpu"] = "gpu"
    ratio: float | None = Field(default=None, gt=0, le=1)
    rank: int | None = Field(default=None, ge=1)
    levels: int | None = Field(default=None, ge=1)
    encode_s: float = Field(default=0.0, ge=0)
    launch_s: float = Field(default=0.0, ge=0)
    wire_s: float = Field(ge=0)
    decode_s: float = Field(default=0.0, ge=0)
    error: float = Field(default=0.0, ge=0)

    @property
    def occupation_s(self) -> float:
        """How long a gradient sent by itself keeps the wire busy."""
        return self.launch_s + self.wire_s + self.decode_s


class Gradient(Part):
    """A parameter tensor's gradient.

    Parameters
    ----------
    name : str
    shape : tuple of int
        Of the tensor.
    ready_s : float
        When the backward pass, delayed by nothing, has it.
    menu : int
        Place in the instance's ``menus``.
    """

    name: str
    shape: tuple[int, ...]
    ready_s: float = Field(ge=0)
    menu: int = Field(ge=0)

    @property
    def elements(self) -> int:
        """Numbers in it."""
        return math.prod(self.shape)

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows and columns where all but the first dimension are flattened."""
        return (self.shape[0] if self.shape else 1), math.prod(self.shape[1:])


class CompressionInstance(CompressionProblem):
    r"""The gradients of one backward pass, and for each a menu of ways to send it.

    Gradients are sent one after the other in the order in which the backward pass has them. With :math:`R_i` the ready
    time, :math:`e_i` the encoding and :math:`c_i` the occupation of the wire of the option chosen, gradient i is there
    at

    .. math:: F_i = \max\bigl(F_{i-1},\; R_i + \textstyle\sum_{k \le i} e_k\bigr) + c_i,\qquad F_0 = 0 .

    The time is :math:`F_n`. With ``fusion`` consecutive gradients that take options of the same label may form a
    bucket: one message, sent when its last gradient is encoded, that occupies the wire for the longest of its
    ``launch_s`` and the sum of its ``wire_s`` and ``decode_s``.

    Parameters
    ----------
    gradients : tuple of Gradient
        In the order of the backward pass.
    menus : tuple of tuples of Option
        Gradients of the same shape may share one.
    cluster : Cluster, optional
        Where the times come from; only heuristics with rules about hardware read it.
    goal : {"time", "error"}
        Minimise the time with the error within ``error_budget``, or the error with the time within ``time_budget_s``.
    error_budget : float, optional
        On the sum of errors; None: no limit.
    time_budget_s : float, optional
        None: no limit.
    fusion : bool
        Whether gradients may be fused.
    largest_bucket_bytes : float, optional
        Of the gradients of a bucket of two or more, 4 bytes an element; None: no limit.

    References
    ----------
    Z. Wang et al., "Hi-speed DNN training with Espresso: unleashing the full potential of gradient compression with
    near-optimal usage strategies", EuroSys 2023 (timeline); budgets and the two goals: I. Markov et al., "L-GreCo:
    Layerwise-adaptive gradient compression for efficient data-parallel deep learning", MLSys 2024.
    """

    problem: Literal["timeline"] = "timeline"
    gradients: tuple[Gradient, ...] = Field(min_length=1)
    menus: tuple[tuple[Option, ...], ...] = Field(min_length=1)
    cluster: Cluster | None = None
    goal: Goal = "time"
    error_budget: float | None = Field(default=None, ge=0)
    time_budget_s: float | None = Field(default=None, gt=0)
    fusion: bool = False
    largest_bucket_bytes: float | None = Field(default=None, gt=0)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Those of the dual bound."""
        fusion = ("ddlopt.models.compression.timeline.dual.fusion",) if self.fusion else ()
        return ("ddlopt.models.compression.timeline.dual.kernels", *fusion)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for place, menu in enumerate(self.menus):
            labels = [option.label for option in menu]
            if not menu:
                raise ValueError(f"menus[{place}] is empty; give at least one option")
            if len(set(labels)) < len(labels):
                raise ValueError(f"menus[{place}] has two options of one label: {labels}")
        refuse_disorder([gradient.ready_s for gradient in self.gradients])
        for place, gradient in enumerate(self.gradients):
            self._check_gradient(place, gradient)
        self._check_budgets()
        return self

    def _check_gradient(self, place: int, gradient: Gradient) -> None:
        if gradient.menu >= len(self.menus):
            raise ValueError(
                f"gradients[{place}].menu is {gradient.menu}, but there are {len(self.menus)} menus "
                f"(0..{len(self.menus) - 1})"
            )
        if min(gradient.shape, default=1) < 1:
            raise ValueError(f"gradients[{place}].shape is {list(gradient.shape)}; every dimension is at least 1")
        rows, columns = gradient.matrix
        for option in self.menus[gradient.menu]:
            if option.rank is not None and option.rank > min(rows, columns):
                raise ValueError(
                    f"menus[{gradient.menu}] has option '{option.label}' of rank {option.rank}, but gradients[{place}] "
                    f"'{gradient.name}' is a matrix of {rows} x {columns}; its rank is at most {min(rows, columns)}"
                )

    def _check_budgets(self) -> None:
        if self.goal == "error" and self.time_budget_s is None:
            raise ValueError("goal is 'error', but time_budget_s is missing; without a limit nothing is compressed")
        if self.goal == "time" and self.time_budget_s is not None:
            raise ValueError("time_budget_s belongs to goal 'error'; remove it, or minimise the error")
        if self.goal == "error" and self.error_budget is not None:
            raise ValueError("error_budget belongs to goal 'time'; remove it, or minimise the time")
        least = self.least_error
        if self.error_budget is not None and self.error_budget < least:
            raise ValueError(f"error_budget is {self.error_budget:.12g}, but no choice has less than {least!r}")

    @property
    def size(self) -> int:
        """Number of gradients."""
        return len(self.gradients)

    @property
    def objective_unit(self) -> str:
        """Seconds, or none for an error."""
        return "s" if self.goal == "time" else ""

    @property
    def least_error(self) -> float:
        """The smallest sum of errors that there is."""
        smallest = [min(option.error for option in menu) for menu in self.menus]
        return math.fsum(smallest[gradient.menu] for gradient in self.gradients)

    def option(self, gradient: int, choice: int) -> Option:
        """The option at place ``choice`` of a gradient's menu."""
        return self.menus[self.gradients[gradient].menu][choice]

    @cached_property
    def ready_s(self) -> npt.NDArray[np.float64]:
        """(n,) ready times."""
        return np.array([gradient.ready_s for gradient in self.gradients])

    @cached_property
    def most_options(self) -> int:
        """Length of the longest menu."""
        return max(len(menu) for menu in self.menus)


class CompressionPlan(CompressionAnswer):
    """What is chosen for a :class:`CompressionInstance`.

    Parameters
    ----------
    choices : tuple of int
        For every gradient the place of its option in its menu.
    buckets : tuple of int
        Numbers of consecutive gradients that are sent together, in order; empty: each by itself.
    """

    kind: ClassVar[str] = "compression plan"

    problem: Literal["timeline"] = "timeline"
    choices: tuple[int, ...]
    buckets: tuple[int, ...] = ()
