"""Matchings: MATCHA's table, exact steps against generic solvers, decompositions, the search."""

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from scipy.optimize import minimize
from volume import for_each, seeds

import ddlopt
from ddlopt.analysis.gossip_convex.matchings import SemidefiniteMatcha
from ddlopt.instances.library.gossip.matchings import matcha_8
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.gossip import MatchingsInstance, Network, evaluate
from ddlopt.models.gossip.matchings.second_moments import SecondMoment
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.gossip.matchings import search
from ddlopt.solvers.gossip.matchings.activation import Plan, most_connected
from ddlopt.solvers.gossip.matchings.decompositions import Kempe, coloured, colours_of, fewest_matchings, grouped
from ddlopt.solvers.gossip.matchings.moment_newton import _Path, best_weights
from ddlopt.solvers.gossip.matchings.search import MatchingsSearch

LIMITS = Limits(gap=1e-8)


def network(graph):
    graph = nx.convert_node_labels_to_integers(graph, ordering="sorted")
    return Network(nodes=len(graph), edges=tuple(graph.edges()))


def instance(graph, budget, **more):
    return MatchingsInstance(name="graph", network=network(graph), budget=budget, **more)


def solved(name, asked):
    found = method(name, "gossip").solve(asked, LIMITS)
    assert found.checked
    assert found.bound is None or found.bound <= found.objective * (1 + 1e-12)
    assert evaluate(asked, found.solution, exact=True).feasible
    return found


@pytest.mark.parametrize(
    ("percent", "expected"),
    list(
        zip(
            range(10, 101, 10),
            (0.9368, 0.8577, 0.7765, 0.7051, 0.6440, 0.5773, 0.6010, 0.6149, 0.6341, 0.6538),
            strict=True,
        )
    ),
)
def test_table_of_matcha(percent, expected):
    """What two runs of the released code's programs give, to the last digit."""
    found = solved("matcha", matcha_8("graph", percent / 100))
    assert round(found.objective, 4) == expected
    assert found.scope_gap <= 1e-8
    assert found.details["connectivity_bound"] == pytest.approx(found.details["connectivity"], rel=1e-8)


def test_probabilities_and_weight_of_matcha():
    half = solved("matcha", matcha_8("graph", 0.5)).solution
    assert half.probabilities == pytest.approx((0.984, 0, 0.758, 0.758, 0), abs=6e-4)
    assert half.weights == pytest.approx((0.3964,) * 12, abs=5e-5)
    assert solved("matcha", matcha_8("graph", 0.4)).solution.probabilities == pytest.approx(
        (0.787, 0, 0.607, 0.607, 0), abs=6e-4
    )


@pytest.mark.parametrize(("percent", "expected"), [(50, 0.6335), (60, 0.5556), (100, 0.5556)])
def test_a_weight_for_each_edge(percent, expected):
    found = solved("matcha:per_edge=true", matcha_8("graph", percent / 100))
    assert round(found.objective, 4) == expected
    assert found.scope_gap <= 1e-8
    # With three of five matchings nothing is lost against fastest averaging over all edges: proven for all plans.
    assert (found.gap <= 1e-8) == (percent >= 60)


def test_everything_in_every_round():
    found = solved("vanilla", matcha_8("graph", 1.0))
    assert found.objective == pytest.approx(0.653777, abs=1e-6)
    assert found.solution.weights[0] == pytest.approx(2 / 7, abs=1e-6)
    assert set(found.solution.probabilities) == {1.0}
    assert method("vanilla", "gossip").solve(matcha_8("graph", 0.9), LIMITS).status == "no_solution"
    assert solved("equal-activation", matcha_8("graph", 1.0)).objective == pytest.approx(found.objective, rel=1e-8)


def test_a_ring_gains_nothing_from_weights_of_its_own():
    asked = instance(nx.cycle_graph(8), 1.0)
    assert solved("matcha:per_edge=true", asked).objective == pytest.approx(solved("matcha", asked).objective, rel=1e-8)


def asked_of(seed, **more):
    graph = nx.connected_watts_strogatz_graph(9, 4, 0.5, seed=seed)
    rng = np.random.default_rng(seed)
    times = tuple(rng.uniform(1, 3, graph.number_of_edges()).tolist())
    budgets = tuple(rng.uniform(0.4, 1.0, graph.number_of_edges()).tolist())
    return instance(graph, 4.0, times=times, edge_budgets=budgets, **more)


