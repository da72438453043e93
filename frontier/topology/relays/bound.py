r"""Pairs of a block without a link, and who relays between them: a bound for every design.

Let the servers be parted into blocks of k that look alike, each pair of a block exchange V bytes, and nothing be
exchanged between blocks. A block has few digraphs that bring all its pairs within two links, and most of these have no
ring for a group of its members, or leave no link where rings must leave the block.

**Theorem.** Let z be the bytes on the busiest link, C the directions of links, and :math:`H_1` the bytes of all rings
and all traffic, each hop or pair over one link. If every block B has :math:`W_B > w` in each design of load z, with
:math:`W_B` as follows, then :math:`C z > H_1 + N w` for N blocks, so that z is refuted where that is false.

:math:`W_B` counts links beyond the first: of traffic in B, of hops of rings between members in B, and, half, of hops
that leave B and of hops that enter it. Let :math:`x_u` and :math:`y_u` be the links that server u of B has besides one
to each of its successors, and one from each of its predecessors, in B. Then

* pairs without a link, of which there are :math:`k(k-1) - dk + \sum_u x_u`, and as many with y in place of x, take two
  links at least;
* a pair without a link takes three, unless a server of B has links from the one and to the other, or another server s
  has. For groups that meet B in one server or two, let a cell U be these servers, and all members of such groups the
  cell's class; classes are disjoint. Now s belongs to one class at most. If the pair is not in one cell, s has
  therefore a link to or from a server of B whose class is another one: a link elsewhere;
* hops that leave B from u in rings of its class take x_u z bytes without detour at most, less by z for each link
  elsewhere; likewise those that enter, with y. Of a group that has u and v in B and others besides, a ring leads from u
  to v or from v to u or neither, never both. Without a link from u to v the former takes two links;
* a group in B all of whose rings take no detour has a cycle of links between its members; otherwise its hop bytes at
  least are counted once more.

:func:`relay_bound` lists how cells may share out their links at a cost within w (:mod:`.cells`), and for all choices of
them looks for a digraph of these degrees with such rings, in which all but :math:`\lfloor (w - \text{cost}) / V
\rfloor` pairs are at most two links apart (:mod:`.digraphs`). Where there is none, z is refuted. All that is asked only
grows as z falls, so that every smaller z is refuted, too.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations, product

import numpy as np

from ddlopt.frontier.topology.blocks.block_bound import partitions
from ddlopt.frontier.topology.relays.block import Block, block_of
from ddlopt.frontier.topology.relays.cells import Ports, least_cost, ports_of
from ddlopt.frontier.topology.relays.digraphs import Arc, DigraphSearch, Wanted
from ddlopt.models.tolerances import BOUND_MARGIN, ROUNDING, WHOLE_TOL
from ddlopt.models.topology.instance import TopologyInstance

_FEW = 4
"""Members up to which each order of a ring is a case of its own, so that its links are there from the beginning."""
_STEPS = 600_000
"""Of the searches for digraphs, some seconds; where they do not end, nothing is refuted."""


def relay_bound(instance: TopologyInstance, known: float) -> float:
    """Bytes on the busiest link of every design, at least ``known``, which is a bound.

    It takes seconds, and where it does not apply or has nothing to add, no time.
    """
    capacity = instance.degree * (instance.servers if instance.optics == "one_way" else 2 * (instance.servers // 2))
    once = bytes_once(instance)
    for labels in partitions(instance):
        block = block_of(instance, labels)
        search = DigraphSearch(_STEPS)
        while block is not None and block.even and not search.exhausted:
            detours = (capacity * known - once) / (block.blocks * block.piece)
            aim = (once + (np.floor(detours + WHOLE_TOL) + 1) * block.blocks * block.piece) / capacity
            load = float(aim) * (1 - BOUND_MARGIN)
            if load <= known or not refuted(
                block, load, (capacity * load * (1 + ROUNDING) - once) / block.blocks, search
            ):
                break
            known = load
    return known


def bytes_once(instance: TopologyInstance) -> float:
    """:math:`H_1`, if each hop and each pair took one link."""
    rings = sum(group.hop_bytes * len(group.members) for group in instance.allreduce_groups)
    return rings + float(instance.traffic_bytes.sum())


def refuted(block: Block, load: float, most: float, search: DigraphSearch) -> bool:
    """Whether every block has detours of more than ``most`` bytes if no link carries more than ``load``."""
    for chosen, left in choices_of_ports(block, load, most):
        for wanted in digraphs_for(block, chosen, left):
            if search.find(wanted) is not None or search.exhausted:
                return False
    return True


def choices_of_ports(block: Block, load: float, most: float) -> Iterator[tuple[tuple[Ports, ...], float]]:
    """Ports of all cells, as many out of the block as into it, and what their cost leaves of ``most``."""
    most -= block.piece * block.servers * (block.servers - 1 - block.degree)
    kinds = {cell for _, cell in block.cells}
    least = {cell: least_cost(cell, block.degree, load, block.piece) for cell in kinds}
    room = most - sum(least[cell] for _, cell in block.cells)
    ports = {cell: ports_of(cell, block.degree, load, block.piece, least[cell] + room) for cell in kinds}
    options = [ports[cell] for _, cell in block.cells]
    if room >= 0:
        yield from _choices(options, most)


def _choices(options: Sequence[Sequence[Ports]], most: float) -> Iterator[tuple[tuple[Ports, ...], float]]:
    least = [0.0]
    for each in reversed(options):
        least.append(least[-1] + each[0].cost)
    slack = most * ROUNDING

    def extended(chosen: tuple[Ports, ...], left: float) -> Iterator[tuple[tuple[Ports, ...], float]]:
        if len(chosen) == len(options):
            if sum(sum(p.outward) - sum(p.inward) for p in chosen) == 0:
                yield chosen, left
            return
        for ports in options[len(chosen)]:
            if ports.cost + least[len(options) - len(chosen) - 1] > left + slack:
                break
            yield from extended((*chosen, ports), left - ports.cost)

    return extended((), most)


def digraphs_for(block: Block, chosen: Sequence[Ports], left: float) -> Iterator[Wanted]:
    """The digraphs that are left, one case for every order of the small rings."""
    k = block.servers
    outward, inward, relayed = [0] * k, [0] * k, [0] * k
    arcs: set[Arc] = set()
    everybody = (1 << k) - 1
    for (servers, _), ports in zip(block.cells, chosen, strict=True):
        for place, u in enumerate(servers):
            outward[u] = block.degree - ports.outward[place]
            inward[u] = block.degree - ports.inward[place]
            if ports.elsewhere[place]:
                relayed[u] = everybody
            if ports.from_elsewhere[place]:
                relayed = [bits | 1 << u for bits in relayed]
        for place, (u, v) in enumerate(permutations(servers, 2)):
            if ports.arcs[place]:
                arcs.add((u, v))
            if ports.outward[place] and ports.inward[1 - place]:
                relayed[u] |= 1 << v
    if max(outward) >= k or max(inward) >= k:
        return
    missing = int(left / block.piece + WHOLE_TOL)
    needed = [members for members, ring in block.inner if ring > left]
    orders = [[(m[0], *rest) for rest in permutations(m[1:])] for m in needed if len(m) <= _FEW]
    rings = [members for members in needed if len(members) > _FEW]
    for rounds in product(*orders):
        hops = {(u, v) for each in rounds for u, v in zip(each, (*each[1:], each[0]), strict=True)}
        yield Wanted(outward, inward, frozenset(arcs | hops), relayed, rings, missing)
