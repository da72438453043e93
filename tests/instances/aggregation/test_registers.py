"""Generated placements in register arrays."""

from typing import Any

import numpy as np
import pytest

from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.library.aggregation.registers import instances
from ddlopt.models.aggregation import RegisterInstance
from ddlopt.models.aggregation.registers.batches import heat


def _generated(seed: int, **options: Any) -> RegisterInstance:
    instance = generate("registers-zipf", seed, **options)
    assert isinstance(instance, RegisterInstance)
    return instance


def test_parameters_are_the_hottest_of_the_batches_that_count() -> None:
    instance = _generated(3, parameters=50, arrays=16, batches=30, held_out=20, rows=2, goal="collisions")
    assert (instance.parameters, instance.arrays, instance.entries, instance.goal) == (50, 16, 16, "collisions")
    assert (len(instance.batches), len(instance.held_out)) == (30, 20)
    assert (np.diff(heat(instance)) <= 0).all()
    # A parameter less hot than the last would be there with fewer parameters, too.
    fewer = _generated(3, parameters=20, arrays=16, batches=30, held_out=20, rows=2, goal="collisions")
    assert fewer.batches == tuple(tuple(i for i in batch if i < 20) for batch in instance.batches)
    assert fewer.held_out == tuple(tuple(i for i in batch if i < 20) for batch in instance.held_out)


@pytest.mark.parametrize(("capacity", "each"), [(1.0, 4), (1.5, 5), (2.0, 7)])
def test_capacity_is_relative_to_the_parameters(capacity: float, each: int) -> None:
    assert _generated(1, parameters=10, arrays=3, capacity=capacity).capacity == each


def test_the_library_has_both_goals_and_both_kinds_of_packets() -> None:
    found = [each for each in instances() if isinstance(each, RegisterInstance)]
    assert len({each.name for each in found}) == len(found)
    assert {each.goal for each in found} == {"packets", "collisions"}
    assert {each.entries == each.arrays for each in found} == {True, False}
    assert sum(len(each.to_json()) for each in found) < 300_000
