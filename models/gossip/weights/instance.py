"""With which weights workers average: four eigenvalue problems on one graph."""

from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from ddlopt.models.contracts import Matrix, Sense
from ddlopt.models.gossip.family import GossipAnswer, GossipProblem
from ddlopt.models.gossip.network import Network

Goal = Literal["averaging", "chain", "process", "pairwise"]


class WeightsInstance(GossipProblem):
    r"""Weights of the edges of a graph, such that gossip averages as fast as it can.

    With weights :math:`w_e`, edge vectors :math:`a_e = e_i - e_j` and :math:`L(w) = \sum_e w_e a_e a_e^\top`:

    *averaging* (fastest distributed linear averaging, FDLA): in each round :math:`x \leftarrow W x` with
    :math:`W = I - L(w)`; the factor :math:`\rho = \|W - \mathbf{1}\mathbf{1}^\top / n\|_2` by which the distance from
    the average shrinks is minimised. Weights may be negative.

    *chain* (fastest mixing Markov chain, FMMC): the same with :math:`W \ge 0`: weights are probabilities, and so is
    what a node keeps.

    *process* (fastest mixing Markov process): in continuous time :math:`\dot x = -L(w) x` with rates :math:`w \ge 0`
    that cost :math:`\sum_e c_e w_e \le` budget; the second smallest eigenvalue :math:`\lambda_2(L(w))` is maximised.

    *pairwise* (randomized gossip): in each step one node wakes up, node i calls a neighbour j with probability
    :math:`P_{ij}`, and both take their average. The second largest eigenvalue of the expectation,
    :math:`\bar W = I - \frac{1}{2n} \sum_{ij} P_{ij} (e_i - e_j)(e_i - e_j)^\top`, is minimised.

    Parameters
    ----------
    network : Network
        Nodes and links.
    goal : {"averaging", "chain", "process", "pairwise"}
        How nodes average, as above.
    costs : tuple of float, optional
        For goal ``process``: :math:`c_e`; 1 where none are given.
    budget : float, optional
        For goal ``process``, which needs it.

    References
    ----------
    L. Xiao, S. Boyd, "Fast linear iterations for distributed averaging", Systems & Control Letters 53 (2004);
    S. Boyd, P. Diaconis, L. Xiao, "Fastest mixing Markov chain on a graph", SIAM Review 46 (2004); J. Sun, S. Boyd,
    L. Xiao, P. Diaconis, "The fastest mixing Markov process on a graph and a connection to a maximum variance unfolding
    problem", SIAM Review 48 (2006); S. Boyd, A. Ghosh, B. Prabhakar, D. Shah, "Randomized gossip algorithms", IEEE
    Transactions on Information Theory 52 (2006).
    """

    kind: ClassVar[str] = "weights instance"

    problem: Literal["weights"] = "weights"
    network: Network
    goal: Goal = "averaging"
    costs: tuple[float, ...] = ()
    budget: float | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.goal != "process":
            for name in ("costs", "budget"):
                if getattr(self, name):
                    raise ValueError(f"{name} is for goal 'process'; leave it out for goal '{self.goal}'")
            return self
        if self.budget is None or not self.budget > 0:
            raise ValueError(f"budget is {self.budget}; goal 'process' needs one above 0")
        edges = len(self.network.edges)
        if self.costs and len(self.costs) != edges:
            raise ValueError(f"costs has {len(self.costs)} entries, but there are {edges} edges")
        for place, cost in enumerate(self.costs):
            if not cost > 0:
                raise ValueError(f"costs[{place}] is {cost:g}; the cost of a rate must be above 0")
        return self

    @property
    def size(self) -> int:
        """Number of nodes."""
        return self.network.nodes

    @property
    def sense(self) -> Sense:
        """A rate is maximised, factors are minimised."""
        return "maximize" if self.goal == "process" else "minimize"

    @property
    def objective_unit(self) -> str:
        """None."""
        return ""


class GossipWeights(GossipAnswer):
    """Weights by edge, or as a symmetric matrix.

    Parameters
    ----------
    weights : tuple of float
        Of each edge; for goal ``pairwise`` two for each edge (i, j): the probabilities that i calls j and that j calls
        i.
    matrix : (n, n) array, optional
        W in place of ``weights``; not for goals ``process`` and ``pairwise``.
    """

    kind: ClassVar[str] = "set of gossip weights"

    problem: Literal["weights"] = "weights"
    weights: tuple[float, ...] = Field(default=())
    matrix: Matrix | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.matrix is None:
            return self
        if self.weights:
            raise ValueError("weights and matrix are both given; give one of them")
        i, j = np.unravel_index(np.abs(self.matrix - self.matrix.T).argmax(), self.matrix.shape)
        if self.matrix[i, j] != self.matrix[j, i]:
            raise ValueError(
                f"matrix[{i}][{j}] is {self.matrix[i, j]:g}, but matrix[{j}][{i}] is {self.matrix[j, i]:g}; the "
                "weights of gossip are symmetric"
            )
        return self
