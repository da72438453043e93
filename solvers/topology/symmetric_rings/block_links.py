"""Links that are the same in every block of servers: digraphs of a block, and links from place to place between blocks.

A job of blocks that look alike (:mod:`ddlopt.models.topology.relays.bound`) may have as many kinds of links as servers
in a block have ports. Local search over so many kinds is lost; but a block has few digraphs in which nearly all pairs
are within two links and which have the rings of its groups. Those that the bound could not exclude are drawn at random.
Every server then has links to its own place in the next block, for the groups that it has alone of its block; links
that are left lead one block back, to a server of its cell if it can be: a link there and one back to another place
relay for a pair of the block that has no link.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from ddlopt.models.tolerances import BOUND_MARGIN, WHOLE_TOL
from ddlopt.models.topology.block_bound import partitions
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.relays.bound import Block, block_of, bytes_once, choices_of_ports, digraphs_for
from ddlopt.models.topology.relays.cells import Ports
from ddlopt.models.topology.relays.digraphs import DigraphSearch, Wanted
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.symmetric_rings.orbit_program import OrbitProgram
from ddlopt.solvers.topology.symmetric_rings.orbit_search import FINAL, TRIAL
from ddlopt.solvers.topology.symmetric_rings.orbits import Orbits, all_orbits
from ddlopt.solvers.topology.symmetric_rings.sight import Ints, Sight

_STEPS = 3_000
"""Of one search for a digraph; without one, another case is drawn."""
_CASES = 5_000
"""Choices of ports that are drawn from, the cheapest."""
_CHEAP = 3.0
"""Power of a random number that says how often cheap cases are drawn."""
_PATIENCE = 400
"""Searches in vain in a row after which a pair more may be three links apart."""
_HOPELESS, _NEAR = 1.001, 1.002
"""Loads, in that of the best links, above which a trial ends, and up to which it is judged more finely."""

Links = list[tuple[int, int, int]]
"""Place in a block, place of the end, and blocks between."""


class BlockLinks:
    """Links of blocks, drawn and judged one after the other.

    Parameters
    ----------
    block : Block
    orbits : Orbits
        One for each place in a block; translations take blocks to blocks.
    first : (k,) array
        The servers of one block, by place.
    capacity, once : float
        Links of all servers, and bytes if each hop and each pair took one link.
    known : float
        A bound on the load.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        block: Block,
        orbits: Orbits,
        first: Ints,
        capacity: int,
        once: float,
        known: float,
        rng: np.random.Generator,
    ) -> None:
        self.block, self.orbits, self.first, self.rng = block, orbits, first, rng
        self._capacity, self._once = capacity, once
        pieces = block.blocks * block.piece
        self._detours = math.ceil((capacity * known - once) / pieces - WHOLE_TOL)
        self._pieces, self._vain = pieces, 0
        self._cases: list[tuple[tuple[Ports, ...], float]] | None = None
        self._load = math.inf

    def best(self, clock: Clock, trials: int, enough: float, least: float) -> tuple[OrbitProgram | None, float, int]:
        """The best program with a load below ``least``, its load, and how many were judged."""
        found, judged = None, 0
        for links in self.drawn():
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
        return inside + self._between(chosen)

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

    def _between(self, chosen: Sequence[Ports]) -> Links:
        """Links out of the block: to the same place for the groups of one server, and what is left within cells."""
        links: Links = []
        out, into = [0] * self.block.servers, [0] * self.block.servers
        for (servers, cell), ports in zip(self.block.cells, chosen, strict=True):
            for place, u in enumerate(servers):
                needed = math.ceil(cell.own[place] / self._load - WHOLE_TOL)
                loops = min(needed, ports.outward[place], ports.inward[place])
                links += [(u, u, 1)] * loops
                out[u], into[u] = ports.outward[place] - loops, ports.inward[place] - loops
            for u, v in self._shuffled([(u, v) for u in servers for v in servers if u != v]):
                pairs = min(out[u], into[v])
                links += [(u, v, -1)] * pairs
                out[u], into[v] = out[u] - pairs, into[v] - pairs
        tails = [u for u, count in enumerate(out) for _ in range(count)]
        heads = [v for v, count in enumerate(into) for _ in range(count)]
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
    once = bytes_once(instance)
    for labels in partitions(instance):
        block = block_of(instance, labels)
        if block is None or instance.optics != "one_way":
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
            return BlockLinks(block, longest, places[0], instance.servers * instance.degree, once, known, rng)
    return None
