"""Blocks of servers that may be symmetric, each with a permutation that takes it to all others."""

from collections.abc import Iterator

from ddlopt.models.codesign.tables import Tables


def blocks_of(tables: Tables, most_servers: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Groups of consecutive servers or of every g-th one, with a permutation that goes round all such blocks.

    They have 2 to ``most_servers`` servers; large ones first.
    """
    n, groups = tables.instance.servers, set(tables.groups)
    for size in range(min(most_servers, n // 2), 1, -1):
        stride = n // size
        if n % size == 0 and tuple(range(size)) in groups:
            yield tuple(range(size)), tuple((s + size) % n for s in range(n))
        if n % size == 0 and tuple(range(0, n, stride)) in groups:
            yield tuple(range(0, n, stride)), tuple(s - s % stride + (s + 1) % stride for s in range(n))
