"""Links, rings and routes of one block of servers, with all others drawn together to one."""

from itertools import permutations
from typing import Any, Literal

import pyomo.environ as pyo

from ddlopt.frontier.codesign.one_block import OneBlock
from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.formulations.rows.strategy_choice import linear
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import tables_of

Terms = list[tuple[float, Any]]
_OF = ("rings", "traffic")


class BlockNetwork:
    """The rows that :class:`~ddlopt.frontier.codesign.formulations.block_links.BlockLinks` adds to its strategies.

    Parameters
    ----------
    block : pyo.Block
        With ``share`` and ``congestion``.
    instance : CodesignInstance
    seen : OneBlock
    largest : float
        Congestion beyond which no plan is of interest, in the units of the block.
    """

    def __init__(self, block: pyo.Block, instance: CodesignInstance, seen: OneBlock, largest: float) -> None:
        self.block, self.instance, self.seen, self.largest = block, instance, seen, largest
        tables = tables_of(instance)
        self.weights, self.sets = demand_of(tables).weights, len(tables.groups_of)
        self.others = len(seen.servers)
        self.inside, self.nodes = range(self.others), range(self.others + 1)
        self.arcs = list(permutations(self.nodes, 2))
        self.copies = range(instance.degree if instance.parallel_links else 1)
        self.kinds = list(seen.rings)

    def add(self) -> None:
        """Add all rows but that of all loads together."""
        self._add_links()
        self._add_rings()
        self._add_routes()

    def sent(self, kind: Literal["rings", "traffic"]) -> Terms:
        """Loads of what servers of the block send."""
        of_kind = _OF.index(kind)
        return [(1.0, self.block.flow[of_kind, s, u, v]) for s in self.inside for u, v in self.arcs if v != s]

    def least_hops(self) -> Terms:
        """Bytes times hops, at least, of the traffic that servers of the block send."""
        return [self._moved(p, value) for p, value in self.seen.hop_bytes.items()]

    def _moved(self, pattern: int, factor: float) -> tuple[float, Any]:
        figure = self.sets + pattern
        return factor / self.weights[figure], self.block.share[figure]

    def _add_links(self) -> None:
        b, d = self.block, self.instance.degree
        pairs = permutations(self.inside, 2)
        b.LINKS = pyo.Set(
            dimen=3, initialize=[(*pair, c) for pair in pairs for c in self.copies], doc="possible links in the block"
        )
        b.links = pyo.Var(b.LINKS, domain=pyo.Binary, doc="the link is there")
        b.carried = pyo.Var(b.LINKS, bounds=(0, None), doc="what it can carry")

        @b.Constraint(b.LINKS, doc="a link that is there carries at most the busiest")
        def links_carry_the_busiest(b: Any, u: int, v: int, c: int) -> Any:
            return linear([(1.0, b.carried[u, v, c]), (-1.0, b.congestion)]) <= 0

        @b.Constraint(b.LINKS, doc="a link that is not there carries nothing")
        def missing_links_carry_nothing(b: Any, u: int, v: int, c: int) -> Any:
            return linear([(1.0, b.carried[u, v, c]), (-self.largest, b.links[u, v, c])]) <= 0

        @b.Constraint(b.LINKS, doc="a link that is there takes a whole port")
        def links_are_whole(b: Any, u: int, v: int, c: int) -> Any:
            terms = [(1.0, b.congestion), (-1.0, b.carried[u, v, c]), (self.largest, b.links[u, v, c])]
            return linear(terms) <= self.largest

        @b.Constraint(b.LINKS, doc="links between two servers are there in order")
        def links_come_in_order(b: Any, u: int, v: int, c: int) -> Any:
            return pyo.Constraint.Skip if c == 0 else b.links[u, v, c] <= b.links[u, v, c - 1]

        @b.Constraint(self.inside if b.LINKS else (), range(2), doc="a server has d links out and d in")
        def links_are_within_the_degree(b: Any, s: int, way: int) -> Any:
            ends = [(s, v) if way else (v, s) for v in self.inside if v != s]
            return linear((1.0, b.links[u, v, c]) for u, v in ends for c in self.copies) <= d

        if self.instance.optics == "duplex":

            @b.Constraint(b.LINKS, doc="links go both ways")
            def links_go_both_ways(b: Any, u: int, v: int, c: int) -> Any:
                return pyo.Constraint.Skip if u > v else b.links[u, v, c] == b.links[v, u, c]

    def _add_rings(self) -> None:
        b = self.block
        hops = [(kind, u, v) for kind in range(len(self.kinds)) for u, v in permutations(self._members(kind), 2)]
        b.HOPS = pyo.Set(dimen=3, initialize=hops, doc="(kind of group, member, other member)")
        b.hop = pyo.Var(b.HOPS, bounds=(0, None), doc="bytes that rings send from a member to the next")
        ends = [(kind, s, way) for kind, (own, _) in enumerate(self.kinds) for s in own for way in range(2)]

        @b.Constraint(ends, doc="every member sends and receives once")
        def members_send_and_receive(b: Any, kind: int, s: int, way: int) -> Any:
            return linear([*self._leaving(kind, (s,), way), *self._reduced(kind, -1.0)]) == 0

        cuts = [(kind, *each) for kind, of_kind in enumerate(self.kinds) for each in self.seen.cuts(*of_kind)]

        @b.Constraint(range(len(cuts)), doc="rings leave every set of their members")
        def rings_are_closed(b: Any, place: int) -> Any:
            kind, *some = cuts[place]
            return linear([*self._leaving(kind, tuple(some)), *self._reduced(kind, -1.0)]) >= 0

        mixed = [kind for kind, (_, more) in enumerate(self.kinds) if more]

        @b.Constraint(mixed, doc="members outside receive once")
        def others_receive_once(b: Any, kind: int) -> Any:
            own, more = self.kinds[kind]
            return linear([*self._leaving(kind, own), *self._reduced(kind, -float(more))]) <= 0

    def _members(self, kind: int) -> tuple[int, ...]:
        own, more = self.kinds[kind]
        return (*own, self.others) if more else own

    def _leaving(self, kind: int, some: tuple[int, ...], way: int = 1) -> Terms:
        """Bytes of rings out of some members (with way 0, into them)."""
        rest = [v for v in self._members(kind) if v not in some]
        hop = self.block.hop
        return [(1.0, hop[kind, u, v] if way else hop[kind, v, u]) for u in some for v in rest]

    def _reduced(self, kind: int, times: float) -> Terms:
        factors = self.seen.rings[self.kinds[kind]]
        return [(times * factor / self.weights[q], self.block.share[q]) for q, factor in factors.items()]

    def _add_routes(self) -> None:
        b, others, d = self.block, self.others, float(self.instance.degree)
        flows = [(of, s, u, v) for of in range(2) for s in self.nodes for u, v in self.arcs if v != s]
        b.FLOWS = pyo.Set(dimen=4, initialize=flows, doc="(0 rings, 1 traffic; source, tail, head)")
        b.flow = pyo.Var(b.FLOWS, bounds=(0, None), doc="what a source has on links between two servers")
        hops: dict[tuple[int, int], Terms] = {}
        for kind, u, v in b.HOPS:
            hops.setdefault((u, v), []).append((-1.0, b.hop[kind, u, v]))

        @b.Constraint(range(2), self.arcs, doc="what is sent arrives")
        def bytes_arrive(b: Any, of: int, s: int, v: int) -> Any:
            moved = [self._moved(p, -float(unit[s, v])) for p, unit in self.seen.traffic.items()]
            into = [(1.0, b.flow[of, s, u, v]) for u in self.nodes if u != v]
            out = [(-1.0, b.flow[of, s, v, u]) for u in self.nodes if u not in (v, s)]
            return linear([*into, *out, *(moved if of else hops.get((s, v), []))]) == 0

        @b.Constraint(self.arcs, doc="links carry what is on them")
        def links_carry_flows(b: Any, u: int, v: int) -> Any:
            flows = [(1.0, b.flow[of, s, u, v]) for of in range(2) for s in self.nodes if s != v]
            if others not in (u, v):
                return linear([*flows, *((-1.0, b.carried[u, v, c]) for c in self.copies)]) <= 0
            ends = [(u, w) if v == others else (w, v) for w in self.inside if w not in (u, v)]
            taken = [(1.0, b.carried[x, y, c]) for x, y in ends for c in self.copies]
            return linear([*flows, *taken, (-d, b.congestion)]) <= 0
