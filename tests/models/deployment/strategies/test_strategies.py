"""Strategy instances, their check, and what reductions keep."""

from fractions import Fraction

import numpy as np
import pytest
from refusals import one_line
from strategy_cases import enumerated, random_case
from volume import for_each, slow

from ddlopt.frontier.deployment.strategies.bounds import strategies_bound
from ddlopt.frontier.deployment.strategies.dual import Dual
from ddlopt.models.deployment.strategies.bounds import cheapest_bound
from ddlopt.models.deployment.strategies.core import core_of
from ddlopt.models.deployment.strategies.evaluate import evaluate_strategies
from ddlopt.models.deployment.strategies.formulations.strategy_selection import StrategySelection, arrays_of
from ddlopt.models.deployment.strategies.instance import StrategyAssignment, StrategyInstance
from ddlopt.models.errors import InfeasibleError, InstanceError
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact, build_model

TOY = {
    "name": "toy",
    "costs": [[15], [55, 65], [25, 45, 35], [85, 75], [95]],
    "usages": [[10], [25, 25], [15, 20, 15], [10, 10], [15]],
    "intervals": [[30, 70], [40, 70], [50, 120], [110, 140], [110, 150]],
    "edges": [[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]],
    "tables": [[30, 40], [50, 10, 40], [90, 10, 20, 80], [60, 20, 30], [70, 60]],
    "table_of": [0, 1, 2, 3, 4],
    "usage_limit": 50,
}


def _toy(**changes):
    return StrategyInstance.from_data({**TOY, **changes})


def _answer(*strategies):
    return StrategyAssignment(instance="toy", strategies=strategies)


def test_check_by_hand():
    """15 + 55 + 35 + 75 + 95 of nodes and 30 + 40 + 10 + 30 + 60 of edges."""
    found = evaluate_strategies(_toy(), _answer(0, 0, 2, 1, 0), exact=True)
    assert found.objective == Fraction(445)
    assert found.feasible
    assert found.details["peak_usage"] == 50


def test_violations_name_time_usage_and_limit():
    found = evaluate_strategies(_toy(), _answer(0, 0, 1, 1, 0))
    assert found.objective == 415
    assert [(each.kind, each.where, each.lhs, each.rhs) for each in found.violations] == [("memory", "time 50", 55, 50)]


def test_what_is_left_of_a_limit_has_what_the_check_lets_pass_of_the_whole():
    """10.5 of 12 are used anyway: that 12 exceeds the limit by 0.8e-9 of it is more than 1e-9 of the 1.25 left."""
    limit = 12 * (1 - 0.8e-9)
    nodes = {"costs": [[1], [5, 1]], "usages": [[10.5], [0.25, 1.5]], "intervals": [[0, 1], [0, 1]]}
    instance = _toy(**nodes, edges=[], tables=[], table_of=[], usage_limit=limit)
    assert evaluate_strategies(instance, _answer(0, 1)).objective == 2
    assert evaluate_strategies(instance, _answer(0, 1)).feasible
    assert core_of(instance).counts.tolist() == [1, 2]


@for_each(
    ("changes", "strategies", "kind"),
    [
        ({}, (0, 0, 0, 0), "number of strategies"),
        ({}, (0, 0, 3, 0, 0), "no such strategy"),
        ({"pins": [[1, 1]]}, (0, 0, 2, 1, 0), "pinned strategy"),
        ({"aliases": [[1, 3]]}, (0, 0, 2, 1, 0), "strategies alike"),
        (
            {"tables": [[30, 40], [50, 10, None], [90, 10, 20, 80], [60, 20, 30], [70, 60]]},
            (0, 0, 2, 1, 0),
            "forbidden pair",
        ),
        ({"costs": [[15], [None, 65], [25, 45, 35], [85, 75], [95]]}, (0, 0, 2, 1, 0), "forbidden strategy"),
    ],
)
def test_each_kind_of_violation(changes, strategies, kind):
    assert [each.kind for each in evaluate_strategies(_toy(**changes), _answer(*strategies)).violations] == [kind]


