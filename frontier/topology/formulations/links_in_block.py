"""Whether some load is possible at all, with whole links in one of several symmetric blocks of servers."""

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pyomo.environ as pyo

from ddlopt.frontier.topology.blocks.symmetric_block import Block, block_of
from ddlopt.models.covering import FormulationBase
from ddlopt.models.topology.bounds import directions_of_links
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign

_OUT, _INTO = range(2)
"""Ways over the edge of the block."""
_OUTSIDE, _FAR = -1, -2
"""Who relays traffic, where it is no server of the block: one outside; more than one."""


@dataclass(frozen=True)
class LinksInBlock(FormulationBase):
    r"""Links in one of N symmetric blocks of servers, its rings and traffic, where no link has more than a load.

    Let z be that load, C the directions of links, and :math:`H_1` the bytes of all rings and all traffic, each hop or
    pair over one link. In the block, let :math:`m_{uv}` be the links from u to v, :math:`x_u, y_u` those that leave it
    from u and enter at u, and :math:`x'_u, y'_u` the ones of these that do not lead to members of groups of u's cell,
    or come from them (:class:`~.symmetric_block.Block` has cells). With :math:`h^k_{uv}` the part of group k's rings in
    which v follows u over a link, :math:`\bar h` over more, :math:`e^k_u, \bar e` in which u is followed by a server
    outside, :math:`f^k_u, \bar f` follows one, and :math:`t_{uwv}` the part of what u sends to v that w relays (u:
    nobody; o: a server outside; :math:`\bar t`: more than one server),

    .. math::
        \min W = & \textstyle\sum_k c_k \bigl[ \sum_{uv} \bar h^k_{uv} + \tfrac12 \sum_u (\bar e + \bar f)^k_u \bigr]
        + \sum_{uv} T_{uv} \bigl[ \sum_{w \ne u} t_{uwv} + 2\, \bar t_{uv} \bigr] \ \le\ (C z - H_1) / N \\
        & \textstyle\sum_v m_{uv} + x_u = \sum_v m_{vu} + y_u = d,\qquad x'_u \le x_u,\quad y'_u \le y_u,\qquad
          b_{uv} \le m_{uv},\quad b \text{ binary, the others whole} \\
        & \textstyle\sum_v (h + \bar h)^k_{uv} + (e + \bar e)^k_u = \sum_v (h + \bar h)^k_{vu} + (f + \bar f)^k_u = 1,
          \qquad \sum_{u, v \in S} (h + \bar h)^k_{uv} \le |S| - 1 \\
        & \textstyle\sum_w t_{uwv} + \bar t_{uv} = 1,\qquad h^k_{uv},\ t_{uuv},\ t_{uvw},\ t_{wuv} \le b_{uv} \\
        & t_{uov} \le x_u, y_v,\qquad t_{uov} \le x'_u + y'_v \text{ if u and v are of two cells} \\
        & \textstyle\sum_k c_k h^k_{uv} + \sum \{ T t \text{ over } uv \} \le z\, m_{uv} \\
        & \textstyle\sum_k c_k e^k_u + \sum_v T_{uv} t_{uov} + l_u \le z\, x_u,\qquad
          \sum_{k \text{ of the cell}} c_k e^k_u \le z (x_u - x'_u),\qquad \sum_u l_u = L

    and the last line also with f, y and what enters. L is the traffic that leaves the block; S are sets of members, of
    groups in the block those that are not all.

    **If it is infeasible, every design has more than z bytes on its busiest link.** Take a design with no more. All its
    loads together are at most C z, of which :math:`H_1` is there if everything takes one link; so for some block the
    links beyond the first, of traffic and hops of rings in it, and half of those of hops that leave or enter it, are at
    most :math:`(C z - H_1) / N`. A hop or a pair has a link or takes one more at least; traffic that takes two is
    relayed by a server of the block, or by one outside, s, to which a link of u leads, and from which one of v comes.
    If u and v are of two cells, whose classes have no server in common, s is not of both, so that one of these links
    leads, or comes from, elsewhere. Hops that leave the block over a link, in rings of groups of u's cell, take one
    that leads to its class. Whatever else is on these links is left out, and an idle port counts as a link elsewhere.

    Second links between two servers are links as others, and take the place of one to somebody else. There are a
    hundred whole numbers. Where rings in the block fill links it takes seconds at most, and mostly no branch; where
    the question is for which pairs there is a server in between, it takes minutes.

    Parameters
    ----------
    load_bytes : float
        z.
    labels : tuple of int
        The block of each server, from 0 on.

    Ports
    -----
    ``link[u, v]``, ``out[u]``, ``into[u]``
        Links from u to v of the block (servers are numbered within it), out of it, and into it.
    ``objective``
        W, in units of the least traffic of a pair, or of z where there is none.
    """

    load_bytes: float
    labels: tuple[int, ...]

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: TopologyInstance) -> str | None:
        """Duplex optics, hosts that do not forward, blocks that differ."""
        if not instance.host_forwarding:
            return "nobody forwards"
        if instance.optics != "one_way":
            return "it is for one-way links"
        if len(self.labels) != instance.servers or block_of(instance, np.array(self.labels)) is None:
            return "blocks differ, or have more than eight servers"
        return None

    def scope(self, instance: TopologyInstance) -> str | None:
        """Designs of that load, and more than these."""
        return f"designs of at most {self.load_bytes:g} bytes on the busiest link"

    def build(self, block: pyo.Block, instance: TopologyInstance) -> None:
        """Fill ``block`` with links, rings and traffic of one block of servers."""
        one = block_of(instance, np.array(self.labels))
        assert one is not None
        unit = self._unit(one)
        sizes = _sizes_of(one, self.load_bytes, unit)
        _add_links(block, one, instance.most_links_of_a_pair)
        _add_rings(block, one)
        _add_traffic(block, one, sizes)
        _add_room(block, one, sizes)
        hops = sum(sizes.rings[k] * far for (k, *_), far in block.far_hop.items())
        edges = sum(sizes.rings[k] * far for (_, k, _), far in block.far_edge.items()) / 2
        pairs = sum((2 if w == _FAR else 1) * sizes.pairs[u, v] * t for (u, w, v), t in block.relay.items() if w != u)
        block.objective = pyo.Expression(expr=hops + edges + pairs, doc="bytes times links beyond the first")
        most = directions_of_links(instance) * self.load_bytes - bytes_once(instance)

        @block.Constraint(doc="some block has its part at most")
        def detours_are_few(b: Any) -> Any:
            return b.objective <= most / one.blocks / unit

    def _unit(self, one: Block) -> float:
        return min((sent for row in one.traffic for sent in row if sent > 0), default=self.load_bytes)

    def start(self, block: pyo.Block, instance: TopologyInstance, solution: TopologyDesign) -> None:
        """Nothing: no design is looked for."""

    def read(self, block: pyo.Block, instance: TopologyInstance) -> tuple[tuple[int, int, int], ...]:
        """Links (u, v, count) in the block; u and itself for links out of it, and -1 and u for those into it."""
        inside = [(u, v, round(x.value)) for (u, v), x in block.link.items()]
        out = [(u, u, round(x.value)) for u, x in block.out.items()]
        into = [(-1, u, round(x.value)) for u, x in block.into.items()]
        return tuple(each for each in (*inside, *out, *into) if each[2])

    def objective_value(self, instance: TopologyInstance, value: float) -> float:
        """Bytes times links beyond the first."""
        one = block_of(instance, np.array(self.labels))
        assert one is not None
        return value * self._unit(one)


