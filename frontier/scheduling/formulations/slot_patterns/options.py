"""What one job may do in a slot: workers on servers, a ring among the least ones, and how fast it then is."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ddlopt.models.scheduling.instance import SchedulingInstance, most_workers
from ddlopt.models.scheduling.network import Network
from ddlopt.models.scheduling.pool import Workers
from ddlopt.models.scheduling.rings.rings import Arc, Ring, ring_rate

MOST_OPTIONS = 2_000
"""Of one job, beyond which patterns of all jobs are hopeless to list."""
_MOST_WALKS = 20_000
"""Closed walks through the servers of a job that are compared with each other."""


class TooManyError(Exception):
    """There are more options, rings or patterns than can be listed."""


class Option(NamedTuple):
    """Workers of a job on servers, its ring, and how often that passes over each arc."""

    workers: Workers
    ring: Ring
    passes: tuple[tuple[Arc, int], ...]

    @property
    def width(self) -> int:
        """Workers in all."""
        return sum(count for _, count in self.workers)

    @property
    def split(self) -> bool:
        """Whether they are on several servers."""
        return len(self.workers) > 1


def options(instance: SchedulingInstance, job: int) -> list[Option]:
    """All placements of a job, each with every ring that no other one is within.

    Raises
    ------
    TooManyError
        If there are more than :data:`MOST_OPTIONS`.
    """
    room = most_workers(instance.capacity, instance.demand[job]).tolist()
    widths = instance.jobs[job].widths
    found: list[Option] = []
    for counts in _counts(room, widths[0], widths[-1]):
        workers = tuple((server, count) for server, count in enumerate(counts) if count)
        if instance.needs_rings and len(workers) > 1:
            assert instance.network is not None
            rings = least_rings(instance.network, tuple(server for server, _ in workers))
            # Where the ring takes no bandwidth, one is as good as any other.
            rings = rings if ring_rate(instance.jobs[job]) else rings[:1]
            found += [Option(workers, ring, passes) for ring, passes in rings]
        else:
            found.append(Option(workers, (), ()))
        if len(found) > MOST_OPTIONS:
            raise TooManyError(f"jobs[{job}] '{instance.jobs[job].name}' has more than {MOST_OPTIONS} placements")
    return found


def _counts(room: Sequence[int], least: int, most: int) -> Iterator[tuple[int, ...]]:
    """Workers by server, of which there are between least and most."""
    if not room:
        if least <= 0:
            yield ()
        return
    for count in range(min(room[0], most) + 1):
        for rest in _counts(room[1:], least - count, most - count):
            yield (count, *rest)


@lru_cache(maxsize=4096)
def least_rings(network: Network, servers: tuple[int, ...]) -> list[tuple[Ring, tuple[tuple[Arc, int], ...]]]:
    """Closed walks through the servers with their passes over arcs, but those that pass over more than another does.

    Cut where it first visits each server, a closed walk becomes paths between servers, and leaving out a loop of such a
    path leaves a closed walk through the same servers with fewer passes.

    Raises
    ------
    TooManyError
        If there are too many closed walks to compare.
    """
    found: dict[frozenset[tuple[Arc, int]], tuple[Ring, Counter[Arc]]] = {}
    paths = {(u, v): list(_simple_paths(network, u, v)) for u, v in itertools.permutations(servers, 2)}
    walks = 0
    for order in itertools.permutations(servers[1:]):
        stops = (servers[0], *order, servers[0])
        for hops in itertools.product(*(paths[pair] for pair in itertools.pairwise(stops))):
            walks += 1
            if walks > _MOST_WALKS:
                raise TooManyError(f"there are more than {_MOST_WALKS} closed walks through servers {servers}")
            walk = tuple(node for hop in hops for node in hop[:-1])
            passes = Counter(itertools.pairwise((*walk, walk[0])))
            found.setdefault(frozenset(passes.items()), (walk, passes))
    each: list[tuple[Ring, Counter[Arc]]] = []
    for walk, passes in sorted(found.values(), key=lambda pair: (pair[1].total(), pair[0])):
        if not any(less <= passes for _, less in each):
            each.append((walk, passes))
    return [(walk, tuple(sorted(passes.items()))) for walk, passes in each]


def _simple_paths(network: Network, u: int, v: int, before: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    if u == v:
        yield (*before, v)
    elif u not in before:
        for node in network.neighbours.get(u, ()):
            yield from _simple_paths(network, node, v, (*before, u))
