"""Fixed links: known optima, hand-made cases, and circulants against their single-source collapse."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from topology_cases import all_to_all, job
from volume import for_each

from ddlopt.models.topology import AllReduceGroup, evaluate
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact


def circulant(n, generators, duplex=False):
    arcs = sorted((i, (i + g) % n, 1) for i in range(n) for g in generators)
    return tuple(sorted({(min(i, j), max(i, j), 1) for i, j, _ in arcs})) if duplex else tuple(arcs)


def busiest(x, links, rings="generators"):
    result = Exact("fixed-links", "topology", RingsAndRoutes(rings, links=links)).solve(x, Limits())
    assert result.checked
    assert result.scope == "fixed links"
    assert result.scope_bound == pytest.approx(result.objective)
    return result.objective, result.solution


def collapsed(n, generators):
    """Least load when all commodities are shifts of one single-source flow."""
    k = len(generators)
    column = {(u, g): u * k + a for u in range(n) for a, g in enumerate(generators)}
    conservation = np.zeros((n - 1, n * k + 1))
    for v in range(1, n):
        for g in generators:
            conservation[v - 1, column[(v - g) % n, g]] += 1
            conservation[v - 1, column[v, g]] -= 1
    load = np.zeros((k, n * k + 1))
    for a, g in enumerate(generators):
        load[a, [column[u, g] for u in range(n)]] = 1
    load[:, -1] = -1
    cost = np.zeros(n * k + 1)
    cost[-1] = 1
    return linprog(cost, load, np.zeros(k), conservation, np.ones(n - 1), bounds=(0, None)).fun


@for_each(
    ("n", "generators", "published"),
    [(8, (1, 3), 7.0), (12, (1, 5), 15.0), (12, (1, 3, 4), 8.25), (10, (1, 3, 7), 17 / 3), (16, (1, 4, 5), 12.0)],
)
def test_all_commodities_equal_the_collapse_on_circulants(n, generators, published):
    z, _ = busiest(all_to_all(n, degree=len(generators)), circulant(n, generators))
    assert z == pytest.approx(collapsed(n, generators))
    assert z == pytest.approx(published)


def test_two_coprime_rings_share_a_gradient():
    group = AllReduceGroup(members=tuple(range(8)), gradient_bytes=8.0)
    z, design = busiest(job(np.zeros((8, 8)), allreduce_groups=[group]), circulant(8, (1, 3)))
    assert z == pytest.approx(2 * 7 / 8 * 8 / 2)
    assert sum(ring.share for ring in design.rings) == pytest.approx(1)


def test_a_ring_hop_without_link_is_forwarded():
    """Members 0 and 2 of a directed 4-ring: hops 0-1-2 and 2-3-0."""
    group = AllReduceGroup(members=(0, 2), gradient_bytes=6.0)
    z, design = busiest(job(np.zeros((4, 4)), allreduce_groups=[group]), circulant(4, (1,)))
    assert z == pytest.approx(6.0)
    assert design.rings[0].paths == ((0, 1, 2), (2, 3, 0))


def test_traffic_splits_over_paths():
    traffic = np.zeros((3, 3))
    traffic[0, 2] = 3.0
    z, design = busiest(job(traffic), ((0, 1, 1), (1, 2, 1), (0, 2, 1)))
    assert z == pytest.approx(1.5)
    assert sorted(design.routes[0].paths) == [(0, 1, 2), (0, 2)]


def test_parallel_links_share_the_load():
    traffic = np.zeros((3, 3))
    traffic[0, 1] = 3.0
    assert busiest(job(traffic), ((0, 1, 2),))[0] == pytest.approx(1.5)


def test_duplex_links_carry_both_ways():
    x = all_to_all(6, optics="duplex", degree=2)
    z, design = busiest(x, circulant(6, (1,), duplex=True))
    assert z == pytest.approx(9 / 2)
    assert not evaluate(x, design, exact=True).violations


def test_without_forwarding_only_rings_over_links_count():
    group = AllReduceGroup(members=(0, 1, 2, 3, 4), gradient_bytes=5.0)
    x = job(np.zeros((5, 5)), allreduce_groups=[group], host_forwarding=False)
    z, design = busiest(x, circulant(5, (1, 2)))
    assert z == pytest.approx(4.0)
    assert {ring.members[1] for ring in design.rings} == {1, 2}
    z, design = busiest(x, circulant(5, (1,)))
    assert z == pytest.approx(8.0)


def test_rings_can_be_given():
    group = AllReduceGroup(members=(0, 1, 2, 3), gradient_bytes=4.0)
    x = job(np.zeros((4, 4)), allreduce_groups=[group])
    order = (0, 2, 1, 3)
    links = tuple((i, j, 2) for i, j in zip(order, order[1:] + order[:1], strict=True))
    assert busiest(x, links, (((order),),))[0] == pytest.approx(3.0)
    assert busiest(x, links)[0] > 3.0 + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_more_links_never_hurt(seed):
    rng = np.random.default_rng(seed)
    traffic = rng.integers(1, 9, (6, 6)).astype(float)
    np.fill_diagonal(traffic, 0)
    x = job(traffic, degree=3)
    z, _ = busiest(x, circulant(6, (1, 2)))
    assert busiest(x, circulant(6, (1, 2, 5)))[0] <= z + 1e-9


def test_links_that_do_not_connect_have_no_design():
    x = all_to_all(4)
    result = Exact("fixed-links", "topology", RingsAndRoutes(links=circulant(4, (2,)))).solve(x, Limits())
    assert result.status is Status.NO_SOLUTION
    assert "fixed links" in result.message


def test_links_and_rings_of_another_instance_are_refused():
    group = AllReduceGroup(members=(0, 1, 2), gradient_bytes=1.0)
    x = job(np.zeros((3, 3)), allreduce_groups=[group])
    assert "(0, 3)" in RingsAndRoutes(links=((0, 3, 1),)).refuses(x)
    assert "0 all-reduce groups" in RingsAndRoutes((), links=()).refuses(x)
    assert "allreduce_groups[0]" in RingsAndRoutes((((0, 1),),), links=()).refuses(x)
    assert RingsAndRoutes(links=circulant(3, (1,))).refuses(x) is None


def test_every_pair_of_a_clean_answer_is_routed():
    x = all_to_all(5)
    _, design = busiest(x, circulant(5, (1, 2)))
    assert {(route.source, route.target) for route in design.routes} == set(itertools.permutations(range(5), 2))
