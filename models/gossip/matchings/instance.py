"""Which matchings of a graph are active how often: gossip under a budget of communication."""

from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from ddlopt.models.gossip.family import GossipAnswer, GossipProblem
from ddlopt.models.gossip.network import Network

Activation = Literal["independent", "single"]


class MatchingsInstance(GossipProblem):
    r"""A graph, and how many matchings may be active in a round on average.

    The edges are split into matchings; in each round matching j is active with probability :math:`p_j`, and workers on
    its edges average with weights w:

    .. math:: x \leftarrow \Bigl(I - \sum_j B_j L_j(w)\Bigr) x, \qquad L_j(w) = \sum_{e \in M_j} w_e a_e a_e^\top,

    with :math:`B_j \in \{0, 1\}`, :math:`\mathbb{E} B_j = p_j`. Matchings that are active in a round communicate one
    after the other, so a round takes :math:`\sum_j p_j t_j` on average with the times :math:`t_j` of the matchings,
    each that of its slowest edge. The factor by which the expected squared distance from the average shrinks,

    .. math:: \rho = \bigl\| \mathbb{E}[W^\top W] - J \bigr\|_2, \qquad J = \mathbf{1}\mathbf{1}^\top / n,

    is minimised. Probabilities are *independent*, or a *single* matching is active in a round, with probability
    :math:`p_j`, and none with :math:`1 - \sum_j p_j`.

    Parameters
    ----------
    network : Network
        Workers and links.
    budget : float
        Of :math:`\sum_j p_j t_j`; as a number of matchings where no times are given.
    times : tuple of float, optional
        Of each edge; 1 where none are given.
    edge_budgets : tuple of float, optional
        Most expected uses of each edge in a round, in 0..1.
    activation : {"independent", "single"}
        Each matching by itself, or one at a time.
    matchings : tuple of tuples of int, optional
        Edges of each; a plan then has these and no others. Where none are given they are part of the question.

    References
    ----------
    J. Wang, A. K. Sahu, Z. Yang, G. Joshi, S. Kar, "MATCHA: Speeding up decentralized SGD via matching decomposition
    sampling", Indian Control Conference 2019, and the released code (JYWa/MATCHA). A single matching, times and budgets
    of edges are ours.
    """

    kind: ClassVar[str] = "matchings instance"

    problem: Literal["matchings"] = "matchings"
    network: Network
    budget: float = Field(gt=0)
    times: tuple[float, ...] = ()
    edge_budgets: tuple[float, ...] = ()
    activation: Activation = "independent"
    matchings: tuple[tuple[int, ...], ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        edges = len(self.network.edges)
        for name in ("times", "edge_budgets"):
            values = getattr(self, name)
            if values and len(values) != edges:
                raise ValueError(f"{name} has {len(values)} entries, but there are {edges} edges")
        for place, value in enumerate(self.times):
            if not value > 0:
                raise ValueError(f"times[{place}] is {value:g}; the time of an edge must be above 0")
        for place, value in enumerate(self.edge_budgets):
            if not 0 < value <= 1:
                raise ValueError(f"edge_budgets[{place}] is {value:g}; expected a number above 0, at most 1")
        if self.matchings:
            self._refuse_other_edges()
        return self

    def _refuse_other_edges(self) -> None:
        """Each edge is in one matching, and no two of a matching meet."""
        edges, first = self.network.edges, dict[int, int]()
        for number, matching in enumerate(self.matchings):
            met = dict[int, int]()
            for edge in matching:
                if not 0 <= edge < len(edges):
                    raise ValueError(
                        f"matchings[{number}] names edge {edge}, but there are {len(edges)} edges (0..{len(edges) - 1})"
                    )
                if edge in first:
                    raise ValueError(f"edge {edge} of matchings[{number}] is in matchings[{first[edge]}]; give it once")
                first[edge] = number
                for node in edges[edge]:
                    if met.setdefault(node, edge) != edge:
                        raise ValueError(
                            f"edges {met[node]} and {edge} of matchings[{number}] meet at node {node}; put one of them "
                            "into another matching"
                        )
        for edge in range(len(edges)):
            if edge not in first:
                raise ValueError(f"edge {edge} is in no matching; put it into one")

    @property
    def size(self) -> int:
        """Number of nodes."""
        return self.network.nodes

    @property
    def objective_unit(self) -> str:
        """None."""
        return ""

    @cached_property
    def edge_times(self) -> tuple[float, ...]:
        """Time of each edge."""
        return self.times or (1.0,) * len(self.network.edges)


class MatchingPlan(GossipAnswer):
    """Matchings, how often each is active, and the weights of edges.

    Parameters
    ----------
    matchings : tuple of tuples of int
        Edges of each; each edge is in one.
    probabilities : tuple of float
        Of each matching.
    weights : tuple of float
        Of each edge; all the same for MATCHA's mixing parameter.
    """

    kind: ClassVar[str] = "plan of matchings"

    problem: Literal["matchings"] = "matchings"
    matchings: tuple[tuple[int, ...], ...]
    probabilities: tuple[float, ...]
    weights: tuple[float, ...]
