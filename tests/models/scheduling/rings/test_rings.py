"""Rings on trees and other networks."""

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest
from scheduling_brute_force import least_rings
from volume import for_each, seeds

from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.models.scheduling import Job, Network, PolluxTiming, RingTiming, SchedulingInstance, ServerGroup
from ddlopt.models.scheduling.rings.rings import euler_ring, find_ring, ring_rate, separating_links, tree_ring

RING = RingTiming(gradient_bytes=1e8, bandwidth_bytes_per_s=1e9, forward_s_per_sample=0.01)


def cluster(servers, switches, links, duplex=True):
    return SchedulingInstance(
        name="rings",
        slots=1,
        slot_s=60.0,
        servers=(ServerGroup(count=servers, capacity={"gpu": 4}),),
        network=Network(switches=switches, links=tuple(links), duplex=duplex),
        jobs=(Job(name="a", max_workers=2, timing=RING, minibatches=100.0),),
    )


def random_tree(rng, servers, switches):
    """Links of a random tree over servers and switches in any order, both directions given apart."""
    nodes = rng.permutation(servers + switches).tolist()
    links = []
    for place in range(1, len(nodes)):
        u, v = nodes[place], nodes[int(rng.integers(place))]
        links += [(u, v, float(rng.integers(1, 9))), (v, u, float(rng.integers(1, 9)))]
    return links


def random_digraph(rng, servers, switches, extra):
    """Links of a strongly connected graph: a cycle through all nodes and further arcs."""
    nodes = rng.permutation(servers + switches).tolist()
    arcs = set(zip(nodes, nodes[1:] + nodes[:1], strict=True))
    others = [pair for pair in itertools.permutations(range(len(nodes)), 2) if pair not in arcs]
    arcs |= {others[k] for k in rng.permutation(len(others))[:extra].tolist()}
    return [(u, v, float(rng.integers(1, 4))) for u, v in sorted(arcs)]


def passes_of(ring):
    return Counter(itertools.pairwise((*ring, ring[0])))


def sides(arcs, cut):
    """The nodes on the one side of a link of a tree."""
    following = defaultdict(list)
    for u, v in arcs:
        if (u, v) not in (cut, cut[::-1]):
            following[u].append(v)
    seen, stack = {cut[0]}, [cut[0]]
    while stack:
        for node in following[stack.pop()]:
            if node not in seen:
                seen.add(node)
                stack.append(node)
    return seen


@for_each("seed", seeds(6, 60))
def test_tree_lemma(seed):
    rng = np.random.default_rng(seed)
    servers, switches = int(rng.integers(2, 8)), int(rng.integers(0, 5))
    instance = cluster(servers, switches, random_tree(rng, servers, switches), False)
    arcs = instance.network.arcs
    links = {frozenset(link.arcs[0]): link for link in separating_links(instance)}
    used = rng.permutation(servers)[: int(rng.integers(2, servers + 1))].tolist()
    needed = Counter()
    for u, v in arcs:
        one = sides(arcs, (u, v)) & set(range(servers))
        if u < v and 0 < len(one) < servers:
            link = links.pop(frozenset((u, v)))
            other = set(range(servers)) - one
            assert set(link.below) in (one, other)
            assert len(link.below) == min(len(one), len(other))
            assert link.bandwidth_bytes_per_s == min(arcs[u, v], arcs[v, u])
        if one & set(used) and set(used) - one:
            needed[u, v] = 1
    assert not links
    ring = tree_ring(instance, used)
    assert set(used) <= set(ring)
    assert passes_of(ring) == needed
    assert passes_of(euler_ring(needed, used)) == needed
    if len(used) < 5:
        assert all(needed == passes for _, passes in least_rings(instance.network, used))


def test_tree_ring_of_one_server_is_empty():
    instance = cluster(3, 1, [(s, 3, 1.0) for s in range(3)])
    assert tree_ring(instance, [2]) == ()
    assert find_ring(instance, [2], {}, 1.0) == ()
    assert euler_ring({}, [2]) == ()


def test_star():
    instance = cluster(3, 1, [(0, 3, 5.0), (1, 3, 6.0), (2, 3, 7.0)])
    assert [(link.below, link.bandwidth_bytes_per_s) for link in separating_links(instance)] == [
        ((0,), 5.0),
        ((1,), 6.0),
        ((2,), 7.0),
    ]
    assert tree_ring(instance, [2, 0]) == (0, 3, 2, 3)


def test_switches_behind_which_nobody_is_separate_nothing():
    instance = cluster(2, 3, [(0, 2, 1.0), (1, 2, 1.0), (2, 3, 1.0), (3, 4, 1.0)])
    assert {link.below for link in separating_links(instance)} == {(1,)}


def test_euler_ring_makes_the_passes():
    passes = {(0, 1): 2, (1, 0): 1, (1, 2): 1, (2, 0): 1}
    ring = euler_ring(passes, [0, 2])
    assert passes_of(ring) == passes


