"""Methods for aggregation in trees against enumeration, each other, and the worked example."""

import itertools

import numpy as np
import pytest
from tree_cases import answer, optima, optimum, random_tree
from volume import for_each, seeds

from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.library.aggregation.tree import example
from ddlopt.models.aggregation import TreeInstance, evaluate
from ddlopt.models.aggregation.tree.formulations.tree_aggregation import TreeAggregation
from ddlopt.models.aggregation.tree.tables import tables
from ddlopt.models.errors import NotApplicableError
from ddlopt.solvers.aggregation.tree.congestion import TreeCongestion
from ddlopt.solvers.aggregation.tree.dynamic_program import JobTree, TreeProgram
from ddlopt.solvers.aggregation.tree.exact import TreeIntegerProgram
from ddlopt.solvers.aggregation.tree.greedy import Gains, TreeGreedy, all_pairs
from ddlopt.solvers.aggregation.tree.limits import TreeLimits
from ddlopt.solvers.aggregation.tree.methods import best, milp, strategy
from ddlopt.solvers.aggregation.tree.prices import TreePrices
from ddlopt.solvers.aggregation.tree.soar import Soar, job_program, shared
from ddlopt.solvers.aggregation.tree.strategies import Strategy
from ddlopt.solvers.contracts import Limits, Status, uses_of
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.wrappers.warm_started import OPENING_SHARE

EXACT = Limits(gap=1e-9)
SHAPES = ("path", "star", "caterpillar", "complete", None)


def without_budgets(tree):
    found = tree.model_dump()
    jobs = [job | {"budget": None} for job in found["jobs"]]
    return TreeInstance.from_data(found | {"budget": None, "jobs": jobs})


def curve_of(tree):
    """Least utilization with at most 0, 1, … switches."""
    figures = tables(tree)
    return job_program(tree, figures, 0, figures.useful[0], tree.size).run(np.zeros(tree.size))


STRATEGIES = tuple(map(Strategy, ("none", "top", "max", "level", "random")))


def test_the_worked_example():
    for budget, value in enumerate([51, 35, 20, 15, 11, 9, 8, 7]):
        found = Soar().solve(example(budget), EXACT)
        assert (found.status, found.objective) == (Status.OPTIMAL, value)
    assert Soar().solve(example(), EXACT).solution.switches == ((2, 4),)
    reached = {name: strategy(example(), name).solve(example(), EXACT) for name in ("none", "top", "max", "level")}
    assert {name: found.objective for name, found in reached.items()} == {"none": 51, "top": 27, "max": 24, "level": 21}
    assert reached["max"].solution.switches == ((4, 5),)
    assert reached["level"].solution.switches == ((1, 2),)


@for_each("shape", SHAPES)
@for_each("splits", [1 << 20, 4])
def test_tables_have_the_optimum_of_every_budget(shape, splits):
    """For each number of switches at most, from one run; with decisions kept for parts of the tree, too."""
    parts = []
    for seed in range(12):
        tree = random_tree(seed, nodes=8, goal="utilization", shape=shape)
        tree = without_budgets(tree)
        figures = tables(tree)
        loads = np.array(tree.jobs[0].loads, dtype=float)
        job = JobTree(figures.parents, figures.order, figures.path_s, loads, figures.useful[0], tree.size)
        program = TreeProgram(job, splits)
        curve = program.run(np.zeros(tree.size))
        parts.append(program.parts)
        for budget, value in enumerate(optima(tree)):
            assert curve[min(budget, len(curve) - 1)] == pytest.approx(value)
            nodes = tuple(program.nodes(budget).tolist())
            assert len(nodes) <= budget
            assert evaluate(tree, answer(tree, nodes)).objective == pytest.approx(value)
    assert (max(parts) > 1) == (splits == 4 and shape != "path")


