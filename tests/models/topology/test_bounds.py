from fractions import Fraction
from itertools import chain, product
from math import inf

import numpy as np
import pytest
from brute_force import link_choices
from full_routing import best_links_and_routing, best_routing
from scipy.sparse.csgraph import shortest_path
from topology_cases import DANOINT, all_to_all, job
from volume import for_each, some, spread

from ddlopt.certificates.topology.exact_bounds import exact_lower_bound, exact_sizes
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.topology import AllReduceGroup, TopologyDesign, TopologyInstance, evaluate
from ddlopt.models.topology.assembly import assemble
from ddlopt.models.topology.bounds import congestion_bounds, lower_bound
from ddlopt.models.topology.hop_bytes import Effort, least_hop_bytes, level_sizes, pairs_within, views_of
from ddlopt.models.topology.metric import metric_bound
from ddlopt.solvers.topology.balance.balance import Job, balance, heads_of
from ddlopt.solvers.topology.balance.exact import polish


def random_traffic(rng, n, density=1.0):
    traffic = rng.integers(1, 20, size=(n, n)) * (rng.random((n, n)) < density)
    traffic = np.where(rng.random((n, n)) < 0.2, 5 * traffic, traffic)
    np.fill_diagonal(traffic, 0)
    return traffic


@for_each(
    ("n", "degree", "moore", "duplex"),
    [
        (8, 2, 6.5, 8.0),
        (12, 2, 12.5, 18.0),
        (12, 3, 19 / 3, 7.0),
        (12, 4, 4.5, 4.5),
        (16, 2, 19.0, 32.0),
        (16, 4, 6.5, 6.5),
    ],
)
def test_moore_bound_of_all_to_all(n, degree, moore, duplex):
    assert congestion_bounds(all_to_all(n, degree))["moore"] == pytest.approx(moore, rel=1e-12)
    assert congestion_bounds(all_to_all(n, degree, optics="duplex"))["moore"] == pytest.approx(duplex, rel=1e-12)
    assert lower_bound(all_to_all(n, degree)) == pytest.approx(moore, rel=1e-12)


def test_bounds_below_the_known_optimum_of_danoint():
    bounds = congestion_bounds(job(DANOINT, 2, parallel_links=False))
    assert bounds["node"] == 81 / 2
    # 956 bytes times hops, and 45 that servers receive more than they send, on 16 links.
    assert bounds["moore"] == (956 + 45) / 16


OPTIONS = [
    {"degree": 1},
    {"degree": 2},
    {"degree": 2, "parallel_links": False},
    {"degree": 2, "optics": "duplex"},
    {"degree": 3, "optics": "duplex", "parallel_links": False},
    {"degree": 2, "host_forwarding": False},
    {"degree": 2, "host_forwarding": False, "optics": "duplex"},
    {"degree": 2, "host_forwarding": False, "parallel_links": False},
]


@pytest.mark.parametrize(("options", "seed"), spread(product(OPTIONS, range(3)), 5))
def test_no_bound_exceeds_the_optimum_of_tiny_jobs(options, seed):
    rng = np.random.default_rng(seed)
    n = 5 if options.get("optics") == "duplex" and options["degree"] == 2 else 4
    instance = job(random_traffic(rng, n, density=0.4 if "host_forwarding" in options else 0.8), **options)
    optimum = best_links_and_routing(instance)
    try:
        bounds = congestion_bounds(instance)
    except InfeasibleError:
        assert optimum == inf
        return
    for name, bound in bounds.items():
        assert bound <= optimum * (1 + 1e-9), name
    assert max(bounds.values()) >= 0.5 * optimum or optimum == inf


