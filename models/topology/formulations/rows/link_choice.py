"""Which links to lay, as integer variables: degrees, parallel links and optical planes; and what links carry."""

import itertools
from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo

from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import INTEGRALITY_TOL
from ddlopt.models.topology.instance import TopologyInstance


def add_links(block: pyo.Block, instance: TopologyInstance) -> None:
    """``link``, degrees and planes; ``links_between[i, j]`` for ordered pairs.

    Planes are interchangeable; ordering them slowed the search down when it was tried.
    """
    n, d, duplex = instance.servers, instance.degree, instance.optics == "duplex"
    others = {i: [j for j in range(n) if j != i] for i in range(n)}
    block.SERVERS = pyo.RangeSet(0, n - 1, doc="servers")
    ends = itertools.combinations(range(n), 2) if duplex else itertools.permutations(range(n), 2)
    block.LINKS = pyo.Set(dimen=2, initialize=list(ends), doc="pairs that a link may join")
    block.link = pyo.Var(block.LINKS, domain=pyo.Integers, bounds=(0, instance.most_links_of_a_pair), doc="links laid")

    @block.Expression(list(itertools.permutations(range(n), 2)), doc="links from i to j")
    def links_between(b: Any, i: int, j: int) -> Any:
        return b.link[min(i, j), max(i, j)] if duplex else b.link[i, j]

    @block.Constraint(block.SERVERS, doc="each server has d transmitters")
    def transmitters_suffice(b: Any, i: int) -> Any:
        return sum(b.links_between[i, j] for j in others[i]) <= d

    if not duplex:

        @block.Constraint(block.SERVERS, doc="each server has d receivers")
        def receivers_suffice(b: Any, j: int) -> Any:
            return sum(b.links_between[i, j] for i in others[j]) <= d

        return

    block.PLANES = pyo.RangeSet(0, d - 1, doc="optical planes")
    block.MATES = pyo.Set(dimen=3, initialize=[(p, i, j) for p in range(d) for i, j in block.LINKS])
    block.mate = pyo.Var(block.MATES, domain=pyo.Binary, doc="plane p joins i and j")

    @block.Constraint(block.LINKS, doc="links lie on planes")
    def links_lie_on_planes(b: Any, i: int, j: int) -> Any:
        return b.link[i, j] == sum(b.mate[p, i, j] for p in b.PLANES)

    @block.Constraint(block.PLANES, block.SERVERS, doc="each plane is a matching")
    def planes_are_matchings(b: Any, p: int, i: int) -> Any:
        return sum(b.mate[p, min(i, j), max(i, j)] for j in others[i]) <= 1

    if n % 2:

        @block.Constraint(doc="every plane leaves a server out where their number is odd")
        def planes_leave_one_out(b: Any) -> Any:
            return sum(b.link[pair] for pair in b.LINKS) <= d * (n // 2)


def add_joined(block: pyo.Block, instance: TopologyInstance, rate: Any = 1.0, most_rate: float = 1.0) -> None:
    """``joined[i, j]`` for ordered pairs ``ARCS``: ``rate``, which is at most ``most_rate``, if there is a link."""
    n, d = instance.servers, instance.degree
    others = {i: [j for j in range(n) if j != i] for i in range(n)}
    block.joined = pyo.Var(block.ARCS, bounds=(0, most_rate), doc="rate if there is a link from i to j")

    @block.Constraint(block.ARCS, doc="who is joined has a link")
    def links_join(b: Any, i: int, j: int) -> Any:
        return b.joined[i, j] <= most_rate * b.links_between[i, j]

    @block.Constraint(block.SERVERS, doc="at most d servers are one hop away")
    def neighbours_out_are_few(b: Any, i: int) -> Any:
        return sum(b.joined[i, j] for j in others[i]) <= d * rate

    @block.Constraint(block.SERVERS, doc="the same seen from the target")
    def neighbours_in_are_few(b: Any, j: int) -> Any:
        return sum(b.joined[i, j] for i in others[j]) <= d * rate


def add_given_links(
    block: pyo.Block, instance: TopologyInstance, given: dict[tuple[int, int], int], congestion: Any, is_open: bool
) -> None:
    """Links that are laid already carry the load: linear with ``congestion``, too, if that is what is kept."""

    @block.Constraint(block.ARCS, doc="links carry their load")
    def links_carry_their_load(b: Any, i: int, j: int) -> Any:
        count = given.get((i, j), 0)
        if congestion is None:
            return b.link_load[i, j] <= count
        if not count and not is_open and instance.traffic_bytes[i, j] > 0:
            return congestion <= 0  # traffic without a link that nobody forwards, which no congestion is enough for
        return b.link_load[i, j] <= count * congestion


def add_copies(block: pyo.Block, instance: TopologyInstance, worst: float) -> None:
    """Unary copies of each link, the load of a pair split over them, each at most the congestion."""
    most = range(1, instance.most_links_of_a_pair + 1)
    block.COPIES = pyo.Set(dimen=3, initialize=[(i, j, c) for i, j in block.LINKS for c in most])
    block.copy = pyo.Var(block.COPIES, domain=pyo.Binary, doc="at least c links join i and j")
    block.LOADED = pyo.Set(dimen=3, initialize=[(i, j, c) for i, j in block.ARCS for c in most])
    block.copy_load = pyo.Var(block.LOADED, bounds=(0, None), doc="units on the c-th link from i to j")
    block.LATER = pyo.Set(dimen=3, initialize=[(i, j, c) for i, j, c in block.COPIES if c > 1])
    copy_of: Callable[[Any, int, int, int], Any] = lambda b, i, j, c: (  # noqa: E731
        b.copy[i, j, c] if (i, j, c) in b.COPIES else b.copy[j, i, c]
    )

    @block.Constraint(block.LINKS, doc="copies count the links")
    def copies_count_links(b: Any, i: int, j: int) -> Any:
        return b.link[i, j] == sum(b.copy[i, j, c] for c in most)

    @block.Constraint(block.LATER, doc="copies are laid in order")
    def copies_are_ordered(b: Any, i: int, j: int, c: int) -> Any:
        return b.copy[i, j, c] <= b.copy[i, j, c - 1]

    @block.Constraint(block.ARCS, doc="copies carry the load")
    def copies_carry_the_load(b: Any, i: int, j: int) -> Any:
        return b.link_load[i, j] == sum(b.copy_load[i, j, c] for c in most)

    @block.Constraint(block.LOADED, doc="no copy carries more than the congestion")
    def copies_are_within_congestion(b: Any, i: int, j: int, c: int) -> Any:
        return b.copy_load[i, j, c] <= b.congestion

    @block.Constraint(block.LOADED, doc="only copies that are laid carry")
    def only_laid_copies_carry(b: Any, i: int, j: int, c: int) -> Any:
        return b.copy_load[i, j, c] <= worst * copy_of(b, i, j, c)


def add_node_capacities(block: pyo.Block, instance: TopologyInstance) -> None:
    """What the links of a server carry together: without it a fractional solution spreads thin over all pairs."""
    touched = {v: [arc for arc in block.ARCS if v in arc] for v in block.SERVERS}
    block.USED = pyo.Set(initialize=[v for v in block.SERVERS if touched[v]])

    @block.Constraint(block.USED, [0, 1], doc="d links out (in) carry d times the congestion at most")
    def server_is_within_congestion(b: Any, v: int, end: int) -> Any:
        arcs = [arc for arc in touched[v] if arc[end] == v]
        return sum(b.link_load[arc] for arc in arcs) <= instance.degree * b.congestion if arcs else pyo.Constraint.Skip


def read_links(block: pyo.Block) -> dict[tuple[int, int], int]:
    """Links of each pair of ``LINKS``.

    Raises
    ------
    SolverError
        If their number is not integral.
    """
    links = {}
    for pair in block.LINKS:
        laid = pyo.value(block.link[pair])
        links[pair] = round(laid)
        if abs(laid - links[pair]) > INTEGRALITY_TOL:
            raise SolverError(f"link[{pair[0]}, {pair[1]}] = {laid:.6g} is not integral; solve to integrality")
    return links
