"""All regular digraphs whose hops exceed the Moore bound by little, in whole numbers."""

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from math import comb

import numpy as np
import numpy.typing as npt

from ddlopt.models.topology.bounds import level_sizes
from ddlopt.models.topology.hops.listing_kernel import DEPTH, DONE, FOUND, NODES, list_digraphs
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.symmetry.canonical_kernel import canonical_order

Ints = npt.NDArray[np.int64]

KERNELS = ("ddlopt.models.topology.hops.listing_kernel", "ddlopt.models.topology.symmetry.canonical_kernel")
_BUDGET = 2_000_000
"""Sets tried between looks at the clock: about a second."""
# Digraphs taken over from the kernel at a time.
_ROOM = 4096
# Combinations of neighbours beyond which a search ends in no time that anybody has.
_MOST_SETS = 2000
_MOST_SERVERS = 32
"""Sets of servers are bits of a number, and so few servers are far beyond what can be listed."""


def not_listed(instance: TopologyInstance) -> str | None:
    """Why links of an instance are not listed; None where they are.

    Adding links hurts nobody, and one-way links can be added until all ports are in use, see
    :func:`~ddlopt.models.topology.integer_instance.always_filled`; where links may not be parallel, those with parallel
    ones are a relaxation.
    """
    n, d = instance.servers, instance.degree
    if instance.optics != "one_way" or not instance.host_forwarding:
        return "it lists one-way links, over which servers forward"
    if instance.allreduce_groups or len(np.unique(instance.traffic_bytes[~np.eye(n, dtype=np.bool_)])) > 1:
        return "the traffic is not the same for all pairs"
    many = comb(n + d - 1, d)
    if n > _MOST_SERVERS or many > _MOST_SETS:
        return f"{n} servers have {many} sets of {d} neighbours; at most {_MOST_SETS}, and {_MOST_SERVERS} servers"
    return None


def least_hops(n: int, degree: int) -> int:
    """Of all ordered pairs together, by the Moore bound."""
    return n * sum(h * size for h, size in enumerate(level_sizes(n - 1, degree, False), 1))


class Listing:
    """A search for all regular digraphs of n servers with at most ``most`` hops beyond the least.

    Attributes
    ----------
    sets_tried : int
    complete : bool
        Whether all have been listed.
    """

    def __init__(self, n: int, degree: int, most: int) -> None:
        self.n, self.degree, self.most = n, degree, most
        self.sets_tried, self.complete = 0, False

    def digraphs(self, expired: Callable[[], bool]) -> Iterator[tuple[bytes, Ints]]:
        """Each at least once in some numbering: the key of :func:`key_of`, and (n, d) servers that each leads to."""
        n, d = self.n, self.degree
        chosen = list(combinations_with_replacement(range(n), d))
        sets = np.array([sum(1 << w for w in set(each)) for each in chosen], dtype=np.int64)
        copies = np.array([[each.count(w) for w in range(n)] for each in chosen], dtype=np.int64)
        table, state = np.zeros((8, n + 1), dtype=np.int64), np.zeros(4, dtype=np.int64)
        table[0] = -1
        found = np.zeros((_ROOM, n), dtype=np.int64)
        while not state[DONE] and not expired():
            list_digraphs(n, d, self.most, sets, copies, table, state, _BUDGET, found)
            self.sets_tried = int(state[NODES])
            for places in found[: state[FOUND]]:
                yield key_of(copies[places]), np.array([chosen[place] for place in places], dtype=np.int64)
                if expired():
                    return
            state[FOUND] = 0
        self.complete = bool(state[DONE]) and state[DEPTH] < 0


def key_of(arcs: Ints) -> bytes:
    """The (n, n) table of links in canonical numbering: equal keys are copies, as they are the whole table."""
    arcs = np.ascontiguousarray(arcs)
    order = canonical_order(np.zeros(len(arcs), np.uint64), arcs)
    return arcs[np.ix_(order, order)].astype(np.int16).tobytes()
