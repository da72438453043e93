"""The arrays say what the Pyomo model says, in whatever way it was written."""

import gc
import random

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.core.base import constraint as constraint_module
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler
from volume import for_each

from ddlopt.models.errors import SolverError
from ddlopt.solvers.backends.matrix import linear_model, load_values, plain_model

INF = float("inf")


def rows_written_in_every_way():
    model = pyo.ConcreteModel()
    model.I = pyo.RangeSet(0, 4)
    model.x = pyo.Var(model.I, bounds=(-3, 9))
    model.y = pyo.Var(domain=pyo.Binary)
    model.k = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(-1, None))
    model.p = pyo.Param(model.I, initialize=lambda m, i: 1.5 * i - 2, mutable=True)
    model.b = pyo.Block()
    model.b.z = pyo.Var()
    model.b.named = pyo.Expression(expr=2 * model.b.z - 3 * model.y + 4)
    model.x[3].fix(2.5)
    x, y, k, p, z = model.x, model.y, model.k, model.p, model.b.z
    model.rows = pyo.ConstraintList()
    for row in (
        sum(x[i] for i in model.I) == 7,
        3 * x[0] - x[1] / 2 <= 2 * y + 1,
        x[0] + k <= 5,
        x[0] + k >= -2 * x[1] + 4 + x[1],
        (1, x[0] + 3, 8),
        (None, x[2] - y, 3),
        pyo.inequality(-2, 2 * (x[0] - 3 * (y + 1)), 20),
        sum(p[i] * x[i] for i in model.I) <= p[4],
        p[1] * (x[0] + p[2] * x[1]) >= p[0] * 3,
        x[3] * x[0] + y <= 4,
        x[3] + 1 >= 2 * x[3] - 3,
        model.b.named + x[0] <= 2 * model.b.named,
        x[0] + x[0] + 2 * x[1] - x[0] <= 3,
        x[0] - x[0] <= 1,
        -(x[1] - z) / 4 == 2 - -k,
        pyo.quicksum(pyo.log(2) * x[i] for i in model.I) <= 10,
        y == x[2],
        k - 1 >= 0,
        pyo.Constraint.Feasible,
    ):
        model.rows.add(row)
    model.b.inner = pyo.Constraint([1, 2], rule=lambda b, i: b.z + i * b.parent_block().k >= i)
    model.rows[2].deactivate()
    model.off = pyo.Block()
    model.off.never = pyo.Constraint(expr=x[0] == 100)
    model.off.deactivate()
    model.again = pyo.Reference(x)
    model.o = pyo.Objective(expr=3 * x[0] - 2 * model.b.named + p[0] * y + 5 * x[3] + x[0], sense=pyo.maximize)
    return model


def at_random_points(linear, count=5):
    rng = np.random.default_rng(1)
    for _ in range(count):
        values = rng.uniform(-5, 5, len(linear.columns))
        for j, column in enumerate(linear.columns):
            if column.fixed:
                values[j] = column.value
        load_values(linear, values)
        yield values


def test_rows_and_objective_have_pyomos_values():
    model = rows_written_in_every_way()
    linear = linear_model(model)
    active = list(model.component_data_objects(pyo.Constraint, active=True))
    assert [row.name for row in linear.rows] == [row.name for row in active]
    assert len(active) == 20
    for values in at_random_points(linear):
        activity = linear.matrix @ values
        for i, row in enumerate(linear.rows):
            slacks = sorted([row.uslack(), row.lslack()])
            ours = sorted([linear.row_upper[i] - activity[i], activity[i] - linear.row_lower[i]])
            assert ours == pytest.approx(slacks), row.expr
        assert load_values(linear, values) == pytest.approx(pyo.value(model.o))
    assert linear.maximise


def test_names_outlive_the_callers_model():
    linear = linear_model(rows_written_in_every_way())
    names = [part.name for part in (*linear.rows, *linear.columns)]
    gc.collect()
    assert [part.name for part in (*linear.rows, *linear.columns)] == names


