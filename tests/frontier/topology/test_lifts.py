"""Lifts: groups are groups, links have their symmetries, and their columns are rings that use each link once."""

from collections import Counter
from itertools import product

import networkx as nx
import numpy as np
import pytest
from volume import for_each, slow

from ddlopt.frontier.topology.lifts.lift_kernels import anneal_lift, close_columns
from ddlopt.frontier.topology.lifts.lifts import groups, lift_heads, lift_starts, permutations_of
from ddlopt.frontier.topology.lifts.placing import line_heads, placed
from ddlopt.instances import load
from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.topology.balance.path_kernels import seed_kernels
from ddlopt.solvers.topology.link_exchange.link_exchange import LinkExchange
from ddlopt.solvers.topology.link_exchange.moves import follow


def make_instance(n, d, reduced=True, **options):
    return TopologyInstance(
        name="test",
        servers=n,
        degree=d,
        link_bandwidth_bytes_per_s=1.0,
        traffic_bytes=np.ones((n, n)) - np.eye(n),
        allreduce_groups=(AllReduceGroup(members=tuple(range(n)), gradient_bytes=9.0),) if reduced else (),
        **options,
    )


def orders_of(table):
    """How many elements have which order."""
    counts = Counter()
    for x in range(len(table)):
        power, order = x, 1
        while power:
            power, order = table[power, x], order + 1
        counts[order] += 1
    return counts


