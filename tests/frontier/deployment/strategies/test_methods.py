"""Every method for strategies against enumeration; the public instances where they are there."""

import numpy as np
import pytest
from shared_data import shared_data
from strategy_cases import enumerated, random_case
from volume import slow

from ddlopt.frontier.deployment.strategies.best import _Run
from ddlopt.frontier.deployment.strategies.dual import Dual
from ddlopt.frontier.deployment.strategies.junction_tree import JunctionTree
from ddlopt.frontier.deployment.strategies.kernels.memory_rows import add_range, tree_of
from ddlopt.frontier.deployment.strategies.milp import narrowed
from ddlopt.frontier.deployment.strategies.search import StrategySearch
from ddlopt.frontier.deployment.strategies.state import SearchState
from ddlopt.instances.generators.deployment.strategies import training, tree
from ddlopt.instances.readers.graphs.iopddl import read_iopddl
from ddlopt.models.deployment.strategies.core import core_of
from ddlopt.models.deployment.strategies.evaluate import evaluate_strategies
from ddlopt.models.deployment.strategies.formulations.strategy_selection import StrategySelection
from ddlopt.models.deployment.strategies.instance import StrategyInstance
from ddlopt.models.errors import InfeasibleError
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.strategies.methods import ENTRIES, best
from ddlopt.solvers.exact import lp_relaxation

EXACT = Limits(gap=0.0)


def _outcome(method, instance):
    try:
        return method.solve(instance, EXACT)
    except InfeasibleError:
        return None


@pytest.mark.parametrize(
    ("which", "cases"),
    [("best", 6), ("messages", 6), slow("best", 60), slow("messages", 60), slow("strategy-selection", 25)],
)
def test_exact_methods_against_enumeration(which, cases, monkeypatch):
    """Forbidden pairs, parallel edges, memory, pins, aliases; whole costs and others; also where there is no answer."""
    if which == "messages":
        # As where the graph is too wide for a tree.
        monkeypatch.setattr(JunctionTree, "of", lambda core: None)
        which = "best"
    entries = {entry.name: entry.make for entry in ENTRIES}
    method = best(None, "highs") if which == "best" else entries[which]("highs")
    answered = without = 0
    for seed in range(cases):
        instance = random_case(seed, nodes=6)
        optimum = enumerated(instance)
        result = _outcome(method, instance)
        if optimum is None:
            without += 1
            assert result is None or result.status is Status.INFEASIBLE
            continue
        answered += 1
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(optimum)
    assert answered > cases // 3
    assert without > cases // 8


def test_programs_below_targets_prove_that_there_is_no_choice_there(monkeypatch):
    """Targets below the optimum, one of them below everything that prices leave."""
    made = training(np.random.default_rng(3), layers=4, memory=0.3)
    optimum = best(made, "highs").solve(made, EXACT).objective
    targets = []
    solve = _Run._solve

    def watched(run, core, highs, target=np.inf):
        solve(run, core, highs, target)
        targets.append((target, run.bound))

    monkeypatch.setattr(_Run, "_solve", watched)
    monkeypatch.setattr(_Run, "search", lambda run: None)
    found = best(made, "highs").solve(made, EXACT)
    assert found.status is Status.OPTIMAL
    assert found.objective == optimum
    assert targets[0][0] < optimum
    assert all(bound <= optimum for _, bound in targets)


def test_search_is_checked_and_its_bound_holds():
    method = catalogue.method("strategy-search", "deployment")
    for seed in range(12):
        instance = random_case(seed, nodes=6)
        optimum = enumerated(instance)
        result = method.solve(instance, Limits(time_s=0.2, gap=0.0), seed)
        if optimum is None:
            assert result.objective is None
        elif result.objective is not None:
            assert result.objective >= optimum - 1e-9
            assert result.bound <= optimum + 1e-9 * optimum


def test_search_proves_a_tree_and_nearly_a_training_graph():
    made = tree(np.random.default_rng(1), nodes=50, branching=4)
    result = StrategySearch().solve(made, EXACT)
    assert result.status is Status.OPTIMAL
    made = training(np.random.default_rng(1), layers=8)
    result = StrategySearch(rounds=150).solve(made, EXACT)
    assert result.gap < 0.05
    assert result.bound <= lp_relaxation(StrategySelection(), made).objective * (1 + 1e-6) + 1


def test_aliases_and_pins_are_kept():
    made = training(np.random.default_rng(2), layers=6, alike=True)
    pinned = type(made).from_data({**made.model_dump(mode="json"), "pins": [[0, 1]]})
    result = best(pinned, "highs").solve(pinned, EXACT)
    assert result.solution.strategies[0] == 1
    chosen = result.solution.strategies
    assert made.aliases
    assert all(len({chosen[node] for node in nodes}) == 1 for nodes in made.aliases)
    assert evaluate_strategies(pinned, result.solution, exact=True).feasible


def test_tree_over_rows_against_an_array():
    rng = np.random.default_rng(0)
    for _ in range(200):
        size = int(rng.integers(1, 20))
        half = 1 << int(np.ceil(np.log2(size)))
        largest, added, plain = np.empty(2 * half), np.empty(2 * half), rng.integers(-9, 9, size).astype(float)
        tree_of(-plain, largest, added)
        assert largest[1] == plain.max()
        for _ in range(20):
            low = int(rng.integers(size))
            high = int(rng.integers(low + 1, size + 1))
            amount = float(rng.integers(-5, 5))
            add_range(largest, added, low, high, amount)
            plain[low:high] += amount
            assert largest[1] == plain.max()


