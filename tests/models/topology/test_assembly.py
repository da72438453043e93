"""Flows become paths, paths become designs, and no load changes on the way."""

import itertools
from collections import defaultdict

import numpy as np
import pytest
from topology_cases import job
from volume import for_each, seeds

from ddlopt.models.errors import SolverError
from ddlopt.models.topology import evaluate
from ddlopt.models.topology.assembly import assemble, decompose


def arc_flow_of(paths, arcs, servers):
    """(n, m) flow by source of path flows."""
    place = {arc: a for a, arc in enumerate(arcs)}
    flow = np.zeros((servers, len(arcs)))
    for (source, _), spread in paths.items():
        for path, amount in spread:
            for arc in itertools.pairwise(path):
                flow[source, place[arc]] += amount
    return flow


def random_flow(servers, degree, seed):
    """Arcs of a random digraph with a ring, demand, and a flow that serves it over random simple paths."""
    rng = np.random.default_rng(seed)
    arcs = sorted(
        {(i, (i + 1) % servers) for i in range(servers)}
        | {(i, int(j)) for i in range(servers) for j in rng.choice(servers, degree, replace=False) if i != j}
    )
    following = defaultdict(list)
    for i, j in arcs:
        following[i].append(j)
    paths, demand = {}, np.zeros((servers, servers))
    for s, t in itertools.permutations(range(servers), 2):
        for _ in range(2):
            here, path = s, [s]
            while here != t:
                here = int(rng.choice(following[here]))
                path.append(here)
            amount = float(rng.integers(1, 9))
            demand[s, t] += amount
            paths.setdefault((s, t), []).append((tuple(path), amount))
    return arcs, demand, arc_flow_of(paths, arcs, servers)


@for_each("noise", [0.0, 1e-9])
@for_each("seed", seeds(4, 5))
def test_decompose_meets_demand_and_never_adds_load(seed, noise):
    arcs, demand, flow = random_flow(9, 2, seed)
    noisy = flow + noise * np.random.default_rng(seed).uniform(-1, 1, flow.shape)
    paths = decompose(arcs, noisy, demand)
    for s, t in itertools.permutations(range(9), 2):
        assert sum(amount for _, amount in paths[s, t]) == pytest.approx(demand[s, t], rel=1e-12)
        for path, amount in paths[s, t]:
            assert amount > 0
            assert path[0] == s
            assert path[-1] == t
            assert len(set(path)) == len(path), "walks in the flow hold cycles, paths must not"
            assert set(itertools.pairwise(path)) <= set(arcs)
    assert (arc_flow_of(paths, arcs, 9) <= flow + 1e-6).all()


def test_a_cycle_in_the_flow_is_dropped():
    arcs = [(0, 1), (1, 2), (2, 3), (3, 1)]
    demand = np.zeros((4, 4))
    demand[0, 1] = 1.0
    flow = np.zeros((4, 4))
    flow[0] = [1, 5, 5, 5]
    assert decompose(arcs, flow, demand) == {(0, 1): [((0, 1), 1.0)]}


def test_flow_short_of_the_demand_is_scaled_up():
    demand = np.array([[0, 4.0], [0, 0]])
    assert decompose([(0, 1)], np.array([[4.0 - 1e-7], [0.0]]), demand) == {(0, 1): [((0, 1), 4.0)]}


def test_demand_drowned_in_noise_takes_a_shortest_path():
    demand = np.array([[0, 1e9, 1e-6], [0, 0, 0], [0, 0, 0]])
    paths = decompose([(0, 1), (1, 2)], np.array([[1e9, 0], [0, 0], [0, 0]]), demand)
    assert paths[0, 2] == [((0, 1, 2), 1e-6)]


def test_unreachable_demand_is_an_error():
    with pytest.raises(SolverError, match="server 2 must get traffic from server 0"):
        decompose([(0, 1)], np.zeros((3, 1)), np.array([[0, 0, 1.0], [0, 0, 0], [0, 0, 0]]))


@pytest.mark.slow
def test_decompose_large():
    n, generators = 128, (1, 5, 25, 61)
    arcs = [(i, (i + g) % n) for i in range(n) for g in generators]
    rng = np.random.default_rng(0)
    demand = rng.integers(1, 100, (n, n)).astype(float)
    np.fill_diagonal(demand, 0)
    flow = np.zeros((n, len(arcs)))
    for s, t in itertools.permutations(range(n), 2):
        here, left = s, (t - s) % n
        while left:
            g = max(k for k, g in enumerate(generators) if g <= left)
            flow[s, 4 * here + g] += demand[s, t]
            here, left = (here + generators[g]) % n, left - generators[g]
    paths = decompose(arcs, flow, demand)
    assert len(paths) == n * (n - 1)
    assert arc_flow_of(paths, arcs, n) == pytest.approx(flow)


