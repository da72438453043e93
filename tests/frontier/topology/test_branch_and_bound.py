"""Branch and bound: against brute force on tiny instances of every kind, and against known optima."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from brute_force import brute_force
from volume import slow

from ddlopt.certificates.topology import check_certificate
from ddlopt.frontier.topology.branch_and_bound.branch_and_bound import BranchAndBound
from ddlopt.frontier.topology.branch_and_bound.integer_instance import integer_instance
from ddlopt.frontier.topology.branch_and_bound.symmetry import Numbering
from ddlopt.instances import load
from ddlopt.models.errors import NotApplicableError, OptionError
from ddlopt.models.topology import AllReduceGroup, TopologyInstance, evaluate
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status

FOUR = ((0, 1, 2, 3), 3.0)


def make_instance(n, d, seed, groups=(), density=1.0, **options):
    rng = np.random.default_rng(seed)
    traffic = rng.gamma(2.0, 5.0, (n, n)) * (rng.random((n, n)) < density)
    np.fill_diagonal(traffic, 0)
    return TopologyInstance(
        name=f"random {seed}",
        servers=n,
        degree=d,
        link_bandwidth_bytes_per_s=1.0,
        traffic_bytes=traffic,
        allreduce_groups=tuple(AllReduceGroup(members=m, gradient_bytes=b) for m, b in groups),
        **options,
    )


CASES = {
    "degree 1": (4, 1, {}),
    "one way": (4, 2, {}),
    "five servers": (5, 2, {"density": 0.6}),
    "no parallel links": (4, 2, {"parallel_links": False}),
    "sparse": (5, 2, {"density": 0.3, "parallel_links": False}),
    "duplex": (4, 2, {"optics": "duplex"}),
    "duplex, odd": (5, 2, {"optics": "duplex"}),
    "duplex, three ports": (5, 3, {"optics": "duplex", "parallel_links": False, "density": 0.5}),
    "nobody forwards": (4, 3, {"host_forwarding": False, "density": 0.7}),
    "nobody forwards, duplex": (4, 3, {"host_forwarding": False, "optics": "duplex"}),
    "ring": (4, 2, {"groups": [FOUR], "density": 0.5}),
    "rings": (5, 2, {"groups": [((0, 1, 2), 20.0), ((2, 4), 9.0), ((1, 2, 3, 4), 6.0)], "density": 0.3}),
    "ring, duplex": (4, 2, {"groups": [FOUR], "optics": "duplex", "density": 0.6}),
    "ring, nobody forwards": (4, 3, {"groups": [((0, 1, 3), 20.0)], "host_forwarding": False, "density": 0.4}),
    "ring, one link a pair": (4, 2, {"groups": [((0, 1, 3), 30.0)], "parallel_links": False, "density": 0.4}),
}


LONG = (
    "five servers", "sparse", "rings", "duplex, three ports", "nobody forwards", "ring, nobody forwards",
    "one way", "no parallel links",
)  # fmt: skip
"""Cases in which it is the brute force that takes its time."""


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] if case in LONG else []) for case in CASES]
)
def test_agrees_with_brute_force_and_its_certificate_holds(case):
    n, d, options = CASES[case]
    for seed in range(2 if n < 5 else 1):
        instance = make_instance(n, d, seed, **options)
        least = brute_force(instance)
        if least == np.inf:
            continue
        result, certificate = BranchAndBound(opening=0.01).certified(instance, Limits(gap=1e-4))
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(least, rel=1e-4)
        assert result.bound <= least * (1 + 1e-9)
        assert certificate.bound_bytes <= least * (1 + 1e-9)
        assert certificate.bound_bytes == pytest.approx(least, rel=3e-4)
        assert check_certificate(instance, certificate).bound_bytes == certificate.bound


def test_a_bad_start_is_improved_to_the_optimum_by_designs_found_in_the_tree():
    instance = load("all-to-all-n6-d2")
    bad = method("topology-finder", "topology").solve(instance, Limits()).solution
    assert evaluate(instance, bad).objective > 4.5
    result = BranchAndBound().solve(instance, Limits(), start=bad)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(4.2)
    assert result.details["routed"] > 0


@pytest.mark.parametrize(("name", "optimum"), [slow("all-to-all-n7-d2", 5.5), ("tiny-n5-d3-duplex", 8.0)])
def test_known_optima(name, optimum):
    result = method("branch-and-bound", "topology").solve(load(name), Limits())
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum)
    assert result.bound >= optimum * (1 - 1e-4)


@pytest.mark.slow
def test_twins_are_searched_once():
    instance = load("all-to-all-n6-d2")
    result, certificate = BranchAndBound().certified(instance, Limits())
    assert result.details["images"] > 0
    assert check_certificate(instance, certificate).images == result.details["images"]
    skewed = instance.traffic_bytes * (1 + 1e-3 * np.random.default_rng(0).random((6, 6)))
    unlike = TopologyInstance(**{**instance.model_dump(), "traffic_bytes": skewed})
    other = BranchAndBound().solve(unlike, Limits())
    assert other.status is Status.OPTIMAL
    assert other.details["images"] == 0
    assert other.details["nodes"] > 5 * result.details["nodes"]


def test_canonical_numbering_knows_images_and_tells_others_apart():
    instance = make_instance(6, 2, 0, groups=[((0, 1, 2), 5.0), ((3, 4, 5), 5.0)], density=0.0)
    numbering = Numbering(instance, integer_instance(instance))
    sets = numbering.integers.options
    number = {(s, *sorted(row.tolist())): k for s in range(6) for k, row in enumerate(sets[s])}

    def decided(links):
        chosen = np.full(6, -1)
        for s, ends in links.items():
            chosen[s] = number[(s, *sorted(ends))]
        return chosen

    assert numbering.seen(decided({0: (1, 3), 1: (2, 2)}), 7) is None
    origin, order = numbering.seen(decided({4: (5, 2), 5: (3, 3)}), 8)
    assert origin == 7
    assert [order[v] for v in (0, 1, 3, 2)] == [4, 5, 2, 3]
    assert numbering.seen(decided({4: (5, 2), 5: (3, 1)}), 9) is None
    origin, order = numbering.seen(decided({0: (2, 3), 2: (1, 1)}), 9)
    assert origin == 7
    assert [order[v] for v in (0, 1, 2, 3)] == [0, 2, 1, 3]


@pytest.mark.slow
def test_threads_prove_the_same_and_may_be_given():
    instance, before = make_instance(6, 2, 4), threading.active_count()
    alone = BranchAndBound().solve(instance, Limits())
    together = BranchAndBound().solve(instance, Limits(threads=2))
    with ThreadPoolExecutor(2) as pool:
        given, certificate = BranchAndBound(executor=pool).certified(instance, Limits(threads=2))
    assert {alone.status, together.status, given.status} == {Status.OPTIMAL}
    assert together.objective == pytest.approx(alone.objective, rel=1e-4)
    assert given.objective == pytest.approx(alone.objective, rel=1e-4)
    assert check_certificate(instance, certificate).bound_bytes == certificate.bound
    assert threading.active_count() <= before


@pytest.mark.slow
def test_stops_when_the_time_is_up_with_a_bound_that_a_certificate_shows():
    instance = make_instance(9, 2, 1)
    result, certificate = BranchAndBound(opening=0.01).certified(instance, Limits(time_s=3.0))
    assert result.status is Status.FEASIBLE
    assert 0 < certificate.bound_bytes <= result.bound * (1 + 1e-6)
    assert check_certificate(instance, certificate).bound_bytes == certificate.bound
    bounds = [point.bound for point in result.trace]
    assert bounds == sorted(bounds)


def test_refuses_what_it_cannot_hold():
    with pytest.raises(NotApplicableError, match="sets of neighbours"):
        BranchAndBound().solve(load("dlrm-n128-d4"), Limits())
    for wrong in ({"opening": 0.0}, {"rounds": 0}):
        with pytest.raises(OptionError):
            BranchAndBound(**wrong)


@pytest.mark.slow
def test_danoint_and_its_certificate():
    instance = load("danoint")
    result, certificate = BranchAndBound().certified(instance, Limits(threads=2))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(65 + 2 / 3)
    assert check_certificate(instance, certificate).bound_bytes == certificate.bound


@pytest.mark.slow
def test_nine_servers_all_to_all():
    instance = load("all-to-all-n9-d2")
    result, certificate = BranchAndBound().certified(instance, Limits(threads=2))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(8.2)
    assert check_certificate(instance, certificate).bound_bytes == certificate.bound
