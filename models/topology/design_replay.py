"""Numba kernels that replay a certificate of the branch and bound; :mod:`.design_certificate` states the mathematics.

Written for being read, not for speed, and independent of the search: the two share the integers of
:class:`~ddlopt.models.topology.neighbour_sets.Task` and nothing else.
"""

# mypy: disable-error-code="no-any-return, return-value"

import numpy as np
from numba import njit

from ddlopt.models.topology.neighbour_sets import (
    ALIKE,
    BRANCH,
    CLOSED,
    ELSEWHERE,
    END,
    FAR,
    MOST_RING,
    UNCOLOURABLE,
    WEIGHTS,
    Flags,
    Ints,
    Task,
)


@njit(cache=True)
def replay(
    task: Task,
    z: int,
    words: Ints,
    parts: Ints,
    lengths: Ints,
    prices: Ints,
    alike: Ints,
    skip: Flags,
    decided: Ints,
    images: Ints,
    leaves: Ints,
    counts: Ints,
) -> int:
    """Walk through the tree; 0, or the number of the fault found.

    ``decided`` (parts, n) and ``images`` (entries, n) take the sets branched on where a part, or an image, begins.
    ``counts``: nodes, applications, images, uncolourable designs, present word.
    """
    n, sets, _ = task.options.shape
    allowed, covered = np.ones((n + 1, n, sets), np.bool_), np.zeros((n + 1, sets), np.bool_)
    taken, row, back = np.full((n + 1, n), -1, np.int64), np.zeros(n + 1, np.int64), np.full(n + 1, -1, np.int64)
    closed = np.zeros(n + 1, np.bool_)
    decided[0] = -1
    depth, place, entering, between = 0, parts[0], True, False
    while depth >= 0:
        counts[4] = place
        if place >= len(words):
            return 1
        word = words[place]
        place += 1
        leaving = False
        if entering:
            counts[0] += 1
            # What lies below a refuted node is refuted with it.
            closed[depth] = (depth > 0 and closed[depth - 1]) or not _consistent(task, allowed[depth])
            back[depth] = -1
            entering = False
        if between:
            between = False
            if word == END:
                for k in range(sets):
                    if allowed[depth, row[depth], k] and not covered[depth, k] and not closed[depth]:
                        return 4
                leaving = True
            elif 0 <= word < sets:
                covered[depth, word] = True
                allowed[depth + 1] = allowed[depth]
                allowed[depth + 1, row[depth], :] = False
                allowed[depth + 1, row[depth], word] = True
                taken[depth + 1] = taken[depth]
                taken[depth + 1, row[depth]] = word
                depth += 1
                entering = True
                continue
            else:
                return 6
        elif word <= WEIGHTS:
            if WEIGHTS - word >= len(lengths):
                return 2
            if not closed[depth]:
                counts[1] += 1
                closed[depth] = _refuted(task, z, allowed[depth], lengths[WEIGHTS - word], prices[WEIGHTS - word])
                if not closed[depth]:
                    closed[depth] = not _consistent(task, allowed[depth])
            continue
        elif word == CLOSED:
            if not closed[depth]:
                return 3
            leaving = True
        elif place >= len(words) and word != UNCOLOURABLE:
            return 1
        elif word == BRANCH:
            row[depth] = words[place]
            place += 1
            if not 0 <= row[depth] < n:
                return 2
            if taken[depth, row[depth]] >= 0:
                return 7
            covered[depth] = False
            between = True
            continue
        elif word == ELSEWHERE:
            part = words[place]
            place += 1
            if not 0 < part < len(parts) or not 0 <= parts[part] < len(words):
                return 2
            if decided[part, 0] != -2:
                return 5
            decided[part] = taken[depth]
            if skip[part]:
                leaving = True
            else:
                if back[depth] < 0:
                    back[depth] = place
                place = parts[part]
                continue
        elif word == ALIKE:
            entry = words[place]
            place += 1
            if not 0 <= entry < len(alike):
                return 2
            if images[entry, 0] != -2:
                return 5
            images[entry] = taken[depth]
            counts[2] += 1
            leaving = True
        elif word == UNCOLOURABLE:
            for s in range(n):
                if allowed[depth, s].sum() != 1:
                    if not closed[depth]:
                        return 8
                else:
                    leaves[counts[3], s] = np.argmax(allowed[depth, s])
            if not closed[depth]:
                counts[3] += 1
            leaving = True
        else:
            return 6
        if leaving:
            if back[depth] >= 0:
                place = back[depth]
            depth -= 1
            between = True
    return 0


@njit(cache=True)
def _links(options: Ints, s: int, k: int, v: int) -> int:
    """Links from s to v in the k-th set of s."""
    number = 0
    for j in range(options.shape[2]):
        number += options[s, k, j] == v
    return number


@njit(cache=True)
def _consistent(task: Task, allowed: Flags) -> bool:
    """Strike off what degrees and the two directions of duplex links forbid; False if a server has no set left."""
    n, sets, _ = task.options.shape
    while True:
        fewest, seen = np.full((n, n), task.degree), np.zeros((n, n, task.degree + 1), np.bool_)
        for s in range(n):
            if not allowed[s].any():
                return False
            for k in range(sets):
                if allowed[s, k]:
                    for v in range(n):
                        links = _links(task.options, s, k, v)
                        fewest[s, v] = min(fewest[s, v], links)
                        seen[s, v, links] = True
        into, some = fewest.sum(axis=0), False
        for s in range(n):
            for k in range(sets):
                if allowed[s, k]:
                    for v in range(n):
                        links = _links(task.options, s, k, v)
                        overfull = links > 0 and into[v] - fewest[s, v] + links > task.degree
                        if overfull or (task.duplex and v != s and not seen[v, s, links]):
                            allowed[s, k] = False
                            some = True
        if not some:
            return True


