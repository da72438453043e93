"""Which links to lay, as binary variables: degrees, parallel links and optical planes."""

import itertools
from typing import Any

import pyomo.environ as pyo

from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import INTEGRALITY_TOL
from ddlopt.models.topology.instance import TopologyInstance


def most_link_directions(instance: TopologyInstance) -> int:
    """Directions of all links that there can be: a plane of duplex optics is a matching."""
    n, d = instance.servers, instance.degree
    return d * (n if instance.optics == "one_way" else 2 * (n // 2))


def add_degrees(block: pyo.Block, instance: TopologyInstance) -> None:
    """At most d links out of and into each of ``SERVERS``, given ``links_between[i, j]`` for ordered pairs."""
    others = {i: [j for j in range(instance.servers) if j != i] for i in range(instance.servers)}

    @block.Constraint(block.SERVERS, doc="each server has d transmitters")
    def transmitters_suffice(b: Any, i: int) -> Any:
        return sum(b.links_between[i, j] for j in others[i]) <= instance.degree

    if instance.optics == "one_way":

        @block.Constraint(block.SERVERS, doc="each server has d receivers")
        def receivers_suffice(b: Any, j: int) -> Any:
            return sum(b.links_between[i, j] for i in others[j]) <= instance.degree


def add_links(block: pyo.Block, instance: TopologyInstance, ordered_planes: bool = True) -> None:
    """``link``, degrees and planes; ``links_between`` and ``joined`` for ordered pairs ``ARCS``."""
    n, d, duplex = instance.servers, instance.degree, instance.optics == "duplex"
    others = {i: [j for j in range(n) if j != i] for i in range(n)}
    ends = itertools.combinations(range(n), 2) if duplex else itertools.permutations(range(n), 2)
    block.SERVERS = pyo.RangeSet(0, n - 1, doc="servers")
    block.ARCS = pyo.Set(dimen=2, initialize=list(itertools.permutations(range(n), 2)), doc="ordered pairs")
    block.LINKS = pyo.Set(dimen=2, initialize=list(ends), doc="pairs that a link may join")
    block.COPIES = pyo.RangeSet(1, instance.most_links_of_a_pair, doc="links of a pair")
    block.FURTHER = pyo.Set(
        initialize=range(2, instance.most_links_of_a_pair + 1), doc="links of a pair after the first"
    )
    block.link = pyo.Var(block.LINKS, block.COPIES, domain=pyo.Binary, doc="at least c links from i to j")

    @block.Expression(block.ARCS, block.COPIES, doc="at least c links from i to j, for ordered pairs")
    def laid(b: Any, i: int, j: int, c: int) -> Any:
        return b.link[min(i, j), max(i, j), c] if duplex else b.link[i, j, c]

    @block.Expression(block.ARCS, doc="there is a link from i to j")
    def joined(b: Any, i: int, j: int) -> Any:
        return b.laid[i, j, 1]

    @block.Expression(block.ARCS, doc="links from i to j")
    def links_between(b: Any, i: int, j: int) -> Any:
        return sum(b.laid[i, j, c] for c in b.COPIES)

    @block.Constraint(block.LINKS, block.FURTHER, doc="links of a pair are laid in order")
    def links_are_ordered(b: Any, i: int, j: int, c: int) -> Any:
        return b.link[i, j, c] <= b.link[i, j, c - 1]

    add_degrees(block, instance)
    if not duplex:
        return

    block.PLANES = pyo.RangeSet(0, d - 1, doc="optical planes")
    block.LATER_PLANES = pyo.Set(initialize=range(1, d), doc="planes after the first")
    block.mate = pyo.Var(block.PLANES, block.LINKS, domain=pyo.Binary, doc="plane p joins i and j")

    @block.Constraint(block.LINKS, doc="links lie on planes")
    def links_lie_on_planes(b: Any, i: int, j: int) -> Any:
        return b.links_between[i, j] == sum(b.mate[p, i, j] for p in b.PLANES)

    @block.Constraint(block.PLANES, block.SERVERS, doc="each plane is a matching")
    def planes_are_matchings(b: Any, p: int, i: int) -> Any:
        return sum(b.mate[p, min(i, j), max(i, j)] for j in others[i]) <= 1

    @block.Constraint(block.PLANES, doc="a matching leaves one of an odd number of servers out")
    def planes_join_pairs(b: Any, p: int) -> Any:
        return sum(b.mate[p, i, j] for i, j in b.LINKS) <= n // 2

    if not ordered_planes:
        return

    @block.Constraint(block.LATER_PLANES, doc="planes are ordered by the partner of server 0")
    def planes_are_ordered(b: Any, p: int) -> Any:
        return sum(j * b.mate[p, 0, j] for j in others[0]) <= sum(j * b.mate[p - 1, 0, j] for j in others[0])


def read_links(block: pyo.Block) -> dict[tuple[int, int], int]:
    """Links of each pair of ``LINKS``.

    Raises
    ------
    SolverError
        If one is laid in part.
    """
    links = {}
    for i, j in block.LINKS:
        values = [pyo.value(block.link[i, j, c]) for c in block.COPIES]
        links[i, j] = sum(map(round, values))
        for c, value in zip(block.COPIES, values, strict=True):
            if abs(value - round(value)) > INTEGRALITY_TOL:
                raise SolverError(f"link[{i}, {j}, {c}] = {value:.6g} is not integral; solve to integrality")
    return links
