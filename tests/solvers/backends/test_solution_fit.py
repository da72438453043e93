"""Values that are held against the rows, bounds and whole numbers of a model, and against what is said of them."""

import numpy as np
import pyomo.environ as pyo
import pytest

from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.backends.solution_files import Answer
from ddlopt.solvers.backends.solution_fit import misfit


def model(sense=pyo.minimize):
    """Two whole numbers and a real one; a row without variables, and one of large figures."""
    built = pyo.ConcreteModel()
    built.n = pyo.Var([1, 2], domain=pyo.Integers, bounds=(0, 1000))
    built.z = pyo.Var(bounds=(None, 10_000))
    built.zero = pyo.Param(initialize=0.0, mutable=True)
    built.none = pyo.Constraint(expr=built.zero <= 1)
    built.large = pyo.Constraint(expr=1000 * built.n[1] - 1000 * built.n[2] == built.z)
    built.least = pyo.Constraint(expr=built.z >= -50)
    built.o = pyo.Objective(expr=built.n[1] + 3 * built.z + 5, sense=sense)
    return linear_model(built)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ((3, 2, 1000), None),
        ((3 + 0.9e-4, 2, 1000), None),
        ((3.001, 2, 1000), r"n[1] = 3.001 must be whole; it was not solved to that"),
        ((3.5, 2.25, 1000), r"n[1] = 3.5 must be whole (and 1 more); it was not solved to that"),
        ((3, 2, 1000.4), None),  # 1e-4 of the 5000 that are added up are 0.6
        ((3, 2, 1000.7), "large is -0.7, but must be 0; "),
        ((0, 0, 0.9e-3), None),  # a millionth of the largest coefficient
        ((0, 0, 1.1e-3), "large is -0.0011, but must be 0; "),
        ((-1, 0, -1000), "n[1] = -1, but must be from 0 to 1000; "),
        ((0, -0.9e-6, 0), None),
        ((1001, 1001, 0), "n[1] = 1001, but must be from 0 to 1000; "),
        ((12, 2, 10_000.9), None),  # 1e-4 of the value, and as much of its side
        ((12, 2, 10_003), "z = 10003, but must be at most 10000; "),
        ((2, 3, -1000), "least is -1000, but must be at least -50; "),
    ],
)
def test_values_fit_to_four_digits(values, told):
    found = misfit(model(), np.array(values, dtype=float))
    assert found == told or found == f"{told}the file is cut off, or of another model"


@pytest.mark.parametrize(
    ("said", "sense", "fits"),
    [
        (None, pyo.minimize, True), (3008.0, pyo.minimize, True), (-3008.0, pyo.minimize, False),
        (3008.0, pyo.maximize, True), (-3008.0, pyo.maximize, True), (3008.29, pyo.minimize, True),
        (3008.31, pyo.minimize, False), (-3008.31, pyo.maximize, False), (0.0, pyo.minimize, False),
    ],
)  # fmt: skip
def test_what_is_said_of_the_objective_is_that_of_the_values(said, sense, fits):
    found = misfit(model(sense), np.array([3.0, 2.0, 1000.0]), Answer("x", {}, said))
    if fits:
        assert found is None
    else:
        assert found.startswith(f"says that its objective is {said:.6g}, but its values have 3008; ")


def test_an_objective_of_nothing_may_be_off_by_what_is_printed():
    built = pyo.ConcreteModel()
    built.x = pyo.Var([1, 2], bounds=(0, 1))
    built.o = pyo.Objective(expr=1000 * built.x[1] + built.x[2])
    linear = linear_model(built)
    for said, fits in ((1e-3, True), (-1e-3, True), (1.1e-3, False)):
        assert (misfit(linear, np.zeros(2), Answer("x", {}, said)) is None) == fits
    assert misfit(linear_model(pyo.ConcreteModel()), np.zeros(0), Answer("x", {}, 2e-8)) is not None
    assert misfit(linear_model(pyo.ConcreteModel()), np.zeros(0), Answer("x", {}, 0.5e-8)) is None