def test_multiplicity_sees_that_one_pair_needs_several_links():
    traffic = np.zeros((6, 6))
    for s in range(6):
        traffic[s, (s + 1) % 6], traffic[s, (s + 2) % 6] = 10, 4
    bounds = congestion_bounds(job(traffic, 2))
    assert bounds["node"] == bounds["moore"] == 7
    # Of the 14 bytes of a server 10 - z take two hops: 2 z = 14 + 10 - z.
    assert bounds["multiplicity"] == pytest.approx(8, rel=1e-12)
    ring_and_chords = {(s, (s + step) % 6): 1 for s in range(6) for step in (1, 2)}
    assert best_routing(job(traffic, 2), ring_and_chords) >= 8 - 1e-9


def test_direct_bound_is_exact_without_forwarding():
    traffic = np.zeros((4, 4))
    traffic[0] = [0, 9, 2, 0]
    bounds = congestion_bounds(job(traffic, 3, host_forwarding=False))
    assert bounds["direct"] == 4.5
    assert bounds["node"] == pytest.approx(11 / 3)


def test_bytes_are_bytes_in_any_unit():
    rng = np.random.default_rng(2)
    for optics in ("one_way", "duplex"):
        for traffic in (random_traffic(rng, 6), random_traffic(rng, 6, 0.4), np.ones((6, 6)) - np.eye(6)):
            groups = [((0, 1, 2), 3.0), (tuple(range(6)), 1.0)]
            small = [(members, size / 1024) for members, size in groups]
            whole = congestion_bounds(job(traffic, 2, groups, optics=optics))
            found = congestion_bounds(job(traffic / 1024, 2, small, optics=optics))
            assert {name: 1024 * each for name, each in found.items()} == pytest.approx(whole, rel=1e-9)


def test_without_forwarding_the_largest_group_that_few_links_serve_counts():
    """Hops of 2 · 3/4 · 8 bytes over two links each, and of 2 · 1/2 · 4 over one."""
    options = {"host_forwarding": False, "parallel_links": False}
    groups = [((0, 1, 2, 3), 8.0), ((0, 1), 4.0)]
    assert congestion_bounds(job(np.zeros((4, 4)), 2, groups, **options))["direct"] >= 12 / 2
    assert congestion_bounds(job(np.zeros((4, 4)), 2, groups[::-1], **options))["direct"] >= 12 / 2


def test_duplex_optics_see_the_mean_of_both_directions():
    pairs = np.array([[0.0, 4, 2], [0, 0, 6], [8, 0, 0]])
    given, turned, mean = views_of(pairs, True)
    assert (given.tolist(), turned.tolist()) == (pairs.tolist(), pairs.T.tolist())
    assert mean.tolist() == [[0, 2, 5], [2, 0, 3], [5, 3, 0]]
    assert len(views_of(pairs, False)) == 2


def test_cut_bound_counts_the_pairs_of_a_small_dense_network():
    traffic = np.zeros((4, 4))
    traffic[:2, 2:] = 10
    instance = job(traffic, 3, parallel_links=False)
    assert congestion_bounds(instance)["cut"] == 10.0
    assert congestion_bounds(instance)["node"] == pytest.approx(20 / 3)


def test_all_reduce_bounds():
    everybody = AllReduceGroup(members=tuple(range(5)), gradient_bytes=10)
    one_way = job(np.zeros((5, 5)), 2, allreduce_groups=(everybody,))
    assert congestion_bounds(one_way)["all-reduce"] == pytest.approx(8.0)
    assert congestion_bounds(one_way)["node"] == pytest.approx(8.0)
    # An odd number of servers leaves one of them out of every plane.
    duplex = job(np.zeros((5, 5)), 2, optics="duplex", allreduce_groups=(everybody,))
    assert congestion_bounds(duplex)["moore"] == pytest.approx(10.0)
    # Two members have one ring only: it counts with its hops, like traffic.
    pairs = tuple(AllReduceGroup(members=(i, i + 3), gradient_bytes=1) for i in range(3))
    ring_of_six = job(np.zeros((6, 6)), 1, allreduce_groups=pairs)
    assert congestion_bounds(ring_of_six)["moore"] == pytest.approx(1.0)
    assert congestion_bounds(ring_of_six)["node"] == pytest.approx(1.0)


