"""Sufficient factor broadcasting: which operators every replica computes in full, to spare an all-reduce."""

from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem
from ddlopt.models.contracts import Part

CostModel = Literal["per_link", "total_bytes", "tag_code"]

BYTES_PER_ELEMENT = 4
"""``tag_code`` counts elements where it divides by bytes per second."""


class Operator(Part):
    """An operator of the training graph, which each of its replicas computes for its part of the batch.

    Parameters
    ----------
    name : str
    time_s : float
        Seconds for the whole batch on one device; a replica's part takes ``time_s / replicas``.
    replicas : int
        Devices that share the batch.
    bandwidth_bytes_per_s : float
        Of a device's link to the other replicas.
    gradient_bytes : float
        Of the parameter gradients that it produces and that are all-reduced; 0 for other operators.
    memory_bytes : float
        What duplicating it takes of each device's memory.
    can_duplicate : bool
        Whether every replica may compute it for the whole batch; not, for instance, where the gradients are not
        all-reduced but sent to a parameter server.
    """

    name: str
    time_s: float = Field(ge=0)
    replicas: int = Field(default=1, ge=1)
    bandwidth_bytes_per_s: float = Field(gt=0)
    gradient_bytes: float = Field(default=0.0, ge=0)
    memory_bytes: float = Field(default=0.0, ge=0)
    can_duplicate: bool = True


class Tensor(Part):
    """What an operator hands to others.

    Parameters
    ----------
    producer : int
        Place in ``operators``.
    consumers : tuple of int
        Places in ``operators``, each once.
    size_bytes : float
        For the whole batch; each replica has its part of it.
    """

    producer: int = Field(ge=0)
    consumers: tuple[int, ...]
    size_bytes: float = Field(ge=0)