@for_each("seed", seeds(1, 3))
@for_each("pair", [("matcha", SemidefiniteMatcha()), ("matcha:per_edge=true", SemidefiniteMatcha(per_edge=True))])
def test_generic_solvers_agree(seed, pair):
    own, generic = (ddlopt.solve(asked_of(seed), each, gap=LIMITS.gap) for each in pair)
    assert own.checked
    assert generic.checked
    # The objective is a continuous function of probabilities that are known to a solver's tolerance.
    assert own.objective == pytest.approx(generic.objective, rel=1e-4)
    assert own.details["connectivity"] == pytest.approx(generic.details["connectivity_bound"], rel=1e-6)
    assert generic.scope_gap <= 1e-6
    assert own.scope_gap <= 1e-8


def test_connectivity_as_the_released_code_writes_it():
    asked = asked_of(4)
    matchings = fewest_matchings(asked.network).matchings
    plan = Plan(asked, matchings)
    laplacians = []
    for own in matchings:
        graph = nx.empty_graph(9)
        graph.add_edges_from(asked.network.edges[edge] for edge in own)
        laplacians.append(nx.laplacian_matrix(graph).toarray().astype(float))
    chances = cp.Variable(len(matchings))
    total = sum(chance * matrix for chance, matrix in zip(chances, laplacians, strict=True))
    rows = [chances >= 0, chances <= plan.most, plan.times @ chances <= 4.0]
    value = cp.Problem(cp.Maximize(cp.lambda_sum_smallest(total, 2)), rows).solve(solver="CLARABEL")
    found = most_connected(plan, 1e-9)
    assert found.connectivity == pytest.approx(value, rel=1e-6)
    assert found.bound == pytest.approx(found.connectivity, rel=1e-8)
    assert found.connectivity <= found.bound


def test_what_is_asked_of_matchings():
    asked = instance(nx.cycle_graph(4), 2.0, times=(1.0, 2.0, 3.0, 4.0), edge_budgets=(0.9, 0.8, 0.7, 0.6))
    ends = asked.network.edges
    one = [number for number, edge in enumerate(ends) if set(edge) in ({0, 1}, {2, 3})]
    plan = Plan(asked, [one, [number for number in range(4) if number not in one]])
    for place, own in enumerate(plan.matchings):
        assert plan.times[place] == max(asked.times[edge] for edge in own)
        assert plan.most[place] == min(asked.edge_budgets[edge] for edge in own)
    assert plan.everything() is None
    kept = plan.kept(np.ones(2))
    assert kept @ plan.times <= 2.0
    assert kept @ plan.times == pytest.approx(2.0)


