"""Links for model-parallel traffic as a matching in which each further link of a pair is worth less."""

import itertools
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import INTEGRALITY_TOL
from ddlopt.models.topology.instance import TopologyInstance

Pair = tuple[int, int]


@dataclass(frozen=True)
class ConcaveMatching:
    r"""Links of most value when each further one of a pair is worth less: what repeated Blossom matching approximates.

    The c-th link from i to j serves the pair's traffic with weight :math:`w_c`, decreasing in c. With
    :math:`y_{ijc} = 1` if the pair has at least c links,

    .. math::
        \max \sum_{ij} T_{ij} \sum_{c=1}^C w_c\, y_{ijc} \quad \text{s.t.} \quad
        \textstyle\sum_{j,c} y_{ijc} \le d,\quad \sum_{i,c} y_{ijc} \le d,\quad 0 \le y_{ijc} \le 1 .

    Because w decreases, no constraint is needed to fill a pair's copies in order. One-way links are the cells of a
    transportation problem, whose matrix is totally unimodular: the linear program has an integral optimum, so that
    ``copy`` is continuous there and a vertex must be asked for.

    Duplex links are undirected, worth what both directions are: :math:`T_{ij} + T_{ji}` with
    :math:`\sum_{j,c} y_{ijc} \le d` at each server. Odd cycles make the linear program fractional, so ``copy`` is
    binary. With ``planes`` each copy moreover lies on one of d planes, :math:`\sum_c y_{ijc} = \sum_p m^p_{ij}`, and
    each plane is a matching; without, the links may need more planes than there are (a triangle at d = 2).

    A server's own degree may be given where rings have taken some of its interfaces already.

    Parameters
    ----------
    diminishing : {"halving", "harmonic"}
        :math:`w_c = 2^{1-c}`, the halved demand of the TopoOpt paper, or :math:`1/c`, the residual of its code.
    copies : int, optional
        C; default: as many as the degree (1 where the instance forbids parallel links).
    degree : int, optional
        d; default: the instance's degree.
    planes : bool
        Duplex only: whether the links must be spread over d planes.

    Ports
    -----
    ``copy[i, j, c]``
        1 if the pair has at least c links; i < j for duplex.
    ``mate[p, i, j]`` : duplex optics with ``planes``
        1 if plane p joins i and j.
    ``value``, ``objective``
        The value in bytes, to be maximised.

    Notes
    -----
    The value is not an iteration time, and the links alone are no design: this is a block for a host model or a
    heuristic, which reads them with :meth:`read_links`.

    References
    ----------
    W. Wang et al., "TopoOpt: Co-optimizing network topology and parallelization strategy for distributed training
    jobs", NSDI 2023 (repeated matching with halved demand). The exact forms are ours.
    """

    diminishing: Literal["halving", "harmonic"] = "halving"
    copies: int | None = None
    degree: int | None = None
    planes: bool = True

    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"

    def __post_init__(self) -> None:
        for name in ("copies", "degree"):
            figure = getattr(self, name)
            if figure is not None and figure < 1:
                raise ValueError(f"{name} must be at least 1, got {figure}")

    def weight(self, c: int) -> float:
        """Worth of the c-th link of a pair against the first."""
        return 2.0 ** (1 - c) if self.diminishing == "halving" else 1 / c

    def refuses(self, instance: TopologyInstance) -> str | None:
        """Nothing but rings."""
        return None if instance.traffic_bytes.any() else "it has no traffic but rings, whose links are not chosen here"

    def build(self, block: pyo.Block, instance: TopologyInstance) -> None:
        """Fill ``block``; only pairs with traffic have copies."""
        n, duplex = instance.servers, instance.optics == "duplex"
        degree = self.degree or instance.degree
        most = range(1, min(self.copies or degree, degree, instance.most_links_of_a_pair) + 1)
        traffic = instance.traffic_bytes + instance.traffic_bytes.T if duplex else instance.traffic_bytes
        ends = itertools.combinations(range(n), 2) if duplex else itertools.permutations(range(n), 2)
        pairs = [pair for pair in ends if traffic[pair] > 0]
        block.SERVERS = pyo.RangeSet(0, n - 1, doc="servers")
        block.PAIRS = pyo.Set(dimen=2, initialize=pairs, doc="pairs with traffic")
        block.COPIES = pyo.RangeSet(1, len(most), doc="links of a pair, most useful first")
        block.copy = pyo.Var(
            block.PAIRS,
            block.COPIES,
            domain=pyo.Binary if duplex else pyo.NonNegativeReals,
            bounds=(0, 1),
            doc="the pair has at least c links",
        )
        block.value = pyo.Expression(
            expr=sum(float(traffic[i, j]) * self.weight(c) * block.copy[i, j, c] for i, j in pairs for c in most),
            doc="bytes times the weight of their links",
        )
        block.objective = pyo.Expression(expr=block.value)
        leaving: dict[int, list[Pair]] = defaultdict(list)
        entering: dict[int, list[Pair]] = defaultdict(list)
        for i, j in pairs:
            leaving[i].append((i, j))
            (leaving if duplex else entering)[j].append((i, j))

        block.SENDERS = pyo.Set(initialize=sorted(leaving))
        block.RECEIVERS = pyo.Set(initialize=sorted(entering))

        @block.Constraint(block.SENDERS, doc="each server has d transmitters")
        def transmitters_suffice(b: Any, i: int) -> Any:
            return sum(b.copy[pair, c] for pair in leaving[i] for c in b.COPIES) <= degree

        @block.Constraint(block.RECEIVERS, doc="each server has d receivers")
        def receivers_suffice(b: Any, j: int) -> Any:
            return sum(b.copy[pair, c] for pair in entering[j] for c in b.COPIES) <= degree

        if duplex and self.planes:
            block.PLANES = pyo.RangeSet(0, degree - 1, doc="optical planes")
            block.mate = pyo.Var(block.PLANES, block.PAIRS, domain=pyo.Binary, doc="plane p joins i and j")

            @block.Constraint(block.PAIRS, doc="links lie on planes")
            def links_lie_on_planes(b: Any, i: int, j: int) -> Any:
                return sum(b.copy[i, j, c] for c in b.COPIES) == sum(b.mate[p, i, j] for p in b.PLANES)

            @block.Constraint(block.PLANES, block.SENDERS, doc="each plane is a matching")
            def planes_are_matchings(b: Any, p: int, i: int) -> Any:
                return sum(b.mate[p, pair] for pair in leaving[i]) <= 1

    def read_links(self, block: pyo.Block) -> dict[Pair, int]:
        """Links of each pair that has any: ordered pairs, or i < j for duplex.

        Raises
        ------
        SolverError
            If a count is not integral.
        """
        links = {}
        for i, j in block.PAIRS:
            laid = sum(pyo.value(block.copy[i, j, c]) for c in block.COPIES)
            if abs(laid - round(laid)) > INTEGRALITY_TOL:
                raise SolverError(f"links[{i}, {j}] = {laid:.9f} is not an integer; solve to a vertex")
            if round(laid):
                links[i, j] = round(laid)
        return links