def test_euler_ring_leaves_out_what_hangs_together_with_no_server():
    passes = {(0, 1): 1, (1, 0): 1, (2, 3): 1, (3, 2): 1}
    assert passes_of(euler_ring(passes, [0, 1])) == {(0, 1): 1, (1, 0): 1}


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ({(0, 1): 1, (1, 2): 1}, "node 0 has -1 passes more in than out"),
        ({(0, 1): 1, (1, 0): 1, (2, 3): 1, (3, 2): 1}, "server 2 does not hang together with server 0"),
        ({}, "server 2 does not hang together with server 0"),
    ],
)
def test_euler_ring_refuses(passes, message):
    with pytest.raises(SolverError, match=message.replace("+", r"\+")):
        euler_ring(passes, [0, 2])


def random_graph_case(seed):
    rng = np.random.default_rng(seed)
    servers, switches = int(rng.integers(2, 5)), int(rng.integers(0, 3))
    instance = cluster(servers, switches, random_digraph(rng, servers, switches, int(rng.integers(0, 7))), False)
    used = sorted(rng.permutation(servers)[: int(rng.integers(2, servers + 1))].tolist())
    exact = [passes for _, passes in least_rings(instance.network, used)]
    return rng, instance, used, exact


@for_each("seed", seeds(6, 60))
def test_find_ring_where_there_is_plenty(seed):
    """It is found, and not much longer than the shortest."""
    _, instance, used, exact = random_graph_case(seed)
    arcs = instance.network.arcs
    ring = find_ring(instance, used, dict.fromkeys(arcs, 100.0), 1.0)
    assert set(used) <= set(ring)
    assert set(passes_of(ring)) <= set(arcs)
    assert len(ring) <= 1.25 * min(passes.total() for passes in exact)


def test_find_ring_where_little_is_left():
    """What it finds fits, and it finds nearly all that there is."""
    found = there = 0
    for seed in range(300):
        rng, instance, used, exact = random_graph_case(seed)
        left = {arc: float(rng.integers(0, 3)) for arc in instance.network.arcs}
        ring = find_ring(instance, used, left, 1.0)
        some = any(all(count <= left[arc] for arc, count in passes.items()) for passes in exact)
        there += some
        if ring is not None:
            found += 1
            assert some
            assert set(used) <= set(ring)
            assert all(count <= left[arc] for arc, count in passes_of(ring).items())
    assert there > 60
    assert found >= 0.97 * there


def test_find_ring_counts_repeated_passes():
    """0 -> 1 -> 2 and back over one arc each; visiting 1 and 2 from 0 takes 0 -> 3 twice."""
    links = [(0, 3, 2.0), (3, 1, 1.0), (3, 2, 1.0), (1, 0, 1.0), (2, 0, 1.0)]
    instance = cluster(3, 1, links, duplex=False)
    assert passes_of(find_ring(instance, [0, 1, 2], instance.network.arcs, 1.0))[0, 3] == 2
    assert find_ring(instance, [0, 1, 2], instance.network.arcs | {(0, 3): 1.9}, 1.0) is None


def test_find_ring_takes_the_way_that_is_left():
    links = [(0, 1, 1.0), (1, 0, 1.0), (0, 2, 1.0), (2, 1, 1.0)]
    instance = cluster(2, 1, links, duplex=False)
    left = dict(instance.network.arcs)
    assert find_ring(instance, [0, 1], left, 1.0) == (0, 1)
    left[0, 1] = 0.5
    assert find_ring(instance, [0, 1], left, 1.0) == (0, 2, 1)
    left[1, 0] = 0.5
    assert find_ring(instance, [0, 1], left, 1.0) is None
    assert find_ring(instance, [0, 1], left, 0.0) is not None
    del left[1, 0]
    assert find_ring(instance, [0, 1], left, 0.0) is None


def test_find_ring_on_a_tree_has_both_directions():
    instance = cluster(2, 1, [(0, 2, 1.0), (2, 0, 3.0), (1, 2, 3.0), (2, 1, 3.0)], duplex=False)
    assert find_ring(instance, [0, 1], instance.network.arcs, 1.0) == (0, 2, 1, 2)
    assert find_ring(instance, [0, 1], instance.network.arcs, 1.1) is None


def test_a_hair_of_rounding_does_not_cost_a_ring():
    instance = cluster(2, 1, [(0, 2, 0.3), (1, 2, 0.3)])
    left = dict.fromkeys(instance.network.arcs, 0.3 - 0.1 - 0.1)
    assert 0.3 - 0.1 - 0.1 < 0.1
    assert find_ring(instance, [0, 1], left, 0.1) is not None


def test_only_a_ring_timing_has_a_rate():
    assert ring_rate(Job(name="a", max_workers=2, timing=RING, minibatches=1.0)) == 1e9
    assert ring_rate(Job(name="a", max_workers=2, timing=PolluxTiming(compute_s=1.0), minibatches=1.0)) == 0.0


def test_not_on_other_networks():
    graph = cluster(3, 0, [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)], duplex=False)
    for of_trees in (separating_links, lambda instance: tree_ring(instance, [0, 1])):
        with pytest.raises(NotApplicableError, match="the network of 'rings' is no tree"):
            of_trees(graph)
    without = SchedulingInstance(
        **{name: getattr(graph, name) for name in SchedulingInstance.model_fields} | {"network": None}
    )
    with pytest.raises(NotApplicableError, match="'rings' has no network"):
        find_ring(without, [0, 1], {}, 1.0)