def bytes_once(instance: TopologyInstance) -> float:
    """:math:`H_1`, if each hop and each pair took one link."""
    rings = sum(group.hop_bytes * len(group.members) for group in instance.allreduce_groups)
    return rings + float(instance.traffic_bytes.sum())


class _Sizes(NamedTuple):
    """Bytes of hops by group, of pairs, between blocks, and on a link, in units."""

    rings: list[float]
    pairs: dict[tuple[int, int], float]
    between: float
    load: float


def _sizes_of(one: Block, load: float, unit: float) -> _Sizes:
    rings = [size / unit for _, size in (*one.leaving, *one.inner)]
    pairs = {(u, v): sent / unit for u, row in enumerate(one.traffic) for v, sent in enumerate(row) if sent > 0}
    return _Sizes(rings, pairs, one.between / unit, load / unit)


def _add_links(block: pyo.Block, one: Block, most_links: int) -> None:
    degree, servers = one.degree, range(one.servers)
    whole = {"domain": pyo.NonNegativeIntegers, "bounds": (0, degree)}
    block.SERVERS = pyo.Set(initialize=servers, doc="servers of the block")
    arcs = list(itertools.permutations(servers, 2))
    block.ARCS = pyo.Set(dimen=2, initialize=arcs, doc="ordered pairs of them")
    links = (0, min(degree, most_links))
    block.link = pyo.Var(block.ARCS, domain=pyo.NonNegativeIntegers, bounds=links, doc="links from u to v")
    block.joined = pyo.Var(block.ARCS, domain=pyo.Binary, doc="there is a link from u to v")
    block.out = pyo.Var(block.SERVERS, **whole, doc="links out of the block")
    block.into = pyo.Var(block.SERVERS, **whole, doc="links into the block")
    block.elsewhere = pyo.Var((_OUT, _INTO), block.SERVERS, **whole, doc="those not to, or from, the cell's groups")

    @block.Constraint(block.ARCS, doc="who is joined has a link")
    def links_join(b: Any, u: int, v: int) -> Any:
        return b.joined[u, v] <= b.link[u, v]

    @block.Constraint(block.SERVERS, doc="each server has d transmitters")
    def transmitters_are_used(b: Any, u: int) -> Any:
        return sum(b.link[u, v] for v in servers if v != u) + b.out[u] == degree

    @block.Constraint(block.SERVERS, doc="each server has d receivers")
    def receivers_are_used(b: Any, v: int) -> Any:
        return sum(b.link[u, v] for u in servers if u != v) + b.into[v] == degree

    @block.Constraint((_OUT, _INTO), block.SERVERS, doc="some of the links over the edge lead elsewhere")
    def some_lead_elsewhere(b: Any, way: int, u: int) -> Any:
        return b.elsewhere[way, u] <= (b.into if way else b.out)[u]


