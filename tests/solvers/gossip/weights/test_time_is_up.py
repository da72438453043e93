"""The interior-point method when the time is up in the midst of a round, or memory is short."""

import numpy as np
import pytest

import ddlopt
from ddlopt.solvers.gossip.spectral import interior_point
from ddlopt.solvers.gossip.weights.exact import edge_classes
from ddlopt.solvers.gossip.weights.programs import WeightsProgram


def program():
    instance = ddlopt.generate("gossip", "weights", nodes=12, degree=4)
    return WeightsProgram(instance, edge_classes(instance)).program()


@pytest.mark.parametrize("looks", [0, 1, 5, 20])
def test_a_round_is_given_up_and_nothing_of_it_is_left(looks):
    given, asked = program(), []

    def expired():
        asked.append(None)
        return len(asked) > looks

    at, rounds = interior_point.solve(given, lambda at: False, expired)
    assert len(asked) == looks + 1  # it ends at the first look that says so
    if rounds == 0:
        np.testing.assert_array_equal(at.y, given.start)
    assert min(np.linalg.eigvalsh(slack)[0] for slack in at.slacks) > 0


def test_matrices_that_do_not_fit_are_not_made(monkeypatch):
    given = program()
    monkeypatch.setattr(interior_point, "memory_left_bytes", lambda: 1000)
    at, rounds = interior_point.solve(given, lambda at: False)
    assert rounds == 0
    np.testing.assert_array_equal(at.y, given.start)
    monkeypatch.setattr(interior_point, "memory_left_bytes", lambda: None)
    assert interior_point.solve(given, lambda at: False)[1] > 1
