"""Published rules for which gradients are sent as sufficient factors, and our closed form."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression import SfbInstance, SfbSelection
from ddlopt.models.errors import OptionError
from ddlopt.solvers.compression.sfb.costs import CostGraph, costs_of
from ddlopt.solvers.compression.sfb.moves import Moves, budgets_of
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

Bools = npt.NDArray[np.bool_]

# A microsecond, as in the released code of TAG.
TAG_PENALTY_S = 1e-6


class _Rule(Heuristic):
    """A rule that chooses without a look at budgets.

    Where its choice breaks one, operators are dropped, always the one that costs least for what it frees in the rule's
    own cost model, until budgets hold; the papers have no budgets, so this is ours.
    """

    covers: ClassVar[type[SfbInstance]] = SfbInstance

    def answer(self, instance: SfbInstance, seed: int, clock: Clock, start: Any) -> Answer[SfbSelection]:
        """What the rule duplicates."""
        own = self.costed(instance)
        graph = CostGraph(own)
        chosen = self.choose(graph)
        use, limits = budgets_of(instance)
        if (use @ chosen > limits).any():
            moves = Moves(graph, costs_of(own), chosen, use, limits)
            moves.drop()
            chosen = moves.duplicated
        return SfbSelection(instance=instance.name, duplicated=tuple(np.flatnonzero(chosen).tolist())), {}

    def costed(self, instance: SfbInstance) -> SfbInstance:
        """The instance in the rule's own cost model."""
        return instance

    @abstractmethod
    def choose(self, graph: CostGraph) -> Bools:
        """(n,) which operators are duplicated if there are no budgets, in an instance that is costed."""


@dataclass(frozen=True)
class Tag(_Rule, uses=()):
    """What is optimal for the costs in TAG's released code, whatever the instance's own are.

    These are ``tag_code``, a broadcast for each edge and a penalty of 1 microsecond for each duplicated operator. TAG
    solves the program with Cbc; here it is a minimum cut, which gives the same optimum (of several, the one with the
    fewest operators).

    References
    ----------
    S. Zhang et al., "Expediting distributed DNN training with device topology-aware graph deployment", IEEE TPDS
    34(4), 2023, and its released code.
    """

    name = "tag"

    def costed(self, instance: SfbInstance) -> SfbInstance:
        """The instance with TAG's costs."""
        return SfbInstance(
            name=instance.name,
            operators=instance.operators,
            tensors=instance.tensors,
            cost_model="tag_code",
            broadcast="per_edge",
            duplication_penalty_s=TAG_PENALTY_S,
        )

    def choose(self, graph: CostGraph) -> Bools:
        """A minimum cut."""
        return graph.cheapest(costs_of(graph.instance)).duplicated


@dataclass(frozen=True)
class Poseidon(_Rule, uses=()):
    r"""Poseidon's rule: dense layers are sent as factors if these are fewer numbers than a parameter server moves.

    For a layer of M x N weights, K samples at each of :math:`P_1` workers and :math:`P_2` server shards:

    .. math:: 2 K (P_1 - 1) (M + N) \le 2 M N \frac{P_1 + P_2 - 2}{P_2}.

    The layers are read off the graph: an operator with a gradient that reads two tensors multiplies them, the
    activations (:math:`P_1 K \times M`) and the gradients of what the layer gives (:math:`P_1 K \times N`), so that
    :math:`K (M + N)` are their elements at one worker, and :math:`M N` those of the gradient. The original asks layers
    for their type; here whatever has this form is taken for dense, with as many rows as it has samples, tokens or
    pixels. Only the operator itself is duplicated. Computation counts for nothing.

    With :math:`P_2 = P_1`, the default, the rule is :math:`P_1 K (M + N) \le 2 M N`: that of ring all-reduce in
    ``per_link`` and ``total_bytes``.

    Parameters
    ----------
    servers : int, optional
        :math:`P_2`. Default: as many as workers.

    References
    ----------
    H. Zhang et al., "Poseidon: an efficient communication architecture for distributed deep learning on GPU clusters",
    USENIX ATC 2017. The inequality as in ``poseidon_strategy.py`` of petuum/autodist.
    """

    name = "poseidon"

    servers: int | None = None

    def __post_init__(self) -> None:
        """Refuse fewer than one server.

        Raises
        ------
        OptionError
            If ``servers`` is less than 1.
        """
        if self.servers is not None and self.servers < 1:
            raise OptionError(f"servers is {self.servers}; it must be at least 1")

    def choose(self, graph: CostGraph) -> Bools:
        """Every gradient by itself."""
        instance = graph.instance
        gradient = np.array([each.gradient_bytes for each in instance.operators])
        factors = np.array([sum(instance.tensors[t].size_bytes for t in read) for read in graph.reads])
        two = np.array([len(read) == 2 for read in graph.reads])
        workers = instance.replicas
        servers = workers if self.servers is None else self.servers
        fewer = 2 * (workers - 1) * factors / workers <= 2 * gradient * (workers + servers - 2) / servers
        chosen: Bools = instance.eligible & (gradient > 0) & two & fewer
        return chosen


@dataclass(frozen=True)
class FactorRule(_Rule, uses=()):
    r"""Each gradient by itself: its operator is duplicated if that and the broadcasts of what it reads cost less.

    That is if :math:`e_i + \alpha + \sum_t w_t < s_i` over the tensors t that it reads, in the instance's own cost
    model. Optimal where gradients share no tensors and it never pays to duplicate what they read from as well. For a
    dense layer of m x n weights, b samples at each of D devices and without computation, it says

    - ``per_link``, ``total_bytes``: :math:`D b (m + n) < 2 m n`,
    - ``tag_code``: :math:`D^3 b (m + n) < 2 m n`.

    Ours.
    """

    name = "factor-rule"

    def choose(self, graph: CostGraph) -> Bools:
        """Every gradient by itself."""
        costs = costs_of(graph.instance)
        chosen: Bools = graph.instance.eligible & (graph.alone(costs) < costs.sync)
        return chosen
