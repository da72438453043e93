"""Heuristics for aggregation in networks: feasible, never better than the best of all answers, the same for a seed."""

import itertools

import numpy as np
import pytest
from aggregation_graph_cases import answers, optimum, random_instance, star
from volume import slow

from ddlopt.instances.generators import generate
from ddlopt.models.aggregation import AggregationTrees, GraphInstance, evaluate
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.solvers.aggregation.graph.arrays import case_of
from ddlopt.solvers.aggregation.graph.methods import ENTRIES, strategy
from ddlopt.solvers.aggregation.graph.ring import Ring
from ddlopt.solvers.aggregation.graph.search import GraphSearch, TakahashiMatsuyama
from ddlopt.solvers.aggregation.graph.strategies import STRATEGIES, ShortestRoutes, aggregated
from ddlopt.solvers.contracts import Limits, Status, better

LIMITS = Limits(time_s=600)
SEARCH = GraphSearch(rounds=300)
GOALS = ("utilization", "congestion", "rates")


def methods(instance):
    all_ = [TakahashiMatsuyama(), SEARCH]
    all_ += [ShortestRoutes(rule) for rule in STRATEGIES]
    return [method for method in all_ if method.refuses(instance) is None]


def small_cases(seeds):
    """Instances with few answers."""
    for seed, goal, merging in itertools.product(range(seeds), GOALS, (False, True)):
        try:
            instance = random_instance(seed, goal=goal, merging=merging)
        except InstanceError:
            continue
        if sum(1 for _ in itertools.islice(answers(instance), 200)) < 200:
            yield instance


@pytest.mark.parametrize("seeds", [2, slow(10)])
def test_no_heuristic_beats_all_answers_and_the_search_mostly_finds_the_best(seeds):
    found = missed = searched = 0
    for instance in small_cases(seeds):
        best = optimum(instance)
        for method in methods(instance):
            result = method.solve(instance, LIMITS)
            if best is None:
                assert result.objective is None, (instance.name, method.name)
                continue
            found += 1
            if result.bound is not None:
                assert not better(best, result.bound * (1 + (1e-9 if best < result.bound else -1e-9)), instance.sense)
            if result.objective is not None:
                hair = 1e-9 * best
                assert not better(
                    result.objective, best + (hair if instance.sense == "maximize" else -hair), instance.sense
                )
            if method is SEARCH:
                searched += 1
                missed += result.objective != pytest.approx(best)
    assert found > 10 * seeds
    assert missed <= 0.1 * searched


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        slow("fat-tree", {"jobs": 6, "workers": 5, "slots": 1}),
        ("leaf-spine", {"connections": 1, "aggregation_bytes_per_s": 1e9}),
        slow("leaf-spine", {"aggregators": 3, "job_slots": 2}),
        slow("torus", {"merging": True, "slots": 8}),
        ("graph-random", {"hosts": 2, "workers": 6, "slots": 3, "job_slots": 2}),
    ],
)
def test_what_is_found_is_feasible_on_generated_networks(kind, options, goal):
    instance = generate("aggregation", kind, 1, goal=goal, **options)
    for method in methods(instance):
        result = method.solve(instance, LIMITS)
        if result.objective is None:
            assert method.name in STRATEGIES
            assert "break a rule of the instance" in result.message
            continue
        assert result.checked
        assert evaluate(instance, result.solution).feasible
    searched = SEARCH.solve(instance, LIMITS)
    first = TakahashiMatsuyama().solve(instance, LIMITS)
    assert not better(first.objective, searched.objective, instance.sense)


@pytest.mark.parametrize(
    ("kind", "seed", "options"),
    [
        ("fat-tree", 806, {"workers": 4, "goal": "utilization", "connections": 1, "aggregators": 4}),
        ("fat-tree", 106, {"merging": True, "aggregators": 5}),
        ("torus", 832, {"jobs": 3, "job_slots": 2, "goal": "rates", "merging": True, "aggregators": 3}),
    ],
)
def test_a_budget_that_is_just_enough_is_kept_to(kind, seed, options):
    instance = generate("aggregation", kind, seed, **options)
    for number in range(3):
        assert SEARCH.solve(instance, LIMITS, seed=number).objective is not None


def test_same_seed_same_answer():
    instance = generate("aggregation", "fat-tree", 2, jobs=8, workers=7, slots=1, goal="utilization")
    for method in methods(instance):
        one, same = (method.solve(instance, LIMITS, seed=3).solution for _ in range(2))
        assert one == same
    draws = {SEARCH.solve(instance, LIMITS, seed=seed).solution.to_json() for seed in range(3)}
    assert len(draws) > 1


def test_rules_on_the_star():
    """Workers a, b at switch 0, c at switch 1, which has the server: by hand, an aggregator takes arc 0-1 once."""
    instance = star(goal="utilization")
    times = {rule: ShortestRoutes(rule).solve(instance, LIMITS).objective for rule in STRATEGIES}
    # 2 s a message and arc: without aggregation 3 + 2 + 3 arcs; at both switches 3 + 1 + 1; at one of them less.
    assert times == {"none": 16.0, "first-switch": 12.0, "level": 12.0, "top": 10.0, "max": 10.0}
    few = star(goal="utilization", aggregators=1)
    times = {rule: ShortestRoutes(rule).solve(few, LIMITS).objective for rule in ("level", "top", "max")}
    assert times == {"level": 12.0, "top": 12.0, "max": 12.0}


