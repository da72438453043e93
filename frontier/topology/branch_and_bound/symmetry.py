"""Canonical numbering of servers: partial designs that are images of each other under the instance's automorphisms.

Colours are refined by what the servers around have (Weisfeiler and Leman); where that does not tell all servers apart,
each of a smallest class is singled out in turn, one alone if they are twins, and the smallest table wins. Colours are
hashes: a collision can only hide that two designs are symmetric, as the tables themselves are compared.
"""

import numpy as np

from ddlopt.certificates.topology.hops.canonical_kernel import canonical_order, refine
from ddlopt.frontier.topology.branch_and_bound.bounds import Ints
from ddlopt.frontier.topology.branch_and_bound.integer_instance import IntegerInstance
from ddlopt.models.topology.instance import TopologyInstance


def pair_colours(instance: TopologyInstance) -> Ints:
    """(n, n) numbers that are equal where the instance cannot tell two ordered pairs of servers apart by themselves."""
    n = instance.servers
    keys = [[[float(instance.traffic_bytes[i, j])] for j in range(n)] for i in range(n)]
    for group in sorted(instance.allreduce_groups, key=lambda g: (len(g.members), g.gradient_bytes)):
        inside = set(group.members)
        # Groups of one size and gradient may be exchanged: what counts is how often a pair is in one of them.
        for i in range(n):
            for j in range(n):
                if i in inside and j in inside:
                    keys[i][j] += [float(len(inside)), group.gradient_bytes]
    known: dict[tuple[float, ...], int] = {}
    return np.array([[known.setdefault(tuple(key), len(known)) for key in row] for row in keys], dtype=np.int64)


def is_automorphism(instance: TopologyInstance, order: Ints) -> bool:
    """Whether the permutation leaves traffic and groups as they are."""
    groups = sorted((group.members, group.gradient_bytes) for group in instance.allreduce_groups)
    moved = sorted((tuple(sorted(int(order[v]) for v in members)), size) for members, size in groups)
    traffic = instance.traffic_bytes
    return moved == groups and bool(np.array_equal(traffic[np.ix_(order, order)], traffic))


class Numbering:
    """Finds out whether partial designs of an instance are symmetric."""

    def __init__(self, instance: TopologyInstance, integers: IntegerInstance) -> None:
        self.instance, self.integers = instance, integers
        self.pairs = pair_colours(instance)
        self.known: dict[bytes, tuple[int, Ints]] = {}

    @property
    def useful(self) -> bool:
        """Whether the instance has any automorphism but the identity that colours can show."""
        n = self.instance.servers
        colours = np.zeros(n, np.uint64)
        refine(colours, self.pairs)
        return len(np.unique(colours)) < n

    def canonical(self, decided: Ints) -> tuple[bytes, Ints]:
        """Key of a partial design (n,), the set of each server or -1, and the servers in canonical order."""
        n = len(decided)
        table = self.pairs * (self.integers.degree + 2)
        marks = np.zeros(n, np.uint64)
        for s in np.flatnonzero(decided >= 0):
            marks[s] = 1
            for v in self.integers.options[s, decided[s]]:
                if v >= 0:
                    table[s, v] += 1
        order = canonical_order(marks, table)
        return marks[order].tobytes() + table[np.ix_(order, order)].tobytes(), order

    def seen(self, decided: Ints, part: int) -> tuple[int, Ints] | None:
        """The part that a partial design is an image of, and the permutation that takes it here; else remember it."""
        key, order = self.canonical(decided)
        if key not in self.known:
            self.known[key] = part, order
            return None
        origin, before = self.known[key]
        permutation = np.empty_like(order)
        permutation[before] = order
        return (origin, permutation) if is_automorphism(self.instance, permutation) else None
