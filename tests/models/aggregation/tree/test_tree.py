"""Aggregation in trees: what an instance refuses, the check, the bound and the integer programs."""

import itertools
from fractions import Fraction

import pyomo.environ as pyo
import pytest
from tree_cases import answer, optimum, random_tree
from volume import for_each, seeds

from ddlopt.instances.library.aggregation.tree import example
from ddlopt.models.aggregation import AggregationProblem, TreeInstance, bound, evaluate
from ddlopt.models.aggregation.tree.formulations.tree_aggregation import TreeAggregation, states_of
from ddlopt.models.aggregation.tree.formulations.tree_message_flow import TreeMessageFlow
from ddlopt.models.errors import InstanceError
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

EXACT = Limits(gap=0.0)
FORMULATIONS = (TreeAggregation(), TreeMessageFlow())


def data(**changes):
    return {
        "name": "small",
        "problem": "tree",
        "parents": [None, 0, 0],
        "seconds_per_message": [1, 2, 0.5],
        "jobs": [{"name": "a", "loads": [0, 3, 2]}],
    } | changes


@for_each(
    ("changes", "message"),
    [
        ({"parents": [1, 2, 0]}, "parents form a cycle of 3 switches: 0 -> 1 -> 2 -> 0"),
        ({"parents": [None, 2, 1], "names": ["r", "s", "t"]}, "cycle of 2 switches: 1 ('s') -> 2 ('t') -> 1 ('s')"),
        ({"parents": [None, None, 0]}, "parents[0] and parents[1] are both None"),
        ({"parents": [None, 0, 3]}, "parents[2] is 3, but there are 3 switches (0..2)"),
        ({"parents": [None, 0]}, "seconds_per_message has 3 entries, but there are 2 switches"),
        ({"seconds_per_message": [1, 0, 1]}, "seconds_per_message[1] is 0"),
        ({"memory": [1, -1, 1]}, "memory[1] is -1"),
        ({"memory": [1]}, "memory has 1 entries, but there are 3 switches"),
        ({"names": ["a"]}, "names has 1 entries, but there are 3 switches"),
        ({"jobs": [{"name": "a", "loads": [0, 0, 0]}]}, "jobs[0] ('a') has no messages"),
        ({"jobs": [{"name": "a", "loads": [0, -1, 2]}]}, "jobs[0].loads[1] is -1"),
        ({"jobs": [{"name": "a", "loads": [1]}]}, "jobs[0].loads has 1 entries"),
        ({"budget": -1}, "budget"),
        ({"jobs": [{"name": "a", "loads": [0, 10**18, 2]}]}, "jobs[0].loads[1] is 1000000000"),
        ({"memory": [1, 10**18, 1]}, "expected 0 (it cannot aggregate) to 1000000000"),
    ],
)
def test_bad_trees_are_refused_in_one_line(changes, message):
    with pytest.raises(InstanceError) as refused:
        AggregationProblem.from_data(data(**changes))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_long_cycle_is_not_listed_in_full():
    ring = [*range(1, 50), 0]
    loads = [{"name": "a", "loads": [1] * 50}]
    with pytest.raises(InstanceError, match=r"cycle of 50 switches: 0 -> 1 -> .* … -> 49 -> 0;") as refused:
        TreeInstance.from_data(data(parents=ring, seconds_per_message=[1] * 50, jobs=loads))
    assert len(str(refused.value)) < 250


def test_the_root_may_be_written_as_minus_one():
    tree = TreeInstance.from_data(data(parents=[-1, 0, 0]))
    assert tree.parents == (None, 0, 0)
    assert TreeInstance.from_json(tree.to_json()) == tree


def test_messages_are_added_up_where_switches_aggregate():
    tree = TreeInstance.from_data(data(jobs=[{"name": "a", "loads": [1, 3, 2]}, {"name": "b", "loads": [0, 0, 4]}]))
    found = evaluate(tree, answer(tree, (1,), (0,)))
    # a: links 1, 2, 0 have 1, 2, 1 + 1 + 2 messages; b: link 2 has 4, link 0 has 1.
    assert found.objective == pytest.approx(2 * 1 + 0.5 * (2 + 4) + 1 * (4 + 1))
    assert found.details["congestion_s"] == pytest.approx(5)
    assert (found.details["arriving"], found.details["aggregating"]) == (5, 2)
    congested = TreeInstance.from_data(tree.model_dump() | {"goal": "congestion"})
    assert evaluate(congested, answer(tree, (1,), (0,))).objective == pytest.approx(5)


def test_a_switch_without_messages_sends_none():
    tree = TreeInstance.from_data(data(jobs=[{"name": "a", "loads": [0, 3, 0]}]))
    assert evaluate(tree, answer(tree, (2,))).objective == pytest.approx(2 * 3 + 1 * 3)


def test_the_check_is_exact_in_rational_numbers():
    tree = TreeInstance.from_data(data(seconds_per_message=[0.1, 0.2, 0.3]))
    found = evaluate(tree, answer(tree, ()), exact=True)
    assert found.objective == 5 * Fraction(0.1) + 3 * Fraction(0.2) + 2 * Fraction(0.3)


