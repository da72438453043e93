"""What a byte reduced or moved asks of servers and links, whatever the links, rings and routes are."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import cast
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from ddlopt.models.codesign.tables import Floats, Tables
from ddlopt.models.topology.hop_bytes import least_hop_bytes

_DIGITS = 12
"""In which parts of patterns, and rows of loads, are compared, relative to the largest."""


@dataclass(frozen=True, eq=False)
class Demand:
    """Figures per byte reduced in each group of a set (the first columns), or of a pattern (the others).

    Parameters
    ----------
    degree, capacity : int
        Links out of a server; directions of links that there are at most: n d, or with duplex optics 2⌊n/2⌋ d, as a
        plane is a matching.
    sent, received : (n, sets + patterns) array
        Bytes by server. In every ring of a group of k each member sends 2(k-1)/k bytes and receives as many.
    hop_bytes : (sets + patterns,) array
        Bytes times the hops that they need at least, see :func:`~ddlopt.models.topology.hop_bytes.least_hop_bytes`.
    unreachable : (sets + patterns,) bool array
        What no links serve, because a server would have to reach more others than it can.
    """

    degree: int
    capacity: int
    sent: Floats
    received: Floats
    hop_bytes: Floats
    unreachable: npt.NDArray[np.bool_]

    @cached_property
    def server_rows(self) -> Floats:
        """(rows, sets + patterns) bytes on each link of a server that may be the busiest, sending or receiving."""
        return heaviest_rows(np.concatenate([self.sent, self.received])) / self.degree

    @cached_property
    def weights(self) -> Floats:
        """(sets + patterns,) bytes that the busiest server sends or receives of one; 1 where nobody has any."""
        most = np.maximum(self.sent.max(axis=0, initial=0.0), self.received.max(axis=0, initial=0.0))
        return np.where(most > 0, most, 1.0)

    def least_bytes(self, figures: Floats) -> float:
        """Bytes that the busiest link carries at least, given (sets + patterns,) bytes."""
        sent, received = self.sent @ figures, self.received @ figures
        hops = float(self.hop_bytes @ figures) + float(np.maximum(received - sent, 0).sum())
        return max(float(sent.max()) / self.degree, float(received.max()) / self.degree, hops / self.capacity)


_KNOWN: WeakKeyDictionary[Tables, Demand] = WeakKeyDictionary()


def demand_of(tables: Tables) -> Demand:
    """The demand of an instance, calculated once."""
    if tables not in _KNOWN:
        _KNOWN[tables] = _calculated(tables)
    return _KNOWN[tables]


def ring_factor(members: int) -> float:
    """Bytes that each member of a ring sends over a hop for each byte reduced."""
    return 2 * (members - 1) / members


def _calculated(tables: Tables) -> Demand:
    instance = tables.instance
    n, d, duplex = instance.servers, instance.degree, instance.optics == "duplex"
    rings = np.zeros((n, len(tables.groups_of)))
    for place, groups in enumerate(tables.groups_of):
        for group in groups:
            members = tables.groups[group]
            rings[list(members), place] = ring_factor(len(members))
    patterns = tables.patterns
    sent = np.column_stack([rings, *(pattern.sent for pattern in patterns)])
    received = np.column_stack([rings, *(pattern.received for pattern in patterns)])
    # A single matching of duplex links joins pairs and nothing else.
    pairs = duplex and d == 1
    reach = 1 if pairs else n if instance.host_forwarding else d
    sizes = [max((len(tables.groups[group]) for group in groups), default=0) for groups in tables.groups_of]
    crowded = [pairs and size > 2 for size in sizes]
    crowded += [max(_partners(pattern.unit), _partners(pattern.unit.T.tocsr())) > reach for pattern in patterns]
    return Demand(
        degree=d,
        capacity=d * (2 * (n // 2) if duplex else n),
        sent=sent,
        received=received,
        hop_bytes=np.array([*rings.sum(axis=0), *_least_hops((each.unit for each in patterns), d, duplex)]),
        unreachable=np.array(crowded, dtype=bool),
    )


def _partners(unit: csr_array) -> int:
    """Most servers that one of them sends to."""
    return int(np.diff(cast(csr_array, unit).indptr).max(initial=0))


def _least_hops(units: Iterable[csr_array], degree: int, duplex: bool) -> list[float]:
    """Least bytes times hops of every pattern, found once for patterns that are shifts of each other."""
    known: dict[tuple[object, ...], float] = {}
    found: list[float] = []
    for unit in units:
        key = _seen_from_its_busiest(unit)
        if key not in known:
            crowded = max(_partners(unit), _partners(unit.T.tocsr())) > degree
            known[key] = least_hop_bytes(unit.toarray(), degree, duplex) if crowded else float(unit.sum())
        found.append(known[key])
    return found


def _seen_from_its_busiest(unit: csr_array) -> tuple[bytes, bytes]:
    """The entries of a pattern, when servers are renumbered x - s with s the server that sends most."""
    n = unit.shape[0]
    busiest = int(np.argmax(np.round(unit.sum(axis=1), _DIGITS)))
    entries = unit.tocoo()
    place = (entries.row - busiest) % n * n + (entries.col - busiest) % n
    order = np.argsort(place)
    return place[order].tobytes(), np.round(entries.data[order], _DIGITS).tobytes()


def heaviest_rows(loads: Floats) -> Floats:
    """Rows of a non-negative matrix that no other row exceeds everywhere, each once; none that are all zero."""
    largest = loads.max(initial=0.0)
    if not largest > 0:
        return np.zeros((0, loads.shape[1]))
    _, first = np.unique(np.round(loads / largest, _DIGITS), axis=0, return_index=True)
    rows = loads[first]
    rows = rows[np.argsort(-rows.sum(axis=1), kind="stable")]
    kept = np.zeros_like(rows)
    count = 0
    for row in rows:
        if row.any() and not (kept[:count] >= row).all(axis=1).any():
            kept[count] = row
            count += 1
    return kept[:count]
