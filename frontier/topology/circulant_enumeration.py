"""All symmetric designs, in the order of their hop bounds, each routed by a small linear program."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import comb, inf
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import coo_array

from ddlopt.frontier.topology.collapse import Collapse
from ddlopt.frontier.topology.formulations.circulant import CirculantDesign
from ddlopt.frontier.topology.symmetry.cayley import generator_orbits, orbit_candidates
from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.models.gossip.circulant.symmetry import Indices, smallest_images
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign
from ddlopt.solvers.certify import Gate, MethodOutput
from ddlopt.solvers.contracts import Limits, ProgressCallback, Result, compiled
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.heuristic import Clock

Array = npt.NDArray[np.float64]

# Sets that are priced between looks at the clock.
_CHUNK = 20_000


@dataclass(frozen=True)
class CirculantEnumeration:
    """Exact among the designs of :class:`~.CirculantDesign`, also for large n.

    One set of generators of each orbit under the automorphisms that preserve the traffic gets a lower bound, bytes
    times hops over links, by breadth-first search. In the order of these bounds the sets are routed by the collapsed
    linear program, until the next bound reaches the best load found: then nothing better is left.

    Parameters
    ----------
    formulation : CirculantDesign
        Says which group, and whether all generators must be rings.
    most_sets : int
        Instances with more sets of generators than this are refused.
    """

    formulation: CirculantDesign = field(default_factory=CirculantDesign)
    most_sets: int = 3_000_000

    @property
    def name(self) -> str:
        """Kebab-case name, as in the catalogue."""
        return "circulant-enumeration"

    uses: ClassVar[frozenset[str]] = frozenset()

    @property
    def family(self) -> str:
        """Name of the family."""
        return "topology"

    def refuses(self, instance: TopologyInstance) -> str | None:
        """Why the instance is not covered: its traffic is not symmetric, or it has too many sets; None if it is."""
        reason = Exact(self.name, self.family, self.formulation).refuses(instance)
        if reason is not None:
            return reason
        sets = sum(count for *_, count in _kinds(self.formulation.collapsed(instance)))
        if sets > self.most_sets:
            return f"there are {sets} sets of generators, more than most_sets = {self.most_sets}"
        return None

    def solve(
        self,
        instance: TopologyInstance,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: TopologyDesign | None = None,
    ) -> Result:
        """Answer and prove within the scope; see :class:`~ddlopt.solvers.contracts.Method`. ``start`` is not used."""
        reason = self.refuses(instance)
        if reason is not None:
            raise NotApplicableError(f"{self.name} does not cover '{instance.name}': {reason}")
        compile_s = compiled(self, instance)
        clock = Clock(limits, progress)
        search = _Search(self.formulation.collapsed(instance), limits, clock)
        search.run()
        late = "time limit" if search.bound < search.load * (1 - limits.gap) else ""
        if search.best is None:
            late = "time limit" if clock.expired else "no symmetric design of this class joins the servers"
        output = MethodOutput(
            search.best,
            {"generator_sets": search.sets, "linear_programs": search.routed, "routing_s": search.routing_s},
            scope=self.formulation.scope(instance),
            scope_bound=None if search.bound == inf else instance.iteration_time_s(search.bound),
            message=late,
        )
        gate = Gate(instance, self.name, limits, seed, clock.elapsed_s, compile_s, tuple(clock.trace))
        return gate.certify(output, None if search.best is None else instance.iteration_time_s(search.load))


class _Search:
    """The best design so far and what is proven about the rest."""

    def __init__(self, this: Collapse, limits: Limits, clock: Clock) -> None:
        self.this, self._gap, self._clock = this, limits.gap, clock
        self.best: TopologyDesign | None = None
        self.load, self.bound = inf, this.least_load_bytes
        self.sets = self.routed = 0
        self.routing_s = 0.0

    def run(self) -> None:
        """Route sets in the order of their bounds until the next cannot be better, or the time is up."""
        bounds, sets = _bounded(self.this, self._clock)
        self.sets = len(sets)
        if self._clock.expired:
            return
        unplaced = inf
        for bound, chosen in zip(bounds.tolist(), sets, strict=True):
            if bound >= self.load * (1 - self._gap) or self._clock.expired:
                self.bound = max(self.bound, min(bound, self.load, unplaced))
                return
            began = time.perf_counter()
            unplaced = min(unplaced, self._route(chosen))
            self.routing_s += time.perf_counter() - began
        self.bound = max(self.bound, min(self.load, unplaced))

    def _route(self, chosen: tuple[int, ...]) -> float:
        """Route one set; the load that it would have if its links do not fit into the planes, else infinity."""
        counts = {g: chosen.count(g) for g in chosen}
        self.routed += 1
        load, flow, shares = route(self.this, counts)
        if load >= self.load:
            return inf
        try:
            self.best = self.this.design(counts, flow, shares)
        except SolverError:
            return load
        self.load = load
        self._clock.report(self.this.instance.iteration_time_s(load))
        return inf


def route(this: Collapse, counts: dict[int, int]) -> tuple[float, dict[tuple[int, int], float], list[dict[int, float]]]:
    """Best routing over given generators: the collapsed linear program.

    Parameters
    ----------
    this : Collapse
    counts : dict generator -> number of links
        By class.

    Returns
    -------
    load : float
        Bytes on the busiest link; infinity if some server cannot be reached.
    flow : dict (u, g) -> bytes
        Sent by server 0 and passing from u to u + g.
    shares : list of dict generator -> float
        Ring shares of each reduction.
    """
    group, n = this.group, this.group.order
    capacity = {g: counts[c.generator] for c in this.classes if c.generator in counts for g in c.directions}
    starts = range(n) if this.instance.host_forwarding else range(1)
    ends = {g: group.add(np.array(starts), g).tolist() for g in capacity}
    arcs = [(u, g, ends[g][u]) for g in capacity for u in starts if ends[g][u]]
    rings = [(k, p) for k, reduction in enumerate(this.reductions) for p in reduction.generators]
    m, unit = len(arcs), this.least_load_bytes
    balance, load = _Triplets(), _Triplets()
    rows = {g: row for row, g in enumerate(capacity)}
    for column, (u, g, v) in enumerate(arcs):
        balance.add(v - 1, column, 1.0)
        if u:
            balance.add(u - 1, column, -1.0)
        load.add(rows[g], column, 1.0)
    for number, (k, p) in enumerate(rings):
        balance.add(p - 1, m + number, -this.reductions[k].hop_bytes / unit)
        balance.add(n - 1 + k, m + number, 1.0)
    for g, row in rows.items():
        load.add(row, m + len(rings), -float(capacity[g]))
    cost = np.zeros(m + len(rings) + 1)
    cost[-1] = 1.0
    demand = np.concatenate([this.offset_bytes[1:] / unit, np.ones(len(this.reductions))])
    found = linprog(
        cost,
        load.matrix(len(rows), len(cost)),
        np.zeros(len(rows)),
        balance.matrix(len(demand), len(cost)),
        demand,
        method="highs",
    )
    if found.status == 2:
        return inf, {}, []
    if found.status != 0:
        raise SolverError(f"'{this.instance.name}': routing over generators {sorted(counts)} failed: {found.message}")
    flow = {(u, g): unit * float(x) for (u, g, _), x in zip(arcs, found.x[:m], strict=True) if x > 0}
    shares: list[dict[int, float]] = [{} for _ in this.reductions]
    for (k, p), share in zip(rings, found.x[m:-1].tolist(), strict=True):
        if share > 0:
            shares[k][p] = share
    return unit * float(found.fun), flow, shares


class _Triplets:
    """Entries of a sparse matrix."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._columns: list[int] = []
        self._values: list[float] = []

    def add(self, row: int, column: int, value: float) -> None:
        self._rows.append(row)
        self._columns.append(column)
        self._values.append(value)

    def matrix(self, rows: int, columns: int) -> Any:
        return coo_array((self._values, (self._rows, self._columns)), shape=(rows, columns)).tocsr()