@pytest.mark.parametrize("independent", [True, False])
def test_derivatives_of_the_barrier(independent):
    ends = np.array([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)])
    path = _Path(SecondMoment(4, ends, np.array([0.5, 0.2, 0.5, 0.2, 0.3]), independent), None)
    at, step = np.array([0.3, 0.1, 0.4, 0.2, 0.25, 1.3]), 1e-6
    slope, hessian = path._derivatives(at[:-1], at[-1], 3.0)
    moves = step * np.eye(6)
    value = [path.value((at + move)[:-1], at[-1] + move[-1], 3.0) for move in (*moves, *-moves)]
    assert slope == pytest.approx((np.array(value[:6]) - np.array(value[6:])) / (2 * step), abs=1e-7)
    slopes = [path._derivatives((at + move)[:-1], at[-1] + move[-1], 3.0)[0] for move in (*moves, *-moves)]
    assert hessian == pytest.approx((np.array(slopes[:6]) - np.array(slopes[6:])) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("independent", [True, False])
def test_best_weights_against_a_derivative_free_search(independent):
    ends = np.array([(0, 1), (1, 2), (2, 3), (0, 2)])
    moment = SecondMoment(4, ends, np.array([0.5, 0.3, 0.5, 0.2]), independent)
    found = best_weights(moment, 1e-10)
    runs = [
        minimize(
            moment.factor, np.full(4, 0.3 + 0.1 * k), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
        )
        for k in range(4)
    ]
    assert found.factor == pytest.approx(min(run.fun for run in runs), rel=1e-4)
    assert found.bound <= found.factor <= min(run.fun for run in runs) + 1e-10
    assert found.factor - found.bound <= 1e-9


def test_weights_end_where_all_are_worse_than_what_is_wanted():
    rng = np.random.default_rng(5)
    own = network(nx.random_regular_graph(3, 8, seed=2))
    moment = SecondMoment(8, own.ends, rng.uniform(0.2, 0.8, len(own.edges)))
    best = best_weights(moment, 1e-9)
    kept = best_weights(moment, 1e-9, most=1.01 * best.factor)
    assert (kept.factor, kept.bound) == (best.factor, best.bound)
    dropped = best_weights(moment, 1e-9, most=0.5 * best.factor)
    assert 0.5 * best.factor < dropped.bound <= best.factor < dropped.factor


def test_with_one_matching_at_a_time_half_is_best():
    asked = matcha_8("graph", 0.2, "single")
    found = solved("single-matching", asked)
    assert found.status == "optimal"
    assert found.gap <= 1e-8
    assert found.objective == pytest.approx(1 - found.details["connectivity"] / 2, rel=1e-12)
    free = best_weights(Plan(asked, asked.matchings).moment(np.array(found.solution.probabilities)), 1e-9)
    assert free.factor == pytest.approx(found.objective, rel=1e-8)
    assert free.bound == pytest.approx(found.objective, rel=1e-8)
    generic = SemidefiniteMatcha().solve(asked, LIMITS)
    assert generic.objective == pytest.approx(found.objective, rel=1e-6)
    # More than one matching a round is not to be had.
    assert solved("single-matching", matcha_8("graph", 1.0, "single")).objective == pytest.approx(
        found.objective, rel=1e-7
    )


def test_torus_one_matching_at_a_time_is_proven():
    found = solved("exact", instance(nx.grid_2d_graph(4, 4, periodic=True), 1.0, activation="single"))
    assert found.objective == pytest.approx(0.75, rel=1e-7)
    assert found.gap <= 1e-7


def test_the_rest_of_rounds_is_idle():
    full, half = (solved("single-matching", matcha_8("graph", share, "single")).objective for share in (0.2, 0.1))
    assert 1 - half == pytest.approx((1 - full) / 2, rel=1e-7)


@for_each(
    ("graph", "count", "fewest"),
    [
        (nx.petersen_graph(), 4, 4),
        (nx.complete_graph(5), 5, 5),
        (nx.complete_graph(8), 7, 7),
        (nx.cycle_graph(9), 3, 3),
        (nx.grid_2d_graph(4, 5), 4, 4),
        (nx.hypercube_graph(4), 4, 4),
        (nx.karate_club_graph(), 17, 17),
    ],
)
def test_fewest_matchings(graph, count, fewest):
    own = network(graph)
    found = fewest_matchings(own)
    assert (len(found.matchings), found.fewest) == (count, fewest)
    MatchingsInstance(name="it fits", network=own, budget=1.0, matchings=found.matchings)


@for_each("seed", range(5))
def test_colourings_stay_proper(seed):
    own = network(nx.gnm_random_graph(12, 30, seed=seed))
    matchings = coloured(own)
    assert len(matchings) <= own.degrees.max() + 1
    rng, colours = np.random.default_rng(seed), colours_of(matchings, 30)
    seen = set()
    for _ in range(40):
        colours = Kempe(own).moved(colours, rng, int(own.degrees.max()) + 2)
        MatchingsInstance(name="it fits", network=own, budget=1.0, matchings=grouped(colours.tolist()))
        seen.add(frozenset(frozenset(each) for each in grouped(colours.tolist())))
    assert len(seen) > 20


def test_all_matchings_are_active_as_often_as_budgets_allow():
    """Two matchings of a ring that take 4 and 3: what says how often is the time, a link, or that it is one a round."""
    told = {"times": (1.0, 2.0, 3.0, 4.0), "matchings": ((0, 3), (1, 2))}
    kinds = (
        ({}, 3.5, 0.5),
        ({"edge_budgets": (0.9, 0.8, 0.3, 0.6)}, 3.5, 0.3),
        ({"activation": "single"}, 7.0, 0.5),
    )
    for more, budget, chance in kinds:
        asked = instance(nx.cycle_graph(4), budget, **told, **more)
        assert solved("equal-activation", asked).solution.probabilities == pytest.approx((chance, chance))
    rare = instance(nx.cycle_graph(4), 7.0, **told, edge_budgets=(1.0, 1.0, 0.9, 1.0))
    assert method("vanilla", "gossip").solve(rare, LIMITS).status == "no_solution"


def test_search_finds_other_matchings_and_other_probabilities():
    wheel = instance(nx.wheel_graph(6), 1.0, activation="single")
    found = MatchingsSearch(moves=8).solve(wheel, LIMITS, seed=1)
    assert found.bound <= found.objective < solved("single-matching", wheel).objective - 0.02
    paw = instance(nx.lollipop_graph(3, 1), 1.3)
    found = MatchingsSearch(moves=0, starts=1).solve(paw, LIMITS)
    assert found.bound <= found.objective < solved("matcha", paw).objective - 0.02


@pytest.mark.slow
def test_search_over_probabilities_is_better_than_matcha_and_than_chance():
    asked = matcha_8("graph", 0.5)
    found = MatchingsSearch(starts=1).solve(asked, LIMITS)
    assert found.checked
    assert found.bound <= found.objective < 0.61435
    plan, rng = Plan(asked, asked.matchings), np.random.default_rng(0)
    drawn = [plan.kept(rng.dirichlet(np.ones(5)) * 2.5) for _ in range(150)]
    assert found.objective < min(best_weights(plan.moment(each), 1e-5).bound for each in drawn)
    assert {frozenset(own) for own in found.solution.matchings} == {frozenset(own) for own in asked.matchings}


@pytest.mark.slow
def test_search_over_matchings():
    asked = matcha_8("graph", 0.2, "single", free=True)
    fixed = solved("single-matching", asked)
    found = MatchingsSearch(moves=60).solve(asked, LIMITS, seed=1)
    assert found.checked
    assert fixed.scope == "these matchings"
    assert fixed.scope_gap <= 1e-8
    assert found.objective < fixed.objective - 1e-3
    assert fixed.bound == pytest.approx(found.bound, rel=1e-7)
    assert 0 < found.gap < 0.002  # of fractional matchings
    assert MatchingsSearch(moves=60).solve(asked, LIMITS, seed=1).solution == found.solution


def test_matchings_that_come_again_are_not_valued_again(monkeypatch):
    valued = []

    def counted(instance, matchings, *others):
        valued.append(frozenset(matchings))
        return original(instance, matchings, *others)

    original = search._valued
    monkeypatch.setattr(search, "_valued", counted)
    paw = Network(nodes=4, edges=((1, 2), (2, 3), (0, 3), (0, 2)))
    instance = MatchingsInstance(name="paw", network=paw, budget=0.5)
    found = MatchingsSearch(moves=12, starts=1).solve(instance, Limits())
    assert found.details["decompositions"] == 13
    # Its edges split in two ways; the first one was there before the walk.
    assert len(set(valued)) == 2
    assert len(valued) <= 3


def test_search_stops_where_the_bound_is_met():
    found = ddlopt.solve(matcha_8("graph", 0.6, free=True), gap=1e-5)
    assert found.status == "optimal"
    assert found.objective == pytest.approx(5 / 9, rel=1e-5)


@for_each("activation", ["independent", "single"])
@for_each("name", ["matchings-search", "matcha:per_edge=true", "single-matching", "equal-activation"])
def test_a_deadline_gives_what_is_known_by_then(name, activation):
    asked = instance(nx.connected_watts_strogatz_graph(20, 4, 0.4, seed=1), 2.0, activation=activation)
    chosen = method(name, "gossip")
    if chosen.refuses(asked) is None:
        assert chosen.solve(asked, Limits(time_s=1e-9)).checked


def test_refusals():
    with pytest.raises(NotApplicableError, match="active independently; single-matching is for one at a time"):
        method("matcha", "gossip").solve(matcha_8("graph", 0.2, "single"), LIMITS)
    with pytest.raises(NotApplicableError, match="they are active independently"):
        method("single-matching", "gossip").solve(matcha_8("graph", 0.2), LIMITS)


def test_small_budgets_have_a_bound_of_their_own():
    assert solved("matcha:per_edge=true", matcha_8("graph", 0.1)).bound == pytest.approx(
        1 / (1 + 0.113 / 2 / 0.5), abs=5e-4
    )
    tiny = solved("matcha:per_edge=true", instance(nx.path_graph(3), 1e-3))
    assert 0 < tiny.gap < 1e-6


def test_two_nodes():
    asked = instance(nx.path_graph(2), 0.5)
    found = solved("exact", asked)
    # W = I or, half of the time, J: E[W²] − J = (I − J)/2
    assert found.objective == pytest.approx(0.5, rel=1e-7)
    everything = solved("exact", instance(nx.path_graph(2), 1.0))
    assert everything.objective == pytest.approx(0, abs=1e-10)
