"""Ratios of finish-time fairness as deadlines."""

import pytest
from gang_brute_force import gang_instance

from ddlopt.frontier.scheduling.makespan.ratios import Ratios


def test_deadlines_of_ratios_are_where_they_are_reached():
    """With a quarter of 4 GPUs the jobs take 4, 2, 4 and 8 slots."""
    ratios = Ratios(gang_instance([(1, 4), (1, 2), (2, 2), (4, 2)], 4, slots=12))
    assert ratios.due(1.0) == [4, 2, 4, 8]
    assert ratios.due(0.99) == [3, 1, 3, 7]
    assert ratios.next(0.99) == pytest.approx(1, rel=1e-9)
