"""Register arrays: data, check, bounds, and the integer programs."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from refusals import one_line
from register_cases import optimum, small
from volume import for_each

from ddlopt.certificates.linear import exact_model, step_of
from ddlopt.instances.library import load
from ddlopt.models.aggregation import AggregationProblem, Placement, RegisterInstance, bound, evaluate
from ddlopt.models.aggregation.registers.batches import heat, hottest_first, merged
from ddlopt.models.aggregation.registers.bounds import registers_bound
from ddlopt.models.aggregation.registers.formulations.count_placement import CountPlacement, twins_of
from ddlopt.models.aggregation.registers.formulations.pair_placement import PairPlacement
from ddlopt.models.aggregation.registers.formulations.set_placement import SetPlacement
from ddlopt.models.aggregation.registers.instance import Goal
from ddlopt.models.aggregation.registers.relaxation import (
    PlacementRelaxation,
    RelaxationArrays,
    RelaxationPrices,
    relaxation_bound,
)
from ddlopt.models.errors import InstanceError, SolutionError, SolverError
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

DATA: dict[str, Any] = {
    "family": "aggregation",
    "problem": "registers",
    "name": "six",
    "parameters": 6,
    "arrays": 3,
    "capacity": 2,
    "entries": 2,
    "batches": [[0, 1, 2], [0, 3], [2, 3, 4, 5], [1]],
    "held_out": [[0, 4], [1, 2, 3, 4, 5]],
}


def _instance(**changes: Any) -> RegisterInstance:
    return RegisterInstance.from_data({**DATA, **changes})


def _placement(*arrays: int) -> Placement:
    return Placement(instance="six", arrays=arrays)


def test_reading_gives_the_class_of_the_problem() -> None:
    instance = AggregationProblem.from_data(DATA)
    assert isinstance(instance, RegisterInstance)
    assert (instance.size, instance.sense, instance.objective_unit) == (6, "minimize", "")


@for_each(
    ("changes", "message"),
    [
        ({"entries": 4}, "entries is 4: a packet larger than the arrays, of which there are 3"),
        ({"parameters": 10**7, "capacity": 10**9}, "parameters is 10000000: what any two of them share would need"),
        ({"capacity": 1}, "the arrays hold 3 parameters together, but there are 6"),
        ({"capacity": [3, 3]}, "capacity has 2 numbers for 3 arrays"),
        ({"capacity": [7, 0, -1]}, "capacity[2] is -1"),
        ({"capacity": -1}, "capacity is -1"),
        ({"batches": [[0], [2, 6]]}, "batches[1] names parameter 6, but there are 6 parameters (0..5)"),
        ({"held_out": [[-1]]}, "held_out[0] names parameter -1"),
        ({"batches": [[0, 3, 0]]}, "batches[0] names parameter 0 twice"),
        ({"weights": [1.0, 2.0]}, "weights has 2 numbers for 4 batches"),
        ({"weights": [1.0, 2.0, 0.0, 1.0]}, "weights[2] is 0"),
        ({"labels": ["a"]}, "labels has 1 names for 6 parameters"),
        ({"goal": "speed"}, "goal"),
        ({"batches": []}, "batches"),
    ],
)
def test_bad_data_is_one_line_with_the_place(changes: dict[str, Any], message: str) -> None:
    with one_line(InstanceError, message):
        _instance(**changes)


def test_packets_and_collisions_by_hand() -> None:
    # Arrays {0, 1}, {2, 3}, {4, 5}. Batch 0 has 0 and 1 together: 2 packets, which three parameters take anyway; batch
    # 2 has two pairs and 2 packets. Held out: 0 and 4 apart, 1 packet; then two pairs, 3 packets for five parameters.
    found = evaluate(_instance(), _placement(0, 0, 1, 1, 2, 2))
    assert found.feasible
    assert found.objective == 2 + 1 + 2 + 1
    assert found.details == {
        "packets": 6,
        "collisions": 1 + 0 + 2 + 0,
        "floor_packets": 6,
        "held_out_packets": 1 + 3,
        "held_out_collisions": 0 + 2,
        "held_out_floor_packets": 1 + 3,
        "fullest_array": 2,
    }


def test_a_batch_of_nothing_takes_no_packet() -> None:
    found = evaluate(_instance(batches=[[0, 1], []]), _placement(0, 0, 1, 1, 2, 2))
    assert (found.details["packets"], found.details["floor_packets"]) == (2, 1)


def test_a_packet_of_three_is_filled_only_where_nothing_collides() -> None:
    # The same with K = 3: batch 0 could go in one packet, and takes two as 0 and 1 collide; batch 2 takes two anyway.
    found = evaluate(_instance(entries=3), _placement(0, 0, 1, 1, 2, 2))
    assert found.objective == 2 + 1 + 2 + 1
    assert found.details["floor_packets"] == 1 + 1 + 2 + 1
    assert evaluate(_instance(entries=3), _placement(0, 1, 2, 1, 0, 2)).objective == 1 + 1 + 2 + 1


def test_weights_count_and_the_goal_chooses() -> None:
    weighted = _instance(weights=[0.1, 0.2, 0.3, 0.4], goal="collisions")
    found = evaluate(weighted, _placement(0, 0, 1, 1, 2, 2), exact=True)
    assert found.objective == Fraction(0.1) + 2 * Fraction(0.3)
    assert found.details["packets"] == 2 * Fraction(0.1) + Fraction(0.2) + 2 * Fraction(0.3) + Fraction(0.4)


def test_what_an_answer_breaks_is_named() -> None:
    instance = _instance()
    (full,) = evaluate(instance, _placement(0, 0, 0, 1, 1, 2)).violations
    assert str(full) == "array has room for its parameters at array 0: 3 against 2"
    assert evaluate(instance, _placement(0, 0, 0, 1, 1, 2)).details["fullest_array"] == 3
    missing = evaluate(instance, _placement(0, 0, 1, 1, 2))
    assert (missing.objective, missing.violations[0].kind) == (None, "every parameter has an array")
    strange = evaluate(instance, _placement(0, 0, 1, 1, 2, 3))
    assert (strange.objective, str(strange.violations[0])) == (None, "array exists at arrays[5]: 3 against 2")


def test_an_answer_to_another_instance_is_refused() -> None:
    with pytest.raises(SolutionError, match="made for instance"):
        evaluate(_instance(), Placement(instance="other", instance_digest="0" * 64, arrays=(0,) * 6))


def test_the_bound_knows_that_small_arrays_collide() -> None:
    # One array holds one parameter: of three that a packet could carry, two are in the other array.
    uneven = _instance(parameters=3, arrays=2, capacity=[1, 2], batches=[[0, 1, 2]], held_out=[], entries=2)
    assert bound(uneven) == 2
    narrow = _instance(parameters=4, arrays=3, capacity=[4, 1, 0], batches=[[0, 1, 2, 3]], held_out=[], entries=3)
    assert bound(narrow) == 3


def test_the_bound_knows_more_parameters_than_arrays_that_all_meet() -> None:
    # 0, 1 and 2 meet pairwise in three batches of one packet each; of two arrays one has two of them.
    triangle = _instance(parameters=3, arrays=2, capacity=3, batches=[[0, 1], [1, 2], [0, 2]], held_out=[], entries=2)
    assert bound(triangle) == 4
    assert evaluate(triangle, _placement(0, 1, 0)).objective == 4
    assert bound(_instance(**{**triangle.model_dump(), "weights": [3.0, 2.0, 5.0]})) == 12


def test_the_bound_for_collisions_is_that_of_even_counts() -> None:
    # Five parameters in three arrays: 2 + 2 + 1.
    five = _instance(batches=[[0, 1, 2, 3, 4], [0, 5]], goal="collisions", weights=[2.0, 1.0])
    assert bound(five) == 4


CASES = [(seed, goal) for seed in range(4) for goal in ("packets", "collisions")]


@pytest.mark.parametrize(("seed", "goal"), CASES)
def test_programs_find_what_brute_force_finds(seed: int, goal: Goal) -> None:
    instance = small(seed, goal)
    best = optimum(instance)
    assert registers_bound(instance) <= best + 1e-9
    programs: list[Any] = [CountPlacement(each) for each in ("none", "fixing", "columns")]
    if goal == "collisions":
        programs += [PairPlacement(), PairPlacement(cliques=False), SetPlacement()]
    for program in programs:
        result = Exact("program", "aggregation", program).solve(instance, Limits())
        assert (result.status, result.objective) == (Status.OPTIMAL, pytest.approx(best)), program


@pytest.mark.parametrize(("seed", "goal"), CASES)
def test_an_optimal_start_stays_in_the_model(seed: int, goal: Goal) -> None:
    instance = small(seed, goal)
    solution = Exact("program", "aggregation", CountPlacement("none")).solve(instance, Limits()).solution
    assert isinstance(solution, Placement)
    programs: list[Any] = [CountPlacement()] + [PairPlacement(), SetPlacement()] * (goal == "collisions")
    for program in programs:
        model = build_model("aggregation", program, instance)
        block = model.component("aggregation")
        program.start(block, instance, solution)
        named = {CountPlacement: "held", PairPlacement: "on", SetPlacement: "chosen"}
        variables = block.component(named[type(program)])
        values = {index: variable.value for index, variable in variables.items()}
        for index, variable in variables.items():
            variable.fix(values[index])
        value = program.objective_value(instance, Highs().solve(model, Limits()).objective)
        assert value == pytest.approx(optimum(instance))
        found = evaluate(instance, program.read(block, instance))
        assert (found.feasible, found.objective) == (True, pytest.approx(optimum(instance)))


def _crowded(goal: Goal) -> RegisterInstance:
    """Four parameters that all meet, in two arrays with room: pairs of them, and all of them."""
    pairs = tuple((i, j) for i in range(4) for j in range(i + 1, 4))
    return RegisterInstance(
        name="crowded", parameters=4, arrays=2, capacity=4, entries=2, batches=(*pairs, (0, 1, 2, 3)), goal=goal
    )


def test_what_a_batch_takes_is_whole() -> None:
    """So that a proof rounds its bound up: objectives are multiples of the weights' common divisor."""
    cases: list[tuple[Goal, float, Any]] = [
        ("packets", 1.0, 1),
        ("collisions", 1.0, 1),
        ("collisions", 0.25, Fraction(1, 4)),
    ]
    for goal, weight, step in cases:
        crowded = _crowded(goal)
        instance = crowded.model_copy(update={"weights": (weight,) * len(crowded.batches)})
        found = step_of(exact_model(build_model("aggregation", CountPlacement(), instance)))
        assert found is not None
        assert found * Fraction(merged(instance).unit) == step


