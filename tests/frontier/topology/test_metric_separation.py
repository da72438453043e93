"""Separated cuts hold for every design of tiny instances, raise the bound, and never more than duality allows."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from brute_force import link_choices, routed_congestion
from scipy.sparse import csr_array
from volume import slow

import ddlopt
from ddlopt.frontier.topology.formulations.min_volume import MinVolume
from ddlopt.frontier.topology.metric.metric_cuts import MetricCuts
from ddlopt.frontier.topology.metric.root_relaxation import RootRelaxation, safe_bound
from ddlopt.frontier.topology.metric.separation import MetricSeparation
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.models.topology.formulations.min_congestion import MinCongestion
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, lp_relaxation

KINDS = ("rounded", "split", "neighbourhood")


def instance_of(n, seed, density=0.8, **options):
    rng = np.random.default_rng(seed)
    traffic = np.where(rng.random((n, n)) < density, rng.integers(1, 12, (n, n)), 0)
    np.fill_diagonal(traffic, 0)
    figures = {"name": "x", "servers": n, "degree": 2, "link_bandwidth_bytes_per_s": 1.0} | options
    return TopologyInstance(traffic_bytes=traffic, **figures)


def designs_of(instance):
    found = []
    for links in link_choices(instance):
        for arc in (None, *links) if instance.optics == "one_way" else (None,):
            laid = {a: count - (a == arc) for a, count in links.items() if count - (a == arc)}
            if laid not in [known for known, _ in found[-20:]]:
                found.append((laid, routed_congestion(instance, laid)))
    return [(laid, load) for laid, load in found if load < np.inf]


@pytest.mark.parametrize(
    ("n", "seed", "options", "kinds"),
    [
        (4, 2, {"degree": 1}, KINDS[1:]),
        (4, 1, {"optics": "duplex"}, KINDS),
        slow(4, 4, {"parallel_links": False}, KINDS),
        (3, 5, {"host_forwarding": False}, ()),
        pytest.param(5, 2, {"degree": 1}, KINDS[1:], marks=pytest.mark.slow),
        pytest.param(5, 2, {"optics": "duplex"}, KINDS, marks=pytest.mark.slow),
        pytest.param(5, 2, {"parallel_links": False}, KINDS, marks=pytest.mark.slow),
        pytest.param(4, 4, {}, (), marks=pytest.mark.slow),
    ],
)
def test_every_design_satisfies_every_separated_cut(n, seed, options, kinds):
    instance = instance_of(n, seed, 1.0, **options)
    designs = designs_of(instance)
    best = min(load for _, load in designs)
    for achievable, kind in itertools.product((None, best), KINDS):
        found = MetricSeparation((kind,), rounds=2, achievable_bytes=achievable, flows=True).run(instance)
        assert found.first_bound_bytes <= found.bound_bytes <= best * (1 + 1e-9)
        assert all(cut.kind == kind for cut in found.cuts)
        if kind in kinds:
            assert found.cuts
            assert found.bound_bytes > found.first_bound_bytes * 1.0001
        for cut, (links, load) in itertools.product(found.cuts, designs):
            if achievable is None or load <= achievable * (1 + 1e-9):
                assert cut.violation(load, links) <= 1e-9 * load


def test_neighbourhood_bounds_hold_and_exclude_only_what_is_worse():
    instance = instance_of(4, 1, parallel_links=False)
    relaxation = RootRelaxation(instance)
    relaxation.solve()
    for links, load in designs_of(instance):
        for server, outwards in ((0, True), (2, False)):
            ends = (links.get((server, j) if outwards else (j, server), 0) for j in range(4))
            choice = tuple(j for j, count in enumerate(ends) for _ in range(count))
            assert relaxation.bound_with(server, choice, outwards) <= load * (1 + 1e-9)


@pytest.mark.slow
def test_neighbourhood_cuts_raise_the_bound_of_the_formulation():
    instance = instance_of(5, 2, 1.0, optics="duplex")
    found = MetricSeparation(("neighbourhood",), flows=True).run(instance)
    before = lp_relaxation(MinCongestion(numbering=False), instance).objective
    after = lp_relaxation(MinCongestion(numbering=False, cuts=found.cuts), instance).objective
    best = Exact("x", "topology", MinCongestion()).solve(instance, Limits(gap=1e-6)).objective
    assert found.first_bound_bytes == pytest.approx(before, rel=1e-6)
    assert found.first_bound_bytes * 1.001 < found.bound_bytes
    assert before * 1.001 < after
    assert after == pytest.approx(found.bound_bytes, rel=1e-6)
    assert after <= best * (1 + 1e-6)
    assert found.rounds[0].bound_bytes == pytest.approx(found.bound_bytes, rel=1e-9)


@pytest.mark.slow
def test_danoint():
    """Values of the documentation: metric inequalities alone gain nothing, neighbourhoods a sixth of the gap."""
    instance = ddlopt.load("danoint")
    rounded = MetricSeparation(("rounded",), achievable_bytes=65 + 2 / 3).run(instance)
    assert rounded.cuts == ()
    assert rounded.bound_bytes == pytest.approx(63.5802, abs=1e-4)
    found = MetricSeparation(("neighbourhood",), achievable_bytes=65 + 2 / 3).run(instance)
    assert 63.92 < found.bound_bytes < 64.6875


@pytest.mark.parametrize("optics", ["one_way", "duplex"])
def test_method_solves_to_the_optimum(optics):
    instance = instance_of(4, 8, optics=optics)
    plain = Exact("x", "topology", MinCongestion()).solve(instance, Limits(gap=1e-7))
    method = MetricCuts(MetricSeparation(("rounded", "neighbourhood")))
    solved = method.solve(instance, Limits(gap=1e-7))
    assert (solved.status, solved.method, solved.checked) == (Status.OPTIMAL, "metric-cuts", True)
    assert solved.objective == pytest.approx(plain.objective, rel=1e-6)
    assert solved.details["root_programs"] > 10
    assert all(point.time_s >= solved.details["separation_s"] for point in solved.trace)
    again = method.solve(instance, Limits(gap=1e-7), start=plain.solution)
    assert again.objective == pytest.approx(plain.objective, rel=1e-6)
    assert again.status is Status.OPTIMAL


def test_what_has_no_design_is_infeasible():
    """Three servers want three links without forwarding, and two matchings of three servers have two."""
    traffic = np.zeros((3, 3))
    traffic[0, 1], traffic[0, 2], traffic[1, 2] = 1.0, 3.0, 1.0
    figures = {"name": "x", "servers": 3, "degree": 2, "link_bandwidth_bytes_per_s": 1.0, "optics": "duplex"}
    instance = TopologyInstance(traffic_bytes=traffic, parallel_links=False, host_forwarding=False, **figures)
    assert MetricCuts().solve(instance, Limits(60.0)).status is Status.INFEASIBLE


@pytest.mark.slow
def test_method_keeps_to_its_time_and_refuses_groups():
    instance = instance_of(8, 9)
    seen = []
    result = MetricCuts().solve(instance, Limits(time_s=10.0), progress=seen.append)
    assert result.details["separation_s"] < 60
    assert result.bound >= lp_relaxation(MinVolume(numbering=False), instance).objective * (1 - 1e-6)
    assert [point.time_s for point in seen] == sorted(point.time_s for point in seen)
    group = AllReduceGroup(members=(0, 1), gradient_bytes=1.0)
    grouped = TopologyInstance(
        name="g",
        servers=2,
        degree=1,
        link_bandwidth_bytes_per_s=1.0,
        traffic_bytes=np.zeros((2, 2)),
        allreduce_groups=(group,),
    )
    with pytest.raises(NotApplicableError, match="all-reduce"):
        MetricCuts().solve(grouped, Limits())


def test_without_rounds_it_is_the_plain_relaxation_and_without_time_a_bound():
    instance = instance_of(6, 3)
    plain = lp_relaxation(MinVolume(numbering=False), instance).objective
    found = MetricSeparation(KINDS, rounds=0).run(instance)
    assert found.bound_bytes == pytest.approx(plain, rel=1e-6)
    late = MetricSeparation(KINDS).run(instance, time_s=1e-9)
    assert (found.cuts, found.rounds, late.cuts, late.rounds) == ((), (), (), ())
    assert late.bound_bytes <= plain * (1 + 1e-6)


def test_safe_bound_needs_no_good_duals():
    """min x + 2y with x + y >= 1, x - y <= 0 in the unit box has optimum 1.5."""
    matrix = csr_array(np.array([[1.0, 1.0], [1.0, -1.0]]))
    sides = np.array([1.0, -np.inf]), np.array([np.inf, 0.0])
    box = np.zeros(2), np.ones(2)
    cost = np.array([1.0, 2.0])

    def bound(*duals):
        return safe_bound(cost, 0.25, matrix, sides, box, np.array(duals))

    assert bound(1.5, -0.5) == pytest.approx(1.75)
    assert bound(1.5, -0.5) < 1.75
    rng = np.random.default_rng(0)
    for duals in rng.normal(scale=2, size=(200, 2)):
        assert bound(*duals) < 1.75
    assert bound(-3.0, 3.0) == pytest.approx(0.25)  # sides that are not there count for nothing


def test_safe_bound_is_below_the_exact_one():
    """Figures in which doubles lose a unit: the exact bound in rational numbers is at least the safe one."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        matrix, duals = rng.normal(size=(6, 4)) * 10.0 ** rng.integers(-6, 7, (6, 4)), rng.random(6)
        low, high, cost = rng.normal(size=6) * 1e5, np.full(6, np.inf), rng.normal(size=4)
        box = np.zeros(4), rng.random(4) * 1e4
        exact = sum((Fraction(y) * Fraction(b) for y, b in zip(duals, low, strict=True)), Fraction(0))
        for j in range(4):
            reduced = Fraction(cost[j]) - sum(
                Fraction(a) * Fraction(y) for a, y in zip(matrix[:, j], duals, strict=True)
            )
            exact += min(Fraction(0), reduced * Fraction(box[1][j]))
        safe = safe_bound(cost, 0.0, csr_array(matrix), (low, high), box, duals)
        assert Fraction(safe) <= exact
        assert safe == pytest.approx(float(exact), rel=1e-6, abs=1e-3)