@for_each(
    ("changes", "words"),
    [
        ({"costs": []}, "costs is empty"),
        ({"usages": [[10]]}, "usages has 1 nodes, but costs has 5"),
        ({"costs": [[15], [55], [25, 45, 35], [85, 75], [95]]}, r"usages\[1\] has 2 strategies, but costs\[1\] has 1"),
        ({"edges": [[0, 1], [0, 2], [1, 3], [2, 9], [3, 4]]}, r"edges\[3\] joins \[2, 9\], but there are 5 nodes"),
        ({"edges": [[0, 1], [0, 2], [1, 3], [2, 2], [3, 4]]}, r"edges\[3\] joins node 2 with itself"),
        ({"table_of": [0, 1, 2, 3, 7]}, r"table_of\[4\] is 7, but there are 5 tables"),
        ({"table_of": [0, 1, 2, 3]}, "table_of has 4 entries, but there are 5 edges"),
        ({"tables": [[30, 40], [50, 10, 40], [90, 10, 20], [60, 20, 30], [70, 60]]}, r"edges\[2\] has 3 costs"),
        ({"tables": [[30, -40], [50, 10, 40], [90, 10, 20, 80], [60, 20, 30], [70, 60]]}, "row 0, entry 1 is -40"),
        ({"usages": [[None], [25, 25], [15, 20, 15], [10, 10], [15]]}, "row 0, entry 0 is None"),
        ({"pins": [[9, 0]]}, r"pins\[0\] names node 9"),
        ({"pins": [[1, 2]]}, r"pins\[0\] gives node 1 strategy 2, but it has 2"),
        ({"pins": [[1, 0], [1, 1]]}, r"pins\[1\] gives node 1 strategy 1, after 0"),
        ({"aliases": [[0, 1]]}, r"aliases\[0\] joins nodes 0 and 1"),
        ({"aliases": [[1, 3], [3, 1]]}, r"aliases\[1\] names node 3 again"),
        ({"costs": [[1e17], [55, 65], [25, 45, 35], [85, 75], [95]]}, "null where it stands for forbidden"),
    ],
)
def test_bad_data_in_one_line(changes, words):
    with one_line(InstanceError, match=words):
        _toy(**changes)


def test_memory_that_nothing_keeps_is_proven():
    with pytest.raises(InfeasibleError, match="at time 50"):
        core_of(_toy(usage_limit=40))


@pytest.mark.parametrize(
    ("usages", "limit"),
    [
        ([[0.5, 0.25], [0.5 + 0.9e-9, 0.25]], 1.0),
        ([[0.5, 0.5], [0.5 + 0.9e-9, 0.25]], 1.0),
        ([[1.0, 1.0], [0.9e-9, 0.0]], 1.0),
        ([[0.1, 0.1], [1.0, 0.0]], 1.1 * (1 - 0.9e-9)),  # what is left to choose is whole, what is certain is not
    ],
)
def test_what_the_check_lets_pass_of_the_whole_limit_is_a_choice(usages, limit):
    """Also where most of the limit is certain to be taken: a part of what is left would be less."""
    instance = _toy(costs=[[1, 9], [1, 9]], usages=usages, intervals=[[0, 2]] * 2, edges=[], tables=[], table_of=[])
    instance = instance.model_copy(update={"usage_limit": limit})
    assert evaluate_strategies(instance, _answer(0, 0)).feasible
    assert cheapest_bound(instance) <= 2.0
    found = Exact("milp", "deployment", StrategySelection()).solve(instance, Limits(gap=0.0))
    assert (found.objective, found.status) == (2.0, "optimal")


@pytest.mark.parametrize("cases", [60, slow(300)])
def test_bounds_are_below_the_optimum(cases):
    """Without prices, and with any prices."""
    met = 0
    for seed in range(cases):
        instance = random_case(seed, nodes=5)
        optimum = enumerated(instance)
        try:
            core = core_of(instance)
        except InfeasibleError:
            assert optimum is None
            continue
        dual = Dual(core)
        for _ in range(15):
            dual.sweep(2)
            dual.bound()
            dual.next_prices(core.excess_of(dual.decoded()))
        if optimum is not None:
            met += 1
            assert dual.proven <= optimum + 1e-9 * optimum
            assert cheapest_bound(instance) <= strategies_bound(instance) * (1 + 1e-9) <= optimum * (1 + 2e-9)
    assert met > cases / 3


def test_messages_are_exact_on_trees():
    """Without memory and cycles the bound is the optimum."""
    for seed in range(40):
        case = random_case(seed, nodes=5, memory=False, extras=False)
        data = case.model_dump(mode="json")
        pairs = [[max(0, j - 1 - seed % 2), j] for j in range(1, 5)]
        counts = case.costs.sizes
        data |= {
            "edges": pairs,
            "tables": [np.arange(int(counts[i] * counts[j])).tolist()[::-1] for i, j in pairs],
            "table_of": [0, 1, 2, 3],
        }
        tree = StrategyInstance.from_data(data)
        optimum = enumerated(tree)
        if optimum is not None:
            assert strategies_bound(tree) == pytest.approx(optimum)


def test_a_core_keeps_the_optimum():
    """Least cost over the choices of what is left."""
    for seed in range(60):
        instance = random_case(seed, nodes=5)
        optimum = enumerated(instance)
        try:
            core = core_of(instance)
        except InfeasibleError:
            assert optimum is None
            continue
        found = []
        for chosen in np.ndindex(*core.counts.tolist()):
            places = np.array(chosen)
            if (core.excess_of(places) <= 1e-9).all() and np.isfinite(core.cost_of(places)):
                answer = StrategyAssignment(instance=instance.name, strategies=core.strategies(places))
                checked = evaluate_strategies(instance, answer)
                assert checked.feasible
                assert float(checked.objective) == pytest.approx(core.cost_of(places))
                found.append(float(checked.objective))
        assert min(found, default=None) == (None if optimum is None else pytest.approx(optimum))


