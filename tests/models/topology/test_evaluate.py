"""The independent check: hand-computed loads, and every kind of violation fires on a mutated good design."""

from fractions import Fraction

import numpy as np
import pytest
from volume import for_each

from ddlopt.models.errors import SolutionError
from ddlopt.models.topology import AllReduceGroup, Ring, Route, TopologyDesign, TopologyInstance, evaluate


def ring_instance(**changes):
    """Four servers with one transmitter each, all-to-all unit traffic and an all-reduce of 8 bytes."""
    data = {
        "name": "four",
        "servers": 4,
        "degree": 1,
        "link_bandwidth_bytes_per_s": 2.0,
        "traffic_bytes": np.ones((4, 4)) - np.eye(4),
        "allreduce_groups": (AllReduceGroup(members=(0, 1, 2, 3), gradient_bytes=8),),
        "compute_s": 5.0,
    }
    return TopologyInstance(**{**data, **changes})


def ring_design(**changes):
    """The +1 ring, everything routed around it."""
    data = {
        "instance": "four",
        "links": [(i, (i + 1) % 4, 1) for i in range(4)],
        "rings": [Ring(group=0, members=(0, 1, 2, 3), share=1, paths=[(i, (i + 1) % 4) for i in range(4)])],
        "routes": [
            Route(source=s, target=(s + k) % 4, paths=[tuple((s + hop) % 4 for hop in range(k + 1))], fractions=[1.0])
            for s in range(4)
            for k in (1, 2, 3)
        ],
    }
    return TopologyDesign(**{**data, **changes})


def duplex_instance(**changes):
    """Four servers, two duplex interfaces, traffic between opposite servers only."""
    traffic = np.zeros((4, 4))
    traffic[0, 2] = traffic[2, 0] = 6.0
    return ring_instance(optics="duplex", degree=2, allreduce_groups=(), traffic_bytes=traffic, **changes)


def duplex_design(**changes):
    """A duplex square; the traffic takes both ways round, two thirds and one third."""
    routes = [
        Route(source=0, target=2, paths=[(0, 1, 2), (0, 3, 2)], fractions=[2 / 3, 1 / 3]),
        Route(source=2, target=0, paths=[(2, 1, 0), (2, 3, 0)], fractions=[2 / 3, 1 / 3]),
    ]
    data = {
        "instance": "four",
        "links": [(0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 3, 1)],
        "planes": [[(0, 1), (2, 3)], [(1, 2), (0, 3)]],
        "routes": routes,
    }
    return TopologyDesign(**{**data, **changes})


def test_loads_of_a_ring_by_hand():
    # Every link carries 1 + 2 + 3 bytes of all-to-all and 2·3/4·8 = 12 of the all-reduce.
    evaluation = evaluate(ring_instance(), ring_design())
    assert evaluation.feasible
    assert evaluation.details["max_link_load_bytes"] == 18
    assert evaluation.objective == 5 + 18 / 2
    assert evaluation.details["bandwidth_tax"] == pytest.approx((4 * 18) / (12 + 48))
    assert evaluate(ring_instance(overlap="full"), ring_design()).objective == 9
    assert evaluate(ring_instance(overlap="full", compute_s=11.0), ring_design()).objective == 11


def test_parallel_links_share_their_load():
    design = ring_design(links=[(i, (i + 1) % 4, 2) for i in range(4)])
    assert evaluate(ring_instance(degree=2), design).details["max_link_load_bytes"] == 9


def test_duplex_links_carry_both_directions_at_full_bandwidth():
    evaluation = evaluate(duplex_instance(), duplex_design())
    assert evaluation.feasible
    assert evaluation.details["max_link_load_bytes"] == pytest.approx(4)


def test_exact_arithmetic_gives_the_rational_objective():
    group = AllReduceGroup(members=(0, 1, 2), gradient_bytes=1)
    traffic = np.zeros((4, 4))
    instance = ring_instance(servers=4, allreduce_groups=(group,), traffic_bytes=traffic, compute_s=0.0)
    paths = [(0, 1), (1, 2), (2, 3, 0)]
    design = ring_design(rings=[Ring(group=0, members=(0, 1, 2), share=1, paths=paths)], routes=[])
    evaluation = evaluate(instance, design, exact=True)
    assert evaluation.objective == Fraction(2, 3)  # 2·(3-1)/3 bytes over 2 bytes/s
    assert isinstance(evaluation.details["bandwidth_tax"], Fraction)


def test_exact_shares_sum_to_one_even_where_their_floats_do_not():
    tenths = [0.1] * 10
    assert sum(map(Fraction, tenths)) != 1
    rings = [ring_design().rings[0].model_copy(update={"share": share}) for share in tenths]
    evaluation = evaluate(ring_instance(), ring_design(rings=rings), exact=True)
    assert evaluation.feasible
    assert evaluation.objective == 14


def ring(**changes):
    return [ring_design().rings[0].model_copy(update=changes)]


def route(index, **changes):
    routes = list(ring_design().routes)
    routes[index] = routes[index].model_copy(update=changes)
    return routes


HOPS = ring_design().rings[0].paths