def _add_rings(block: pyo.Block, one: Block) -> None:
    groups = [*one.leaving, *one.inner]
    leaving = range(len(one.leaving))
    block.GROUPS = pyo.RangeSet(0, len(groups) - 1, doc="groups with members in the block")
    hops = [(k, u, v) for k, (members, _) in enumerate(groups) for u, v in itertools.permutations(members, 2)]
    edges = [(way, k, u) for way in (_OUT, _INTO) for k in leaving for u in groups[k][0]]
    block.HOPS = pyo.Set(dimen=3, initialize=hops, doc="(group, server, the next one)")
    block.EDGES = pyo.Set(dimen=3, initialize=edges, doc="(way, group, the last or first server in the block)")
    part = {"bounds": (0, None)}
    block.hop = pyo.Var(block.HOPS, **part, doc="part of the rings, over a link")
    block.far_hop = pyo.Var(block.HOPS, **part, doc="over more")
    block.edge = pyo.Var(block.EDGES, **part, doc="part of the rings that leaves from, or enters at, u over a link")
    block.far_edge = pyo.Var(block.EDGES, **part, doc="over more")
    sides = [(way, k, u) for way in (_OUT, _INTO) for k, (members, _) in enumerate(groups) for u in members]
    sets = [
        (k, *some)
        for k, (members, _) in enumerate(groups)
        for size in range(2, len(members) + (k in leaving))
        for some in itertools.combinations(members, size)
    ]

    @block.Constraint(sides, doc="every member has one after it, and one before")
    def members_are_joined(b: Any, way: int, k: int, u: int) -> Any:
        others = [(k, u, v) if way == _OUT else (k, v, u) for v in groups[k][0] if v != u]
        inside = sum(b.hop[each] + b.far_hop[each] for each in others)
        return inside + (b.edge[way, k, u] + b.far_edge[way, k, u] if k in leaving else 0) == 1

    @block.Constraint(range(len(sets)), doc="no ring closes before it has been everywhere")
    def rings_are_whole(b: Any, place: int) -> Any:
        k, *some = sets[place]
        within = [(k, u, v) for u, v in itertools.permutations(some, 2)]
        return sum(b.hop[each] + b.far_hop[each] for each in within) <= len(some) - 1

    @block.Constraint(block.HOPS, doc="only where there is a link")
    def hops_take_links(b: Any, k: int, u: int, v: int) -> Any:
        return b.hop[k, u, v] <= b.joined[u, v]