def _kinds(this: Collapse) -> Iterator[tuple[int, int, int]]:
    """How many pairs of directions and how many single ones may fill the interfaces, and how many sets to look at.

    Another link never hurts, so sets that can be extended are left out: of the others at most one interface is free,
    or all there is has been taken.
    """
    repeat, maps = this.instance.parallel_links, this.class_symmetries
    pairs, singles = _pools(this)
    for k in range(this.interfaces // 2 + 1):
        for i in range(this.interfaces - 2 * k + 1):
            if not k + i or not _can_choose(pairs, k, repeat) or not _can_choose(singles, i, repeat):
                continue
            left = this.interfaces - 2 * k - i
            more_pairs, more_singles = (pairs, singles) if repeat else (pairs[k:], singles[i:])
            if (left >= 1 and more_singles) or (left >= 2 and more_pairs):
                continue
            sets = orbit_candidates(pairs if k else singles, k or i, maps, repeat)
            if k and i:
                sets *= comb(len(singles) + (i - 1 if repeat else 0), i)
            yield k, i, sets


def _can_choose(pool: list[int], size: int, repeat: bool) -> bool:
    return size <= len(pool) or (repeat and len(pool) > 0)


def _pools(this: Collapse) -> tuple[list[int], list[int]]:
    """Generators of classes with two directions, and with one."""
    return (
        [c.generator for c in this.classes if c.interfaces == 2],
        [c.generator for c in this.classes if c.interfaces == 1],
    )


def _bounded(this: Collapse, clock: Clock) -> tuple[Array, list[tuple[int, ...]]]:
    """Sets of generators with their hop bounds, the least first; those that leave somebody unreached are left out."""
    kept: list[tuple[float, tuple[int, ...]]] = []
    for k, i, _ in _kinds(this):
        sets = _orbits(this, k, i)
        for begin in range(0, len(sets), _CHUNK):
            chunk = sets[begin : begin + _CHUNK]
            bounds = hop_bounds(this, chunk, 2 * k + i)
            kept += [(b, tuple(s)) for b, s in zip(bounds.tolist(), chunk.tolist(), strict=True) if b < inf]
            if clock.expired:
                return np.zeros(0), []
    kept.sort()
    return np.array([bound for bound, _ in kept]), [chosen for _, chosen in kept]


def _orbits(this: Collapse, k: int, i: int) -> Indices:
    """One multiset of k pairs and i single directions of each orbit, as class generators in increasing order."""
    pairs, singles = _pools(this)
    maps, repeat = this.class_symmetries, this.instance.parallel_links
    if not k or not i:
        return generator_orbits(singles if i else pairs, k + i, maps, repeat)
    # The part of pairs can be taken from one of each orbit; the symmetries that are left then act on the singles.
    firsts = generator_orbits(pairs, k, maps, repeat)
    everything = generator_orbits(singles, i, np.arange(this.group.order)[None], repeat)
    both = np.concatenate([np.repeat(firsts, len(everything), 0), np.tile(everything, (len(firsts), 1))], axis=1)
    return np.unique(smallest_images(both, maps), axis=0)


def hop_bounds(this: Collapse, sets: Indices, links: int) -> Array:
    """(s,) bytes on the busiest link that each set of generators needs at least: bytes times hops over links.

    Without forwarding, and for servers that cannot be reached, infinity where traffic wants more than one hop.
    """
    directions = sets
    if this.instance.optics == "duplex":
        directions = np.concatenate([sets, this.group.negate(sets)], axis=1)
    hops = this.group.distances_of_many(directions).astype(float)
    hops[hops < 0] = inf
    if not this.instance.host_forwarding:
        hops[hops > 1] = inf
    sent = np.flatnonzero(this.offset_bytes > 0)
    total = hops[:, sent] @ this.offset_bytes[sent]
    for reduction in this.reductions:
        total = total + reduction.hop_bytes * hops[:, list(reduction.generators)].min(axis=1)
    return np.asarray(total / links)
