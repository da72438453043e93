"""Rows that read like formulas are the rows that Pyomo's own arithmetic makes."""

import pyomo.environ as pyo
import pytest

from ddlopt.models.errors import InfeasibleError
from ddlopt.models.linear import Rows, joined, term, total, weighted
from ddlopt.solvers.backends.matrix import linear_model


@pytest.fixture
def model():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), bounds=(0, 9))
    model.goal = pyo.Objective(expr=sum(model.x.values()))
    return model


def arrays(model):
    linear = linear_model(model)
    return linear.matrix.toarray().tolist(), linear.row_lower.tolist(), linear.row_upper.tolist()


ROWS = {
    "at most": lambda x: (total(x.values()) <= 4, sum(x.values()) <= 4),
    "at least": lambda x: (total([x[0], x[2]]) >= 2 * term(x[1]) - 3, x[0] + x[2] >= 2 * x[1] - 3),
    "equal": lambda x: (1 - term(x[0]) == weighted([(2.0, x[1]), (-0.5, x[2])]), 1 - x[0] == 2 * x[1] - 0.5 * x[2]),
    "constants": lambda x: (3 + term(x[0]) + 2 <= -(1 + term(x[1])), 3 + x[0] + 2 <= -(1 + x[1])),
    "the same twice": lambda x: (term(x[0]) + 2 * term(x[0]) - term(x[1]) >= 0, x[0] + 2 * x[0] - x[1] >= 0),
    "many": lambda x: (joined(k * (term(x[k]) + 1) for k in (1, 2)) == 7, sum(k * (x[k] + 1) for k in (1, 2)) == 7),
}


@pytest.mark.parametrize("case", ROWS)
def test_rows_are_those_of_pyomo(model, case):
    row, _ = ROWS[case](model.x)
    other = model.clone()
    other.row = pyo.Constraint(expr=ROWS[case](other.x)[1])
    rows = Rows()
    rows["row"][0] = row
    rows.add_to(model, row="a row")
    (ours,), (low,), (high,) = arrays(model)
    (theirs,), (least,), (most,) = arrays(other)
    assert (ours, low, high) in [(theirs, least, most), ([-each for each in theirs], -most, -least)]


def test_families_keep_their_indices_and_texts(model):
    rows = Rows()
    for k in range(2):
        rows["rises"][k, k + 1] = term(model.x[k]) <= term(model.x[k + 1])
    rows["is_small"]["last"] = term(model.x[2]) <= 5
    rows.add_to(model, rises="values rise", is_small="the last is small", unused="none of these")
    assert list(model.rises) == [(0, 1), (1, 2)]
    assert list(model.is_small) == ["last"]
    assert model.rises.doc == "values rise"
    assert len(model.unused) == 0


def test_a_row_may_have_no_others_beside_it(model):
    rows = Rows()
    rows["budget"][None] = total(model.x.values()) <= 4
    rows.add_to(model, budget="all together")
    assert not model.budget.is_indexed()
    assert (model.budget.upper.value, model.budget.doc) == (4, "all together")


def test_no_rows_are_left_out(model):
    rows = Rows()
    rows["said"][0] = rows["forgotten"][0] = term(model.x[0]) <= 1
    with pytest.raises(KeyError, match=r"nothing is said of the rows \['forgotten'\]"):
        rows.add_to(model, said="x is small")


def test_an_index_has_one_row(model):
    rows = Rows()
    rows["row"][0] = term(model.x[0]) <= 1
    with pytest.raises(KeyError, match="there is a row 0 already"):
        rows["row"][0] = term(model.x[0]) <= 2


def test_a_row_without_variables_must_hold(model):
    rows = Rows()
    rows["row"][0] = total([]) <= 1
    rows.add_to(model, row="holds")
    assert len(model.row) == 0
    rows = Rows()
    rows["other"][7] = total([]) >= 1
    with pytest.raises(InfeasibleError, match="fails: row 7 has no variables and does not hold"):
        rows.add_to(model, other="fails")


def test_sums_do_not_change(model):
    one = term(model.x[0])
    _ = one + term(model.x[1]) - 3, 2 * one, joined([one, one])
    assert (one.coefficients, one.constant, len(one.variables)) == ([1.0], 0.0, 1)