@for_each(
    ("switches", "kind", "where", "lhs", "rhs"),
    [
        (((0,),), "every job has its switches", "switches", 1, 2),
        (((0, 3), ()), "switch exists", "switches[0][1]", 3, 2),
        (((0, 0), ()), "switch is named once", "switches[0][1]", 0, 0),
        (((2,), ()), "switch has the memory that its jobs need", "switch 2 ('t')", 1, 0),
        (((1,), (1,)), "switch has the memory that its jobs need", "switch 1 ('s')", 3, 2),
        (((0, 1), ()), "job has no more switches than its budget", "job 0 ('a')", 2, 1),
        (((0,), (0, 1)), "no more switches aggregate than the budget", "all jobs", 3, 2),
    ],
)
def test_every_violation_is_found(switches, kind, where, lhs, rhs):
    jobs = [{"name": "a", "loads": [0, 3, 2], "budget": 1}, {"name": "b", "loads": [0, 3, 2], "memory": 2}]
    tree = TreeInstance.from_data(data(jobs=jobs, memory=[9, 2, 0], budget=2, names=["r", "s", "t"]))
    found = evaluate(tree, answer(tree, *switches))
    assert (kind, where, lhs, rhs) in [(each.kind, each.where, each.lhs, each.rhs) for each in found.violations]
    assert evaluate(tree, answer(tree, (0,), (1,))).feasible


def test_the_worked_example():
    """Optimum by budget and what strategies reach."""
    best = [51, 35, 20, 15, 11, 9, 8, 7]
    for budget, value in enumerate(best):
        tree = example(budget)
        found = [evaluate(tree, answer(tree, each)).objective for each in itertools.combinations(range(7), budget)]
        assert min(found) == value
    for switches, value in (((0, 1), 28), ((0, 2), 27), ((4, 5), 24), ((1, 2), 21), ((2, 4), 20)):
        assert evaluate(example(), answer(example(), switches)).objective == value


@pytest.mark.parametrize("seed", seeds(2, 30))
def test_programs_and_bound_against_enumeration(seed):
    jobs = 1 + seed % 2
    tree = random_tree(seed, nodes=6 if jobs == 1 else 4, jobs=jobs)
    best = optimum(tree)
    assert bound(tree) <= best
    relaxed = [lp_relaxation(each, tree).objective for each in FORMULATIONS]
    for formulation in (*FORMULATIONS, TreeMessageFlow(limit_s=best)):
        found = Exact("tree", "aggregation", formulation).solve(tree, EXACT)
        assert (found.status, found.objective) == ("optimal", pytest.approx(best))
        assert lp_relaxation(formulation, tree).objective <= best * (1 + 1e-9)
    assert relaxed[0] >= relaxed[1] * (1 - 1e-9)


def test_a_limit_cuts_off_nothing_that_attains_it():
    """Three messages of size 1 beside one of 10⁹: of the limit in messages they are what rounding is of."""
    jobs = [{"name": "big", "loads": [0, 1], "message_size": 1e9}, {"name": "small", "loads": [0, 3], "budget": 0}]
    tree = TreeInstance.from_data(data(parents=[None, 0], seconds_per_message=[0.16] * 2, jobs=jobs, goal="congestion"))
    found = evaluate(tree, answer(tree, (), ()))
    block = build_model("aggregation", TreeMessageFlow(limit_s=found.objective), tree).aggregation
    assert not block.component("messages_are_limited")


def _without_budgets(tree):
    found = tree.model_dump()
    return found | {"budget": None, "jobs": [job | {"budget": None} for job in found["jobs"]]}


@for_each("seed", range(12))
def test_without_budget_and_memory_the_program_over_states_is_integral(seed):
    free = TreeInstance.from_data(_without_budgets(random_tree(seed, nodes=9, goal="utilization", shared=False)))
    priced = pyo.ConcreteModel()
    priced.tree = pyo.Block()
    TreeAggregation().build(priced.tree, free)
    # A host model that pays for switches: the optimum of its relaxation is one of the integral model.
    cost = priced.tree.objective + 0.7 * sum(priced.tree.aggregates[pair] for pair in priced.tree.aggregates)
    priced.goal = pyo.Objective(expr=cost)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(priced)
    outcome = Highs().solve(priced, Limits())
    values = [pyo.value(each) for each in priced.tree.aggregates.values()]
    assert outcome.status == "optimal"
    assert all(min(value, 1 - value) < 1e-6 for value in values)
    assert len(priced.tree.next_above) == states_of(free)


def test_relaxations_of_the_worked_example():
    values = [[lp_relaxation(each, example(k)).objective for each in FORMULATIONS] for k in range(8)]
    assert [each[0] for each in values] == pytest.approx([51, 35, 20, 15, 11, 9, 8, 7])
    assert values[2][1] == pytest.approx(217 / 11)


def test_models_take_a_start():
    tree = random_tree(3, nodes=6, jobs=2, goal="utilization")
    for formulation in FORMULATIONS:
        start = answer(tree, (), ())
        model = build_model("aggregation", formulation, tree)
        formulation.start(model.component("aggregation"), tree, start)
        assert formulation.read(model.component("aggregation"), tree) == start


@pytest.mark.parametrize("goal", ["utilization", "congestion"])
def test_a_start_satisfies_the_program_over_states(goal):
    tree = TreeInstance.from_data(_without_budgets(random_tree(8, nodes=6, jobs=2, goal=goal, shared=False)))
    start = answer(tree, tuple(range(tree.size)), (tree.order[0],))
    model = build_model("aggregation", TreeAggregation(), tree)
    block = model.component("aggregation")
    TreeAggregation().start(block, tree, start)
    for row in (*block.messages_are_added_up.values(), *block.next_is_inherited.values()):
        assert row.lower is None or pyo.value(row.body) >= pyo.value(row.lower) - 1e-9
        assert row.upper is None or pyo.value(row.body) <= pyo.value(row.upper) + 1e-9
    if goal == "utilization":
        seconds = TreeAggregation().objective_value(tree, pyo.value(block.objective))
        useful = answer(tree, *TreeAggregation().read(block, tree).switches)
        assert seconds == pytest.approx(float(evaluate(tree, useful).objective))
