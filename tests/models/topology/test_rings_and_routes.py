"""Links, rings and routes together: forms agree with each other, with brute force and with published optima."""

import itertools

import numpy as np
import pyomo.environ as pyo
import pytest
from brute_force import brute_force
from topology_cases import DANOINT, all_to_all, job
from volume import for_each, seeds, slow, some

from ddlopt.models.errors import InfeasibleError, SolverError
from ddlopt.models.topology import Ring, TopologyDesign, evaluate
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.models.topology.formulations.rows.throughput import proven_bytes, unit_bytes
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

FORMS = ("throughput", "congestion")


def random_traffic(servers, seed, density=0.6):
    rng = np.random.default_rng(seed)
    traffic = rng.integers(1, 10, (servers, servers)) * (rng.random((servers, servers)) < density)
    np.fill_diagonal(traffic, 0)
    traffic[0, 1] += 5
    return traffic


def solve(instance, limits=None, start=None, **options):
    result = Exact("exact", "topology", RingsAndRoutes(**options)).solve(
        instance, limits or Limits(gap=1e-7), start=start
    )
    assert result.checked
    return result


SIMPLE = {"degree": 2, "parallel_links": False}
TINY = {
    "one-way": (random_traffic(4, 8, 0.7), (), SIMPLE),
    "parallel": (random_traffic(4, 5, 0.5), (), {"degree": 2}),
    "duplex": (random_traffic(4, 2), (), {"degree": 2, "optics": "duplex"}),
    "ring": (random_traffic(4, 5, 0.5), [((0, 1, 2, 3), 6.0)], SIMPLE),
    "two groups": (random_traffic(4, 2, 0.4), [((0, 1, 2), 5.0), ((2, 3), 3.0)], SIMPLE),
    "duplex groups": (
        random_traffic(4, 2, 0.5),
        [((0, 1, 2, 3), 4.0), ((1, 3), 3.0)],
        {"degree": 3, "optics": "duplex"},
    ),
    "direct": (random_traffic(4, 7, 0.3), [((0, 1, 2, 3), 6.0)], SIMPLE | {"degree": 3, "host_forwarding": False}),
    "five": (random_traffic(5, 7, 0.4), [((0, 1, 2), 9.0)], {"degree": 2, "optics": "duplex"}),
}
"""Cases whose optimum is above every bound that needs no solver."""


@pytest.mark.parametrize("name", some(TINY, ["parallel", "ring", "duplex groups", "direct"]))
def test_equals_brute_force(name):
    traffic, groups, options = TINY[name]
    instance = job(traffic, groups=groups, **options)
    best = brute_force(instance)
    assert best > proven_bytes(instance) * 1.001, "a case that a bound settles says little"
    for form in FORMS:
        result = solve(instance, rings="all", form=form)
        assert result.objective == pytest.approx(best, rel=1e-6)
        assert result.gap < 1e-5
        assert evaluate(instance, result.solution, exact=True).violations == ()
    assert solve(instance, form="throughput").objective >= best * (1 - 1e-6)
    relaxed = lp_relaxation(RingsAndRoutes(rings="relaxed"), instance).objective
    assert relaxed <= best * (1 + 1e-6)


@pytest.mark.parametrize("name", ["ring", "duplex groups", "parallel"])
def test_forms_have_the_same_optimum(name):
    traffic, groups, options = TINY[name]
    instance = job(traffic, groups=groups, **options)
    reference = solve(instance).objective
    assert solve(instance, form="congestion").objective == pytest.approx(reference, rel=1e-6)


@for_each(
    ("form", "hops", "bound"),
    [
        ("throughput", "none", 62.5625),
        ("throughput", "moore", 62.730145),
        ("throughput", None, 63.580211),
        ("congestion", "none", 62.5625),
        ("congestion", "moore", 62.710278),
        ("congestion", None, 63.580211),
    ],
)
def test_linear_relaxation_of_danoint(form, hops, bound):
    """Without distances the combinatorial bound, which the range of the objective has; the optimum is 65 2/3."""
    relaxation = lp_relaxation(RingsAndRoutes(form=form, hops=hops), job(DANOINT, parallel_links=False)).objective
    assert relaxation == pytest.approx(bound, rel=1e-6)


