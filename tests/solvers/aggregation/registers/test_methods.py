"""Methods for placements in register arrays: against brute force, their bounds, and each other."""

import numpy as np
import pytest
from register_cases import full, optimum, small
from volume import for_each, some

from ddlopt.frontier.aggregation.registers import enumeration_kernels as tree_kernels
from ddlopt.frontier.aggregation.registers.enumeration import RegisterTree
from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import Placement, RegisterInstance, evaluate
from ddlopt.models.aggregation.registers.batches import merged
from ddlopt.models.aggregation.registers.bounds import registers_bound
from ddlopt.models.aggregation.registers.formulations.count_placement import CountPlacement
from ddlopt.models.aggregation.registers.instance import Goal
from ddlopt.solvers.aggregation.registers.dealing import (
    Block,
    GreedyCooccurrence,
    HeatBalance,
    HeatRoundRobin,
    RandomArrays,
)
from ddlopt.solvers.aggregation.registers.kernels import annealing as kernels
from ddlopt.solvers.aggregation.registers.methods import ENTRIES, best, milp
from ddlopt.solvers.aggregation.registers.rounding import RelaxationRounding
from ddlopt.solvers.aggregation.registers.search import RegisterSearch
from ddlopt.solvers.aggregation.registers.work import work_of
from ddlopt.solvers.contracts import Limits, Method, Result, Status
from ddlopt.solvers.exact import Exact

CASES = [(seed, goal) for seed in range(8) for goal in ("packets", "collisions")]
HEURISTICS: tuple[Method, ...] = (
    Block(), RandomArrays(), HeatRoundRobin(), HeatRoundRobin(snake=True), HeatBalance(), GreedyCooccurrence(),
    RegisterSearch(steps=20_000),
)  # fmt: skip


def _solved(method: Method, instance: RegisterInstance, seed: int = 0) -> Result:
    return method.solve(instance, Limits(), seed)


@for_each(("seed", "goal"), some(CASES, 4))
def test_no_method_beats_brute_force_and_the_tree_reaches_it(seed: int, goal: Goal) -> None:
    instance = small(seed, goal)
    value = optimum(instance)
    tree = _solved(RegisterTree(), instance)
    assert (tree.status, tree.objective) == (Status.OPTIMAL, pytest.approx(value))
    assert tree.bound == pytest.approx(value)
    for method in HEURISTICS:
        result = _solved(method, instance)
        assert result.objective is not None
        assert result.objective >= value - 1e-9, method.name
    rounding = RelaxationRounding(draws=20)
    if rounding.refuses(instance) is None:
        result = _solved(rounding, instance)
        assert result.objective is not None
        assert result.bound is not None
        assert result.bound <= value + 1e-9 <= result.objective + 2e-9


@pytest.mark.parametrize(("seed", "goal"), [(0, "packets"), (1, "collisions"), (2, "collisions")])
def test_exact_and_milp_agree(seed: int, goal: Goal) -> None:
    instance = small(seed, goal)
    for make in (best, milp):
        result = _solved(make(instance, "highs"), instance)
        assert (result.status, result.objective) == (Status.OPTIMAL, pytest.approx(optimum(instance)))


def test_the_tree_proves_from_any_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    # With the worst of openings the enumeration finds and proves all by itself.
    block = Block()

    def opening(*_: object) -> Placement:
        solution, _details = block.answer(instance, 0, None, None)  # type: ignore[arg-type]
        assert isinstance(solution, Placement)
        return solution

    monkeypatch.setattr(RegisterTree, "_opening", opening)
    for seed, goal in CASES[:8]:
        instance = small(seed, goal)
        assert _solved(RegisterTree(), instance).objective == pytest.approx(optimum(instance))
    for goal in ("packets", "collisions"):
        instance = RegisterInstance(**{**full(12, 4, 14).model_dump(), "goal": goal})
        proof = _solved(Exact("program", "aggregation", CountPlacement()), instance)
        assert proof.status is Status.OPTIMAL
        assert _solved(RegisterTree(), instance).objective == proof.objective


def test_what_is_still_to_come_counts_a_batch_once() -> None:
    # 0 and 1 share a batch, as do 2 and 3: whichever packets both of a pair ask for may be the same one.
    instance = RegisterInstance(
        name="shared", parameters=4, arrays=2, capacity=4, entries=2, batches=((0, 1), (2, 3), (0,))
    )
    work = work_of(instance, merged(instance))
    tree = tree_kernels.empty_tree(work, np.zeros_like(work.table), 0.0)
    assert tree_kernels._still_to_come(work, tree, np.array([1.0, 3.0, 1.0, 0.5])) == 3 + 1
    tree.array[1] = 0
    assert tree_kernels._still_to_come(work, tree, np.array([1.0, 3.0, 1.0, 0.5])) == 1 + 1