@pytest.mark.parametrize("seed", seeds(3, 45))
def test_every_method_against_enumeration(seed):
    jobs = 1 + seed % 3
    tree = random_tree(100 + seed, nodes=(7, 4, 3)[jobs - 1], jobs=jobs)
    value = optimum(tree)
    for method in (Soar(), TreeCongestion(), best(tree, "highs"), milp(tree, "highs")):
        if method.refuses(tree) is None:
            found = method.solve(tree, EXACT)
            assert (found.status, found.objective) == (Status.OPTIMAL, pytest.approx(value))
    for method in (TreeGreedy(), TreePrices(), TreeLimits(rounds=20), *STRATEGIES):
        if method.refuses(tree) is None:
            found = method.solve(tree, EXACT, seed=seed)
            assert found.objective >= value * (1 - 1e-9)
            assert found.bound is None or found.bound <= value
            assert found.solution == method.solve(tree, EXACT, seed=seed).solution


@for_each("seed", seeds(2, 6))
def test_larger_trees_against_the_integer_program(seed):
    options = {"nodes": 60, "budget": 6 + seed, "capable": 0.6, "depth": 0.2 * seed}
    tree = generate("tree-random", seed, **options)
    program = Exact("tree", "aggregation", TreeAggregation()).solve(tree, EXACT)
    assert Soar().solve(tree, EXACT).objective == pytest.approx(program.objective)
    congested = generate("tree-random", seed, goal="congestion", loads="power", **options)
    program = TreeIntegerProgram().solve(congested, EXACT)
    assert TreeCongestion().solve(congested, EXACT).objective == pytest.approx(program.objective)


@pytest.mark.slow
def test_a_thousand_random_trees_against_the_integer_program():
    for seed in range(1000):
        tree = random_tree(seed, nodes=25, shape=SHAPES[seed % len(SHAPES)])
        program = Exact("tree", "aggregation", TreeAggregation()).solve(tree, EXACT)
        method = Soar() if tree.goal == "utilization" else TreeCongestion()
        assert method.solve(tree, EXACT).objective == pytest.approx(program.objective)


def test_prices_meet_the_optimum_where_jobs_compete():
    tree = generate("tree-complete", 9, levels=5, jobs=3, memory=1, budget=12, loaded=0.6)
    assert "compete for the memory of switch" in Soar().refuses(tree)
    program = TreeIntegerProgram().solve(tree, EXACT)
    found = TreePrices().solve(tree, Limits(gap=1e-3))
    assert found.bound <= program.objective * (1 + 1e-9) <= found.objective * (1 + 2e-9)
    assert found.gap < 0.01


def test_what_the_program_starts_from_is_found_within_the_time_limit(monkeypatch):
    tree = generate("tree-random", 2, nodes=12, jobs=3, memory=1, budget=4, goal="congestion", loads="power")
    asked, real = [], TreeLimits.solve

    def solve(self, instance, limits, *more):
        asked.append(limits.time_s)
        return real(self, instance, limits, *more)

    monkeypatch.setattr(TreeLimits, "solve", solve)
    method = milp(tree, "highs")
    found = method.solve(tree, Limits(time_s=60.0), seed=1)
    assert asked == [60.0 * OPENING_SHARE]
    assert found.trace[0].incumbent == TreeLimits().solve(tree, Limits(), 1).trace[0].incumbent
    assert uses_of(method, tree) == {"seed", "start", "threads"}


def test_limits_find_less_congestion_than_the_greedy_where_jobs_compete():
    tree = generate("tree-random", 2, nodes=60, jobs=3, memory=1, budget=15, goal="congestion", loads="power")
    greedy, found = (method.solve(tree, EXACT).objective for method in (TreeGreedy(), TreeLimits()))
    assert found < 0.99 * greedy


def test_a_budget_is_split_among_jobs():
    value, shares = shared([np.array([9.0, 4, 3]), np.array([9.0, 8, 0]), np.array([5.0])], 3)
    assert (value, shares) == (9.0, [1, 2, 0])
    assert shared([np.array([9.0, 4, 3]), np.array([9.0, 8, 0])], 1) == (13.0, [1, 0])


