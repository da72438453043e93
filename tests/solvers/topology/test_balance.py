"""Routing and ring shares on fixed links against linear programs, brute force and closed forms."""

from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog
from topology_cases import job as make_job
from volume import for_each

from ddlopt.models.errors import InfeasibleError
from ddlopt.models.topology import evaluate
from ddlopt.solvers.topology.balance.balance import Balance, Effort, Job, balance, heads_of
from ddlopt.solvers.topology.balance.exact import polish
from ddlopt.solvers.topology.balance.path_kernels import Net, all_trees, capacities, seed_kernels
from ddlopt.solvers.topology.balance.ring_kernels import shorten_ring


def random_traffic(n, rng, density=1.0):
    traffic = rng.random((n, n)) * (rng.random((n, n)) < density)
    np.fill_diagonal(traffic, 0)
    return traffic


def random_cycles(n, d, rng):
    """Far ends of d random rings over all servers; repeated links are parallel links."""
    heads = np.empty((n, d), dtype=np.int64)
    for k in range(d):
        order = rng.permutation(n)
        heads[order, k] = np.roll(order, -1)
    return heads


def circulant(n, generators):
    return (np.arange(n)[:, None] + np.array(generators)[None, :]) % n


def least_congestion(heads, demand):
    """The routing LP with one commodity per pair, written down naively."""
    n = len(heads)
    links = nx.MultiDiGraph([(v, int(w)) for v, row in enumerate(heads) for w in row])
    arcs = sorted(set(links.edges()))
    counts = [links.number_of_edges(*arc) for arc in arcs]
    pairs = [(s, t) for s in range(n) for t in range(n) if demand[s, t] > 0]
    m = len(arcs)
    equal, right = [], []
    for p, (s, t) in enumerate(pairs):
        for v in range(n):
            if v == t:
                continue
            row = np.zeros(len(pairs) * m + 1)
            for a, (i, j) in enumerate(arcs):
                row[p * m + a] = (i == v) - (j == v)
            equal.append(row)
            right.append(demand[s, t] if v == s else 0.0)
    over = np.zeros((m, len(pairs) * m + 1))
    for a in range(m):
        over[a, a : len(pairs) * m : m] = 1
        over[a, -1] = -counts[a]
    cost = np.zeros(len(pairs) * m + 1)
    cost[-1] = 1
    return linprog(cost, A_ub=over, b_ub=np.zeros(m), A_eq=np.array(equal), b_eq=right).fun


def checked_load(instance, found: Balance):
    evaluation = evaluate(instance, found.design())
    assert not evaluation.violations
    return evaluation.details["max_link_load_bytes"]


@for_each(("n", "d", "seed"), [(5, 2, 0), (6, 2, 1), (6, 3, 2), (7, 2, 3), (8, 3, 4)])
def test_routing_is_near_the_linear_program_and_its_bound_below(n, d, seed):
    rng = np.random.default_rng(seed)
    traffic = random_traffic(n, rng) ** 2
    heads = random_cycles(n, d, rng)
    instance = make_job(traffic, d)
    optimum = least_congestion(heads, traffic)
    found = balance(Job(instance), heads)
    assert optimum * (1 - 1e-9) <= found.congestion_bytes <= optimum * 1.005
    assert optimum * 0.98 <= found.bound_bytes <= optimum * (1 + 1e-9)
    assert checked_load(instance, found) == pytest.approx(found.congestion_bytes, rel=1e-7)
    exact = polish(found)
    assert exact.congestion_bytes == pytest.approx(optimum, rel=1e-6)
    assert exact.bound_bytes <= exact.congestion_bytes
    assert exact.bound_bytes == pytest.approx(optimum, rel=1e-6)
    assert checked_load(instance, exact) == pytest.approx(exact.congestion_bytes, rel=1e-7)


@pytest.mark.parametrize(
    ("n", "generators", "congestion"), [(16, (1, 3, 7, 12), 7.25), (16, (1, 7), 23.0), (12, (1, 3, 4), 8.25)]
)
def test_all_to_all_on_circulants(n, generators, congestion):
    traffic = np.ones((n, n)) - np.eye(n)
    found = balance(Job(make_job(traffic, len(generators))), circulant(n, generators))
    assert found.congestion_bytes == pytest.approx(congestion, rel=2e-3)
    assert polish(found).congestion_bytes == pytest.approx(congestion, rel=1e-9)


def test_shares_balance_the_rings_of_a_circulant():
    instance = make_job(np.zeros((12, 12)), 4, [(tuple(range(12)), 6.0)])
    rings = {0: [tuple((p * i) % 12 for i in range(12)) for p in (1, 5, 7, 11)]}
    job, heads = Job(instance), circulant(12, (1, 5, 7, 11))
    # 2 * 11/12 * 6 = 11 bytes per hop over four disjoint rings.
    found = balance(job, heads, job.orders(rings, 4), Effort(kicks=-1, columns=4))
    assert found.congestion_bytes == pytest.approx(11 / 4)
    assert {members for _, members, _, _ in found.rings} == set(rings[0])


