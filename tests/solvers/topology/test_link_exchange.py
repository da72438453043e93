"""The link search: its moves keep designs realisable, and what it finds is good, valid and reproducible."""

import networkx as nx
import numpy as np
import pytest
from volume import for_each, some

from ddlopt.instances import load
from ddlopt.models.errors import OptionError
from ddlopt.models.topology import AllReduceGroup, TopologyInstance, evaluate
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.topology.balance.balance import Job
from ddlopt.solvers.topology.link_exchange import link_exchange
from ddlopt.solvers.topology.link_exchange.link_exchange import Budgets, LinkExchange
from ddlopt.solvers.topology.link_exchange.moves import MOST_CHANGES, follow, hop_volume, move, undo
from ddlopt.solvers.topology.link_exchange.starts import circulant_starts, cycles_of, random_start
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder


def make_instance(n, d, traffic=None, groups=(), **options):
    return TopologyInstance(
        name="test",
        servers=n,
        degree=d,
        link_bandwidth_bytes_per_s=1.0,
        traffic_bytes=np.ones((n, n)) - np.eye(n) if traffic is None else traffic,
        allreduce_groups=tuple(AllReduceGroup(members=m, gradient_bytes=b) for m, b in groups),
        **options,
    )


def assert_realisable(heads, instance, cycles):
    n, d = heads.shape
    assert (heads != np.arange(n)[:, None]).all()
    if instance.optics == "duplex":
        for column in heads.T:
            joined = np.flatnonzero(column >= 0)
            assert (column[column[joined]] == joined).all()
    else:
        assert (np.bincount(heads[heads >= 0], minlength=n) <= d).all()
    if not instance.parallel_links:
        assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in heads)
    ring = np.empty(n, np.int64)
    for first, second in cycles:
        assert follow(heads, first, second, ring)
        assert sorted(ring.tolist()) == list(range(n))


KINDS = [
    (n, d, optics, parallel, closed)
    for n, d in [(8, 3), (7, 3), (10, 4)]
    for optics in ("one_way", "duplex")
    for parallel in (True, False)
    for closed in (0, 2, d)
    if not (optics == "duplex" and n % 2 and closed)
]


@for_each(("n", "d", "optics", "parallel", "closed"), KINDS)
def test_moves_keep_degrees_planes_and_cycles(n, d, optics, parallel, closed):
    instance = make_instance(n, d, optics=optics, parallel_links=parallel)
    start = random_start(instance, closed, np.random.default_rng(3))
    heads, changes = start.heads.copy(), np.empty((MOST_CHANGES, 3), np.int64)
    assert_realisable(heads, instance, start.cycles)
    done = 0
    for _ in range(150):
        before = heads.copy()
        count = move(heads, start.cycles, optics == "duplex", parallel, 0.2, changes)
        done += count != 0
        assert_realisable(heads, instance, start.cycles)
        if count and done % 3 == 0:
            undo(heads, changes, count)
            # Planes may have swapped colours for good; the links are as before.
            assert (np.sort(heads, axis=1) == np.sort(before, axis=1)).all()
    assert done > 20
    assert (np.sort(heads, axis=1) != np.sort(start.heads, axis=1)).any()


@pytest.mark.parametrize("n", [5, 64, 70, 130])
def test_hop_volume_counts_hops(n):
    rng = np.random.default_rng(n)
    heads = random_start(make_instance(n, 3), 0, rng).heads
    traffic = rng.random((n, n))
    np.fill_diagonal(traffic, 0)
    graph = nx.DiGraph([(v, int(w)) for v, row in enumerate(heads) for w in row])
    expected = sum(traffic[s, t] * h for s, to in nx.all_pairs_shortest_path_length(graph) for t, h in to.items())
    assert hop_volume(heads, traffic, True) == pytest.approx(expected)
    cut = heads.copy()
    cut[0] = -1
    left = graph.copy()
    left.remove_edges_from(list(graph.out_edges(0)))
    rest = sum(traffic[s, t] * h for s, to in nx.all_pairs_shortest_path_length(left) for t, h in to.items())
    lost = n * sum(traffic[s, t] for s in left for t in left if not nx.has_path(left, s, t))
    assert hop_volume(cut, traffic, True) == pytest.approx(rest + lost)


@for_each("d", [2, 3, 4, 5])
def test_duplex_planes_close_pairwise(d):
    assert (
        cycles_of(make_instance(8, d, optics="duplex"), d).tolist()
        == {2: [[0, 1]], 3: [[0, 1], [0, 2], [1, 2]], 4: [[0, 1], [2, 3]], 5: [[0, 1], [2, 3], [2, 4], [3, 4]]}[d]
    )


def test_circulants_with_least_hops():
    starts = list(circulant_starts(Job(make_instance(16, 4)), np.random.default_rng(0)))
    hops = [hop_volume(s.heads, np.ones((16, 16)) - np.eye(16), True) / 16 for s in starts]
    # Congestions of the best circulants, with any generators and with those prime to 16: 29 / 4 and 30 / 4.
    assert hops == [pytest.approx(29), pytest.approx(30)]


GRID = [
    (n, d, optics, parallel, forwarding, jobs)
    for n, d in [(4, 2), (7, 3), (8, 3)]
    for optics in ("one_way", "duplex")
    for parallel in (True, False)
    for forwarding in (True, False)
    for jobs in ("reduce", "traffic", "both")
]