def _add_traffic(block: pyo.Block, one: Block, sizes: _Sizes) -> None:
    pairs = sizes.pairs
    ways = [(u, w, v) for u, v in pairs for w in (*block.SERVERS, _OUTSIDE, _FAR) if w != v]
    cell_of = {u: cell for cell in one.cells for u in cell}
    block.PAIRS = pyo.Set(dimen=2, initialize=list(pairs), doc="who sends to whom")
    block.WAYS = pyo.Set(dimen=3, initialize=ways, doc="(source, relay, target); the source where nobody relays")
    block.relay = pyo.Var(block.WAYS, bounds=(0, None), doc="part of the traffic")
    block.crossing = pyo.Var((_OUT, _INTO), block.SERVERS, bounds=(0, None), doc="traffic with other blocks")
    taken = [(u, w, v, *arc) for u, w, v in ways if w >= 0 for arc in ({(u, v)} if w == u else {(u, w), (w, v)})]
    apart = [(u, v) for u, v in pairs if cell_of[u] != cell_of[v]]

    @block.Constraint(block.PAIRS, doc="everything arrives")
    def traffic_arrives(b: Any, u: int, v: int) -> Any:
        return sum(b.relay[u, w, v] for w in (*b.SERVERS, _OUTSIDE, _FAR) if w != v) == 1

    @block.Constraint(taken, doc="only where there is a link")
    def traffic_takes_links(b: Any, u: int, w: int, v: int, tail: int, head: int) -> Any:
        return b.relay[u, w, v] <= b.joined[tail, head]

    @block.Constraint(block.PAIRS, doc="a link leads to the server outside")
    def relays_are_reached(b: Any, u: int, v: int) -> Any:
        return b.relay[u, _OUTSIDE, v] <= b.out[u]

    @block.Constraint(block.PAIRS, doc="a link comes from it")
    def relays_reach(b: Any, u: int, v: int) -> Any:
        return b.relay[u, _OUTSIDE, v] <= b.into[v]

    @block.Constraint(apart, doc="it is not of both classes")
    def relays_are_elsewhere(b: Any, u: int, v: int) -> Any:
        return b.relay[u, _OUTSIDE, v] <= b.elsewhere[_OUT, u] + b.elsewhere[_INTO, v]

    @block.Constraint((_OUT, _INTO), doc="traffic with other blocks")
    def traffic_crosses(b: Any, way: int) -> Any:
        return sum(b.crossing[way, u] for u in b.SERVERS) == sizes.between


def _add_room(block: pyo.Block, one: Block, sizes: _Sizes) -> None:
    over: dict[tuple[int, int], list[Any]] = {arc: [] for arc in block.ARCS}
    edge: dict[tuple[int, int], list[Any]] = {
        (way, u): [block.crossing[way, u]] for way in (_OUT, _INTO) for u in block.SERVERS
    }
    own: dict[tuple[int, int], list[Any]] = {each: [] for each in edge}
    for k, u, v in block.HOPS:
        over[u, v].append(sizes.rings[k] * block.hop[k, u, v])
    cells = [set(cell) for cell in one.cells]
    for way, k, u in block.EDGES:
        used = sizes.rings[k] * block.edge[way, k, u]
        edge[way, u].append(used)
        if any(cell.issuperset(one.leaving[k][0]) for cell in cells):
            own[way, u].append(used)
    for u, w, v in block.WAYS:
        used = sizes.pairs[u, v] * block.relay[u, w, v]
        if w == _OUTSIDE:
            edge[_OUT, u].append(used)
            edge[_INTO, v].append(used)
        elif w != _FAR:
            for arc in {(u, v)} if w == u else {(u, w), (w, v)}:
                over[arc].append(used)

    @block.Constraint(block.ARCS, doc="links carry their load")
    def links_carry_their_load(b: Any, u: int, v: int) -> Any:
        return sum(over[u, v]) <= sizes.load * b.link[u, v]

    @block.Constraint((_OUT, _INTO), block.SERVERS, doc="links over the edge carry theirs")
    def edges_carry_their_load(b: Any, way: int, u: int) -> Any:
        return sum(edge[way, u]) <= sizes.load * (b.into if way else b.out)[u]

    @block.Constraint((_OUT, _INTO), block.SERVERS, doc="those to the class carry what the cell's groups have")
    def classes_carry_their_load(b: Any, way: int, u: int) -> Any:
        ports = (b.into if way else b.out)[u]
        return sum(own[way, u]) <= sizes.load * (ports - b.elsewhere[way, u])