def test_relaxations_are_where_they_are_said_to_be() -> None:
    # Counts: every batch spread evenly, two packets or pairs for the last. The order of arrays is worth two packets.
    assert lp_relaxation(CountPlacement("none"), _crowded("packets")).objective == pytest.approx(6 + 2)
    assert lp_relaxation(CountPlacement(), _crowded("packets")).objective == pytest.approx(10)
    assert optimum(_crowded("packets")) == 10
    collisions = _crowded("collisions")
    assert lp_relaxation(CountPlacement("none"), collisions).objective == pytest.approx(2)
    # Pairs: with the rows of the six triangles and of the batch, two pairs of weight 2 each; without, what the
    # fixed variables leave.
    assert lp_relaxation(PairPlacement(), collisions).objective == pytest.approx(4)
    assert lp_relaxation(PairPlacement(cliques=False), collisions).objective == pytest.approx(3)
    assert lp_relaxation(SetPlacement(), collisions).objective == pytest.approx(4)
    assert optimum(collisions) == 4


def test_equal_batches_are_merged_and_settled_ones_left_out() -> None:
    instance = RegisterInstance(
        name="merged", parameters=5, arrays=2, capacity=3, entries=1,
        batches=((1, 0), (0, 1), (0, 1, 2, 3, 4), (2,), ()), weights=(1.0, 2.0, 4.0, 8.0, 16.0),
    )  # fmt: skip
    # With one value a packet nothing that is placed costs more: 3 x 2 + 4 x 5 + 8 x 1.
    assert (merged(instance).batches, merged(instance).constant) == ((), 34.0)
    wide = RegisterInstance(**{**instance.model_dump(), "entries": 2})
    assert merged(wide).batches == ((0, 1),)
    assert merged(wide).weights.tolist() == [3.0]
    assert merged(wide).constant == 4 * 3 + 8
    assert heat(wide).tolist() == [7, 7, 12, 4, 4]
    assert hottest_first(wide) == [2, 0, 1, 3, 4]