@for_each("options", [{}, slow({"optics": "duplex", "degree": 3})])
def test_distances_leave_the_optimum_beside_rings(options):
    instance = job(random_traffic(5, 3, 0.6), groups=[((0, 2, 4), 4.0)], **options)
    plain = solve(instance, rings="all").objective
    for hops in ("moore", "between"):
        assert solve(instance, rings="all", hops=hops).objective == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize("options", [{}, {"optics": "duplex", "degree": 3}, {"parallel_links": False}], ids=str)
def test_relaxations_are_nested(seed, options):
    """Throughput is never below congestion, all rings never below a relaxation of them, and none above the optimum."""
    instance = job(random_traffic(6, seed, 0.5), groups=[((0, 2, 4, 5), 4.0)], **options)
    bounds = {form: lp_relaxation(RingsAndRoutes(form=form), instance).objective for form in FORMS}
    assert unit_bytes(instance) <= bounds["congestion"] + 1e-6 <= bounds["throughput"] + 2e-6
    relaxed = lp_relaxation(RingsAndRoutes(rings="relaxed"), instance).objective
    assert relaxed <= bounds["throughput"] + 1e-6


def test_an_achievable_congestion_excludes_what_is_worse():
    traffic, groups, options = TINY["parallel"]
    instance = job(traffic, groups=groups, **options)
    best = solve(instance).objective
    for form in FORMS:
        assert solve(instance, form=form, achievable_bytes=best).objective == pytest.approx(best, rel=1e-6)
    worse = Exact("exact", "topology", RingsAndRoutes(achievable_bytes=best * 0.99)).solve(instance, Limits())
    assert worse.status is Status.INFEASIBLE
    assert "no design gets below" in RingsAndRoutes(achievable_bytes=0.1).refuses(instance)


def test_all_to_all_on_five_servers():
    assert solve(all_to_all(5, parallel_links=False)).objective == pytest.approx(3.0)


@pytest.mark.slow
def test_all_to_all_on_six_servers():
    result = solve(all_to_all(6), Limits(time_s=280, gap=1e-4))
    assert result.objective == pytest.approx(4.2)
    assert result.bound == pytest.approx(4.2, rel=2e-4)


@pytest.mark.slow
def test_danoint_is_found_and_bounded():
    """Above the published optimum, with the combinatorial bound at least."""
    instance = job(DANOINT, parallel_links=False)
    result = solve(instance, Limits(time_s=60, gap=1e-4))
    assert 62.5624 <= result.bound <= 65.6666667
    assert result.objective >= 65.6666666


def test_bandwidth_optimal_rings_for_a_pure_all_reduce():
    instance = job(np.zeros((5, 5)), groups=[((0, 1, 2, 3, 4), 10.0)])
    result = solve(instance)
    assert result.objective == pytest.approx(2 * 4 / 5 * 10 / 2)
    assert result.status is Status.OPTIMAL
    assert result.scope == "generator rings"
    assert result.scope_bound == pytest.approx(result.objective)


def test_generators_may_miss_the_best_rings():
    traffic, groups, options = TINY["direct"]
    instance = job(traffic, groups=groups, **options)
    some, every = solve(instance), solve(instance, rings="all")
    assert some.scope == "generator rings"
    assert every.scope is None
    assert some.scope_bound == pytest.approx(13.5, rel=1e-5)
    assert every.objective == pytest.approx(9.5)
    assert some.bound <= every.objective + 1e-6, "what holds for generators must not pass for a bound on all rings"