def hub(strategies, neighbours=40):
    """A node with many neighbours, which make a chain."""
    rng = np.random.default_rng(5)
    nodes = [[int(c) for c in rng.integers(0, 9, size=strategies)]]
    nodes += [[int(c) for c in rng.integers(0, 9, size=3)] for _ in range(neighbours)]
    pairs = [(0, k) for k in range(1, neighbours + 1)]
    pairs += [(k, k + 1) for k in range(1, neighbours)]
    tables = [rng.integers(0, 30, size=len(nodes[u]) * len(nodes[v])).tolist() for u, v in pairs]
    return StrategyInstance.from_data(
        {
            "name": "hub",
            "costs": nodes,
            "usages": [[0] * len(row) for row in nodes],
            "intervals": [[0, 1]] * len(nodes),
            "edges": pairs,
            "tables": tables,
            "table_of": list(range(len(pairs))),
        }
    )


def test_nodes_are_fixed_near_the_optimum_and_messages_are_kept():
    instance = hub(4)
    core = core_of(instance)
    optimum, _ = JunctionTree.of(core, largest=1e7).solve(core.cost)
    state = SearchState(core, np.random.default_rng(0))
    state.dual.sweep(20)
    state.dual.bound()
    messages = [part.copy() for part in state.dual.messages]
    assert optimum <= core.cost_of(state.fixed()) <= 1.01 * optimum
    assert core.cost_of(state.dual.decoded()) > 1.01 * optimum
    assert all(np.array_equal(*pair) for pair in zip(messages, state.dual.messages, strict=True))


def test_hubs_that_no_number_counts_the_choices_around():
    """Of 700 neighbours there are more choices than there are floating-point numbers; the others go first."""
    assert JunctionTree.of(core_of(hub(2, 700))) is not None


def test_a_node_with_one_strategy_is_no_hub():
    instance = hub(1)
    core = core_of(instance)
    value, chosen = JunctionTree.of(core).solve(core.cost)
    assert value == core.cost_of(chosen)
    assert value == best(None, "highs").solve(instance, EXACT).objective


def test_example_of_the_contest():
    result = best(None, "highs").solve(read_iopddl(shared_data("iopddl/example.json")), EXACT)
    assert result.objective == 445
    assert result.status is Status.OPTIMAL


@pytest.mark.slow
@pytest.mark.parametrize(("name", "optimum"), [("B", 532_843), ("G", 217_039)])
def test_public_instances_are_proven(name, optimum):
    result = best(None, "highs").solve(read_iopddl(shared_data(f"iopddl/{name}.json.gz")), Limits(gap=0.0, time_s=120))
    assert result.objective == optimum
    assert result.bound == optimum


def test_narrowing_where_costs_are_whole_drops_what_is_as_good():
    """Of large costs, too, where one is a part of 1e-12; of others only what is certain not to be better is dropped."""
    for unit, left in ((1, [2]), (0.3, [0, 1, 2])):
        data = {"name": "one", "costs": [[unit * 10**12, unit * 10**12, unit * (10**12 - 1)]]}
        core = core_of(StrategyInstance.from_data({**data, "usages": [[0, 0, 0]], "intervals": [[0, 1]]}))
        dual = Dual(core)
        assert narrowed(dual, unit * 10**12).original.tolist() == left
        assert narrowed(dual, unit * (10**12 + 2)).original.tolist() == [0, 1, 2]
        with pytest.raises(InfeasibleError):
            narrowed(dual, unit * (10**12 - 2))


def test_narrowing_keeps_every_better_choice():
    """Against all choices, from costs that are far from the best."""
    kept = 0
    for seed in range(60):
        instance = random_case(seed, nodes=5)
        try:
            core = core_of(instance)
        except InfeasibleError:
            continue
        found = {}
        for chosen in np.ndindex(*core.counts.tolist()):
            places = np.array(chosen)
            if (core.excess_of(places) <= 1e-9).all() and np.isfinite(core.cost_of(places)):
                found[core.strategies(places)] = core.cost_of(places)
        if not found:
            continue
        dual = Dual(core)
        dual.sweep(3)
        for cost in (float(np.median(list(found.values()))), min(found.values())):
            better = [strategies for strategies, value in found.items() if value < cost - 1e-6]
            try:
                smaller = narrowed(dual, cost)
            except InfeasibleError:
                assert not better
                continue
            for strategies in better:
                places = smaller.places(strategies)
                assert places is not None
                assert smaller.cost_of(places) == pytest.approx(found[strategies])
                kept += 1
    assert kept > 50


def test_a_choice_that_costs_nothing_is_optimal_at_once():
    data = {"name": "free", "costs": [[2.27, 0.0]], "usages": [[4.26, 2.17]], "intervals": [[1, 0]], "usage_limit": 3.0}
    result = StrategySearch().solve(StrategyInstance.from_data(data | {"aliases": [[0]]}), Limits())
    assert (result.status, result.objective, result.bound) == (Status.OPTIMAL, 0, 0)