class SfbInstance(CompressionProblem):
    r"""A training graph in data parallelism, and what duplicating an operator costs and saves.

    Operator i has M replicas of bandwidth B and takes T seconds for the whole batch. If it is *duplicated*
    (:math:`x_i = 1`), every replica computes it in full: its gradient of g bytes, if it produces one, is the same
    everywhere and needs no all-reduce, but what it reads must be there in full, so each tensor of S bytes from an
    operator that is not duplicated is broadcast. The objective is the time that communication and duplication take,

    .. math::
        \sum_i x_i (e_i + \alpha) + \sum_i (1 - x_i)\, s_i + \sum_t w_t\, b_t

    with :math:`b_t = 1` if a consumer of tensor t is duplicated and its producer is not (``per_tensor``), or the
    number of such consumers (``per_edge``). All of an operator's figures are its own; M and B of a tensor are those of
    its producer:

    =============== ==================== ======================== =====================
    cost model      extra time e         all-reduce s             broadcast w
    =============== ==================== ======================== =====================
    ``per_link``    T (M-1)/M            2 (M-1)/M g/B            (M-1)/M S/B
    ``total_bytes`` T (M-1)              2 (M-1) g/B              (M-1) S/B
    ``tag_code``    T (M-1)              2 (M-1)/M (g/4)/B        M (M-1) (S/4)/B
    =============== ==================== ======================== =====================

    ``per_link`` is wall-clock time: what one device computes more, and what its link receives. ``total_bytes`` adds
    all devices up; where all operators have the same M it is M times the former and has the same optima.
    ``tag_code`` is what TAG's released code calculates: elements in place of bytes, and the batch of all devices from
    each.

    Parameters
    ----------
    operators : tuple of Operator
        Of one training step, in any order.
    tensors : tuple of Tensor
        Together with the operators an acyclic graph.
    cost_model : {"per_link", "total_bytes", "tag_code"}
        What costs are, see above.
    broadcast : {"per_tensor", "per_edge"}
        Whether a tensor is sent once to all its consumers, or to each.
    duplication_penalty_s : float
        alpha, for each duplicated operator (TAG: 1 microsecond), so that nothing is duplicated for nothing.
    memory_budget_bytes, compute_budget_s : float, optional
        Limits on the sums of ``memory_bytes`` and of e over the duplicated operators.

    References
    ----------
    P. Xie et al., "Lighter-communication distributed machine learning via sufficient factor broadcasting", UAI 2016.
    S. Zhang et al., "Expediting distributed DNN training with device topology-aware graph deployment" (TAG), IEEE TPDS
    34(4), 2023, and its released code. ``per_link``, ``total_bytes`` and ``per_tensor`` are ours.
    """

    kind: ClassVar[str] = "sufficient-factor instance"

    problem: Literal["sfb"] = "sfb"
    operators: tuple[Operator, ...] = Field(min_length=1)
    tensors: tuple[Tensor, ...] = ()
    cost_model: CostModel = "per_link"
    broadcast: Literal["per_tensor", "per_edge"] = "per_tensor"
    duplication_penalty_s: float = Field(default=0.0, ge=0)
    memory_budget_bytes: float | None = Field(default=None, ge=0)
    compute_budget_s: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        count = len(self.operators)
        for place, tensor in enumerate(self.tensors):
            for role, node in (("producer", tensor.producer), *(("consumers", node) for node in tensor.consumers)):
                if not 0 <= node < count:
                    raise ValueError(
                        f"tensors[{place}].{role} names operator {node}, but there are {count} operators "
                        f"(0..{count - 1})"
                    )
            if len(set(tensor.consumers)) < len(tensor.consumers):
                raise ValueError(f"tensors[{place}].consumers names an operator twice: {list(tensor.consumers)}")
        self._refuse_cycle()
        return self

    def _refuse_cycle(self) -> None:
        sorter: TopologicalSorter[int] = TopologicalSorter()
        for tensor in self.tensors:
            for consumer in tensor.consumers:
                sorter.add(consumer, tensor.producer)
        try:
            sorter.prepare()
        except CycleError as found:
            names = " -> ".join(self.operators[node].name for node in found.args[1][:8])
            raise ValueError(f"tensors form a cycle: {names}; a training graph has none") from None

    @property
    def size(self) -> int:
        """Number of operators."""
        return len(self.operators)

    @property
    def budgeted(self) -> bool:
        """Whether there is a limit on what is duplicated."""
        return self.memory_budget_bytes is not None or self.compute_budget_s is not None

    @cached_property
    def replicas(self) -> npt.NDArray[np.float64]:
        """(n,) replicas of the operators."""
        return np.array([each.replicas for each in self.operators], dtype=np.float64)

    @cached_property
    def eligible(self) -> npt.NDArray[np.bool_]:
        """(n,) whether an operator may be duplicated; one with a single replica need not be."""
        return np.array([each.can_duplicate and each.replicas > 1 for each in self.operators], dtype=np.bool_)

    @cached_property
    def producers(self) -> npt.NDArray[np.int64]:
        """(number of tensors,) the operator that each comes from."""
        return np.array([each.producer for each in self.tensors], dtype=np.int64)

    @cached_property
    def edges(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(number of edges,) tensor and consumer."""
        counts = np.array([len(each.consumers) for each in self.tensors], dtype=np.int64)
        consumers = [node for each in self.tensors for node in each.consumers]
        return np.repeat(np.arange(len(self.tensors)), counts), np.array(consumers, dtype=np.int64)

    @cached_property
    def _bandwidth(self) -> npt.NDArray[np.float64]:
        return np.array([each.bandwidth_bytes_per_s for each in self.operators])

    @cached_property
    def extra_s(self) -> npt.NDArray[np.float64]:
        """(n,) e: what duplicating an operator adds to the computation, without the penalty."""
        time = np.array([each.time_s for each in self.operators])
        extra: npt.NDArray[np.float64] = time * (self.replicas - 1)
        return extra / self.replicas if self.cost_model == "per_link" else extra

    @cached_property
    def sync_s(self) -> npt.NDArray[np.float64]:
        """(n,) s: the all-reduce of the gradient that an operator produces."""
        size = np.array([each.gradient_bytes for each in self.operators])
        ring: npt.NDArray[np.float64] = 2 * (self.replicas - 1) / self.replicas * size / self._bandwidth
        scale: dict[CostModel, float | npt.NDArray[np.float64]]
        scale = {"per_link": 1.0, "total_bytes": self.replicas, "tag_code": 1 / BYTES_PER_ELEMENT}
        return ring * scale[self.cost_model]

    @cached_property
    def broadcast_s(self) -> npt.NDArray[np.float64]:
        """(number of tensors,) w: broadcasting a tensor once."""
        replicas = self.replicas[self.producers]
        size = np.array([each.size_bytes for each in self.tensors])
        once: npt.NDArray[np.float64] = (replicas - 1) * size / self._bandwidth[self.producers]
        scale: dict[CostModel, float | npt.NDArray[np.float64]]
        scale = {"per_link": 1 / replicas, "total_bytes": 1.0, "tag_code": replicas / BYTES_PER_ELEMENT}
        return once * scale[self.cost_model]


class SfbSelection(CompressionAnswer):
    """The operators that every replica computes in full, for an :class:`SfbInstance`.

    Parameters
    ----------
    duplicated : tuple of int
        Places in ``operators``, ascending.
    """

    kind: ClassVar[str] = "sufficient-factor selection"

    problem: Literal["sfb"] = "sfb"
    duplicated: tuple[int, ...] = ()