ONE_WAY_MUTATIONS = {
    "server_exists": {"links": [*ring_design().links, (0, 4, 1)]},
    "no_link_to_itself": {"links": [*ring_design().links, (0, 0, 1)]},
    "count_is_positive": {"links": [*ring_design().links, (0, 2, 0)]},
    "out_degree": {"links": [*ring_design().links, (0, 2, 1)]},
    "in_degree": {"links": [*ring_design().links, (0, 2, 1)]},
    "planes_suffice": {"planes": [[(0, 1), (1, 2)], [(2, 3), (3, 0)]]},
    "planes_hold_the_links": {"planes": [[(0, 1), (1, 2), (2, 3)]]},
    "plane_is_a_matching": {"planes": [[(0, 1), (0, 1), (1, 2), (2, 3), (3, 0)]]},
    "ring_has_a_group": {"rings": [*ring_design().rings, *ring(group=1)]},
    "ring_visits_its_group_once": {"rings": ring(members=(0, 1, 2, 2))},
    "ring_has_a_path_per_hop": {"rings": ring(paths=HOPS[:3])},
    "ring_shares_sum_to_one": {"rings": ring(share=0.99)},
    "path_joins_its_ends": {"rings": ring(paths=(*HOPS[:3], (3, 0, 1)))},
    "path_follows_links": {"rings": ring(paths=(*HOPS[:3], (3, 1, 0)))},
    "traffic_is_routed": {"routes": ring_design().routes[1:]},
    "path_has_a_fraction": {"routes": route(0, fractions=(0.5, 0.5))},
    "share_is_not_negative": {"routes": route(0, paths=((0, 1), (0, 1)), fractions=(1.5, -0.5))},
}


@for_each("kind", ONE_WAY_MUTATIONS)
def test_each_kind_of_violation_fires(kind):
    evaluation = evaluate(ring_instance(), ring_design(**ONE_WAY_MUTATIONS[kind]))
    assert kind in {violation.kind for violation in evaluation.violations}
    assert not evaluation.feasible
    assert kind in {
        v.kind for v in evaluate(ring_instance(), ring_design(**ONE_WAY_MUTATIONS[kind]), exact=True).violations
    }


DUPLEX_MUTATIONS = {
    "degree": {"links": [*duplex_design().links, (0, 2, 1)]},
    "duplex_pair_is_ordered": {"links": [(1, 0, 1), *duplex_design().links[1:]]},
    "plane_is_a_matching": {"planes": [[(0, 1), (1, 2)], [(2, 3), (0, 3)]]},
    "planes_hold_the_links": {"planes": []},
}


@for_each("kind", DUPLEX_MUTATIONS)
def test_each_kind_of_duplex_violation_fires(kind):
    evaluation = evaluate(duplex_instance(), duplex_design(**DUPLEX_MUTATIONS[kind]))
    assert kind in {violation.kind for violation in evaluation.violations}


def test_an_odd_duplex_ring_does_not_fit_two_planes():
    traffic = np.zeros((3, 3))
    traffic[0, 1] = 1
    instance = TopologyInstance(
        name="odd", servers=3, degree=2, link_bandwidth_bytes_per_s=1, optics="duplex", traffic_bytes=traffic
    )
    routes = [Route(source=0, target=1, paths=[(0, 1)], fractions=[1])]
    links = [(0, 1, 1), (1, 2, 1), (0, 2, 1)]
    design = TopologyDesign(instance="odd", links=links, planes=[[(0, 1)], [(1, 2)], [(0, 2)]], routes=routes)
    assert [v.kind for v in evaluate(instance, design).violations] == ["planes_suffice"]


def test_forwarding_and_parallel_links_only_where_the_instance_allows_them():
    kinds = {v.kind for v in evaluate(ring_instance(host_forwarding=False), ring_design()).violations}
    assert kinds == {"nobody_forwards"}
    doubled = ring_design(links=[(i, (i + 1) % 4, 2) for i in range(4)])
    strict = ring_instance(degree=2, parallel_links=False)
    assert [v.kind for v in evaluate(strict, doubled).violations] == ["no_parallel_links"] * 4


def test_a_violation_says_where_and_by_how_much():
    evaluation = evaluate(ring_instance(), ring_design(rings=ring(share=0.75)))
    assert str(evaluation.violations[0]) == "ring_shares_sum_to_one at allreduce_groups[0]: 0.75 against 1"


def test_unrouted_traffic_has_no_objective_worth_reporting():
    routes = [r for r in ring_design().routes if r.target != 2]
    evaluation = evaluate(ring_instance(), ring_design(routes=routes))
    assert [v.where for v in evaluation.violations] == [f"traffic {s} -> 2" for s in (0, 1, 3)]
    assert evaluation.objective is None


def test_a_design_for_another_instance_is_refused():
    foreign = ring_design(instance_digest=ring_instance(compute_s=1.0).digest)
    with pytest.raises(SolutionError, match="made for instance 'four'"):
        evaluate(ring_instance(), foreign)


def test_violations_say_by_how_much():
    rings = [*ring_design().rings, ring_design().rings[0].model_copy(update={"group": 3})]
    (found,) = evaluate(ring_instance(), ring_design(rings=rings)).violations
    assert (found.kind, found.lhs, found.rhs) == ("ring_has_a_group", 3, 0)  # of groups 0 to 0
    for path, end in (((3, 0, 1), 1), ((), -1)):
        paths = [*ring_design().rings[0].paths[:3], path]
        broken = [ring_design().rings[0].model_copy(update={"paths": paths})]
        found = evaluate(ring_instance(), ring_design(rings=broken)).violations[0]
        assert (found.kind, found.lhs, found.rhs) == ("path_joins_its_ends", end, 0)
    found = evaluate(ring_instance(host_forwarding=False), ring_design()).violations
    assert [(each.kind, each.rhs) for each in found] == [("nobody_forwards", 1)] * 8
    assert sorted(each.lhs for each in found) == [2] * 4 + [3] * 4  # hops of the routes that take several
