"""Fixed routes: what they promise is what a plan that takes them evaluates to."""

import itertools

import numpy as np
import pytest
from volume import for_each

from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import evaluate, job_of
from ddlopt.models.codesign.formulations.rows.coupling import plan_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.topology import TopologyDesign
from ddlopt.solvers.codesign.fixed_routes import FixedRoutes
from ddlopt.solvers.codesign.planes import answer_topology
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.topology.link_exchange.link_exchange import LinkExchange


def drawn(seed, **options):
    """A small job, strategies for it and others that might come in their place."""
    rng = np.random.default_rng(seed)
    instance = random_job(
        rng,
        servers=(4, 6, 8, 9)[seed % 4],
        degree=2 + seed % 2,
        optics=("one_way", "duplex")[seed % 3 == 0],
        overlap=("none", "full")[seed % 2],
        traffic=0.3,
        **options,
    )
    first, *others = (tuple(rng.integers(size) for size in tables_of(instance).sizes) for _ in range(6))
    return instance, first, others


def two_halves(instance):
    """A ring over one half of the servers and another one over the other half."""
    half = instance.servers // 2
    rings = tuple((i + far, (i + 1) % half + far, 1) for i in range(half) for far in (0, half))
    return TopologyDesign(instance="two rings apart", links=rings)


@for_each("paths_per_pair", [1, 3])
@for_each("seed", range(8))
def test_a_plan_takes_the_time_promised(seed, paths_per_pair):
    instance, first, others = drawn(seed)
    design, _, _ = answer_topology(job_of(instance, first), "topology-finder", Limits(), seed)
    routes = FixedRoutes.of(instance, design, first, paths_per_pair, seed)
    served = [choices for choices in [first, *others] if np.isfinite(routes.time_s(choices))]
    assert first in served
    for choices in served:
        checked = evaluate(instance, plan_of(instance, choices, routes.design_for(choices)))
        assert checked.feasible
        assert float(checked.objective) == pytest.approx(routes.time_s(choices), rel=1e-12)
        congestion = checked.details.get("max_link_load_bytes", 0.0)
        assert float(congestion) == pytest.approx(routes.congestion_bytes(choices), rel=1e-12)


@pytest.mark.parametrize("seed", [1, 3])
def test_the_designs_own_rings_and_routes_are_kept(seed):
    """Also where a pair has several paths and a group unequal shares."""
    instance, first, _ = drawn(seed)
    job = job_of(instance, first)
    result = LinkExchange(effort=0.05).solve(job, Limits())
    assert any(len(route.paths) > 1 for route in result.solution.routes)
    routes = FixedRoutes.of(instance, result.solution, first)
    assert routes.congestion_bytes(first) == pytest.approx(result.details["max_link_load_bytes"], rel=1e-9)
    assert FixedRoutes.of(instance, result.solution).congestion_bytes(first) > routes.congestion_bytes(first) * 1.001


def test_loads_are_linear_in_the_bytes():
    instance, first, others = drawn(2)
    design, _, _ = answer_topology(job_of(instance, first), "topology-finder", Limits(), 0)
    routes = FixedRoutes.of(instance, design, first)
    reduced, moved = routes.arc_loads
    for choices in others:
        by_set, by_pattern = tables_of(instance).bytes_of(choices)
        assert (reduced @ by_set + moved @ by_pattern).max() == pytest.approx(routes.congestion_bytes(choices))


def test_a_pair_is_split_over_shortest_paths_only():
    instance, _, _ = drawn(2, density=1.0)
    n = instance.servers
    design = TopologyDesign(
        instance="two rings", links=tuple((i, (i + step) % n, 1) for i in range(n) for step in (1, 3))
    )
    ways = FixedRoutes.of(instance, design, paths_per_pair=4).ways
    distances = FixedRoutes.of(instance, design).network.distances
    several = 0
    for place, (i, j) in enumerate(ways.pairs.tolist()):
        paths = ways.paths.of_pair(place)
        own = ways.fractions[ways.paths.owned[place] : ways.paths.owned[place + 1]]
        assert own.sum() == pytest.approx(1)
        assert {len(path) - 1 for path in paths} == {distances[i, j]}
        several += len(paths) > 1
    assert several


def blocked(routes):
    """Of group sets, and of patterns."""
    return np.split(routes.without_way, [len(tables_of(routes.instance).groups_of)])


def test_what_has_no_way_is_blocked():
    """Over a one-way ring everything goes; over a ring with a gap, or without forwarding, only some of it."""
    instance, _, _ = drawn(1)
    n = instance.servers
    whole = TopologyDesign(instance="ring", links=tuple((i, (i + 1) % n, 1) for i in range(n)))
    gap = TopologyDesign(instance="path", links=whole.links[:-1])
    assert not any(part.any() for part in blocked(FixedRoutes.of(instance, whole)))
    cut = FixedRoutes.of(instance, gap)
    assert blocked(cut)[0].all()  # no ring closes over a path
    assert blocked(cut)[1].any()
    idle = FixedRoutes.of(instance, None)
    assert all(part.all() for part in blocked(idle))
    direct = instance.from_data(instance.model_dump(mode="json") | {"host_forwarding": False})
    strict = FixedRoutes.of(direct, whole)
    joined = {(i, (i + 1) % n) for i in range(n)}
    for number, pattern in enumerate(tables_of(direct).patterns):
        pairs = set(zip(*(ends.tolist() for ends in pattern.unit.nonzero()), strict=True))
        assert blocked(strict)[1][number] == (not pairs <= joined)
    everybody = (tuple(range(n)),)
    assert blocked(strict)[0].tolist() == [groups != everybody for groups in direct.group_sets]
    for routes in (cut, idle, strict):
        for part, stuck in zip(routes.arc_loads, blocked(routes), strict=True):
            if len(part):
                assert (np.isinf(part).any(axis=0) == stuck).all()


def test_blocked_choices_take_for_ever_and_others_do_not():
    instance = random_job(np.random.default_rng(4), layers=3, strategies=5, reduction=0.3, density=0.3)
    routes = FixedRoutes.of(instance, two_halves(instance))
    finite = 0
    for choices in itertools.product(*map(range, tables_of(instance).sizes)):
        by_set, by_pattern = tables_of(instance).bytes_of(choices)
        stuck = (by_set[blocked(routes)[0]] > 0).any() or (by_pattern[blocked(routes)[1]] > 0).any()
        assert np.isinf(routes.time_s(choices)) == stuck
        if not stuck:
            finite += 1
            checked = evaluate(instance, plan_of(instance, choices, routes.design_for(choices)))
            assert checked.feasible
            assert float(checked.objective) == pytest.approx(routes.time_s(choices))
    assert finite
