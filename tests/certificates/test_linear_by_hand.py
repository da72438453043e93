"""The checker of trees over linear programs: cases that are small enough to be calculated by hand."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pyomo.environ as pyo
import pytest

from ddlopt.certificates.linear import ExactModel, LinearCertificate, check_tree, exact_model
from ddlopt.certificates.linear.check import Program
from ddlopt.certificates.linear.objective import bound_of, claim_for
from ddlopt.certificates.linear.plain import plain_tree
from ddlopt.models.errors import NotApplicableError, SolutionError


def whole(cost, low, high, claim, step=None, rows=(), integer=(True, True)):
    """A program of one or two columns in units of 1."""
    columns, claim = len(cost), Fraction(claim)
    return Program(
        1, 1, dict(enumerate(cost)), rows, [low] * columns, [high] * columns, integer, Fraction(0), claim,
        None if step is None else Fraction(step), claim,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("program", "left"),
    [
        (whole([1], 0, 5, 3), [(1, 0, 2)]),  # 3 or more costs 3: at most 2 is left
        (whole([1], 0, 5, 3, step=1), [(1, 0, 2)]),
        (whole([-1], -5, 0, 3), [(0, 0, -2)]),
        (whole([2], 0, 5, 4), [(1, 0, 1)]),
        (whole([2], 0, 5, 3), [(1, 0, 1)]),
        (whole([2], 0, 5, 3, step=2), [(1, 0, 1)]),  # objectives are even: above 2 is 4
        (whole([1, 3], 1, 5, 6), [(1, 0, 2), (1, 1, 1)]),  # both at 1 cost 4
        (whole([1], 0, 2, 3), []),  # not tighter
        (whole([1], 0, 1, 3), []),
        (whole([1], 0, 5, 3, integer=(False, True)), []),
    ],
)
def test_reduced_costs_leave_what_does_not_reach_the_claim(program, left):
    assert program.fixed(0, {}, {}, {}) == left


def test_what_is_lost_by_rounding_is_needed_besides():
    """Half a unit may be lost: 3 or more proves no more than 2.5, and 4 is above 3 whatever is lost."""
    for step, left in ((None, 3), (Fraction(1), 2)):
        program = replace(whole([1], 0, 5, 3, step=step), lost=Fraction(1, 2))
        assert program.fixed(0, {}, {}, {}) == [(1, 0, left)]
        assert program.value(0, {}, {0: left}, {}) == left - Fraction(1, 2)
        assert not program.suffices(program.value(0, {}, {0: left}, {}))
        assert program.suffices(program.value(0, {}, {0: left + 1}, {}))


def test_what_is_proven_may_be_just_the_claim():
    for step in (None, 1):
        assert whole([1], 0, 5, 3, step=step).suffices(Fraction(3))
    assert not whole([1], 0, 5, 3).suffices(Fraction(3) - Fraction(1, 10**9))
    assert not whole([1], 0, 5, 3).suffices(Fraction(0), infeasible=True)


def test_rows_that_contradict_fix_columns_too():
    """At most 2 by a row: whoever is above contradicts it."""
    program = whole([1], 0, 5, 100, rows=((None, ((0, 1),), 2),))
    assert program.fixed(0, {0: -1}, {}, {}, infeasible=True) == [(1, 0, 2)]


def test_fixed_columns_below_branchings_become_branchings():
    """Minimise a + b with a + b >= 3, both from 0 to 3: bounds of a case count where its columns are fixed."""
    program = whole([1, 1], 0, 3, 3, step=1, rows=((3, ((0, 1), (1, 1)), None),))
    fix, bounds, row = ["fix", 0, [], []], ["dual", 0, [], []], ["dual", 0, [0], [1]]
    none = ["farkas", 0, [0], [1]]
    plain = plain_tree(program, [["branch", 0, 0], fix, none, fix, row])
    assert plain == [
        ["branch", 0, 0],
        ["branch", 1, 2], none, bounds,  # a = 0: b = 3 costs 3
        ["branch", 0, 2], ["branch", 1, 1], row, bounds, bounds,  # a >= 1: so does b >= 2, and a >= 3
    ]  # fmt: skip
    for nodes in (plain, [["branch", 0, 0], fix, none, fix, row]):
        assert len(list(check_tree(program, nodes))) == len(nodes)


def formulated(objective_value):
    return SimpleNamespace(objective_value=lambda _, value: objective_value(value))


LESS, MORE = SimpleNamespace(sense="minimize"), SimpleNamespace(sense="maximize")


def test_claims_are_the_least_that_prove_a_bound():
    same, rate = formulated(lambda value: value), formulated(lambda value: 1 / value if value > 0 else math.inf)
    assert claim_for(same, LESS, False, Fraction(1, 2)) == Fraction(1, 2)
    assert claim_for(same, MORE, True, Fraction(1, 2)) == Fraction(-1, 2)
    # A throughput of at most 1/4 takes a time of at least 4; of 0 or less no finite time follows.
    assert claim_for(rate, LESS, True, Fraction(4)) == Fraction(-1, 4)
    for claim in (0, 1):
        with pytest.raises(NotApplicableError):
            bound_of(rate, LESS, True, Fraction(claim))


def test_figures_in_floating_point_are_weakened():
    rounded, slack = formulated(float), Fraction(1, 10**11)
    assert 4 - slack < bound_of(rounded, LESS, False, Fraction(4)) < 4
    assert 4 < bound_of(rounded, MORE, False, Fraction(4)) < 4 + slack
    assert -4 - slack < bound_of(rounded, LESS, False, Fraction(-4)) < -4


def test_blocks_and_fixed_variables_are_read():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 10))
    model.y = pyo.Var(bounds=(0, 10))
    model.objective = pyo.Objective(expr=model.x + model.y)
    model.y.fix(3)
    found = exact_model(model)
    assert (found.lower, found.upper) == ((0, 3), (10, 3))
    model.part = pyo.Block()
    model.part.z = pyo.Var([1, 2], bounds=(0, 1))
    model.part.special = pyo.SOSConstraint(var=model.part.z, sos=1)
    with pytest.raises(NotApplicableError, match="SOSConstraint"):
        exact_model(model)


def test_digests_tell_models_apart():
    row = (Fraction(0), ((0, Fraction(1)),), Fraction(1))
    parts = (False, ((0, Fraction(1)),), Fraction(0), (row,), (Fraction(0),), (Fraction(1),), (True,))
    others = [
        (0, True), (1, ((0, Fraction(2)),)), (2, Fraction(1)), (3, ((None, *row[1:]),)), (3, ((*row[:2], None),)),
        (3, ((row[0], ((0, Fraction(2)),), row[2]),)), (4, (None,)), (5, (None,)), (6, (False,)),
    ]  # fmt: skip
    models = [ExactModel(*parts), *(ExactModel(*parts[:at], other, *parts[at + 1 :]) for at, other in others)]
    assert len({model.digest for model in models}) == len(models)


def test_cuts_may_take_the_other_limit_of_all_rows():
    """Numbers of up to 4000 binary digits are read, of either sign."""
    nodes = [["dual", 0, [0], [-1]]]
    good = LinearCertificate("x", "0" * 64, "exact", "0" * 64, Fraction(-1), nodes, [["mir", 2, [0], [1], [0], []]])
    written = json.loads(good.text)
    assert LinearCertificate.from_data(written).cuts == good.cuts
    assert LinearCertificate.from_data(written | {"cuts": [["mir", 1, [0], [1], [0], []]]}).cuts[0][1] == 1
    with pytest.raises(SolutionError):
        LinearCertificate.from_data(written | {"nodes": [["dual", 0, [0, 1], [1, True]]]})
    for most, is_read in ((2**4000, False), (2**4000 - 1, True)):
        for number in (most, -most):
            data = written | {"nodes": [["dual", 0, [0], [number]]]}
            if is_read:
                assert LinearCertificate.from_data(data).nodes == data["nodes"]
            else:
                with pytest.raises(SolutionError):
                    LinearCertificate.from_data(data)
