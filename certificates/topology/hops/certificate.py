"""The file of a proof for all-to-all traffic by listing links with few hops, read as if an enemy had written it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.certificates.own import OwnCertificate
from ddlopt.certificates.topology.exact_bounds import exact_iteration_s
from ddlopt.certificates.topology.hops.listing import Listing, bytes_beyond, bytes_times_length, key_of, not_listed
from ddlopt.models.errors import NotApplicableError, RefutedError
from ddlopt.models.topology.instance import TopologyInstance

Ints = npt.NDArray[np.int64]

LONGEST = 2**20
"""Of an arc: paths of all servers are then far below what 64 bits have."""
_MOST_EXCESS = 10**6
"""Far above what can be listed."""


@dataclass(frozen=True)
class HopCertificate(OwnCertificate):
    r"""A proof that all-to-all traffic, and all-reduces beside it, take at least ``claim`` seconds over any links.

    With :math:`H_0` hops of all pairs by the Moore bound, a design of more than :math:`H_0 + e` hops loads a link with
    what :func:`~ddlopt.certificates.topology.hops.listing.bytes_beyond` says. The checker lists all others itself, up
    to their numbering (:class:`~ddlopt.certificates.topology.hops.listing.Listing`), and finds each in the file, with
    lengths of its links: over these, nothing travels less than along shortest paths, and no ring of all servers, in
    which each sends c bytes, is shorter than the shortest, of length R. So some link carries at least

    .. math::
        \Bigl( \tau \sum_{s \ne t} \mathrm{dist}(s, t) + c R \Bigr) \Big/ \sum_{uv} \mathrm{length}_{uv} .

    Parameters
    ----------
    excess : int
        e.
    heads : list of list of list of int
        Of each digraph the servers that each server's links lead to.
    lengths : list of list of list of int
        Of these links.
    """

    format: ClassVar[str] = "ddlopt hop certificate"
    kind: ClassVar[str] = "hops"
    says: ClassVar[str] = "of the instance, by all links with few hops and whole lengths of their links"

    excess: int
    heads: list[list[list[int]]]
    lengths: list[list[list[int]]]

    @classmethod
    def fault(cls, data: dict[str, Any]) -> str | None:
        """Whole numbers, none negative."""
        if type(data["excess"]) is not int or not 0 <= data["excess"] <= _MOST_EXCESS:
            return f"excess is a whole number of 0 to {_MOST_EXCESS}"
        for name in ("heads", "lengths"):
            if not isinstance(data[name], list) or not all(map(_is_table, data[name])):
                return f"{name} has a list for each server of each digraph, of whole numbers of 0 to {LONGEST}"
        return None

    def check(self, instance: TopologyInstance, expired: Callable[[], bool]) -> int:
        """Raise RefutedError if the claim does not follow; how many digraphs were listed.

        Raises
        ------
        NotApplicableError
            If links of the instance are not listed.
        """
        reason = not_listed(instance)
        if reason is not None:
            raise NotApplicableError(f"hops are no proof for '{instance.name}': {reason}")
        n, d = instance.servers, instance.degree
        if len(self.heads) != len(self.lengths):
            raise RefutedError(f"{len(self.heads)} digraphs have lengths for {len(self.lengths)}")
        least, known = bytes_beyond(instance, self.excess), set()
        tables = zip(self._tables("heads", n, d), self._tables("lengths", n, d), strict=True)
        for place, (heads, lengths) in enumerate(tables):
            if expired():
                return 0
            key, load = _load(instance, place, heads, lengths)
            known.add(key)
            least = min(least, load)
        proven = exact_iteration_s(instance, least)
        if proven < self.claim:
            told = f"{float(proven):.12g} s, less than the claim of {float(self.claim):.12g}"
            raise RefutedError(f"the digraphs prove for '{instance.name}' no more than {told}")
        cases = 0
        for key, _ in Listing(n, d, self.excess, instance.optics == "duplex").digraphs(expired):
            cases += 1
            if key not in known:
                raise RefutedError(f"a digraph with at most {self.excess} excess hops is not among those of the proof")
        return cases

    def _tables(self, name: str, n: int, d: int) -> Iterator[Ints]:
        for place, rows in enumerate(getattr(self, name)):
            if len(rows) != n or any(len(row) != d for row in rows):
                raise RefutedError(f"{name}[{place}] has other sizes than {n} servers with {d} links each")
            yield np.array(rows, dtype=np.int64)


def _load(instance: TopologyInstance, place: int, heads: Ints, lengths: Ints) -> tuple[bytes, Fraction]:
    """The key of a digraph, and bytes of its busiest link at least."""
    n, d = heads.shape
    if heads.max() >= n:
        raise RefutedError(f"heads[{place}] leads to server {heads.max()}, but there are {n}")
    far = n * LONGEST  # no path is longer, as none visits a server twice
    arcs, table = np.zeros((n, n), dtype=np.int64), np.full((n, n), far)
    tails = np.repeat(np.arange(n), d)
    np.add.at(arcs, (tails, heads.ravel()), 1)
    np.minimum.at(table, (tails, heads.ravel()), lengths.ravel())
    np.fill_diagonal(table, 0)
    for middle in range(n):
        table = np.minimum(table, table[:, middle, None] + table[middle])
    total = int(lengths.sum())
    return key_of(arcs), bytes_times_length(instance, table) / total if total else Fraction(0)


def _is_table(value: Any) -> bool:
    rows = isinstance(value, list) and all(isinstance(row, list) for row in value)
    return rows and all(type(each) is int and 0 <= each <= LONGEST for row in value for each in row)