@pytest.mark.parametrize("optics", ["one_way", "duplex"])
def test_the_bound_is_attained_by_rings_alone(optics):
    n, degree = 6, 2
    everybody = AllReduceGroup(members=tuple(range(n)), gradient_bytes=3)
    instance = job(np.zeros((n, n)), degree, optics=optics, allreduce_groups=(everybody,))
    forth, back = tuple(range(n)), tuple(reversed(range(n)))
    links = {(min(i, j), max(i, j)): 1 for i, j in zip(forth, (*forth[1:], 0), strict=True)}
    if optics == "one_way":
        links = links | {(j, i): 1 for i, j in links}
    design = assemble(instance, links, [(0, forth, 0.5), (0, back, 0.5)], {})
    assert evaluate(instance, design).objective == pytest.approx(lower_bound(instance), rel=1e-12)


def test_lower_bound_is_a_time():
    n, unit = 4, 1 - np.eye(4)
    none = TopologyInstance(
        name="a", servers=n, degree=3, link_bandwidth_bytes_per_s=10, traffic_bytes=unit, compute_s=2
    )
    full = TopologyInstance(
        name="a", servers=n, degree=3, link_bandwidth_bytes_per_s=10, traffic_bytes=unit, compute_s=2, overlap="full"
    )
    assert lower_bound(none) == pytest.approx(2.1)
    assert lower_bound(full) == 2.0


@pytest.mark.parametrize(
    "instance",
    [
        all_to_all(4, 1, optics="duplex"),
        all_to_all(4, 2, host_forwarding=False),
        job(
            np.zeros((4, 4)),
            1,
            optics="duplex",
            allreduce_groups=(AllReduceGroup(members=(0, 1, 2), gradient_bytes=1),),
        ),
    ],
)
def test_hopeless_degrees_are_refused(instance):
    with pytest.raises(InfeasibleError, match="server 0 must send to"):
        congestion_bounds(instance)


@pytest.mark.parametrize(
    ("degree", "duplex", "sizes"), [(2, False, [2, 4, 8, 1]), (3, True, [3, 6, 6]), (1, True, [1])]
)
def test_level_sizes(degree, duplex, sizes):
    assert list(level_sizes(15, degree, duplex)) == sizes


def regular_network(rng, n, degree):
    counts = {}
    for _ in range(degree):
        order = rng.permutation(n).tolist()
        for arc in zip(order, [*order[1:], order[0]], strict=True):
            counts[arc] = counts.get(arc, 0) + 1
    return counts