def test_given_rings_are_searched():
    traffic, groups, options = TINY["direct"]
    instance = job(traffic, groups=groups, **options)
    every = tuple((0, *rest) for rest in itertools.permutations((1, 2, 3)))
    result = solve(instance, rings=(every,))
    assert result.objective == pytest.approx(9.5)
    assert result.scope == "given rings"
    one = solve(instance, rings=(((0, 1, 2, 3),),))
    assert {ring.members for ring in one.solution.rings} == {(0, 1, 2, 3)}
    assert "at least one" in RingsAndRoutes(rings=((),)).refuses(instance)


def test_relaxed_rings_are_read_as_rings():
    instance = job(np.zeros((5, 5)), groups=[((0, 1, 2, 3, 4), 10.0)])
    result = solve(instance, rings="relaxed")
    assert result.scope is None
    assert result.objective == pytest.approx(8.0)


def test_faint_rings_and_faint_traffic_have_paths():
    """A share of 1e-8, which a solver may leave behind, has hops whose flow is lost in its tolerance."""
    traffic = np.zeros((4, 4))
    traffic[0, 2] = 1e-13
    instance, formulation = job(traffic, 1, [((0, 1, 2, 3), 3.0)]), RingsAndRoutes()
    block = build_model("topology", formulation, instance).topology
    for variable in block.component_data_objects(pyo.Var):
        variable.set_value(0, skip_validation=True)
    block.throughput.set_value(1.0)
    for s, t in ((0, 1), (1, 2), (2, 3), (3, 0)):
        block.link[s, t].set_value(1)
        block.flow[s, s, t].set_value(1.0)
    block.ring_share[0, 0].set_value(1.0)
    block.ring_share[0, 1].set_value(1e-8)
    design = formulation.read(block, instance)
    assert sorted(ring.members for ring in design.rings) == [(0, 1, 2, 3), (0, 3, 2, 1)]
    checked = evaluate(instance, design)
    assert checked.feasible
    assert checked.objective == pytest.approx(4.5, rel=1e-6)


def test_relaxed_hops_that_are_no_rings_are_an_error():
    """Two triangles with a bridge: everybody's hops may stay in his triangle, but a ring must cross."""
    instance = job(np.zeros((6, 6)), groups=[((0, 1, 2, 3, 4, 5), 6.0)])
    model = build_model("topology", RingsAndRoutes(rings="relaxed"), instance)
    block = model.topology
    for variable in block.component_data_objects(pyo.Var):
        variable.set_value(0, skip_validation=True)
    block.throughput.set_value(1.0)
    for triangle in ((0, 1, 2), (3, 4, 5)):
        for s, t in zip(triangle, triangle[1:] + triangle[:1], strict=True):
            block.hop[0, s, t].set_value(1.0)
            block.link[s, t].set_value(1)
            block.flow[s, s, t].set_value(1.0)
    with pytest.raises(SolverError, match="no mixture of any rings"):
        RingsAndRoutes(rings="relaxed").read(block, instance)


def test_fractional_links_are_an_error():
    instance = all_to_all(4)
    model = build_model("topology", RingsAndRoutes(), instance)
    for variable in model.topology.component_data_objects(pyo.Var):
        variable.set_value(0.5, skip_validation=True)
    with pytest.raises(SolverError, match=r"link\[0, 1\] = 0.5 is not integral"):
        RingsAndRoutes().read(model.topology, instance)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["ring", "duplex groups", "parallel"])
def test_a_design_is_a_feasible_start(name, form):
    """Fixing all that ``start`` sets leaves a model whose optimum is no worse than the design."""
    traffic, groups, options = TINY[name]
    instance = job(traffic, groups=groups, **options)
    design = solve(instance).solution
    formulation = RingsAndRoutes(form=form)
    model = build_model("topology", formulation, instance)
    formulation.start(model.topology, instance, design)
    for variable in model.topology.component_data_objects(pyo.Var):
        if variable.is_integer():
            assert variable.value is not None
            variable.fix()
    outcome = Exact("exact", "topology", formulation).backend.solve(model, Limits())
    assert outcome.status is Status.OPTIMAL
    restarted = formulation.objective_value(instance, outcome.objective)
    assert restarted == pytest.approx(float(evaluate(instance, design).objective), rel=1e-6)