def test_strategies_say_which_rule_is_broken():
    result = strategy(star(connections=1), "none").solve(star(connections=1), LIMITS)
    assert result.status is Status.NO_SOLUTION
    assert "few connections arrive at the server" in result.message
    with pytest.raises(OptionError, match="rule is 'half'"):
        ShortestRoutes("half")


def test_routes_are_cut_where_messages_meet_only():
    routes = [(3, 0, 1, 6), (4, 0, 1, 6), (5, 1, 6)]
    assert aggregated(routes, set()) == tuple(sorted(routes))
    assert aggregated(routes, {0}) == ((0, 1, 6), (3, 0), (4, 0), (5, 1, 6))
    assert aggregated(routes[:1], {0, 1}) == ((3, 0, 1, 6),)


def test_shortest_routes_are_spread_over_ties():
    instance = generate(
        "aggregation", "leaf-spine", 0, leaves=2, spines=2, hosts=3, jobs=1, workers=4, gradient_bytes=1.0, slots=0
    )
    result = ShortestRoutes().solve(instance, LIMITS)
    spines = [route[2] for route in result.solution.trees[0] if len(route) == 5]
    assert len(spines) >= 2
    assert abs(spines.count(spines[0]) * 2 - len(spines)) <= 1


def test_the_search_goes_on_from_a_start_and_is_not_worse():
    instance = generate("aggregation", "fat-tree", 4, jobs=6, workers=6, slots=1, oversubscription=2.0)
    start = GraphSearch(rounds=2000).solve(instance, LIMITS).solution
    again = GraphSearch(rounds=1).solve(instance, LIMITS, start=start)
    assert again.objective <= float(evaluate(instance, start).objective) * (1 + 1e-12)


def test_an_answer_comes_back_from_arrays_unchanged():
    instance = generate("aggregation", "torus", 4, workers=5)
    solution = SEARCH.solve(instance, LIMITS).solution
    case = case_of(instance)
    back = case.answer(case.read(solution))
    assert {frozenset(tree) for tree in back.trees} == {frozenset(tree) for tree in solution.trees}
    broken = AggregationTrees(instance=instance.name, trees=solution.trees[:-1])
    assert case.read(broken) is None


def ring_of(count, **fields):
    """Hosts at one switch each other; the last is the server."""
    return GraphInstance.from_data(
        {
            "name": "wheel",
            "nodes": [{"name": f"h{v}", "forwards": False} for v in range(count + 1)] + [{"name": "switch"}],
            "links": [{"ends": (v, count + 1), "bandwidth_bytes_per_s": 2.0} for v in range(count + 1)],
            "jobs": [{"name": "j", "workers": tuple(range(count)), "server": count, "gradient_bytes": 8.0}],
            **fields,
        }
    )


@pytest.mark.parametrize("count", [2, 4, 7])
def test_a_ring_takes_the_textbook_time_on_one_switch(count):
    result = Ring().solve(ring_of(count), LIMITS)
    assert result.status is Status.REFERENCE
    assert result.solution is None
    assert result.objective == pytest.approx(2 * (count - 1) / count * 8.0 / 2.0)
    busy = Ring().solve(ring_of(count, goal="utilization"), LIMITS).objective
    assert busy == pytest.approx(2 * count * result.objective)
    rate = Ring().solve(ring_of(count, goal="rates"), LIMITS).objective
    assert rate == pytest.approx(8.0 / result.objective)


def test_a_ring_needs_two_workers():
    assert "has one worker" in Ring().refuses(ring_of(1))


def test_every_entry_makes_the_method_of_its_name():
    assert [entry.make("highs").name for entry in ENTRIES] == [entry.name for entry in ENTRIES]
    for name in ("none", "level", "top", "max"):
        assert strategy(star(), name).name == name


def test_a_worker_that_forwards_and_has_slots_adds_its_own_gradient():
    line = GraphInstance.from_data(
        {
            "name": "line",
            "nodes": [{"name": "far"}, {"name": "middle", "slots": 1}, {"name": "server"}],
            "links": [{"ends": (0, 1), "bandwidth_bytes_per_s": 1.0}, {"ends": (1, 2), "bandwidth_bytes_per_s": 1.0}],
            "jobs": [{"name": "j", "workers": (0, 1), "server": 2}],
            "merging": True,
        }
    )
    result = SEARCH.solve(line, LIMITS)
    assert set(result.solution.trees[0]) == {(0, 1), (1, 2)}
    assert result.objective == 1.0
    assert np.isclose(TakahashiMatsuyama().solve(line, LIMITS).objective, 1.0)


def test_routes_end_where_links_take_next_to_nothing():
    # In floats both ends of the fast link are as far from the server.
    links = [{"ends": [0, 1], "bandwidth_bytes_per_s": 1}, {"ends": [1, 2], "bandwidth_bytes_per_s": 1e15}]
    links += [{"ends": [0, 2], "bandwidth_bytes_per_s": 1}]
    jobs = [{"name": "one", "workers": [1, 2], "server": 0}, {"name": "other", "workers": [2], "server": 0}]
    data = {"name": "fast", "nodes": [{"name": f"n{k}"} for k in range(3)], "links": links, "jobs": jobs}
    instance = GraphInstance.from_data(data)
    assert ShortestRoutes("none").solve(instance, Limits()).checked