def test_savings_are_submodular():
    """What a pair gains does not grow when others are taken; and gains add up to what the check says."""
    for seed in range(20):
        tree = random_tree(seed, nodes=9, goal="utilization", shared=False)
        tree = without_budgets(tree)
        gains = Gains(tree, tables(tree))
        before = np.inf
        for pair in all_pairs(tables(tree)):
            left = np.array([gains.gain(other) for other in all_pairs(tables(tree))])
            assert np.all(left <= before + 1e-9)
            before, expected = left, gains.value - gains.gain(pair)
            gains.take(pair)
            assert gains.value == pytest.approx(expected)
            assert gains.value == pytest.approx(float(evaluate(tree, gains.answer()).objective))


def test_the_greedy_saves_what_the_theorem_promises():
    for seed in range(30):
        tree = random_tree(seed, nodes=8, goal="utilization", shared=False)
        nothing = evaluate(tree, answer(tree, ())).objective
        greedy = TreeGreedy().solve(tree, EXACT).objective
        assert nothing - greedy >= (1 - 1 / np.e) * (nothing - optimum(tree)) - 1e-9


def test_the_optimum_is_convex_in_the_budget_on_paths_only():
    """On a path it is a shortest path with so many edges under Monge weights; on a star, steps may grow again."""
    for seed in range(60):
        assert np.all(np.diff(np.diff(curve_of(random_tree(seed, nodes=14, goal="utilization", shape="path")))) > -1e-9)
    steps = -np.diff(curve_of(random_tree(46, nodes=14, goal="utilization", shape="star", shared=False)))
    assert np.any(np.diff(steps) > 0.1)


def test_refusals():
    tree = generate("tree-random", 1, nodes=5, goal="congestion", jobs=2)
    assert "minimises utilization" in Soar().refuses(tree)
    assert "has one job, and the instance 2" in TreeCongestion().refuses(tree)
    with pytest.raises(NotApplicableError, match="goal of the instance is congestion"):
        Soar().solve(tree, EXACT)


def test_a_time_limit_ends_a_solve():
    tree = generate("tree-random", 3, nodes=2000, depth=1.0, budget=60)
    found = Soar().solve(tree, Limits(time_s=1e-6))
    assert (found.status, found.message) == (
        Status.FEASIBLE,
        "the time was up before the tables were complete: tree-greedy",
    )
    assert found.bound <= Soar().solve(tree, EXACT).objective <= found.objective
    congested = generate("tree-random", 3, nodes=300, budget=10, goal="congestion")
    found = TreeCongestion().solve(congested, Limits(time_s=1e-9))
    assert found.status is Status.FEASIBLE
    assert found.bound <= TreeCongestion().solve(congested, EXACT).objective


def test_strategies_keep_to_memory_and_budgets():
    for seed, each in itertools.product(range(15), STRATEGIES):
        tree = random_tree(seed, nodes=9, jobs=3)
        found = each.solve(tree, EXACT, seed=seed)
        assert found.checked
        if each.strategy == "none":
            assert not any(found.solution.switches)


def test_links_that_are_far_faster_than_others_carry_as_much_as_there_is():
    # Messages that the fast link could carry in that time are no number of 64 bits.
    jobs = [{"name": "j", "loads": [1_000_000, 0, 10], "message_size": 0.5}]
    data = {"name": "fast", "parents": [None, 0, 1], "seconds_per_message": [1e6, 1e-9, 0.1], "jobs": jobs}
    instance = TreeInstance.from_data(data | {"memory": [0, 1, 1], "budget": 2, "goal": "congestion"})
    result = TreeCongestion().solve(instance, Limits())
    assert result.objective == pytest.approx(optimum(instance), rel=1e-12)
    assert result.bound <= optimum(instance)