def test_twins_are_one_variable() -> None:
    instance = small(0)
    instance = RegisterInstance(**{**instance.model_dump(), "batches": ((0, 1, 2), (0, 1), (0, 1, 2)), "entries": 2})
    found = twins_of(instance, merged(instance))
    assert [each.parameters for each in found if each.touched] == [(0, 1), (2,)]
    block = build_model("aggregation", CountPlacement(), instance).component("aggregation")
    assert len(block.held) == 2 * instance.arrays


def test_a_host_model_uses_the_ports() -> None:
    # A host that wants parameters 0 and 1 in array 0, and pays a tenth of a packet for each parameter there.
    instance = _crowded("packets")
    model = pyo.ConcreteModel()
    model.placed = pyo.Block()
    CountPlacement("none").build(model.placed, instance)
    model.wish = pyo.Constraint(expr=model.placed.held[0, 0] + model.placed.held[1, 0] == 2)
    rent = sum(model.placed.held[g, 0] for g in model.placed.TWINS)
    model.objective = pyo.Objective(expr=model.placed.objective + 0.1 * rent)
    assert Highs().solve(model, Limits()).objective == pytest.approx(10.2)
    assert CountPlacement("none").read(model.placed, instance).arrays == (0, 0, 1, 1)


def test_reading_what_no_solver_has_set_fails() -> None:
    instance = _crowded("collisions")
    for program in (CountPlacement(), PairPlacement(), SetPlacement()):
        block = build_model("aggregation", program, instance).component("aggregation")
        for variable in block.component_data_objects(pyo.Var):
            variable.set_value(0.5, skip_validation=True)
        with pytest.raises(SolverError):
            program.read(block, instance)