def test_assembled_design_is_clean_and_keeps_every_load():
    """Two ring hops split over paths: the coupling makes rings of one path a hop with the same link loads."""
    x = job(np.zeros((4, 4)), groups=[((0, 1, 2, 3), 4.0)])
    links = {(i, (i + g) % 4): 1 for i in range(4) for g in (1, 2)}
    paths = {(0, 1): [((0, 1), 3.0), ((0, 2, 3, 1), 1.0)], (1, 2): [((1, 2), 0.5), ((1, 3, 0, 2), 0.5)]}
    design = assemble(x, links, [(0, (0, 1, 2, 3), 2.0)], paths)
    assert not evaluate(x, design).violations
    assert sum(ring.share for ring in design.rings) == pytest.approx(1)
    assert all(len(ring.paths) == 4 for ring in design.rings)
    assert len(design.rings) == 3
    marginal = defaultdict(float)
    for ring in design.rings:
        for path in ring.paths:
            marginal[path] += ring.share
    assert dict(marginal) == pytest.approx(
        {(0, 1): 0.75, (0, 2, 3, 1): 0.25, (1, 2): 0.5, (1, 3, 0, 2): 0.5, (2, 3): 1.0, (3, 0): 1.0}
    )


@for_each("seed", range(4))
def test_coupling_keeps_marginals(seed):
    rng = np.random.default_rng(seed)
    x = job(np.zeros((5, 5)), degree=4, groups=[((0, 1, 2, 3, 4), 1.0)])
    links = dict.fromkeys(itertools.permutations(range(5), 2), 1)
    order = (0, 2, 4, 1, 3)
    paths, wanted = {}, {}
    for s, t in zip(order, order[1:] + order[:1], strict=True):
        middle = [v for v in range(5) if v not in (s, t)]
        weights = rng.dirichlet(np.ones(4))
        paths[s, t] = [((s, t), weights[0]), *(((s, v, t), w) for v, w in zip(middle, weights[1:], strict=True))]
        wanted |= dict(paths[s, t])
    design = assemble(x, links, [(0, order, 1.0)], paths)
    assert not evaluate(x, design).violations
    assert len(design.rings) <= 20 - 5 + 1
    marginal = defaultdict(float)
    for ring in design.rings:
        for path in ring.paths:
            marginal[path] += ring.share
    assert dict(marginal) == pytest.approx(wanted)


def test_negligible_shares_and_fractions_are_dropped():
    traffic = np.zeros((3, 3))
    traffic[0, 1] = 7.0
    x = job(traffic, groups=[((0, 1, 2), 1.0)])
    links = {(i, (i + g) % 3): 1 for i in range(3) for g in (1, 2)}
    rings = [(0, (0, 1, 2), 1.0), (0, (0, 2, 1), 1e-11)]
    design = assemble(x, links, rings, {(0, 1): [((0, 1), 7.0), ((0, 2, 1), 1e-9)]})
    assert [(ring.members, ring.share) for ring in design.rings] == [((0, 1, 2), 1.0)]
    assert [(route.paths, route.fractions) for route in design.routes] == [(((0, 1),), (1.0,))]
    assert not evaluate(x, design, exact=True).violations


def test_duplex_designs_get_planes():
    traffic = np.ones((6, 6)) - np.eye(6)
    x = job(traffic, optics="duplex", degree=3)
    links = {(0, 1): 1, (1, 2): 1, (0, 2): 1, (3, 4): 1, (4, 5): 1, (3, 5): 1, (0, 3): 1, (1, 4): 1, (2, 5): 1}
    arcs = [*links, *((j, i) for i, j in links)]
    flow = decompose(arcs, np.zeros((6, len(arcs))), traffic)
    design = assemble(x, links, [], flow)
    assert len(design.planes) == 3
    assert not evaluate(x, design).violations
    assert design.instance_digest == x.digest


def test_impossible_designs_are_refused_in_one_line():
    ring = job([[0, 1, 0], [0, 0, 0], [0, 0, 0]], optics="duplex")
    with pytest.raises(SolverError, match=r"no 2 matchings were found that hold all 3 links"):
        assemble(ring, {(0, 1): 1, (1, 2): 1, (0, 2): 1}, [], {})
    with pytest.raises(SolverError, match=r"server 0 has neither a path nor a link to server 1"):
        assemble(ring, {(1, 2): 1}, [], {})
    group = job(np.zeros((3, 3)), groups=[((0, 1), 1.0)])
    with pytest.raises(SolverError, match=r"allreduce_groups\[0\] got no ring"):
        assemble(group, {(0, 1): 1, (1, 0): 1}, [], {})