@njit(cache=True)
def _refuted(task: Task, z: int, allowed: Flags, lengths: Ints, prices: Ints) -> bool:
    """Whether the weights refute the node; strikes off the sets that they rule out."""
    n, sets, d = task.options.shape
    arcs, alone = np.zeros((n, n), np.bool_), np.zeros(n, np.bool_)
    for s in range(n):
        alone[s] = allowed[s].sum() == 1
        for k in range(sets):
            if allowed[s, k]:
                for v in task.options[s, k]:
                    if v >= 0:
                        arcs[s, v] = True
    dist = _distances(arcs, lengths, task.forwarding)
    if (task.wanted & (dist >= FAR)).any():
        return True
    tax, value, least = prices[n * n], np.zeros((n, sets), np.int64), np.full(n, 2**62)
    total = -tax * task.ends
    if not task.duplex:
        for v in range(n):
            # In row v - 1 or so: the price of an arc into v is the same from all other servers.
            total -= d * prices[((v + 1) % n) * n + v]
    for s in range(n):
        far, short = _ways(s, task, arcs, alone, dist, lengths)
        for k in range(sets):
            if allowed[s, k]:
                value[s, k] = _value(s, task.options[s, k], task, z, alone, far, short, lengths, prices, tax)
                least[s] = min(least[s], value[s, k])
        total += least[s]
    if alone.all():
        for g in range(len(task.hop)):
            if task.member[g].sum() <= MOST_RING:
                total += task.hop[g] * _shortest_ring(np.flatnonzero(task.member[g]), dist)
    if total > 0:
        return True
    for s in range(n):
        for k in range(sets):
            if allowed[s, k] and total - least[s] + value[s, k] > 0:
                allowed[s, k] = False
    return False


@njit(cache=True)
def _distances(arcs: Flags, lengths: Ints, forwarding: bool) -> Ints:
    """(n, n) shortest lengths over ``arcs``; ``FAR`` where there is no way."""
    n = len(arcs)
    dist = np.where(arcs, lengths, FAR)
    for v in range(n):
        dist[v, v] = 0
    if forwarding:
        for u in range(n):
            for v in range(n):
                for w in range(n):
                    dist[v, w] = min(dist[v, w], dist[v, u] + dist[u, w])
    return dist


@njit(cache=True)
def _shortest_ring(members: Ints, dist: Ints) -> int:
    """Length of the shortest ring: ``reach[S, j]`` is the shortest path from the first over all of S that ends in j."""
    k = len(members)
    reach = np.full((2**k, k), 2**40)
    reach[1, 0] = 0
    for visited in range(1, 2**k):
        for j in range(k):
            for i in range(k):
                if i != j and visited & (1 << i) and visited & (1 << j):
                    before = reach[visited - (1 << j), i] + dist[members[i], members[j]]
                    reach[visited, j] = min(reach[visited, j], before)
    shortest = np.int64(2**40)
    for i in range(1, k):
        shortest = min(shortest, reach[2**k - 1, i] + dist[members[i], members[0]])
    return shortest


@njit(cache=True)
def _ways(s: int, task: Task, arcs: Flags, alone: Flags, dist: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """(n, n) lengths from s over its neighbour v to t: on the ways that cannot be short, and on the short one.

    Short is one arc from v to t, where v is undecided.
    """
    n = len(arcs)
    far, short = np.full((n, n), FAR), np.full((n, n), FAR)
    for v in range(n):
        if not arcs[s, v]:
            continue
        far[v, v] = lengths[s, v]
        for t in range(n):
            if t == v or not task.forwarding:
                continue
            if alone[v]:
                far[v, t] = min(FAR, lengths[s, v] + dist[v, t])
                continue
            for u in range(n):
                if u != t and arcs[v, u]:
                    far[v, t] = min(far[v, t], lengths[s, v] + lengths[v, u] + dist[u, t])
            if arcs[v, t]:
                short[v, t] = lengths[s, v] + lengths[v, t]
    return far, short


@njit(cache=True)
def _value(
    s: int,
    ends: Ints,
    task: Task,
    z: int,
    alone: Flags,
    far: Ints,
    short: Ints,
    lengths: Ints,
    prices: Ints,
    tax: int,
) -> int:
    """What is called V_s(N) at the top of this file."""
    n = len(far)
    neighbours = np.unique(ends[ends >= 0])
    reach = 0
    for v in neighbours:
        reach += 0 if alone[v] else task.degree
    value, gains = 0, np.zeros(n, np.int64)
    for t in range(n):
        long, near = FAR, FAR
        for v in neighbours:
            long, near = min(long, far[v, t]), min(near, short[v, t])
        value += task.bytes[s, t] * long
        gains[t] = task.bytes[s, t] * max(0, long - near)
    value -= np.sort(gains)[::-1][:reach].sum()
    for g in range(len(task.hop)):
        ring = alone.all() and task.member[g].sum() <= MOST_RING
        if task.member[g, s] and not ring:
            nearest = FAR
            for t in range(n):
                if task.member[g, t] and t != s:
                    for v in neighbours:
                        nearest = min(nearest, far[v, t], short[v, t])
            value += task.hop[g] * nearest
    for v in ends:
        if v >= 0:
            value += prices[s * n + v] + tax - z * lengths[s, v]
    return value