@pytest.mark.slow
def test_colouring_says_whether_the_floor_is_reached() -> None:
    # A cycle of five batches of two: no two arrays keep every pair apart, three do.
    cycle = tuple((i, (i + 1) % 5) for i in range(5))
    data = {"name": "cycle", "parameters": 5, "capacity": 5, "batches": cycle, "entries": 2}
    for goal, floor in (("packets", 5.0), ("collisions", 0.0)):
        three = _solved(RegisterTree(only_floor=True), RegisterInstance(**data, arrays=3, goal=goal))
        assert (three.status, three.objective) == (Status.OPTIMAL, floor)
        two = _solved(RegisterTree(only_floor=True), RegisterInstance(**data, arrays=2, goal=goal))
        assert registers_bound(RegisterInstance(**data, arrays=2, goal=goal)) == floor
        assert (two.objective, two.bound) == (floor + 1, floor + 1)


@pytest.mark.slow
def test_colouring_stops_after_the_first_enumeration() -> None:
    instance = full(12, 4, 14)
    tree, colouring = _solved(RegisterTree(), instance), _solved(RegisterTree(only_floor=True), instance)
    assert tree.status is Status.OPTIMAL
    assert tree.objective is not None
    assert tree.objective > registers_bound(instance) + 1
    assert colouring.bound == registers_bound(instance) + 1


def test_dealing_by_hand() -> None:
    instance = RegisterInstance(
        name="dealt", parameters=5, arrays=2, capacity=(4, 2), entries=2,
        batches=((4, 0), (4, 1), (4, 2), (0, 3), (0,)),
    )  # fmt: skip
    arrays = {
        method.name: _solved(method, instance).solution.arrays  # type: ignore[union-attr]
        for method in HEURISTICS[:-1]
    }
    # Heat 3, 1, 1, 1, 3; in order of heat 0, 4, 1, 2, 3.
    assert arrays["block"] == (0, 0, 0, 1, 1)
    assert arrays["heat-round-robin"] == (0, 0, 1, 0, 1)
    assert arrays["heat-round-robin:snake=true"] == (0, 1, 0, 0, 1)
    assert arrays["heat-balance"] == (0, 0, 1, 0, 1)
    # 0 and 4 meet; 1 and 2 meet 4 alone, 3 meets 0, and array 1 has room for two.
    assert arrays["greedy-co-occurrence"] == (0, 0, 0, 1, 1)
    assert sorted(arrays["random-arrays"]) in ([0, 0, 0, 1, 1], [0, 0, 0, 0, 1])


@pytest.mark.parametrize("goal", ["packets", "collisions"])
def test_kernels_count_as_the_check_does(goal: Goal) -> None:
    instance = generate("registers-zipf", 3, parameters=30, arrays=5, batches=15, rows=2, goal=goal)
    assert isinstance(instance, RegisterInstance)
    batches, rng = merged(instance), np.random.default_rng(0)
    for surplus in (0.0, 0.5):
        work = work_of(instance, batches, surplus)
        first = np.arange(30) % 5
        found, value = kernels.anneal(work, first, 2000, 1.0, 0.1, -1.0, rng)
        checked = evaluate(instance, Placement(instance=instance.name, arrays=tuple(found.tolist())))
        assert checked.feasible
        assert checked.objective == pytest.approx(value + batches.constant)
        table, top = kernels.value_of(work, kernels.state_of(work, found))
        assert work.of_table * table + work.of_top * top == pytest.approx(value)


def test_the_search_improves_what_it_is_given_and_repeats_itself() -> None:
    instance = generate("registers-zipf", 4, parameters=40, rows=1)
    assert isinstance(instance, RegisterInstance)
    dealt = _solved(HeatRoundRobin(), instance)
    one, two = (RegisterSearch(steps=100_000).solve(instance, Limits(), 5, None, dealt.solution) for _ in range(2))
    assert one.solution == two.solution
    assert dealt.objective is not None
    assert one.objective is not None
    assert one.objective < 0.9 * dealt.objective
    certified = _solved(RegisterSearch(steps=1000, relaxation=True), small(1, "collisions"))
    assert certified.bound is not None
    assert certified.bound >= registers_bound(small(1, "collisions")) - 1e-9


def test_time_is_kept_and_the_bound_stays_one() -> None:
    instance = full(60, 12, 80)
    result = RegisterTree().solve(instance, Limits(time_s=0.2))
    assert result.status is Status.FEASIBLE
    assert result.bound is not None
    assert result.objective is not None
    assert registers_bound(instance) <= result.bound < result.objective  # type: ignore[arg-type]


def test_a_single_array_and_settled_batches() -> None:
    one = RegisterInstance(name="one", parameters=3, arrays=1, capacity=3, entries=1, batches=((0, 1, 2), (0,)))
    for entry in ENTRIES:
        method = entry.make("highs")
        if method.refuses(one) is None:
            assert _solved(method, one).objective == 4, entry.name
    assert "sdp-rounding" not in {e.name for e in ENTRIES if e.make("highs").refuses(one) is None}
