"""A program's answer as links, rings and routes of all servers."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from ddlopt.frontier.topology.symmetric_rings.orbit_program import Column, OrbitProgram
from ddlopt.frontier.topology.symmetric_rings.sight import Ints
from ddlopt.models.topology import Path, TopologyInstance
from ddlopt.solvers.topology.balance.balance import Balance, Job
from ddlopt.solvers.topology.balance.path_kernels import Floats, capacities

UsedRing = tuple[int, tuple[int, ...], float, tuple[Path, ...]]
"""Group, members in ring order, share, and a path for each hop, as of :class:`.Balance`."""

NEGLIGIBLE = 1e-9
"""Shares up to which a ring is not used."""


def balance_of(program: OrbitProgram) -> Balance:
    """Links, all translates of the rings and routes in use, and lengths of the links."""
    sight, orbits = program.sight, program.orbits
    instance, group = sight.instance, sight.group
    heads = _heads(program)
    n, d = heads.shape
    length = np.full((n, d), np.inf)
    for origin, element, each in zip(program.origin, program.element, program.length.tolist(), strict=True):
        tails = np.flatnonzero(orbits.label == origin)
        length[tails, (heads[tails] == group.translations[element, tails][:, None]).argmax(axis=1)] = each
    flow = np.zeros((n, n, d))
    rings: dict[tuple[int, tuple[int, ...], tuple[Path, ...]], float] = defaultdict(float)
    for column, share in zip(program.columns, program.shares.tolist(), strict=True):
        if share <= NEGLIGIBLE:
            continue
        if column.row < len(orbits.wanted):
            for key in _translates(program, column):
                rings[key] += share
            continue
        orbit, offset = column.ring.tolist()
        for source in np.flatnonzero(orbits.label == orbit).tolist():
            target = int(group.translations[source, offset])
            for tail, head in pairwise(program.path(column.before, source, target)):
                port = int((heads[tail] == head).argmax())
                flow[source, tail, port] += share * instance.traffic_bytes[source, target]
    return routed(instance, heads, flow, rings, length)


def routed(
    instance: TopologyInstance,
    heads: Ints,
    flow: Floats,
    shares: Mapping[tuple[int, tuple[int, ...], tuple[Path, ...]], float],
    length: Floats,
) -> Balance:
    """Links (n, d) with flows (n, n, d), shares of rings by (group, members, paths) and lengths (n, d) of the links."""
    n, d = heads.shape
    kept = whole([(number, members, share, paths) for (number, members, paths), share in shares.items()])
    loads = flow.sum(axis=0)
    for number, _, share, paths in kept:
        for path in paths:
            for tail, head in pairwise(path):
                loads[tail, int((heads[tail] == head).argmax())] += share * instance.allreduce_groups[number].hop_bytes
    capacity = capacities(heads)
    used = capacity > 0
    load = float((loads.ravel()[used] / capacity[used]).max())
    return Balance(Job(instance), heads, load, flow.reshape(n, n * d), kept, length.ravel())


def _translates(program: OrbitProgram, column: Column) -> Iterator[tuple[int, tuple[int, ...], tuple[Path, ...]]]:
    """All translates of one ring, for each group of these members: (group, members, paths), the least server first."""
    sight, orbits = program.sight, program.orbits
    numbers: dict[frozenset[int], list[int]] = defaultdict(list)
    for number in sight.families[orbits.wanted[column.row].family].numbers:
        numbers[frozenset(sight.instance.allreduce_groups[number].members)].append(number)
    for move in orbits.moves:
        members = sight.group.translations[move, column.ring].tolist()
        begin = members.index(min(members))
        turned = members[begin:] + members[:begin]
        hops = zip(turned, turned[1:] + turned[:1], strict=True)
        paths = tuple(program.path(column.before, s, t) for s, t in hops)
        for number in numbers[frozenset(members)]:
            yield number, tuple(turned), paths


def whole(rings: Sequence[UsedRing]) -> tuple[UsedRing, ...]:
    """The same rings with shares of every group that sum to one."""
    total: dict[int, float] = defaultdict(float)
    for number, _, share, _ in rings:
        total[number] += share
    return tuple((number, members, share / total[number], paths) for number, members, share, paths in rings)


def _heads(program: OrbitProgram) -> Ints:
    """(n, d) table of link ends."""
    move, orbits = program.orbits.group.translations, program.orbits
    ends: list[list[Ints]] = [[] for _ in orbits.first]
    for orbit, element, count in zip(program.origin, program.element, program.counts.tolist(), strict=True):
        ends[orbit] += [move[element]] * count
    return np.ascontiguousarray(np.array(ends)[orbits.label, :, np.arange(orbits.group.order)])
