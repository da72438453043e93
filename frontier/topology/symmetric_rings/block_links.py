"""Links that are the same in every block of servers: digraphs of a block, and links from place to place between blocks.

A job of blocks that look alike (:mod:`ddlopt.frontier.topology.relays.bound`) may have as many kinds of links as a
server of a block has ports. Local search over so many kinds is lost; but a block has few digraphs in which nearly all
pairs are within two links and which have the rings of its groups. Those that the bound could not exclude are drawn at
random, after some that a program has found for the least detours
(:class:`~ddlopt.frontier.topology.formulations.links_in_block.LinksInBlock`), which knows second links. Every server
then has links to its own place in the next block, for the groups that it has alone of its block; links that are left
lead one block back, to a server of its cell if it can be: a link there and one back to another place relay for a pair
of the block that has no link.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np

from ddlopt.frontier.topology.blocks.block_bound import Labels, partitions
from ddlopt.frontier.topology.formulations.links_in_block import LinksInBlock
from ddlopt.frontier.topology.relays.block import Block, block_of
from ddlopt.frontier.topology.relays.bound import bytes_once, choices_of_ports, digraphs_for
from ddlopt.frontier.topology.relays.cells import Ports
from ddlopt.frontier.topology.relays.digraphs import DigraphSearch, Wanted
from ddlopt.frontier.topology.symmetric_rings.orbit_program import OrbitProgram
from ddlopt.frontier.topology.symmetric_rings.orbit_search import FINAL, TRIAL
from ddlopt.frontier.topology.symmetric_rings.orbits import Orbits, all_orbits
from ddlopt.frontier.topology.symmetric_rings.sight import Ints, Sight
from ddlopt.models.tolerances import BOUND_MARGIN, WHOLE_TOL
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Clock

_STEPS = 3_000
"""Of one search for a digraph; without one, another case is drawn."""
_CASES = 5_000
"""Choices of ports that are drawn from, the cheapest."""
_CHEAP = 3.0
"""Power of a random number that says how often cheap cases are drawn."""
_PATIENCE = 400
"""Searches in vain in a row after which a pair more may be three links apart."""
_LAYOUTS, _NODES, _MORE = 3, 100, 24
"""Seeds and nodes of the program for the links of a block, and pieces that it may have above the bound."""
_HOPELESS, _NEAR = 1.001, 1.002
"""Loads, in that of the best links, above which a trial ends, and up to which it is judged more finely."""

Links = list[tuple[int, int, int]]
"""Place in a block, place of the end, and blocks between."""


class BlockLinks:
    """Links of blocks, drawn and judged one after the other.

    Parameters
    ----------
    instance : TopologyInstance
    labels : (n,) array
        The block of each server.
    block : Block
    orbits : Orbits
        One for each place in a block; translations take blocks to blocks.
    known : float
        A bound on the load.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        instance: TopologyInstance,
        labels: Labels,
        block: Block,
        orbits: Orbits,
        known: float,
        rng: np.random.Generator,
    ) -> None:
        self.instance, self.labels, self.block, self.orbits, self.rng = instance, labels, block, orbits, rng
        self.first = np.flatnonzero(labels == 0)
        self._capacity, self._once = capacity, once = instance.servers * instance.degree, bytes_once(instance)
        pieces = block.blocks * block.piece
        self._detours = math.ceil((capacity * known - once) / pieces - WHOLE_TOL)
        self._pieces, self._vain = pieces, 0
        self._cases: list[tuple[tuple[Ports, ...], float]] | None = None
        self._load = math.inf

    def best(self, clock: Clock, trials: int, enough: float, least: float) -> tuple[OrbitProgram | None, float, int]:
        """The best program with a load below ``least``, its load, and how many were judged."""
        found, judged = None, 0
        for links in chain(self.laid_out(clock), self.drawn()):
            if judged >= trials or clock.expired or least <= enough:
                break
            judged += 1
            program = OrbitProgram(self.orbits, self._elements(links))
            load = program.solve(*TRIAL, enough, least * _HOPELESS)
            if least * (1 - BOUND_MARGIN) < load <= least * _NEAR or enough < load < least:
                load = min(load, program.solve(*FINAL, enough, math.inf))
            if load < least:
                found, least = program, load
        return found, least, judged

    def laid_out(self, clock: Clock) -> Iterator[Links]:
        """Links of the least detours, where rings in the block fill more than a link of a server: it is quick there."""
        rings = [sum(ring for members, ring in self.block.inner if u in members) for u in range(self.block.servers)]
        if max(rings) <= self._once / self._capacity:
            return
        for more in range(_MORE):
            load = (self._once + (self._detours + more) * self._pieces) / self._capacity * (1 + BOUND_MARGIN)
            program, found = LinksInBlock(load, tuple(self.labels.tolist()), closed=True), False
            for seed in self.rng.integers(2**31, size=_LAYOUTS).tolist():
                model = build_model(self.instance.family, program, self.instance)
                limits = Limits(None if math.isinf(clock.left_s) else max(clock.left_s, 1e-3))
                with clock.lending_ctrl_c():
                    outcome = Highs({"mip_max_nodes": _NODES}).solve(model, limits, seed)
                clock.interrupted |= outcome.interrupted
                if outcome.objective is None:
                    break
                found = True
                yield self._with_ends(program.read(model.topology, self.instance))
            if found or outcome.status is not Status.INFEASIBLE:
                return

    def _with_ends(self, counts: Iterable[tuple[int, int, int]]) -> Links:
        """Links as of :meth:`LinksInBlock.read`, those over the edge of the block joined."""
        out, into, inside = [0] * self.block.servers, [0] * self.block.servers, []
        for u, v, count in counts:
            if u < 0:
                into[v] = count
            elif u == v:
                out[u] = count
            else:
                inside += [(u, v, 0)] * count
        return inside + self._between(out, into, out)

    def drawn(self) -> Iterator[Links]:
        """Links, without end; those of few hops first."""
        limit = self.block.servers * (self.block.servers - 1)
        while self._detours <= 2 * limit:
            if self._cases is None:
                self._list_cases()
            links = self._draw() if self._cases else None
            if links is not None:
                self._vain = 0
                yield links
                continue
            self._vain += 1
            if not self._cases or self._vain > _PATIENCE:
                self._detours, self._vain, self._cases = self._detours + 1, 0, None

    def _list_cases(self) -> None:
        """Choices of ports that cost no more than the detours that are allowed now."""
        self._load = (self._once + self._detours * self._pieces) / self._capacity * (1 + BOUND_MARGIN)
        most = (self._capacity * self._load - self._once) / self.block.blocks
        found = choices_of_ports(self.block, self._load, most)
        self._cases = sorted(islice(found, _CASES), key=lambda case: -case[1])

    def _draw(self) -> Links | None:
        """A digraph of some case, if one is found, with links between blocks."""
        assert self._cases
        chosen, left = self._cases[int(len(self._cases) * self.rng.random() ** _CHEAP)]
        wanted = list(digraphs_for(self.block, chosen, left))
        if not wanted:
            return None
        heads = self._digraph(wanted[int(self.rng.integers(len(wanted)))])
        if heads is None:
            return None
        k = self.block.servers
        inside = [(u, v, 0) for u in range(k) for v in range(k) if heads[u] >> v & 1]
        out, into, needed = [0] * k, [0] * k, [0] * k
        for (servers, cell), ports in zip(self.block.cells, chosen, strict=True):
            for place, u in enumerate(servers):
                out[u], into[u] = ports.outward[place], ports.inward[place]
                needed[u] = math.ceil(cell.own[place] / self._load - WHOLE_TOL)
        return inside + self._between(out, into, needed)

    def _digraph(self, wanted: Wanted) -> tuple[int, ...] | None:
        """One of those wanted: the first one that is met with vertices in a random order."""
        order = self.rng.permutation(self.block.servers).tolist()
        name = {old: new for new, old in enumerate(order)}

        def renamed(bits: int, names: Sequence[int]) -> int:
            return sum(1 << new for new, old in enumerate(names) if bits >> old & 1)

        other = wanted._replace(
            outward=[wanted.outward[old] for old in order],
            inward=[wanted.inward[old] for old in order],
            arcs=frozenset((name[u], name[v]) for u, v in wanted.arcs),
            relayed=[renamed(wanted.relayed[old], order) for old in order],
            rings=[[name[v] for v in ring] for ring in wanted.rings],
        )
        heads = DigraphSearch(_STEPS).find(other)
        if heads is None:
            return None
        back = [name[old] for old in range(len(order))]
        return tuple(renamed(heads[new], back) for new in back)

    def _between(self, out: Sequence[int], into: Sequence[int], own: Sequence[int]) -> Links:
        """A number of links out: ``own`` of them to the same place, and what is left within cells first."""
        loops = [min(each) for each in zip(out, into, own, strict=True)]
        links = [(u, u, 1) for u, count in enumerate(loops) for _ in range(count)]
        left, room = (np.subtract(each, loops).tolist() for each in (out, into))
        for servers, _ in self.block.cells:
            for u, v in self._shuffled([(u, v) for u in servers for v in servers if u != v]):
                pairs = min(left[u], room[v])
                links += [(u, v, -1)] * pairs
                left[u], room[v] = left[u] - pairs, room[v] - pairs
        tails = [u for u, count in enumerate(left) for _ in range(count)]
        heads = [v for v, count in enumerate(room) for _ in range(count)]
        return links + [(u, heads[place], -1) for u, place in zip(tails, self.rng.permutation(len(heads)), strict=True)]

    def _shuffled(self, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return [pairs[place] for place in self.rng.permutation(len(pairs))]

    def _elements(self, links: Links) -> Ints:
        """Orbit and element of each link; blocks are counted along a translation of as many blocks as any."""
        orbits = self.orbits
        moves = orbits.moves
        step = int(moves[np.argmax(orbits.group.element_orders[moves])])
        by = {0: 0, 1: step, -1: int(orbits.group.negate(step))}
        found = []
        for u, v, blocks in links:
            begin, end = int(self.first[u]), int(orbits.group.translations[by[blocks], self.first[v]])
            found.append((int(orbits.label[begin]), int(orbits.group.add(end, orbits.group.negate(begin)))))
        return np.array(found, dtype=np.int64)


def block_links(
    instance: TopologyInstance, seen: Sequence[Sight], known: float, rng: np.random.Generator
) -> BlockLinks | None:
    """A search for a job whose blocks look alike under some translations; None for others."""
    for labels in partitions(instance):
        block = block_of(instance, labels)
        if block is None or not block.even or instance.optics != "one_way":
            continue
        places = [np.flatnonzero(labels == label) for label in range(block.blocks)]
        found = [
            orbits
            for orbits in (each for sight in seen for each in all_orbits(sight, block.servers))
            if len(orbits.first) == block.servers
            and all((orbits.label[servers] == orbits.label[places[0]]).all() for servers in places)
        ]
        if found:
            longest = max(found, key=lambda orbits: orbits.group.element_orders[orbits.moves].max())
            return BlockLinks(instance, labels, block, longest, known, rng)
    return None