@pytest.mark.parametrize(("n", "degree", "seed"), [(6, 2, 0), (8, 2, 1), (12, 3, 2)])
def test_metric_bound_holds_for_any_lengths_and_dual_values_attain_it(n, degree, seed):
    rng = np.random.default_rng(seed)
    instance, counts = job(random_traffic(rng, n), degree), regular_network(rng, n, degree)
    optimum = best_routing(instance, counts)
    found = polish(balance(Job(instance), heads_of(instance, counts)))
    arcs = np.flatnonzero(np.isfinite(found.length)).tolist()  # parallel links are one arc
    lengths = {(a // degree, int(found.heads.flat[a])): float(found.length[a]) for a in arcs}
    assert metric_bound(instance, counts, lengths) == pytest.approx(optimum, rel=1e-5)
    for _ in range(5):
        drawn = {arc: float(rng.random()) for arc in counts}
        assert 0 < metric_bound(instance, counts, drawn) <= optimum * (1 + 1e-9)


def test_metric_bound_of_unit_lengths_is_hops_over_links():
    instance = all_to_all(5, 2)
    counts = {(i, (i + 1) % 5): 2 for i in range(5)}
    assert metric_bound(instance, counts, dict.fromkeys(counts, 1.0)) == 5 * (1 + 2 + 3 + 4) / 10
    for wrong in ({}, dict.fromkeys(counts, -1.0)):
        with pytest.raises(ValueError, match="lengths"):
            metric_bound(instance, counts, wrong)


def test_metric_bound_counts_the_cheapest_successors_of_a_group():
    group = AllReduceGroup(members=(0, 1, 2), gradient_bytes=3)
    instance = job(np.zeros((3, 3)), 1, allreduce_groups=(group,))
    circle = {(0, 1): 1, (1, 2): 1, (2, 0): 1}
    assert metric_bound(instance, circle, dict.fromkeys(circle, 1.0)) == 4
    with pytest.raises(InfeasibleError, match="no links"):
        metric_bound(instance, {}, {})
    with pytest.raises(InfeasibleError, match="without any successor"):
        metric_bound(instance, {(0, 1): 1, (1, 2): 1}, {(0, 1): 1.0})


def test_metric_bound_without_forwarding_is_the_load_itself():
    traffic = np.zeros((3, 3))
    traffic[0, 1], traffic[1, 2] = 5, 9
    instance = job(traffic, 2, host_forwarding=False)
    counts = {(0, 1): 1, (1, 2): 2, (2, 0): 1, (0, 2): 1}
    assert metric_bound(instance, counts, {(0, 1): 1.0}) == 5
    assert metric_bound(instance, counts, {(1, 2): 1.0}) == 4.5


@pytest.mark.parametrize("forwarding", [True, False])
def test_metric_bound_says_that_somebody_is_cut_off(forwarding):
    traffic = np.zeros((4, 4))
    traffic[0, 2] = 1
    instance = job(traffic, 1, host_forwarding=forwarding)
    counts = {(0, 1): 1, (1, 0): 1, (2, 3): 1, (3, 2): 1}
    with pytest.raises(InfeasibleError, match="from server 0 to server 2"):
        metric_bound(instance, counts, dict.fromkeys(counts, 1.0))


def test_metric_bound_of_duplex_links_counts_both_directions():
    instance = all_to_all(4, 2, optics="duplex")
    ring = TopologyDesign(instance="job", links=((0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 3, 1)))
    counts = ring.link_counts(instance)
    assert metric_bound(instance, counts, dict.fromkeys(counts, 1.0)) == pytest.approx(2.0)


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("silent", [False, True])
def test_no_duplex_links_of_an_odd_number_of_servers_join_more_pairs(degree, silent):
    """Some links attain the first figure, and where a server has no bytes, so that it needs no link, none exceeds."""
    traffic = np.ones((5, 5)) - np.eye(5)
    if silent:
        traffic[4], traffic[:, 4] = 0, 0
    instance = job(traffic, degree, optics="duplex")
    most = np.zeros(4, dtype=int)
    for links in link_choices(instance):
        lengths = np.full((5, 5), inf)
        lengths[tuple(zip(*links, strict=True))] = 1
        distance = shortest_path(lengths)
        np.fill_diagonal(distance, inf)
        if not silent and np.isinf(distance).sum() > 5:
            continue  # no design: somebody is out of reach
        most = np.maximum(most, [(distance <= hops).sum() for hops in range(1, 5)])
    limits = pairs_within(instance)
    assert limits
    assert limits[0] == degree * 4 == most[0]
    assert all(found <= limit for found, limit in zip(most, limits, strict=False))


def test_a_server_that_planes_leave_out_makes_ways_longer():
    """Seven servers, degree 2: links are a path at best, on which hops add up to 112, and there are 12 directions."""
    bounds = congestion_bounds(all_to_all(7, 2, optics="duplex"))
    assert bounds["moore"] == pytest.approx((42 + (42 - 12) + (42 - 22) + (42 - 34)) / 12)
    assert float(exact_lower_bound(all_to_all(7, 2, optics="duplex"))) == pytest.approx(max(bounds.values()))


@pytest.mark.parametrize("optics", ["one_way", "duplex"])
def test_least_hop_bytes_are_those_of_the_moore_bound_and_those_of_a_sum_are_no_less(optics):
    rng, duplex = np.random.default_rng(0), optics == "duplex"
    for density in (0.2, 1.0):
        first, second = (random_traffic(rng, 9, density) for _ in range(2))
        least = [least_hop_bytes(traffic, 2, duplex) for traffic in (first, second, first + second)]
        assert least[0] + least[1] <= least[2] * (1 + 1e-12)
        assert least[0] >= first.sum()
        even = first + first.T
        bound = congestion_bounds(job(even, 2, optics=optics))["moore"]
        capacity = 2 * (8 if duplex else 9)
        if duplex:  # whom planes leave out is known to the bound only
            assert least_hop_bytes(even, 2, duplex) <= bound * capacity
        else:
            assert least_hop_bytes(even, 2, duplex) == pytest.approx(bound * capacity, rel=1e-12)


@pytest.mark.parametrize("duplex", [False, True])
def test_least_hop_bytes_of_a_star_take_both_ways_at_any_size(monkeypatch, duplex):
    # Whoever is within h hops of the centre, on the way there and on the way back.
    star = np.zeros((40, 40))
    star[7] = star[:, 7] = 1
    star[7, 7] = 0
    hops = 2 * sum(level * size for level, size in enumerate(level_sizes(39, 3, duplex), start=1))
    assert least_hop_bytes(star, 3, duplex) == pytest.approx(hops)
    monkeypatch.setattr("ddlopt.models.topology.hop_bytes._EFFORT", Effort(priced_servers=10))
    assert least_hop_bytes(star, 3, duplex) == pytest.approx(hops)


@pytest.mark.parametrize("parallel", [True, False])
def test_no_float_gets_into_the_bound_in_whole_numbers(parallel):
    rng, groups = np.random.default_rng(3), [((0, 1, 2), 1e20), ((1, 4), 0.3)]
    instance = job(random_traffic(rng, 5) / 7, 3, groups, optics="duplex", parallel_links=parallel)
    sizes, unit = exact_sizes(instance)
    figures = unit, sizes.beside, *sizes.node.flat, *sizes.pairs.flat, *chain(*sizes.under_way)
    assert {type(figure) for figure in figures} == {int}
    assert all(isinstance(bound, int | Fraction) for bound in sizes.bounds().values())
    assert float(exact_lower_bound(instance)) == pytest.approx(lower_bound(instance), rel=1e-9)


def additive(rng, n):
    """Bytes a_i + a_j, as of embedding tables of which server i has some."""
    parts = rng.integers(0, 4, n).astype(float)
    traffic = parts[:, None] + parts
    np.fill_diagonal(traffic, 0)
    return traffic, parts


@for_each(("n", "degree", "seed"), [(9, 2, 0), (12, 3, 1), (16, 4, 2), (40, 3, 3)])
def test_parts_of_sums_are_near_neither_in_rows_nor_in_columns(n, degree, seed):
    # Bytes times hops are Σ a_i (hops from i and to i), whatever is next to whom.
    traffic, parts = additive(np.random.default_rng(seed), n)
    hops = sum(level * size for level, size in enumerate(level_sizes(n - 1, degree, False), start=1))
    assert least_hop_bytes(traffic, degree, False) == pytest.approx(2 * hops * parts.sum(), rel=1e-12)
    instance = job(traffic, degree)
    assert lower_bound(instance) >= 2 * hops * parts.sum() / (n * degree) * (1 - 1e-12)
    assert abs(float(exact_lower_bound(instance)) / lower_bound(instance) - 1) < 1e-9


@for_each(("degree", "seed"), some(product([1, 2], range(4)), 2, of=lambda each: each[0]))
def test_no_bound_exceeds_the_optimum_of_sums(degree, seed):
    instance = job(additive(np.random.default_rng(seed), 4)[0], degree)
    assert max(congestion_bounds(instance).values()) <= best_links_and_routing(instance) * (1 + 1e-9)