def test_columns_have_pyomos_bounds():
    linear = linear_model(rows_written_in_every_way())
    names = [column.name for column in linear.columns]
    assert names == ["x[0]", "x[1]", "x[2]", "x[3]", "x[4]", "y", "k", "b.z"]  # a reference is no second column
    assert linear.lower.tolist() == [-3, -3, -3, 2.5, -3, 0, 0, -INF]
    assert linear.upper.tolist() == [9, 9, 9, 2.5, 9, 1, INF, INF]
    assert linear.integer.tolist() == [False] * 5 + [True, True, False]


def test_no_column_twice_in_a_row():
    matrix = linear_model(rows_written_in_every_way()).matrix
    for i in range(matrix.shape[0]):
        columns = matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]]
        assert len(set(columns.tolist())) == len(columns)


def test_same_arrays_as_pyomos_compiler_on_a_plain_model():
    rng = random.Random(3)
    model = pyo.ConcreteModel()
    model.I = pyo.RangeSet(0, 19)
    model.x = pyo.Var(model.I, model.I, bounds=(0, 4))
    weight = {(i, j): rng.randint(1, 9) for i in model.I for j in model.I}
    model.c = pyo.Constraint(model.I, rule=lambda m, i: sum(weight[i, j] * m.x[i, j] for j in m.I) <= 3 + i)
    model.d = pyo.Constraint(model.I, rule=lambda m, j: sum(m.x[i, j] for i in m.I) == 2)
    model.o = pyo.Objective(expr=sum(weight[j, i] * model.x[i, j] for i in model.I for j in model.I))
    ours = linear_model(model)
    theirs = LinearStandardFormCompiler().write(model, mixed_form=True)
    assert [v.name for v in ours.columns] == [v.name for v in theirs.columns]
    assert abs(ours.matrix - theirs.A).max() == 0
    assert ours.row_upper.tolist() == list(theirs.rhs)
    assert ours.cost.tolist() == theirs.c.todense().ravel().tolist()


def test_templatized_constraints_are_read_like_any_others(monkeypatch):
    def build():
        model = pyo.ConcreteModel()
        model.I = pyo.RangeSet(0, 5)
        model.x = pyo.Var(model.I, model.I)
        model.c = pyo.Constraint(model.I, rule=lambda m, i: sum(m.x[i, j] for j in m.I) <= 2)
        model.o = pyo.Objective(expr=model.x[0, 0])
        return linear_model(model)

    plain = build()
    monkeypatch.setattr(constraint_module, "TEMPLATIZE_CONSTRAINTS", True)
    template = build()
    assert abs(plain.matrix - template.matrix).max() == 0
    assert plain.row_upper.tolist() == template.row_upper.tolist()


def test_variables_of_another_model():
    elsewhere = pyo.ConcreteModel()
    elsewhere.v = pyo.Var(bounds=(1, 2))
    elsewhere.w = pyo.Var([1, 2], bounds=(3, 4))
    model = pyo.ConcreteModel()
    model.c = pyo.Constraint(expr=2 * elsewhere.v + elsewhere.w[2] >= 5)
    model.o = pyo.Objective(expr=elsewhere.v - elsewhere.w[2])
    linear = linear_model(model)
    assert [column.name for column in linear.columns] == ["v", "w[2]"]
    assert linear.matrix.todense().tolist() == [[2, 1]]
    assert linear.cost.tolist() == [1, -1]


def test_restated_model_is_the_same():
    model = rows_written_in_every_way()
    linear = linear_model(model)
    again = linear_model(plain_model(linear))
    filled = np.diff(linear.matrix.indptr) > 0
    assert abs(again.matrix - linear.matrix[filled]).max() == 0
    for name in ("cost", "offset", "lower", "upper", "integer", "maximise"):
        assert np.all(getattr(again, name) == getattr(linear, name)), name
    assert again.row_lower.tolist() == linear.row_lower[filled].tolist()
    assert again.row_upper.tolist() == linear.row_upper[filled].tolist()


