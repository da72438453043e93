"""Which compressor for which gradient, where communication overlaps the backward pass."""

import math
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem, Goal, refuse_disorder
from ddlopt.models.contracts import Instance, Part, without
from ddlopt.models.errors import SolutionError
from ddlopt.models.tolerances import let_pass

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


class Stage(Part):
    """How long an option keeps a lane busy.

    Parameters
    ----------
    lane : str
        One of the instance's ``lanes``.
    launch_s : float
        Paid once for gradients that are fused.
    busy_s : float
        Launching apart.
    """

    lane: str
    launch_s: float = Field(default=0.0, ge=0)
    busy_s: float = Field(default=0.0, ge=0)


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
    stages : tuple of Stage
        Where the instance has lanes: those that it passes, in their order; ``launch_s``, ``wire_s`` and ``decode_s``
        are 0 then.
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
    stages: tuple[Stage, ...] = ()

    @model_serializer(mode="wrap")
    def _data(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "stages")

    @property
    def occupation_s(self) -> float:
        """How long a gradient sent by itself keeps the wire busy, or all its lanes."""
        lanes = sum(stage.launch_s + stage.busy_s for stage in self.stages)
        return self.launch_s + self.wire_s + self.decode_s + lanes


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

    With ``lanes`` there are several resources in place of the wire, e.g. the CPUs, the links within machines and those
    between them. A gradient passes the lanes of its option one after the other, in their order, and keeps each busy for
    as long as its stage says; every lane takes gradients in the order of the backward pass, those whose options leave
    it out aside. With :math:`d_{il}` the stage of gradient i on lane l it leaves the lane at

    .. math:: P_{il} = \max\bigl(P_{i,l-1}, L_{i-1,l}\bigr) + d_{il},\quad P_{i0} = R_i + \textstyle\sum_{k \le i} e_k,

    where :math:`L_{il}` is when the lane is done with all up to i. The time is the largest of all.

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
    lanes : tuple of str
        Resources that gradients pass in this order; empty: one wire.

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
    lanes: tuple[str, ...] = ()

    @model_serializer(mode="wrap")
    def _data(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "lanes")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for place, menu in enumerate(self.menus):
            labels = [option.label for option in menu]
            if not menu:
                raise ValueError(f"menus[{place}] is empty; give at least one option")
            if len(set(labels)) < len(labels):
                raise ValueError(f"menus[{place}] has two options of one label: {labels}")
        self._check_stages()
        refuse_disorder([gradient.ready_s for gradient in self.gradients])
        for place, gradient in enumerate(self.gradients):
            self._check_gradient(place, gradient)
        self._check_budgets()
        return self

    def _check_stages(self) -> None:
        if len(set(self.lanes)) < len(self.lanes):
            raise ValueError(f"lanes are {list(self.lanes)}; no two have the same name")
        for place, menu in enumerate(self.menus):
            for option in menu:
                at, passed = f"menus[{place}] has option '{option.label}'", [stage.lane for stage in option.stages]
                if self.lanes and option.launch_s + option.wire_s + option.decode_s > 0:
                    raise ValueError(f"{at} with launch_s, wire_s or decode_s, but there are lanes; write stages")
                if passed != [lane for lane in self.lanes if lane in passed]:
                    known = f"lanes are {list(self.lanes)}; each is passed at most once, in this order"
                    raise ValueError(f"{at} with stages on {passed}, but {known}")

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
        if self.error_budget is not None and let_pass(self.error_budget) < least:
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
    gradients, options : tuple of str
        For people: the gradient's name, and its option's label. Empty: not said; a plan with names that are not the
        instance's is refused.
    """

    kind: ClassVar[str] = "compression plan"

    problem: Literal["timeline"] = "timeline"
    choices: tuple[int, ...]
    buckets: tuple[int, ...] = ()
    gradients: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @model_serializer(mode="wrap")
    def _data(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "gradients", "options")

    def belongs_to(self, instance: Instance) -> None:
        """Raise :class:`SolutionError` if the plan says that it answers another instance, or has other names."""
        super().belongs_to(instance)
        if not isinstance(instance, CompressionInstance):
            return
        names = [gradient.name for gradient in instance.gradients]
        for field, there in (("gradients", names), ("options", self._labels(instance))):
            said = getattr(self, field)
            if not said or tuple(there) == said:
                continue
            if len(said) != len(there):
                raise SolutionError(
                    f"the plan for '{self.instance}' has {len(said)} {field}, but '{instance.name}' has {len(there)} "
                    f"gradients; leave {field} out, or name one for each"
                )
            place = next(place for place, pair in enumerate(zip(said, there, strict=True)) if pair[0] != pair[1])
            raise SolutionError(
                f"the plan for '{self.instance}' says that {field}[{place}] is '{said[place]}', but by its choices and "
                f"'{instance.name}' it is '{there[place]}'; change the choice, or leave {field} out"
            )

    def _labels(self, instance: CompressionInstance) -> list[str]:
        """Labels of the options chosen; empty for one that is not there, which the check tells."""
        menus = [instance.menus[gradient.menu] for gradient in instance.gradients]
        if len(self.choices) != len(menus):
            return [""] * len(menus)
        pairs = zip(menus, self.choices, strict=True)
        return [menu[choice].label if 0 <= choice < len(menu) else "" for menu, choice in pairs]

    def named(self, instance: CompressionInstance) -> Self:
        """The plan with the names of the instance's gradients and options."""
        names = tuple(gradient.name for gradient in instance.gradients)
        return self.model_copy(update={"gradients": names, "options": tuple(self._labels(instance))})