@pytest.mark.parametrize(("n", "d", "optics", "parallel", "forwarding", "jobs"), some(GRID, GRID[::5]))
def test_every_kind_of_instance_gets_a_checked_design(n, d, optics, parallel, forwarding, jobs):
    rng = np.random.default_rng(n)
    traffic = np.zeros((n, n))
    if jobs != "reduce":
        for i, j in (
            ((0, 1), (1, 2), (3, 2)) if not forwarding else rng.permuted(np.indices((n, n)).reshape(2, -1).T)[:9]
        ):
            traffic[i, j] += i != j
    groups = [] if jobs == "traffic" else [((0, 1, 2, 3), 2.0)]
    instance = make_instance(n, d, traffic, groups, optics=optics, parallel_links=parallel, host_forwarding=forwarding)
    result = LinkExchange(effort=0.01).solve(instance, Limits())
    assert result.checked
    assert result.bound <= result.objective * (1 + 1e-9)
    assert result.objective == pytest.approx(float(evaluate(instance, result.solution, exact=True).objective), rel=1e-9)


def test_the_optimum_of_six_servers_all_to_all():
    result = LinkExchange(effort=0.2).solve(make_instance(6, 2), Limits())
    assert result.objective == pytest.approx(4.2, rel=1e-9)


def test_rings_that_fill_all_ports_are_optimal_at_once():
    n = 32
    for optics, d in (("one_way", 3), ("duplex", 3), ("duplex", 4)):
        instance = make_instance(n, d, np.zeros((n, n)), [(tuple(range(n)), 32.0)], optics=optics)
        result = LinkExchange().solve(instance, Limits())
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(62 / d)
        assert result.details["starts"] <= 1


def test_a_seed_gives_one_design_and_another_seed_another():
    instance = make_instance(9, 2, np.random.default_rng(5).random((9, 9)) * (1 - np.eye(9)))
    first, again, other = (LinkExchange(effort=0.02).solve(instance, Limits(), seed=seed) for seed in (1, 1, 2))
    assert first.solution == again.solution
    assert first.solution != other.solution


@pytest.mark.slow
def test_never_worse_than_the_start_given():
    instance = make_instance(8, 2, np.random.default_rng(5).random((8, 8)) * (1 - np.eye(8)))
    good = LinkExchange(effort=0.3).solve(instance, Limits(), seed=3)
    after = LinkExchange(effort=0.001).solve(instance, Limits(), seed=4, start=good.solution)
    assert after.objective <= good.objective * (1 + 1e-9)


@pytest.mark.slow
def test_progress_goes_down_and_the_time_limit_holds():
    instance = make_instance(14, 2)
    LinkExchange(effort=0.01).solve(instance, Limits())  # compiled by now
    seen = []
    result = LinkExchange(effort=100).solve(instance, Limits(time_s=0.5), progress=seen.append)
    assert result.runtime_s < 20
    assert [p.incumbent for p in seen] == sorted((p.incumbent for p in seen), reverse=True)
    assert seen[-1].incumbent == pytest.approx(result.objective)
    assert result.details["routing_gap"] == pytest.approx(0, abs=1e-6)


def test_says_what_it_cannot_do():
    with pytest.raises(OptionError, match="effort"):
        LinkExchange(effort=0)
    # A ring of three servers needs three duplex links, but two planes of three servers hold two.
    triangle = make_instance(
        3, 2, np.zeros((3, 3)), [((0, 1, 2), 1.0)], optics="duplex", parallel_links=False, host_forwarding=False
    )
    result = LinkExchange(effort=0.01).solve(triangle, Limits())
    assert (result.status, result.objective) == (Status.NO_SOLUTION, None)
    assert "no links were found" in result.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "objective"), [("danoint", 65.66666666666667), ("all-to-all-n8-d4", 2.5), ("all-to-all-n16-d2", 23.0)]
)
def test_bundled_optima_and_the_best_circulants_are_reached(name, objective):
    result = LinkExchange().solve(load(name), Limits())
    assert result.objective <= objective * (1 + 1e-7)


@pytest.mark.slow
@for_each("name", ["dlrm-n12-d4", "dlrm-n16-d4-duplex", "hybrid-n16-d4-s1", "ncf-n16-d4", "dlrm-n128-d4"])
def test_beats_topology_finder_where_there_is_a_gap(name):
    instance = load(name)
    finder = TopologyFinder().solve(instance, Limits())
    result = LinkExchange(effort=0.2).solve(instance, Limits(time_s=30))
    assert finder.gap > 1e-4
    assert result.objective < finder.objective
    assert result.gap < 0.005


def test_of_many_servers_a_design_is_told_before_any_search(monkeypatch):
    """A search for the first good links of 1 000 servers takes minutes, one design of random links seconds."""
    instance, told = make_instance(6, 2), []
    monkeypatch.setattr(link_exchange, "_BUDGETS", Budgets(many_servers=5))
    monkeypatch.setattr(link_exchange._Search, "_starts", lambda *_: iter(()))
    result = LinkExchange().solve(instance, Limits(60.0), progress=told.append)
    assert result.checked
    assert [point.incumbent for point in told][:1] == [result.objective]
    monkeypatch.setattr(link_exchange, "_BUDGETS", Budgets(many_servers=6))
    assert LinkExchange().solve(instance, Limits(60.0)).status is Status.NO_SOLUTION