def drawn(n, d, orbits, seed=0):
    """A random lift: its tables."""
    rng = np.random.default_rng(seed)
    found = list(groups(n // orbits))
    table = found[int(rng.integers(len(found)))].product
    target = rng.permutation(np.repeat(np.arange(orbits), d)).reshape(orbits, d)
    return target, rng.integers(1, len(table), size=(orbits, d)), table


@for_each("order", [2, 3, 4, 6, 8, 12, 16])
def test_tables_are_groups(order):
    found = list(groups(order))
    assert found
    for group in found:
        table = group.product
        everybody = set(range(order))
        assert table[0].tolist() == table[:, 0].tolist() == list(range(order))
        assert all(set(row) == everybody for row in (*table.tolist(), *table.T.tolist()))
        # (x y) z = x (y z) for all three.
        assert np.array_equal(table[table], table[:, table])


def test_well_known_groups_are_there():
    assert {3: 2, 2: 3, 1: 1} in [orders_of(group.product) for group in groups(6)]  # permutations of three
    assert {3: 8, 2: 3, 1: 1} in [orders_of(group.product) for group in groups(12)]  # even permutations of four
    assert {2: 9, 8: 4, 4: 2, 1: 1} in [orders_of(group.product) for group in groups(16)]  # of the octagon


@for_each(("n", "d", "orbits"), [(12, 3, 1), (12, 3, 2), (16, 4, 4), (9, 2, 3)])
def test_lifts_look_alike_from_all_servers_of_an_orbit(n, d, orbits):
    target, shift, table = drawn(n, d, orbits)
    heads = lift_heads(target, shift, table)
    assert (np.bincount(heads.ravel(), minlength=n) == d).all()
    arcs = Counter((v, int(w)) for v, row in enumerate(heads) for w in row)
    for y in range(len(table)):
        moved = np.concatenate([orbit * len(table) + table[y] for orbit in range(orbits)])
        assert Counter({(moved[v], moved[w]): count for (v, w), count in arcs.items()}) == arcs


@for_each(("n", "d", "orbits"), [(12, 3, 1), (16, 4, 4)])
def test_annealing_counts_hops_and_keeps_the_best(n, d, orbits):
    target, shift, table = drawn(n, d, orbits, seed=1)

    def hops():
        graph = nx.DiGraph([(v, int(w)) for v, row in enumerate(lift_heads(target, shift, table)) for w in row])
        first = range(0, n, len(table))
        return sum(sum(nx.single_source_shortest_path_length(graph, v).values()) for v in first)

    seed_kernels(0)
    assert anneal_lift(target, shift, table, False, 0, 0, 1.0, 0.1) == hops()
    before = hops()
    best = anneal_lift(target, shift, table, False, 300, 0, 3.0, 0.2)
    assert best == hops() <= before
    assert (np.bincount(target.ravel(), minlength=orbits) == d).all()


@for_each(("n", "d", "orbits"), [(12, 3, 1), (16, 4, 4)])
def test_annealing_counts_hops_of_line_digraphs(n, d, orbits):
    target, shift, table = drawn(n, d, orbits, seed=1)

    def hops():
        """From all links that end in the first server of an orbit."""
        arcs = [(v, int(w), k) for v, row in enumerate(lift_heads(target, shift, table)) for k, w in enumerate(row)]
        line = nx.line_graph(nx.MultiDiGraph(arcs))
        ends = [arc for arc in line if arc[1] % len(table) == 0]
        return sum(sum(nx.single_source_shortest_path_length(line, arc).values()) for arc in ends)

    seed_kernels(0)
    assert anneal_lift(target, shift, table, True, 0, 0, 1.0, 0.1) == hops()
    before = hops()
    best = anneal_lift(target, shift, table, True, 300, 0, 9.0, 0.5)
    assert best == hops() < before


def test_line_digraphs_join_links_to_those_that_begin_where_they_end():
    heads = lift_heads(*drawn(12, 3, 2))
    line = nx.DiGraph([(v, int(w)) for v, row in enumerate(line_heads(heads)) for w in row])
    arcs = [(v, int(w), k) for v, row in enumerate(heads) for k, w in enumerate(row)]
    assert nx.is_isomorphic(line, nx.line_graph(nx.MultiDiGraph(arcs)))


def test_servers_with_much_traffic_are_placed_so_that_all_forward_alike():
    heads = line_heads(lift_heads(*drawn(8, 3, 2)))
    n = len(heads)
    rng = np.random.default_rng(0)
    weight = np.where(rng.permutation(n) < n // 2, 1.0, 3.0)
    traffic = (weight[:, None] + weight) * ~np.eye(n, dtype=bool)

    def squares(heads):
        """Sum over servers of what they send and forward, squared; one of all shortest paths after the other."""
        graph = nx.DiGraph([(v, int(w)) for v, row in enumerate(heads) for w in row])
        sent = np.zeros(n)
        for s in range(n):
            for t in range(n):
                paths = list(nx.all_shortest_paths(graph, s, t)) if s != t else []
                for path in paths:
                    sent[path[:-1]] += traffic[s, t] / len(paths)
        return float(sent @ sent)

    found = placed(heads, traffic, rng)
    graphs = [nx.DiGraph([(v, int(w)) for v, row in enumerate(each) for w in row]) for each in (heads, found)]
    assert nx.is_isomorphic(*graphs)
    assert squares(found) < squares(heads)
    assert placed(heads, np.ones((n, n)) - np.eye(n), rng) is heads


@for_each(("n", "d", "orbits"), [(12, 3, 1), (16, 4, 2), (128, 4, 4)])
def test_columns_become_rings_of_the_same_links(n, d, orbits):
    seed_kernels(0)
    target, shift, table = drawn(n, d, orbits)
    anneal_lift(target, shift, table, False, 200, 0, 3.0, 0.2)
    heads = lift_heads(target, shift, table)
    columns = permutations_of(heads)
    assert all(sorted(column) == list(range(n)) for column in columns.T.tolist())
    assert np.array_equal(np.sort(columns, axis=1), np.sort(heads, axis=1))
    assert close_columns(columns, 20_000)
    assert np.array_equal(np.sort(columns, axis=1), np.sort(heads, axis=1))
    ring = np.empty(n, np.int64)
    assert all(follow(columns, k, k, ring) for k in range(d))


def test_what_falls_apart_has_no_rings():
    apart = np.array([[1, 1], [0, 0], [3, 3], [2, 2]])
    columns = apart.copy()
    assert not close_columns(columns, 500)
    assert np.array_equal(np.sort(columns, axis=1), apart)


def test_starts_are_what_the_instance_allows():
    def starts(instance):
        seed_kernels(0)
        return list(lift_starts(instance, np.random.default_rng(0), 0.2, lambda: False))

    assert starts(make_instance(8, 3, optics="duplex")) == []
    assert starts(make_instance(8, 3, reduced=False, host_forwarding=False)) == []
    found = starts(make_instance(8, 3, parallel_links=False))
    assert found
    for start in found:
        assert all(len(set(row)) == 3 for row in start.heads.tolist())
        ring = np.empty(8, np.int64)
        assert all(follow(start.heads, first, second, ring) for first, second in start.cycles)
    assert any(len(start.cycles) for start in found)
    assert all(len(start.cycles) == 0 for start in starts(make_instance(8, 3, reduced=False)))


@pytest.mark.parametrize("name", ["dlrm-n16-d4", slow("dlrm-stress-n16-d4"), slow("ncf-n16-d4")])
def test_the_volume_bound_is_met(name):
    result = LinkExchange(0.5).solve(load(f"topology/{name}"), Limits(gap=1e-6))
    assert result.status is Status.OPTIMAL


def test_all_sizes_of_small_jobs():
    for n, d in product(range(2, 8), range(1, 4)):
        if d < n:
            result = LinkExchange(0.02).solve(make_instance(n, d), Limits())
            assert result.objective >= result.bound * (1 - 1e-9)
