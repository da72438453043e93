"""Placements in register arrays: the data, what is refused, and the check against figures done by hand."""

from fractions import Fraction
from typing import Any

import pytest
from refusals import one_line
from volume import for_each

from ddlopt.models.aggregation import AggregationProblem, Placement, RegisterInstance, bound, evaluate
from ddlopt.models.errors import InstanceError, SolutionError

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
