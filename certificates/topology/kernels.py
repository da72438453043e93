"""Numba kernels that walk through the tree of a certificate and recalculate every bound in whole numbers.

They are called by :mod:`.check` alone, with arrays that it made or checked; what each step proves is said there. All
sums stay below 2^62: bytes times distance are at most 2^30 · 2^28 in all, and so are rings; z times length at most
2^30 · 2^11 · 2^16; prices at most 2^46 on each of 2^11 links, three times, and as much tax, twice.
"""

# mypy: disable-error-code="no-any-return, return-value"

import numpy as np
import numpy.typing as npt

from ddlopt.certificates.topology.format import (
    BRANCH,
    CLOSED,
    ELSEWHERE,
    END,
    FIRST_WEIGHT,
    IMAGE,
    UNCOLOURABLE,
)
from ddlopt.models.kernels import kernel

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

FAR = 2**28
"""Length of a way that there is not; ways of at most 129 arcs are shorter."""
LONGEST_RING = 12
"""Members of a group up to which the shortest ring is found, once all servers have one set left."""

# Answers of the kernel; faults are other numbers.
DONE, MORE, COLOUR = 0, 1, 2
CUT_OFF, SURPLUS, NOT_THERE, NOT_REFUTED, LEFT_OUT, TWICE, LATER, NO_MEANING, DECIDED, NOT_ONE = range(3, 13)
FAULTS = {
    CUT_OFF: "a part ends in the middle of a case",
    SURPLUS: "a part goes on after its case",
    NOT_THERE: "a word names a weight, a server or an image that is not there",
    NOT_REFUTED: "a case is called closed that its weights do not refute",
    LEFT_OUT: "a branching leaves out a neighbour set that is still possible",
    TWICE: "a part, an image, or a neighbour set of a branching comes twice",
    LATER: "a part refers to one that is not before it",
    NO_MEANING: "a word has no meaning here",
    DECIDED: "a branching is on a server that is decided already",
    NOT_ONE: "a design is called uncolourable while several are left",
}
DEPTH, PLACE, BETWEEN, PART, FRAMES, NODES, APPLICATIONS, IMAGES, LEAVING, BUDGET, STATES = range(11)
"""Entries of ``state``: depth in the tree, next word, whether a branching goes on, part that is read, parts to return
to, counts of nodes, applied weights and images, whether the node is to be left first, what may still be done."""


@kernel("b1(b1[:, ::1], i1[:, :, ::1], i8, b1)", nogil=True)
def propagate(allowed: Flags, links_in: npt.NDArray[np.int8], degree: int, duplex: bool) -> bool:
    """Strike off sets that overfill a receiver, or that no set of the other end of a duplex link matches.

    False if a server has no set left.
    """
    n, sets = allowed.shape
    fewest, counts, into = np.empty((n, n), np.int64), np.empty((n, n), np.int64), np.empty(n, np.int64)
    while True:
        for v in range(n):
            into[v] = 0
        for s in range(n):
            some = False
            for v in range(n):
                fewest[s, v], counts[s, v] = degree, 0
            for k in range(sets):
                if allowed[s, k]:
                    some = True
                    for v in range(n):
                        links = np.int64(links_in[s, k, v])
                        fewest[s, v] = min(fewest[s, v], links)
                        counts[s, v] |= np.int64(1) << links
            if not some:
                return False
            for v in range(n):
                into[v] += fewest[s, v]
        struck = False
        for s in range(n):
            for k in range(sets):
                if allowed[s, k]:
                    for v in range(n):
                        links = np.int64(links_in[s, k, v])
                        overfull = links > 0 and into[v] - fewest[s, v] + links > degree
                        if overfull or (duplex and v != s and not (counts[v, s] >> links) & 1):
                            allowed[s, k] = False
                            struck = True
                            break
        if not struck:
            return True


