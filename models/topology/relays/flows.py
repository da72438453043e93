r"""Whether a block of servers can do with so many bytes on a link: rings and traffic on each of its digraphs.

:mod:`.bound` asks of a digraph which pairs are within two links and which groups have a cycle. Here links have room for
z bytes. Of a block B with given links, what its groups and its traffic send is a flow:

* with :math:`y^g_{uv}` the part of the rings of group g that lead from u to v in B, and :math:`e^g_u, f^g_u` the parts
  that leave B from u and enter at u, :math:`\sum_v y_{uv} + e_u = \sum_v y_{vu} + f_u = 1`, and
  :math:`\sum_{u, v \in S} y_{uv} \le |S| - 1` for every set S of members that are not all;
* hops over a link from u to v take its room, others a link more; so do those that leave from u beyond :math:`x_u z`,
  and of groups with one member or two in B those beyond z for each link that does not lead elsewhere; those that enter
  likewise;
* traffic takes a link, two over a server in between or (by half, room of links out and in) over one outside, or three.

All that takes more than one link, hops that leave or enter counted half, is at least the optimum of a linear program;
where it is above the detours that B may have for each of its digraphs, no design has load z. A server u needs at least
:math:`(\sum_{g \subseteq S} c_g - w) / z` links to servers of a set S with it, for groups in S and w bytes of detours,
which leaves few digraphs where groups in the block send much.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from ddlopt.models.tolerances import ROUNDING, SOLVER_TOL, WHOLE_TOL
from ddlopt.models.topology.block_bound import partitions
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.relays.bound import Block, Group, block_of, choices_of_ports, digraphs_for
from ddlopt.models.topology.relays.cells import Ports
from ddlopt.models.topology.relays.digraphs import DigraphSearch

_STEPS = 200_000
"""Of the searches for digraphs of a block."""
_PROGRAMS = 2_000
"""Linear programs, of ten milliseconds each."""


def excluded(instance: TopologyInstance, load: float) -> bool:
    """Whether no design has at most ``load`` bytes on its busiest link; False where that is not known.

    It is for one-way links and blocks of up to eight servers that look alike (:func:`~.bound.block_of`).
    """
    if not has_blocks(instance):
        return False
    once = sum(group.hop_bytes * len(group.members) for group in instance.allreduce_groups)
    once += float(instance.traffic_bytes.sum())
    total = instance.servers * instance.degree * load * (1 + ROUNDING)
    for labels in partitions(instance):
        block = block_of(instance, labels)
        if block is not None and _excluded(block, load, (total - once) / block.blocks):
            return True
    return False


def has_blocks(instance: TopologyInstance) -> bool:
    """Whether :func:`excluded` has anything to say about such an instance."""
    return instance.optics == "one_way" and any(block_of(instance, labels) for labels in partitions(instance))


def _excluded(block: Block, load: float, most: float) -> bool:
    """Whether each digraph of the block takes detours of more than ``most`` bytes."""
    search, solved = DigraphSearch(_STEPS), set()
    spare = most - block.piece * block.servers * (block.servers - 1 - block.degree)
    needed = _least_inside(block, load, spare)

    def allowed(servers: tuple[int, ...], ports: Ports) -> bool:
        return all(
            ports.outward[place] + _beyond(servers, ports.arcs, place, bits) <= block.degree - least
            and ports.inward[place] + _beyond(servers, ports.arcs[::-1], place, bits) <= block.degree - least
            for place, u in enumerate(servers)
            for bits, least in needed[u]
        )

    for chosen, left in choices_of_ports(block, load, most, allowed):
        inside = _least_inside(block, load, left)
        for wanted in digraphs_for(block, chosen, left):
            for heads in search.all(wanted._replace(inside=inside)):
                key = (heads, tuple(each[1:5] for each in chosen))
                if key in solved:
                    continue
                solved.add(key)
                if len(solved) > _PROGRAMS:
                    return False
                least = _Flows(block, heads, chosen, wanted.relayed, load).least_detours()
                if least <= most * (1 + SOLVER_TOL):
                    return False
            if search.exhausted:
                return False
    return True


def _beyond(servers: tuple[int, ...], arcs: tuple[int, ...], place: int, bits: int) -> int:
    """Links to the other server of the cell, if it is not of a set."""
    return arcs[place] if arcs and not bits >> servers[1 - place] & 1 else 0


def _least_inside(block: Block, load: float, left: float) -> list[list[tuple[int, int]]]:
    """For each server sets of members of groups in the block, with the links that it has to and from them at least."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(block.servers)]
    for members in {members for members, _ in block.inner}:
        for u in members:
            sent = sum(ring for each, ring in block.inner if u in each and set(each) <= set(members))
            least = math.ceil((sent - left) / load - WHOLE_TOL)
            if least > 0:
                found[u].append((sum(1 << v for v in members), least))
    return found


