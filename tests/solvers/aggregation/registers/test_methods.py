"""Methods for placements in register arrays: against brute force, their bounds, and each other."""

import numpy as np
import pytest
from register_cases import optimum, small
from volume import for_each, some

from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import Placement, RegisterInstance, evaluate
from ddlopt.models.aggregation.registers.batches import merged
from ddlopt.models.aggregation.registers.bounds import registers_bound
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

CASES = [(seed, goal) for seed in range(8) for goal in ("packets", "collisions")]
HEURISTICS: tuple[Method, ...] = (
    Block(), RandomArrays(), HeatRoundRobin(), HeatRoundRobin(snake=True), HeatBalance(), GreedyCooccurrence(),
    RegisterSearch(steps=20_000),
)  # fmt: skip


def _solved(method: Method, instance: RegisterInstance, seed: int = 0) -> Result:
    return method.solve(instance, Limits(), seed)


@for_each(("seed", "goal"), some(CASES, 4))
def test_no_method_beats_brute_force(seed: int, goal: Goal) -> None:
    instance = small(seed, goal)
    value = optimum(instance)
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


def test_a_single_array_and_settled_batches() -> None:
    one = RegisterInstance(name="one", parameters=3, arrays=1, capacity=3, entries=1, batches=((0, 1, 2), (0,)))
    for entry in ENTRIES:
        method = entry.make("highs")
        if method.refuses(one) is None:
            assert _solved(method, one).objective == 4, entry.name
    assert "sdp-rounding" not in {e.name for e in ENTRIES if e.make("highs").refuses(one) is None}