def broken(what):
    model = pyo.ConcreteModel(name="broken")
    model.x = pyo.Var([1, 2], initialize=1.0)
    model.o = pyo.Objective(expr=model.x[1])
    what(model)
    return model


def _add(name, component):
    return lambda model: setattr(model, name, component(model))


@for_each(
    ("what", "message"),
    [
        (_add("c", lambda m: pyo.Constraint(expr=m.x[1] * m.x[2] <= 1)), "constraint 'c' is not linear"),
        (
            _add("c", lambda m: pyo.Constraint([4], rule=lambda m, i: m.x[1] ** 2 <= i)),
            r"constraint 'c\[4\]' is not linear",
        ),
        (_add("p", lambda m: pyo.Objective(expr=m.x[2])), "has 2 active objectives"),
        (_add("c", lambda m: pyo.Constraint(expr=float("nan") * m.x[1] <= 1)), "constraint 'c' has a coefficient"),
        (_add("c", lambda m: pyo.Constraint(expr=m.x[1] + m.x[2] >= INF)), "constraint 'c' has a right-hand side"),
        (_add("s", lambda m: pyo.SOSConstraint(var=m.x, sos=1)), "no linear solver takes: SOSConstraint"),
        (lambda m: m.o.set_value(INF * m.x[1]), "objective has a coefficient that is not finite"),
        (lambda m: (m.x[1].fix(), m.x[1].set_value(None)), r"variable 'x\[1\]' is fixed but has no value"),
    ],
)
def test_what_no_array_can_say(what, message):
    with pytest.raises(SolverError, match=message):
        linear_model(broken(what))


def test_the_row_that_is_wrong_is_the_one_named():
    rows = _add("c", lambda m: pyo.Constraint([1, 2, 3], rule=lambda m, i: m.x[1] + [0, 1, INF, 1][i] * m.x[2] <= 1))
    with pytest.raises(SolverError, match=r"constraint 'c\[2\]' has a coefficient"):
        linear_model(broken(rows))
    with pytest.raises(SolverError, match="objective has a coefficient that is not finite"):
        linear_model(broken(lambda m: m.o.set_value(m.x[1] + INF)))


@pytest.mark.parametrize(
    ("low", "high", "feasible"),
    [(None, -0.9e-9, True), (None, -1.1e-9, False), (0.9e-9, None, True),
     (1.1e-9, None, False), (-2, -0.9e-9, True), (-2, -1.1e-9, False), (0.9e-9, 2, True), (1.1e-9, 2, False)],
)  # fmt: skip
def test_a_row_without_variables_holds_or_makes_the_model_infeasible(low, high, feasible):
    model = broken(_add("zero", lambda m: pyo.Param(initialize=0.0, mutable=True)))
    model.c = pyo.Constraint(expr=(low, model.zero, high))
    model.d = pyo.Constraint(expr=model.x[1] + model.zero >= 1)
    linear = linear_model(model)
    assert np.diff(linear.matrix.indptr).tolist() == [0] * (len(linear.rows) - 1) + [1]
    plain = plain_model(linear, np.array([2.0, 3.0]))
    assert (plain is not None) == feasible
    if plain is not None:
        assert [variable.value for variable in plain.x.values()] == [2.0, 3.0]
        assert len(plain.row) == 1


def test_a_fixed_variable_that_is_used_nowhere_needs_no_value():
    def fix(model):
        model.x[2].fix()
        model.x[2].set_value(None)

    linear = linear_model(broken(fix))
    assert (linear.lower[1], linear.upper[1], linear.offset) == (0.0, 0.0, 0.0)


def test_nothing_at_all():
    linear = linear_model(pyo.ConcreteModel())
    assert linear.matrix.shape == (0, 0)
    assert (linear.offset, linear.maximise) == (0.0, False)
    assert plain_model(linear) is not None
