"""The optimum of tiny instances by trying all links, with one linear program each for rings and routes."""

import itertools
from functools import lru_cache
from math import inf

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import linprog
from scipy.sparse.csgraph import shortest_path

LARGEST_GROUP = 5


def brute_force(instance):
    """Least bytes that the busiest link can carry, over all links, rings and routes; inf if there is no design.

    The most promising links come first, and those that cannot be better than the best ones are not routed.
    """
    rings, best = list(_rings(instance)), inf
    bounded = ((_least_congestion(instance, links), links) for links in link_choices(instance) if links)
    for least, links in sorted(bounded, key=lambda each: each[0]):
        if least >= best:
            break
        best = min(best, _congestion(instance, links, rings))
    return best


def routed_congestion(instance, links):
    """Least bytes on the busiest of given links; inf if they are too few."""
    if not links or (instance.host_forwarding and _volume_bound(instance, links) == inf):
        return inf
    return _congestion(instance, links, list(_rings(instance)))


def link_choices(instance):
    """Links by ordered pair, for every choice to which no link can be added (one more link never hurts)."""
    return _link_choices(instance.servers, instance.degree, instance.most_links_of_a_pair, instance.optics == "duplex")


@lru_cache(maxsize=20)
def _link_choices(n, d, most, duplex):
    """Of all instances of a size; nobody may change them."""
    pairs = list(itertools.combinations(range(n), 2) if duplex else itertools.permutations(range(n), 2))
    found = set()

    def extend(chosen, out, into):
        if len(chosen) == len(pairs):
            if not duplex or _colourable(pairs, chosen, d):
                found.add(tuple(chosen))
            return
        i, j = pairs[len(chosen)]
        ends = (out, out) if duplex else (out, into)
        for count in range(min(most, d - ends[0][i], d - ends[1][j]) + 1):
            ends[0][i] += count
            ends[1][j] += count
            extend([*chosen, count], out, into)
            ends[0][i] -= count
            ends[1][j] -= count

    extend([], [0] * n, [0] * n)
    choices = []
    for chosen in sorted(found):
        larger = ((*chosen[:k], chosen[k] + 1, *chosen[k + 1 :]) for k in range(len(pairs)))
        if not any(one in found for one in larger):
            counts = {pair: count for pair, count in zip(pairs, chosen, strict=True) if count}
            choices.append(counts | ({(j, i): count for (i, j), count in counts.items()} if duplex else {}))
    return tuple(choices)


def _colourable(pairs, counts, colours):
    """Whether each link can get a colour that no other link at its ends has."""
    links = [pair for pair, count in zip(pairs, counts, strict=True) for _ in range(count)]

    def colour(place, used):
        if place == len(links):
            return True
        i, j = links[place]
        free = [c for c in range(colours) if (i, c) not in used and (j, c) not in used]
        return any(colour(place + 1, used | {(i, c), (j, c)}) for c in free)

    return colour(0, frozenset())


def _rings(instance):
    """(group, pairs with the bytes that a hop sends) of every Hamiltonian cycle of every group."""
    for k, group in enumerate(instance.allreduce_groups):
        assert len(group.members) <= LARGEST_GROUP
        first, *others = group.members
        for order in itertools.permutations(others):
            sent = np.zeros((instance.servers, instance.servers))
            sent[(first, *order), (*order, first)] = group.hop_bytes
            yield k, sent


def _least_congestion(instance, links):
    """What the bytes of all, of a server out of it, and into it, take at least; inf if somebody is out of reach."""
    own = [sum(g.hop_bytes for g in instance.allreduce_groups if s in g.members) for s in range(instance.servers)]
    least = _volume_bound(instance, links)
    for axis in (0, 1):
        for server in range(instance.servers):
            count = sum(number for pair, number in links.items() if pair[1 - axis] == server)
            sent = instance.traffic_bytes.sum(axis=axis)[server] + own[server]
            if sent > 0:
                least = max(least, sent / count if count else inf)
    return least


def _volume_bound(instance, links):
    """Bytes times distance over the number of links; inf if somebody is out of reach."""
    distance = _distances(instance.servers, tuple(links))
    wanted = instance.traffic_bytes > 0
    return (instance.traffic_bytes[wanted] * distance[wanted]).sum() / sum(links.values())


@lru_cache(maxsize=2000)
def _distances(servers, arcs):
    """Hops between all servers, of whatever has these arcs."""
    lengths = np.full((servers, servers), np.inf)
    lengths[tuple(zip(*arcs, strict=True))] = 1
    return shortest_path(lengths)


def _congestion(instance, links, rings):
    """Least bytes on the busiest of given links: columns are flows by source, ring shares, and the congestion."""
    n, groups = instance.servers, len(instance.allreduce_groups)
    pairs = list(itertools.permutations(range(n), 2))
    sent = np.array([[ring[pair] for _, ring in rings] for pair in pairs]).reshape(len(pairs), len(rings))
    traffic = np.array([instance.traffic_bytes[pair] for pair in pairs])
    of_group = np.array([[float(k == g) for k, _ in rings] for g in range(groups)]).reshape(groups, len(rings))
    if instance.host_forwarding:
        arcs = sorted(links)
        into = np.array([[float(j == v) - float(i == v) for i, j in arcs] for v in range(n)])
        kept = block_diag(*[np.delete(into, s, axis=0) for s in range(n)])
        equal = np.block([[kept, -sent], [np.zeros((groups, kept.shape[1])), of_group]])
        sides = np.concatenate([traffic, np.ones(groups)])
        loads = np.hstack([np.tile(np.eye(len(arcs)), n), np.zeros((len(arcs), len(rings)))])
        room, none = np.array([links[arc] for arc in arcs]), np.zeros(len(arcs))
    else:
        equal, sides = of_group, np.ones(groups)
        loads, room, none = sent, np.array([links.get(pair, 0) for pair in pairs]), -traffic
    answer = linprog(
        np.eye(loads.shape[1] + 1)[-1],
        A_ub=np.column_stack([loads, -room]),
        b_ub=none,
        A_eq=np.column_stack([equal, np.zeros(len(equal))]),
        b_eq=sides,
    )
    return float(answer.fun) if answer.status == 0 else inf
