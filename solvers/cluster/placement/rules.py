"""The rules of schedulers: gangs one after the other, each where the rule says, and none is moved again."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ddlopt.models.cluster.placement.instance import Gang, PlacementInstance
from ddlopt.solvers.cluster.placement.free import Counts, Free, answer_of
from ddlopt.solvers.heuristic import Clock, Heuristic


@dataclass(frozen=True)
class Rule(Heuristic, uses=()):
    """What the rules share: the order of the gangs.

    A gang for which there is no place is left out where the objective allows it, and the next one is tried.
    """

    order: Literal["listed", "largest"] = "listed"

    covers: ClassVar[type[PlacementInstance]] = PlacementInstance

    def answer(self, instance: PlacementInstance, seed: int, clock: Clock, start: Any) -> Any:
        """The places.

        Raises
        ------
        NoSolutionError
            If a gang that has to be placed finds no place.
        """
        return answer_of(instance, self.counts(instance, clock)), {}

    def counts(self, instance: PlacementInstance, clock: Clock) -> list[Counts | None]:
        """The hosts of each gang; None for those that find no place, and when the time is up."""
        free, counts = Free(instance), list[Counts | None]([None] * len(instance.gangs))
        queue = list(range(len(instance.gangs)))
        if self.order == "largest":
            queue.sort(key=lambda g: -instance.gangs[g].hosts)
        for g in queue:
            if clock.expired:
                break
            counts[g] = self.place(free, instance.gangs[g])
            free.take(counts[g] or {})
        return counts

    @abstractmethod
    def place(self, free: Free, gang: Gang) -> Counts | None:
        """Hosts for a gang; None if the rule finds none."""


@dataclass(frozen=True)
class Kueue(Rule, uses=()):
    """Kueue's topology-aware scheduling with its default profile, best fit.

    A gang that has to be within a level is a pod set with that level *required*: it gets the domain with the fewest
    free hosts that suffice. Others have the innermost level *preferred*: if none of its domains suffices, the level
    around it is looked at, and so on; on the outermost level the domains with most free hosts are taken one after the
    other, the last one by best fit. Inside of what was found it goes down level by level, each time taking the domains
    with most free hosts, the last one by best fit. Ties go to the first domain.

    Parameters
    ----------
    order : {"listed", "largest"}
        Of the gangs; Kueue's queues are by priority and time.
    unconstrained : bool
        Gangs without a level are pod sets that are *unconstrained*: leaves are chosen at once, whatever is around them.

    References
    ----------
    kubernetes-sigs/kueue, KEP 2724 and ``tas_flavor_snapshot.go``, read in 2026; taints, node selectors, slices and
    leaders are left out.
    """

    unconstrained: bool = False

    name: ClassVar[str] = "kueue"

    def place(self, free: Free, gang: Gang) -> Counts | None:
        """Hosts for a gang."""
        instance = free.instance
        last, own = len(instance.levels) - 1, instance.level(gang)
        level = own if own >= 0 else last
        chosen = self._one(free, level, gang.hosts)
        if chosen is None and own >= 0:
            return None
        while chosen is None and level and not self.unconstrained:
            level -= 1
            chosen = self._one(free, level, gang.hosts)
        if chosen is None:
            if free.hosts(range(len(free.left))) < gang.hosts:
                return None
            chosen = _fewest(free, [domain.leaves for domain in instance.domains[level]], gang.hosts)
        for inner in range(level + 1, last + 1):
            around = {leaf for leaves in chosen for leaf in leaves}
            below = [domain.leaves for domain in instance.domains[inner] if domain.leaves[0] in around]
            chosen = _fewest(free, below, gang.hosts)
        return _filled(free, [leaf for (leaf,) in chosen], gang.hosts)

    def _one(self, free: Free, level: int, hosts: int) -> list[tuple[int, ...]] | None:
        """The domain of a level with the fewest free hosts that suffice."""
        fitting = [domain.leaves for domain in free.instance.domains[level] if free.hosts(domain.leaves) >= hosts]
        return [min(fitting, key=free.hosts)] if fitting else None


@dataclass(frozen=True)
class SlurmBlock(Rule, uses=()):
    """Slurm's ``topology/block``: base blocks, and blocks of two, four, … of them one after the other.

    Leaves are the base blocks, in the order of the instance. For a gang of n hosts, blocks are the smallest ones of
    b, 2 b, 4 b, … ≥ n hosts, b a base block's. A block suffices if ⌈n / b⌉ of its base blocks have n free hosts;
    of those that do, the one with the fewest free hosts is taken, the last one of ties. In it, the base block with the
    fewest free hosts that suffice for the rest is taken, or the one with most, until the gang has its hosts.

    Parameters
    ----------
    order : {"listed", "largest"}
    base : int, optional
        b, the first of ``BlockSizes``; None: the largest leaf's hosts.
    waits : bool
        A gang for which no block suffices finds no place, and would wait. If not, larger blocks are tried, and then any
        number of base blocks: ours, as nobody waits here.

    References
    ----------
    SchedMD/slurm, ``topology/block``, ``eval_nodes_block.c`` and topology.conf(5), read in 2026; weights of nodes,
    segments and required nodes are left out. A level that a gang has to be within is ours: blocks end there.
    """

    base: int | None = None
    waits: bool = False

    name: ClassVar[str] = "slurm-block"

    def place(self, free: Free, gang: Gang) -> Counts | None:
        """Hosts for a gang."""
        leaves = len(free.left)
        base = self.base or max(1, *(leaf.hosts for leaf in free.instance.leaves))
        width = 1
        while base * width < gang.hosts:
            width *= 2
        most = -(-gang.hosts // base)
        while True:
            found = self._block(free, gang, width, most)
            if found is not None or self.waits:
                return found
            if width < leaves:
                width *= 2
            elif most < leaves:
                most = leaves
            else:
                return None

    def _block(self, free: Free, gang: Gang, width: int, most: int) -> Counts | None:
        best: tuple[int, ...] | None = None
        for room in free.rooms(gang):
            blocks: dict[int, list[int]] = {}
            for leaf in room:
                blocks.setdefault(leaf // width, []).append(leaf)
            for block in blocks.values():
                largest = sorted((free.left[leaf] for leaf in block), reverse=True)[:most]
                if sum(largest) >= gang.hosts and (best is None or free.hosts(block) <= free.hosts(best)):
                    best = tuple(block)
        if best is None:
            return None
        return _filled(free, [leaf for (leaf,) in _fewest(free, [(leaf,) for leaf in best], gang.hosts)], gang.hosts)


@dataclass(frozen=True)
class HivedCells(Rule, uses=()):
    """HiveD's cells: whole free cells are split as late as there is a choice, as in buddy allocation.

    Domains are cells, and so is a host. A gang is put into the smallest kind of cell that holds it (one of the level
    that it names, or inside). A cell of that level in which something runs already comes before one that is free as a
    whole, then the one with fewer free hosts. In it, cells below that are free as a whole and no larger than what is
    missing are taken, the largest first; then cells that are split already, then those that are free.

    Parameters
    ----------
    order : {"listed", "largest"}

    References
    ----------
    H. Zhao et al., "HiveD: Sharing a GPU cluster for deep learning with guarantees", OSDI 2020, section 3, and
    microsoft/hivedscheduler, ``cell_allocation.go``, read in 2026. Virtual clusters, priorities and bad cells are left
    out; a gang that is no cell by itself is made of several, which is ours.
    """

    name: ClassVar[str] = "hived-cells"

    def place(self, free: Free, gang: Gang) -> Counts | None:
        """Hosts for a gang."""
        instance = free.instance
        for level in range(len(instance.levels) - 1, instance.level(gang) - 1, -1):
            if level < 0:
                break
            cells = [domain.leaves for domain in instance.domains[level] if free.hosts(domain.leaves) >= gang.hosts]
            if cells:
                cell = min(cells, key=lambda leaves: (self._whole(free, leaves), free.hosts(leaves)))
                return self._inside(free, cell, level + 1, gang.hosts)
        everything = tuple(range(len(free.left)))
        if instance.level(gang) >= 0 or free.hosts(everything) < gang.hosts:
            return None
        return self._inside(free, everything, 0, gang.hosts)

    def _inside(self, free: Free, leaves: tuple[int, ...], level: int, hosts: int) -> Counts:
        """Hosts of a cell, by the cells of the level below it."""
        instance = free.instance
        if level == len(instance.levels):
            (leaf,) = leaves
            return {leaf: hosts}
        inside = set(leaves)
        cells = [
            each.leaves for each in instance.domains[level] if each.leaves[0] in inside and free.hosts(each.leaves)
        ]
        found: Counts = {}
        for cell in sorted(cells, key=lambda cell: (not self._whole(free, cell), -free.hosts(cell))):
            if self._whole(free, cell) and free.hosts(cell) <= hosts:
                found |= {leaf: free.left[leaf] for leaf in cell if free.left[leaf]}
                hosts -= free.hosts(cell)
        rest = [cell for cell in cells if not any(leaf in found for leaf in cell)]
        for cell in sorted(
            rest, key=lambda cell: (self._whole(free, cell), free.hosts(cell) < hosts, free.hosts(cell))
        ):
            if hosts:
                taken = min(hosts, free.hosts(cell))
                found |= self._inside(free, cell, level + 1, taken)
                hosts -= taken
        return found

    def _whole(self, free: Free, leaves: tuple[int, ...]) -> bool:
        return all(free.left[leaf] == free.instance.leaves[leaf].hosts for leaf in leaves)


def _fewest(free: Free, domains: list[tuple[int, ...]], hosts: int) -> list[tuple[int, ...]]:
    """Domains with most free hosts, one after the other, the last one by best fit; they have the hosts together."""
    waiting, chosen = sorted(domains, key=lambda leaves: -free.hosts(leaves)), []
    while hosts > 0:
        fitting = [leaves for leaves in waiting if free.hosts(leaves) >= hosts]
        taken = min(fitting, key=free.hosts) if fitting else waiting[0]
        waiting.remove(taken)
        chosen.append(taken)
        hosts -= free.hosts(taken)
    return chosen


def _filled(free: Free, leaves: list[int], hosts: int) -> Counts:
    """All free hosts of the leaves, fewer of the last."""
    found: Counts = {}
    for leaf in leaves:
        taken = min(hosts, free.left[leaf])
        if taken:
            found[leaf] = taken
            hosts -= taken
    return found
