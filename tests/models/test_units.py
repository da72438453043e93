"""Units are of data only, lose no digit, and leave no coefficient that a solver cannot hold rows to."""

import math
from fractions import Fraction

import pyomo.environ as pyo
import pytest

from ddlopt.models.errors import NotApplicableError, RangeError, SolverError
from ddlopt.models.linear import check_range
from ddlopt.models.units import (
    FAR_APART,
    LARGEST_BIG_M,
    LARGEST_COEFFICIENT,
    MOST_UNITS,
    between,
    check_big_m,
    in_units,
    unit_of,
    unless_ordinary,
    unread,
)

ESTIMATES = (1e-100, 3e-12, 0.1, 1.0, 1023.9, 1024.0, 7e12, 1e100)


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("parts", [1.0, 1e3])
def test_an_estimate_is_so_many_units_and_less_than_twice_as_many(estimate, parts):
    assert parts <= estimate / unit_of(estimate, parts=parts) < 2 * parts


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_no_digit_is_lost(estimate):
    unit = unit_of(estimate)
    for figure in (0.1, estimate / 3, 2**0.5 * estimate):
        assert Fraction(figure / unit) * Fraction(unit) == Fraction(figure)


def test_the_first_estimate_that_says_something_counts():
    assert unit_of(0.0, math.inf, 5.0, 9e9) == unit_of(5.0)
    assert unit_of(0.0) == unit_of() == 1.0


def test_an_objective_is_a_thousand_units_unless_told_otherwise():
    assert unit_of(1e3) == 1.0


def test_ordinary_figures_are_counted_as_they_are():
    assert unless_ordinary(0.002) == unless_ordinary(1.0) == unless_ordinary(700.0) == 1.0
    for size in (1e-12, 1e-3, 1e3, 6e15):  # others are of the size of a unit
        assert 1 <= size / unless_ordinary(size) < 2
    assert unless_ordinary(0.0) == 1.0


def test_figures_in_units_are_what_they_are_or_beyond_every_optimum():
    unit, far = 0.5, 3 * MOST_UNITS
    assert in_units([0.0, 3.0], unit).tolist() == [0.0, 6.0]
    assert in_units([far, math.inf], unit).tolist() == [MOST_UNITS, MOST_UNITS]
    # Beside a solution of that objective it is none of its figures that is cut, but four times as much.
    assert in_units([far, 4 * far, 5 * far], unit, far).tolist() == [far / unit, 4 * far / unit, 4 * far / unit]


def test_an_estimate_is_halfway_between_two():
    assert between(1e-9, 1e3) == pytest.approx(1e-3)
    assert between(1e-9, 1e-3) == pytest.approx(1e-6)
    assert between(0.0, 5.0) == between(5.0, 0.0) == between(5.0, math.inf) == 5.0
    assert between(0.0, 0.0) == 0.0


def built(*coefficients):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(len(coefficients)))
    model.row = pyo.Constraint(expr=sum(each * model.x[k] for k, each in enumerate(coefficients)) <= 1)
    return model


def test_coefficients_beyond_what_a_solver_holds_are_told():
    check_range(built(1.0, -LARGEST_COEFFICIENT), "job")
    with pytest.raises(RangeError, match=r"'job': row 'row' has coefficient -2e\+12 at 'x\[1\]'") as told:
        check_range(built(1.0, -2 * LARGEST_COEFFICIENT), "job")
    assert isinstance(told.value, SolverError)
    assert isinstance(told.value, NotApplicableError)
    assert "\n" not in str(told.value)


def test_both_sides_of_a_row_are_looked_at():
    model = built(1.0)
    model.other = pyo.Constraint(expr=model.x[0] <= 3 + 1e13 * model.x[0])
    with pytest.raises(RangeError, match="other"):
        check_range(model, "job")


def test_a_big_m_is_no_more_than_says_something():
    assert check_big_m(LARGEST_BIG_M * 2, 2.0, "job", "a step") == LARGEST_BIG_M * 2
    assert check_big_m(5.0, 0.0, "job", "a step") == 5.0
    with pytest.raises(RangeError, match="a step may be 2e"):
        check_big_m(2 * LARGEST_BIG_M, 1.0, "job", "a step")


def test_an_answer_that_cannot_be_read_is_the_solvers_fault_unless_figures_are_far_apart():
    problem = SolverError("a flow ends nowhere")
    assert unread(problem, [3 * FAR_APART, 7.0, 3.0], "job") is problem
    told = unread(problem, [2.0, 2 * FAR_APART, 1.0], "job")
    assert isinstance(told, RangeError)
    assert str(told).startswith("'job': a flow ends nowhere; figures from 1 to 2e+05 are too far apart")