def test_rings_avoid_the_links_that_traffic_needs():
    # One pair talks a lot over its only short way; three rings are left to the all-reduce of 4 servers.
    traffic = np.zeros((4, 4))
    traffic[0, 1] = 3.0
    instance = make_job(traffic, 3, [((0, 1, 2, 3), 4.0)])
    heads = circulant(4, (1, 2, 3))
    found = polish(balance(Job(instance), heads))
    assert checked_load(instance, found) == pytest.approx(found.congestion_bytes)
    # Server 0 sends 3 + 6 bytes over three links.
    assert found.congestion_bytes == pytest.approx(3.0, rel=1e-6)


@for_each("seed", range(6))
def test_mixed_jobs_pass_the_check_and_the_bound_is_below(seed):
    rng = np.random.default_rng(seed)
    n, d = 9, 3
    groups = [(tuple(range(n)), 2.0), (tuple(sorted(rng.choice(n, 4, replace=False).tolist())), 5.0), ((1, 6), 1.0)]
    instance = make_job(random_traffic(n, rng, 0.5), d, groups)
    found = balance(Job(instance), random_cycles(n, d, rng))
    assert checked_load(instance, found) == pytest.approx(found.congestion_bytes, rel=1e-7)
    exact = polish(found)
    assert exact.congestion_bytes <= found.congestion_bytes * (1 + 1e-9)
    assert exact.congestion_bytes >= exact.bound_bytes >= found.bound_bytes * 0.99
    assert checked_load(instance, exact) == pytest.approx(exact.congestion_bytes, rel=1e-7)


def test_parallel_links_share_a_load():
    traffic = np.zeros((3, 3))
    traffic[0, 1] = traffic[1, 2] = 2.0
    heads = np.array([[1, 1], [2, 0], [0, -1]])
    found = polish(balance(Job(make_job(traffic, 2)), heads))
    assert found.congestion_bytes == pytest.approx(2.0)
    assert capacities(heads).tolist() == [2, 0, 1, 1, 1, 0]


def test_without_forwarding_every_path_is_one_link():
    traffic = np.zeros((4, 4))
    traffic[0, 1], traffic[1, 3] = 2.0, 1.0
    instance = make_job(traffic, 2, [((0, 1, 2, 3), 1.0)], host_forwarding=False)
    links = {(0, 1): 1, (1, 2): 1, (2, 3): 1, (3, 0): 1, (1, 3): 1, (0, 2): 1}
    heads = heads_of(instance, links)
    found = polish(balance(Job(instance), heads))
    assert checked_load(instance, found) == pytest.approx(found.congestion_bytes)
    assert max(len(path) for ring in found.design().rings for path in ring.paths) == 2
    missing = heads_of(instance, {pair: count for pair, count in links.items() if pair != (1, 3)})
    with pytest.raises(InfeasibleError, match="without a path"):
        balance(Job(instance), missing)


def test_trees_are_shortest_paths():
    rng = np.random.default_rng(7)
    heads = random_cycles(20, 3, rng)
    capacity = capacities(heads)
    length = np.where(capacity > 0, rng.random(60), np.inf)
    graph = nx.DiGraph()
    for arc in np.flatnonzero(capacity):
        graph.add_edge(int(arc) // 3, int(heads.flat[arc]), weight=length[arc])
    dist, via = np.empty((20, 20)), np.empty((20, 20), np.int64)
    all_trees(Net(heads, capacity, True), length, dist, via)
    for source, lengths in nx.all_pairs_dijkstra_path_length(graph):
        for target, expected in lengths.items():
            assert dist[source, target] == pytest.approx(expected)
            if target != source:
                before = via[source, target] // 3
                assert dist[source, target] == dist[source, before] + length[via[source, target]]


@for_each("seed", range(5))
def test_short_rings_are_shortest_on_seven_servers(seed):
    seed_kernels(seed)
    dist = np.random.default_rng(seed).random((9, 9))
    members = np.array([0, 1, 3, 4, 5, 7, 8])
    best = min(
        sum(dist[ring[i - 1], ring[i]] for i in range(7)) for ring in ((0, *rest) for rest in permutations(members[1:]))
    )
    ring = np.full(7, -1)
    shorten_ring(dist, members, ring, False, 200)
    assert sorted(ring.tolist()) == members.tolist()
    assert sum(dist[ring[i - 1], ring[i]] for i in range(7)) == pytest.approx(best)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "gap"), [(4, 0.01), (8, 0.01)])
def test_dense_traffic_of_128_servers_is_certified_within_one_percent(d, gap):
    rng = np.random.default_rng(d)
    instance = make_job(random_traffic(128, rng), d)
    found = balance(Job(instance), random_cycles(128, d, rng))
    assert found.bound_bytes >= (1 - gap) * found.congestion_bytes