@kernel("i8(b1[::1], i8[:, ::1])", nogil=True)
def shortest_ring(member: Flags, dist: Ints) -> int:
    """Length of the shortest ring: ``least[S, j]`` is that of the paths from the first over all of S that end in j.

    References
    ----------
    M. Held, R. M. Karp, "A dynamic programming approach to sequencing problems", Journal of SIAM 10(1), 1962.
    """
    servers, k = np.empty(len(member), np.int64), 0
    for s in range(len(member)):
        if member[s]:
            servers[k] = s
            k += 1
    least = np.empty((1 << k, k), np.int64)
    for visited in range(1 << k):
        for i in range(k):
            least[visited, i] = 2**40
    least[1, 0] = 0
    for visited in range(1, 1 << k):
        for i in range(k):
            if least[visited, i] < 2**40:
                for j in range(k):
                    if not (visited >> j) & 1:
                        further = visited | (1 << j)
                        least[further, j] = min(least[further, j], least[visited, i] + dist[servers[i], servers[j]])
    shortest = np.int64(2**40)
    for i in range(1, k):
        shortest = min(shortest, least[(1 << k) - 1, i] + dist[servers[i], servers[0]])
    return shortest


@kernel(
    "b1(i8[:, ::1], b1[:, ::1], b1[:, ::1], i8[::1], i8[:, :, ::1], i8[::1], b1[:, ::1], u2[::1], i8[::1])", nogil=True
)
def refuted(
    demand: Ints,
    joined: Flags,
    member: Flags,
    hop: Ints,
    sets: Ints,
    figures: Ints,
    allowed: Flags,
    lengths: npt.NDArray[np.uint16],
    prices: Ints,
) -> bool:
    """Whether the weights refute the case; otherwise they strike off sets. ``figures``: z, links, forwarding, duplex.

    Every server must have a set left.
    """
    n, many, d = sets.shape
    z, most_links, forwarding, duplex = figures[0], figures[1], figures[2] == 1, figures[3] == 1
    length, dist, later = np.empty((n, n), np.int64), np.empty((n, n), np.int64), np.empty((n, n), np.int64)
    near, short = np.empty((n, n), np.int64), np.empty((n, n), np.int64)
    arcs, alone, complete = np.empty((n, n), np.bool_), np.empty(n, np.bool_), True
    for s in range(n):
        left = 0
        for v in range(n):
            arcs[s, v] = False
            dist[s, v] = later[s, v] = near[s, v] = short[s, v] = FAR
        for k in range(many):
            if allowed[s, k]:
                left += 1
                for j in range(d):
                    if sets[s, k, j] >= 0:
                        arcs[s, sets[s, k, j]] = True
        alone[s] = left == 1
        complete = complete and left == 1
        for v in range(n):
            length[s, v] = np.int64(lengths[s * n + v])
            if arcs[s, v]:
                dist[s, v] = length[s, v]
        dist[s, s] = 0
    if forwarding:
        for u in range(n):
            for v in range(n):
                for w in range(n):
                    dist[v, w] = min(dist[v, w], dist[v, u] + dist[u, w])
    for v in range(n):
        for t in range(n):
            if joined[v, t] and dist[v, t] >= FAR:
                return True
            if v == t or (forwarding and alone[v]):
                later[v, t] = dist[v, t]
            elif forwarding:
                for u in range(n):
                    if arcs[v, u] and u != t:
                        later[v, t] = min(later[v, t], length[v, u] + dist[u, t])
    tax = prices[len(prices) - 1]
    total = -tax * most_links
    if not duplex:
        for v in range(n):
            total -= d * prices[v]
    value, least = np.empty((n, many), np.int64), np.empty(n, np.int64)
    gains, by_ring = np.empty(n, np.int64), np.empty(len(hop), np.bool_)
    for g in range(len(hop)):
        members = 0
        for s in range(n):
            members += member[g, s]
        by_ring[g] = complete and members <= LONGEST_RING
    for s in range(n):
        for v in range(n):
            if arcs[s, v]:
                for t in range(n):
                    near[v, t] = min(FAR, length[s, v] + later[v, t])
                    over = forwarding and not alone[v] and arcs[v, t]
                    short[v, t] = length[s, v] + length[v, t] if over else FAR
        least[s] = 2**62
        for k in range(many):
            if not allowed[s, k]:
                continue
            cost, reach, found = np.int64(0), 0, 0
            for j in range(d):
                v = sets[s, k, j]
                if v >= 0:
                    cost += prices[s * n + v if duplex else v] + tax - z * length[s, v]
                    if not alone[v] and (j == 0 or v != sets[s, k, j - 1]):
                        reach += d
            for t in range(n):
                if demand[s, t] > 0:
                    far, soon = FAR, FAR
                    for j in range(d):
                        v = sets[s, k, j]
                        if v >= 0:
                            far, soon = min(far, near[v, t]), min(soon, short[v, t])
                    cost += demand[s, t] * far
                    if soon < far:
                        gains[found] = demand[s, t] * (far - soon)
                        found += 1
            for i in range(min(found, reach)):
                if found > reach:
                    best = i
                    for j in range(i + 1, found):
                        if gains[j] > gains[best]:
                            best = j
                    gains[i], gains[best] = gains[best], gains[i]
                cost -= gains[i]
            for g in range(len(hop)):
                if member[g, s] and not by_ring[g]:
                    nearest = FAR
                    for t in range(n):
                        if member[g, t] and t != s:
                            for j in range(d):
                                v = sets[s, k, j]
                                if v >= 0:
                                    nearest = min(nearest, near[v, t], short[v, t])
                    cost += hop[g] * nearest
            value[s, k] = cost
            least[s] = min(least[s], cost)
        total += least[s]
    for g in range(len(hop)):
        if by_ring[g]:
            total += hop[g] * shortest_ring(member[g], dist)
    if total > 0:
        return True
    for s in range(n):
        for k in range(many):
            if allowed[s, k] and total - least[s] + value[s, k] > 0:
                allowed[s, k] = False
    return False