@dataclass
class _Flows:
    """The linear program of one digraph, in pieces of traffic."""

    block: Block
    heads: Sequence[int]
    chosen: Sequence[Ports]
    relayed: Sequence[int]
    load: float
    costs: list[float] = field(default_factory=list)
    room: list[float] = field(default_factory=list)
    sums: list[float] = field(default_factory=list)
    entries: list[tuple[int, int, float]] = field(default_factory=list)
    equal: list[tuple[int, int, float]] = field(default_factory=list)

    def least_detours(self) -> float:
        """Bytes that take a link more, at least; infinite where nothing fits."""
        self._add_links()
        for group in self.block.leaving:
            self._add_rings(group, leaving=True)
        for group in self.block.inner:
            self._add_rings(group, leaving=False)
        self._add_traffic()
        shape = len(self.costs)
        row, column, value = np.array(self.entries).T
        most = coo_array((value, (row.astype(int), column.astype(int))), shape=(len(self.room), shape)).tocsr()
        row, column, value = np.array(self.equal).T
        same = coo_array((value, (row.astype(int), column.astype(int))), shape=(len(self.sums), shape)).tocsr()
        found = linprog(self.costs, A_ub=most, b_ub=self.room, A_eq=same, b_eq=self.sums, method="highs-ds")
        if found.status == 2:
            return math.inf
        return float(found.fun) * self.block.piece if found.status == 0 else 0.0

    def _add_links(self) -> None:
        """Room of links in the block, and out of it and into it: of all, and of those to and from the class."""
        k, z = self.block.servers, self.load / self.block.piece
        self.link = {(u, v): self._limit(z) for u in range(k) for v in range(k) if self.heads[u] >> v & 1}
        self.out, self.into = [(0, 0)] * k, [(0, 0)] * k
        for (servers, _), ports in zip(self.block.cells, self.chosen, strict=True):
            for place, u in enumerate(servers):
                x, y = ports.outward[place], ports.inward[place]
                useful, arriving = x - ports.elsewhere[place], y - ports.from_elsewhere[place]
                self.out[u] = self._limit(x * z), self._limit(useful * z)
                self.into[u] = self._limit(y * z), self._limit(arriving * z)
        for everything, own in (*self.out, *self.into):
            self._variable(0.5, [(everything, -1.0), (own, -1.0)], [])
            self._variable(0.5, [(everything, -1.0)], [])

    def _add_rings(self, group: Group, leaving: bool) -> None:
        members, ring = group[0], group[1] / self.block.piece
        out = {u: self._sum() for u in members}
        into = {u: self._sum() for u in members}
        sizes = range(2, len(members) + leaving)
        sets = [(set(each), self._limit(len(each) - 1.0)) for size in sizes for each in combinations(members, size)]
        for u in members:
            for v in members:
                if u == v:
                    continue
                within = [(row, 1.0) for each, row in sets if u in each and v in each]
                once = [(out[u], 1.0), (into[v], 1.0)]
                if (u, v) in self.link:
                    self._variable(0.0, [(self.link[u, v], ring), *within], once)
                self._variable(ring, within, once)
            if leaving:
                ways = 2 if len(members) <= 2 else 1
                self._variable(0.0, [(row, ring) for row in self.out[u][:ways]], [(out[u], 1.0)])
                self._variable(0.0, [(row, ring) for row in self.into[u][:ways]], [(into[u], 1.0)])

    def _add_traffic(self) -> None:
        k = self.block.servers
        for u in range(k):
            for v in range(k):
                if u == v:
                    continue
                once, sent = [(self._sum(), 1.0)], self.block.traffic[u][v] / self.block.piece
                if (u, v) in self.link:
                    self._variable(0.0, [(self.link[u, v], sent)], once)
                for w in range(k):
                    if (u, w) in self.link and (w, v) in self.link:
                        self._variable(sent, [(self.link[u, w], sent), (self.link[w, v], sent)], once)
                if self.relayed[u] >> v & 1:
                    self._variable(sent, [(self.out[u][0], sent), (self.into[v][0], sent)], once)
                self._variable(2 * sent, [], once)

    def _limit(self, room: float) -> int:
        self.room.append(room)
        return len(self.room) - 1

    def _sum(self) -> int:
        self.sums.append(1.0)
        return len(self.sums) - 1

    def _variable(self, cost: float, limits: Sequence[tuple[int, float]], sums: Sequence[tuple[int, float]]) -> None:
        column = len(self.costs)
        self.costs.append(cost)
        self.entries += [(row, column, value) for row, value in limits]
        self.equal += [(row, column, value) for row, value in sums]