def test_overlap_and_compute_time_enter_the_objective():
    traffic, groups, options = TINY["ring"]
    z = solve(job(traffic, groups=groups, **options)).objective
    fast = job(traffic, groups=groups, **options, compute_s=3.0, link_bandwidth_bytes_per_s=2.0)
    assert solve(fast).objective == pytest.approx(3.0 + z / 2)
    hidden = job(traffic, groups=groups, **options, compute_s=100.0, overlap="full")
    assert solve(hidden).objective == 100.0


def test_a_split_hop_becomes_several_rings():
    """One group of two on one-way links: 0 to 1 directly and over 2, every path with its own Ring."""
    instance = job(np.zeros((3, 3)), groups=[((0, 1), 6.0)], parallel_links=False)
    result = solve(instance)
    assert result.objective == pytest.approx(3.0)
    assert {ring.paths[0] for ring in result.solution.rings} == {(0, 1), (0, 2, 1)}


def test_traffic_that_cannot_be_served_is_infeasible():
    traffic = np.zeros((4, 4))
    traffic[0, 1:] = 1
    crowded = job(traffic, degree=2, host_forwarding=False)
    with pytest.raises(InfeasibleError, match="server 0"):
        build_model("topology", RingsAndRoutes(), crowded)
    assert Exact("exact", "topology", RingsAndRoutes()).solve(crowded, Limits()).status is Status.INFEASIBLE
    path = np.zeros((4, 4))
    path[0, 1] = path[1, 2] = path[2, 0] = 1
    triangle = job(path, degree=2, optics="duplex", host_forwarding=False)
    result = Exact("exact", "topology", RingsAndRoutes()).solve(triangle, Limits())
    assert result.status is Status.INFEASIBLE, "a triangle of duplex links needs three planes"


def test_large_groups_are_refused_where_all_rings_are_listed():
    instance = job(np.zeros((8, 8)), groups=[(tuple(range(8)), 1.0)])
    assert "has 8" in RingsAndRoutes(rings="all").refuses(instance)
    assert RingsAndRoutes(rings="generators").refuses(instance) is None
    assert RingsAndRoutes(rings="relaxed").refuses(instance) is None


def test_start_sets_links_and_planes():
    instance = all_to_all(4, optics="duplex", degree=2)
    links = ((0, 1, 1), (0, 3, 1), (1, 2, 1), (2, 3, 1))
    design = TopologyDesign(instance="x", links=links, planes=(((0, 1), (2, 3)), ((0, 3), (1, 2))))
    formulation = RingsAndRoutes()
    block = build_model("topology", formulation, instance).topology
    formulation.start(block, instance, design)
    assert {pair for pair in block.LINKS if block.link[pair].value} == {(i, j) for i, j, _ in links}
    assert {key for key in block.MATES if block.mate[key].value} == {(0, 0, 1), (0, 2, 3), (1, 0, 3), (1, 1, 2)}


def test_an_odd_number_of_servers_leaves_one_out_of_every_plane():
    """Three servers on two planes have two links, not three: the relaxation must know."""
    instance = all_to_all(3, optics="duplex", degree=2)
    block = build_model("topology", RingsAndRoutes(), instance).topology
    assert pyo.value(block.planes_leave_one_out.upper) == 2
    assert solve(instance).objective == pytest.approx(2.0)


def test_rings_of_every_answer_are_hamiltonian():
    instance = job(random_traffic(6, 1, 0.3), groups=[((0, 1, 2, 3), 4.0), ((1, 4, 5), 2.0)])
    design = solve(instance, rings="all").solution
    assert all(isinstance(ring, Ring) and sorted(ring.members) in ([0, 1, 2, 3], [1, 4, 5]) for ring in design.rings)
    assert sum(ring.share for ring in design.rings if ring.group == 0) == pytest.approx(1)