def test_pairs_are_for_collisions_alone() -> None:
    assert SetPlacement().refuses(_crowded("packets")) is not None
    assert SetPlacement().refuses(_crowded("collisions")) is None
    assert "sets fit into an array" in SetPlacement().refuses(small(1, "collisions", parameters=60))
    assert PairPlacement().refuses(_crowded("packets")) is not None
    assert PairPlacement().refuses(_crowded("collisions")) is None
    assert CountPlacement().refuses(load("topology/danoint")) is not None


@for_each(("seed", "goal"), CASES)
def test_any_prices_give_a_bound(seed: int, goal: Goal) -> None:
    instance, rng = small(seed, goal), np.random.default_rng(seed)
    best, arrays = optimum(instance), RelaxationArrays(instance)
    size, count = len(arrays.touched), len(arrays.pairs[0])
    if not size:
        assert PlacementRelaxation().refuses(instance) is not None
        return
    for scale in (0.01, 0.1, 1.0):
        pairs = arrays.batches.weights
        if goal == "packets":
            pairs = rng.uniform(0.0, 1.0, len(pairs)) * pairs / arrays.slope
        lowest, room = scale * rng.random(count) * (rng.random(count) < 0.5), scale * rng.random(size) * (seed % 2)
        prices = RelaxationPrices(pairs, lowest, room, scale * rng.standard_normal(size))
        assert relaxation_bound(instance, prices) <= best + 1e-9


@for_each(("seed", "goal"), CASES)
def test_the_bound_of_the_solver_s_prices_is_its_value(seed: int, goal: Goal) -> None:
    instance, model = small(seed, goal), PlacementRelaxation()
    if model.refuses(instance) is not None:
        return
    problem = model.problem(instance)
    value = Convex().solve(problem, Limits()).value
    assert value is not None
    bound = relaxation_bound(instance, model.prices(problem, instance))
    assert bound == pytest.approx(value + merged(instance).constant, rel=1e-5, abs=1e-5)
    assert bound <= optimum(instance) + 1e-9


def test_the_relaxation_of_a_triangle_in_two_arrays() -> None:
    # Three unit vectors that sum to zero have inner products -1/2: each pair is together by a quarter.
    triangle = RegisterInstance(
        name="triangle", parameters=3, arrays=2, capacity=3, entries=2, batches=((0, 1), (1, 2), (0, 2)),
        goal="collisions",
    )  # fmt: skip
    model = PlacementRelaxation()
    problem = model.problem(triangle)
    Convex().solve(problem, Limits())
    assert relaxation_bound(triangle, model.prices(problem, triangle)) == pytest.approx(0.75, abs=1e-6)
    assert model.read(problem, triangle) == pytest.approx(np.eye(3) * 1.5 - 0.5, abs=1e-4)


def test_rows_of_capacities_count() -> None:
    # A star of five in two arrays of three. By symmetry Y is a between centre and leaves, b among leaves; the row of a
    # leaf is 1 + a + 3b <= 1, and 16 a^2 <= 4 + 12 b, so a = -(1 + sqrt(17)) / 8.
    star = RegisterInstance(
        name="star", parameters=5, arrays=2, capacity=3, entries=2, batches=tuple((0, i) for i in range(1, 5)),
        goal="collisions",
    )  # fmt: skip
    model = PlacementRelaxation()
    problem = model.problem(star)
    Convex().solve(problem, Limits())
    assert relaxation_bound(star, model.prices(problem, star)) == pytest.approx((7 - 17**0.5) / 4, abs=1e-6)
    assert optimum(star) == 1


def test_pairs_that_a_floor_allows_are_no_reason_for_packets() -> None:
    # Four parameters in two arrays: two pairs in two packets; four packets have six pairs, so a pair more is half one.
    four = RegisterInstance(name="four", parameters=4, arrays=2, capacity=4, entries=2, batches=((0, 1, 2, 3),))
    arrays = RelaxationArrays(four)
    assert (arrays.pairs_at_floor.tolist(), arrays.slope.tolist()) == ([2], [2])
    prices = RelaxationPrices(np.array([0.5]), np.zeros(6), np.zeros(4), np.zeros(4))
    assert relaxation_bound(four, prices) == pytest.approx(2)