def test_arrays_and_block_are_the_same_program():
    for seed in (0, 3, 5, 8, 11):
        instance = random_case(seed, nodes=6)
        try:
            core = core_of(instance)
        except InfeasibleError:
            continue
        block = linear_model(build_model("deployment", StrategySelection(unit=1.0), instance))
        arrays = arrays_of(core)
        assert (block.matrix != arrays.matrix).nnz == 0
        for name in ("cost", "row_lower", "row_upper"):
            assert (getattr(block, name) == getattr(arrays, name)).all(), name
        assert block.integer.sum() == arrays.strategies


def _exactly(core, dual, alive):
    """The bound at messages and prices as they are, in rational numbers; ``alive`` (k,), None where nothing is left."""
    memory, total = core.memory, Fraction(0)
    paid = [Fraction(float(each)) for each in core.cost]
    prices = [Fraction(float(each)) for each in dual.prices]
    for q, node in enumerate(memory.node.tolist()):
        price = sum(prices[memory.low[q] : memory.high[q]], Fraction(0))
        for a, used in enumerate(memory.use[memory.start[q] : memory.start[q + 1]].tolist()):
            paid[core.start[node] + a] += price * Fraction(used)
    messages = {}
    for e, ends in enumerate(core.edges.tolist()):
        for node, flat, start in zip(
            ends, dual.messages, (dual.graph.first_start, dual.graph.second_start), strict=True
        ):
            messages[e, node] = [Fraction(float(each)) for each in flat[start[e] : start[e + 1]]]
            for a, message in enumerate(messages[e, node]):
                paid[core.start[node] + a] += message
    for i in range(core.size):
        total += min(paid[a] for a in range(core.start[i], core.start[i + 1]) if alive[a])
    for e, (i, j) in enumerate(core.edges.tolist()):
        table = core.table[core.table_start[e] : core.table_start[e + 1]].reshape(core.counts[i], core.counts[j])
        total += min(
            Fraction(float(table[a, b])) - messages[e, i][a] - messages[e, j][b]
            for a, b in np.ndindex(*table.shape)
            if np.isfinite(table[a, b]) and alive[core.start[i] + a] and alive[core.start[j] + b]
        )
    return total - sum(p * Fraction(float(limit)) for p, limit in zip(prices, core.memory.limit, strict=True))


def test_rounding_makes_no_bound_and_no_rise_too_high():
    """Against rational numbers, at messages and prices so large that rounding is of the size of costs."""
    above = pairs = 0
    for seed in range(40):
        try:
            core = core_of(random_case(seed, nodes=5))
        except InfeasibleError:
            continue
        rng = np.random.default_rng(seed)
        dual = Dual(core)
        dual.set_prices(rng.uniform(0, 1e14 if seed % 4 == 1 else 1.0, len(core.memory.limit)))
        starts = (dual.graph.first_start, dual.graph.second_start)
        for flat, start in zip(dual.messages, starts, strict=True):
            # Alike for all strategies, so that rises are small.
            alike = np.repeat(rng.uniform(-1e14, 1e14, len(core.edges)), np.diff(start))
            flat[:] = rng.uniform(-9, 9, len(flat)) + (alike if seed % 4 > 1 else 0)
        bound, excess, of_pairs = dual.rises()
        alive = np.ones(len(core.cost), dtype=np.bool_)
        least = _exactly(core, dual, alive)
        assert Fraction(bound) <= least
        owner = np.repeat(np.arange(core.size), core.counts)
        for a in range(len(core.cost)):
            only = (owner != owner[a]) | (np.arange(len(core.cost)) == a)
            if _allowed(core, only):
                assert Fraction(float(excess[a])) <= _exactly(core, dual, only) - least
                above += excess[a] > 0
        for e, (i, j) in enumerate(core.edges.tolist()):
            for place, (a, b) in enumerate(np.ndindex(core.counts[i], core.counts[j])):
                rise = of_pairs[core.table_start[e] + place]
                only = (owner != i) & (owner != j)
                only[[core.start[i] + a, core.start[j] + b]] = True
                if _allowed(core, only):
                    assert Fraction(float(rise)) <= _exactly(core, dual, only) - least
                    pairs += rise > 0
    assert above > 20
    assert pairs > 50


def _allowed(core, alive):
    """Whether each edge has an allowed pair of those strategies."""
    for e, (i, j) in enumerate(core.edges.tolist()):
        table = core.table[core.table_start[e] : core.table_start[e + 1]].reshape(core.counts[i], core.counts[j])
        rows = alive[core.start[i] : core.start[i + 1]]
        if not np.isfinite(table[rows][:, alive[core.start[j] : core.start[j + 1]]]).any():
            return False
    return True