@kernel(
    "i8(i8[::1], i4[::1], i8[::1], u2[:, ::1], i8[:, ::1], i4[:, ::1], i8[:, ::1], b1[:, ::1], b1[:, ::1], i8[::1],"
    " i8[:, :, ::1], i1[:, :, ::1], i8[::1], b1[:, :, ::1], b1[:, ::1], b1[::1], i8[::1], i8[:, ::1], i8[:, ::1],"
    " b1[::1], i8[::1], i8[:, ::1], b1[::1], i8[:, ::1])",
    nogil=True,
)
def walk(
    state: Ints,
    words: npt.NDArray[np.int32],
    begin: Ints,
    lengths: npt.NDArray[np.uint16],
    prices: Ints,
    images: npt.NDArray[np.int32],
    demand: Ints,
    joined: Flags,
    member: Flags,
    hop: Ints,
    sets: Ints,
    links_in: npt.NDArray[np.int8],
    figures: Ints,
    allowed: Flags,
    covered: Flags,
    closed: Flags,
    row: Ints,
    taken: Ints,
    frames: Ints,
    read: Flags,
    slot: Ints,
    begun: Ints,
    shown: Flags,
    there: Ints,
) -> int:
    """Go on through the tree: ``DONE``, ``MORE`` after so much, ``COLOUR`` for a design to be coloured, or a fault.

    Part p is ``words[begin[p] : begin[p + 1]]``. By depth: ``allowed`` (n + 1, n, K), ``covered`` (n + 1, K) sets of
    the present branching, ``closed``, ``row`` that is branched on, ``taken`` (n + 1, n) sets branched on, -1 elsewhere.
    ``frames`` (parts, 3): part, place and depth to return to. ``read`` (parts,) and ``shown`` (images,): what was met.
    ``begun[slot[p]]`` takes what is decided where part p begins, ``there`` (images, n) where the image is said to be.
    """
    n, many, d = sets.shape
    duplex = figures[3] == 1
    depth, place, part, top = state[DEPTH], state[PLACE], state[PART], state[FRAMES]
    between, leaving, budget = state[BETWEEN] == 1, state[LEAVING] == 1, state[BUDGET]
    answer = -1
    while answer < 0:
        if leaving:
            leaving, between = False, True
            while top > 0 and frames[top - 1, 2] == depth and place == begin[part + 1]:
                top -= 1
                part, place = frames[top, 0], frames[top, 1]
            if top > 0 and frames[top - 1, 2] == depth:
                answer = SURPLUS
            elif depth == 0:
                answer = DONE if place == begin[part + 1] else SURPLUS
            depth -= 1
            continue
        if budget <= 0:
            answer = MORE
            continue
        if place >= begin[part + 1]:
            answer = CUT_OFF
            continue
        word = np.int64(words[place])
        place += 1
        budget -= 1
        if between:
            if word == END:
                for k in range(many):
                    if not closed[depth] and allowed[depth, row[depth], k] and not covered[depth, k]:
                        answer = LEFT_OUT
                leaving = True
            elif not 0 <= word < many:
                answer = NO_MEANING
            elif covered[depth, word]:
                answer = TWICE
            else:
                covered[depth, word] = True
                between = False
                state[NODES] += 1
                closed[depth + 1] = closed[depth] or not allowed[depth, row[depth], word]
                for s in range(n):
                    taken[depth + 1, s] = taken[depth, s]
                taken[depth + 1, row[depth]] = word
                depth += 1
                if not closed[depth]:
                    for s in range(n):
                        for k in range(many):
                            allowed[depth, s, k] = allowed[depth - 1, s, k]
                    for k in range(many):
                        allowed[depth, row[depth - 1], k] = k == word
                    closed[depth] = not propagate(allowed[depth], links_in, d, duplex)
        elif word <= FIRST_WEIGHT:
            weight = FIRST_WEIGHT - word
            if weight >= len(lengths):
                answer = NOT_THERE
            elif not closed[depth]:
                state[APPLICATIONS] += 1
                closed[depth] = refuted(
                    demand, joined, member, hop, sets, figures, allowed[depth], lengths[weight], prices[weight]
                ) or not propagate(allowed[depth], links_in, d, duplex)
        elif word == CLOSED:
            leaving = True
            if not closed[depth]:
                answer = NOT_REFUTED
        elif word == UNCOLOURABLE:
            leaving = True
            if not closed[depth]:
                answer = COLOUR if duplex else NO_MEANING
                for s in range(n):
                    left = 0
                    for k in range(many):
                        left += allowed[depth, s, k]
                    if left != 1:
                        answer = NOT_ONE
        elif word not in (BRANCH, ELSEWHERE, IMAGE):
            answer = NO_MEANING
        elif place >= begin[part + 1]:
            answer = CUT_OFF
        else:
            number = np.int64(words[place])
            place += 1
            if number < 0:
                answer = NOT_THERE
            elif word == BRANCH:
                if number >= n:
                    answer = NOT_THERE
                elif taken[depth, number] >= 0:
                    answer = DECIDED
                else:
                    row[depth] = number
                    for k in range(many):
                        covered[depth, k] = False
                    between = True
            elif word == ELSEWHERE:
                if number >= part:
                    answer = LATER
                elif read[number]:
                    answer = TWICE
                else:
                    read[number] = True
                    if slot[number] >= 0:
                        for s in range(n):
                            begun[slot[number], s] = taken[depth, s]
                    frames[top, 0], frames[top, 1], frames[top, 2] = part, place, depth
                    top += 1
                    part, place = number, begin[number]
            elif number >= len(images):
                answer = NOT_THERE
            elif images[number, 0] >= part:
                answer = LATER
            elif shown[number]:
                answer = TWICE
            else:
                shown[number] = True
                state[IMAGES] += 1
                for s in range(n):
                    there[number, s] = taken[depth, s]
                leaving = True
    state[DEPTH], state[PLACE], state[PART], state[FRAMES] = depth, place, part, top
    state[BETWEEN], state[LEAVING] = between, leaving
    return answer
