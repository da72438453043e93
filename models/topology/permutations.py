"""Ring permutations: the rings that number theory gives for free (TopoOpt's TotientPerms).

In a group of k members numbered 0..k-1 the map ``a -> a + p (mod k)`` is one cycle through all members exactly when
``gcd(p, k) = 1``; different p < k give different rings, so that there are totient(k) of them. p is the *generator*.

References
----------
W. Wang et al., "TopoOpt: Co-optimizing network topology and parallelization strategy for distributed training jobs",
NSDI 2023, Theorem 1 and Algorithm 2.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import gcd, isqrt

import numpy as np


def totients(k: int) -> tuple[int, ...]:
    """Generators of all totient(k) rings of k members: 1 <= p < k with gcd(p, k) = 1, increasing.

    Raises
    ------
    ValueError
        If k < 2.

    Examples
    --------
    >>> totients(12)
    (1, 5, 7, 11)
    """
    if k < 2:
        raise ValueError(f"a ring needs at least 2 members, got k = {k}")
    p = np.arange(1, k)
    return tuple(p[np.gcd(p, k) == 1].tolist())


def totient_perms(k: int, primes_only: bool = False) -> tuple[int, ...]:
    """Candidate ring generators of a group of k members: Algorithm 2 of TopoOpt.

    With ``primes_only`` only 1 and the primes below k that do not divide k are kept, O(k / ln k) of them.

    Examples
    --------
    >>> totient_perms(16, primes_only=True)
    (1, 3, 5, 7, 11, 13)
    """
    if not primes_only or k < 2:
        return totients(k)
    return (1, *(p for p in _primes_below(k) if k % p))


def ring(members: Sequence[int], p: int) -> tuple[int, ...]:
    """``members`` in the order in which the ring of generator p visits them, the first member first.

    Raises
    ------
    ValueError
        If gcd(p, k) > 1, because the walk would then close before it has visited all k members.

    Examples
    --------
    >>> ring((0, 4, 8, 12), 3)
    (0, 12, 8, 4)
    """
    k = len(members)
    if k < 2 or gcd(p, k) != 1:
        raise ValueError(f"+{p} is not a ring on {k} members: gcd({p}, {k}) = {gcd(p, k)}; use one of totients({k})")
    return tuple(members[a * p % k] for a in range(k))


def coset(servers: int, size: int, start: int) -> tuple[int, ...]:
    """Servers ``start + a * servers / size``, increasing: a coset of the subgroup of ``size`` elements of Z_servers.

    Raises
    ------
    ValueError
        If ``size`` does not divide ``servers``.
    """
    if size < 1 or servers % size:
        raise ValueError(f"{servers} servers have no subgroup of {size}; use one of {_divisors(servers)}")
    stride = servers // size
    return tuple(range(start % stride, servers, stride))


def is_coset(members: Sequence[int], servers: int) -> bool:
    """Whether the members are equally spaced around Z_servers, in increasing order."""
    size = len(members)
    return size > 0 and servers % size == 0 and tuple(members) == coset(servers, size, members[0])


def _divisors(n: int) -> list[int]:
    """All divisors, in order; SymPy has them too, and takes longer to import than to count to n."""
    return [k for k in range(1, n + 1) if n % k == 0]


def _primes_below(k: int) -> list[int]:
    return [p for p in range(2, k) if all(p % q for q in range(2, isqrt(p) + 1))]


def hops_of(order: Sequence[int]) -> list[tuple[int, int]]:
    """The (member, successor) pairs of a ring."""
    return [*pairwise(order), (order[-1], order[0])]
