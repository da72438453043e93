"""Lookup tables: what is refused, what the check finds, and what it compares with."""

import decimal
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from refusals import one_line
from table_cases import optimum, several, staircase_of
from volume import for_each

from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import LookupFunction, LookupTables, TableInstance, evaluate
from ddlopt.models.aggregation.table.bounds import least_errors, table_bound
from ddlopt.models.aggregation.table.values import DIGITS, Name, best_values, exact_value, float_values
from ddlopt.models.errors import InstanceError

RAMP = {"name": "ramp", "function": "samples", "high": 7, "samples": [0, 1, 2, 3, 4, 5, 6, 7]}


def instance_of(*tables: dict[str, Any], **fields: Any) -> TableInstance:
    return TableInstance.from_data({"name": "small", "tables": list(tables), "budget_bytes": 4, **fields})


def answer(*starts: tuple[int, ...], **fields: Any) -> LookupTables:
    return LookupTables(instance="small", starts=starts, **fields)


@for_each(
    ("table", "fields", "message"),
    [
        (RAMP | {"low": 8}, {}, "table 'ramp' goes from low 8 to high 7; exchange them"),
        (RAMP | {"high": 6}, {}, "has 8 samples, but 7 operands, from 0 to 6; give one for each"),
        (RAMP | {"function": "exp2"}, {}, "has samples and function 'exp2'; leave one of them out"),
        ({"name": "l", "function": "log2", "high": 9}, {}, "low is 0, where log2 is infinite; begin at 1 or above"),
        ({"name": "d", "function": "log2-difference", "high": 9}, {}, "low is 0, where log2-difference is infinite"),
        (
            {"name": "e", "function": "exp2", "high": 4096, "fraction_bits": 2},
            {},
            "high is 4096, which stands for 1024",
        ),
        ({"name": "e", "function": "exp2", "high": 2**30, "fraction_bits": 60}, {}, "at most 4194304 are read"),
        (RAMP | {"error": "relative"}, {}, "table 'ramp' has the value 0 at operand 0, and 7 at 7; relative errors"),
        (
            RAMP | {"error": "relative", "samples": [1, 2, 3, -1, 1, 1, 1, 1]},
            {},
            "has the value -1 at operand 3, and 1 at 0; relative errors need values of one sign",
        ),
        (RAMP | {"entry_bytes": 5}, {}, "budget_bytes is 4, but one entry in each table takes 5; raise it"),
        (
            {"name": "s", "function": "log2-sum", "low": 400, "high": 402, "error": "relative"},
            {},
            "relative errors need 1e-100 or more: use absolute, or other operands",
        ),
        (RAMP | {"step": 0}, {}, "tables[0].step"),
        (RAMP | {"step": 1e-90}, {}, "step is 1e-90, and values go up to 7, which is more digits"),
        (RAMP | {"samples": [1e200] * 8}, {}, "samples[0] is 1e+200; figures are 0 or of a size of 1e-100 to 1e+100"),
        (RAMP | {"samples": ["1e200"] * 8}, {}, "samples[0] is '1e200'; figures are 0 or of a size of"),
        (RAMP | {"weight": "1e-320"}, {}, "weight is '1e-320'; figures are 0 or of a size of"),
        (RAMP, {"budget_bytes": 10**30}, "budget_bytes"),
        (RAMP, {"goal": "mean"}, "goal"),
    ],
)
def test_bad_data_is_refused_in_one_line(table: dict[str, Any], fields: dict[str, Any], message: str) -> None:
    with one_line(InstanceError, message):
        instance_of(table, **fields)


def test_tables_have_names_of_their_own() -> None:
    with pytest.raises(InstanceError, match=r"tables\[1\] is called 'ramp', as is tables\[0\]"):
        instance_of(RAMP, RAMP)


def test_an_entry_has_the_value_in_the_middle() -> None:
    found = evaluate(instance_of(RAMP, budget_bytes=3), answer((0, 1, 4)))
    assert (found.objective, found.violations) == (1.5, ())
    assert found.details == {"bytes": 3, "error ramp": 1.5, "entries ramp": 3}
    shifted = RAMP | {"samples": [1, 2, 3, 4, 5, 6, 7, 8], "error": "relative"}
    # Between 1 and 8: 16/9, which is 7/9 of 1 above 1, and 7/9 of 8 below 8.
    assert evaluate(instance_of(shifted), answer((0,)), exact=True).objective == Fraction(7, 9)
    assert evaluate(instance_of(shifted | {"step": 1}), answer((0,)), exact=True).objective == Fraction(7, 8)
    assert evaluate(instance_of(shifted | {"step": 1}), answer((0,))).objective == 0.875


@pytest.mark.parametrize("goal", ["sum", "max"])
def test_errors_are_weighted_and_memory_is_shared(goal: str) -> None:
    double = RAMP | {"name": "double", "weight": 2, "entry_bytes": 3}
    instance = instance_of(RAMP, double, budget_bytes=8, goal=goal)
    found = evaluate(instance, answer((0, 4), (0, 1)))
    assert found.objective == (1.5 + 2 * 3 if goal == "sum" else 6)
    assert found.details["bytes"] == 8
    assert found.feasible
    over = evaluate(instance, answer((0, 2, 4), (0, 4)))
    assert [str(each) for each in over.violations] == ["memory suffices at tables: 9 against 8"]


@pytest.mark.parametrize(
    ("tables", "fields", "least"),
    [
        # With 1, 2, 4 entries each has 8, 4, 2 operands.
        ([RAMP], {"budget_bytes": 1, "goal": "max"}, 3.5),
        ([RAMP], {"budget_bytes": 2, "goal": "max"}, 1.5),
        ([RAMP], {"budget_bytes": 4, "goal": "max"}, 0.5),
        ([RAMP], {"budget_bytes": 4, "goal": "sum"}, 0.5),
        ([RAMP, RAMP | {"name": "double", "weight": 2}], {"budget_bytes": 2, "goal": "max"}, 7),
        # Six bytes halve the error of the dear one from 7 to 3, two that of the other from 3.5 to 1.5.
        ([RAMP, RAMP | {"name": "double", "weight": 2, "entry_bytes": 3}], {"budget_bytes": 8, "goal": "sum"}, 4.5),
    ],
)
def test_bounds_of_ramps(tables: list[dict[str, Any]], fields: dict[str, Any], least: float) -> None:
    instance = instance_of(*tables, **fields)
    assert table_bound(instance) == pytest.approx(least, rel=1e-9)
    assert table_bound(instance) < least


def test_margins_grow_with_the_values() -> None:
    (table,) = instance_of(RAMP | {"samples": [1e6 * each for each in range(8)]}).tables
    assert 3.5e6 * (1 - 1e-12) < least_errors(table, 1)[0] < 3.5e6 - 1e-7  # 1e-13 of 7e6, and half of that


def test_an_entry_that_is_no_prefix_is_named() -> None:
    (found,) = evaluate(instance_of(RAMP | {"entries": "prefixes"}), answer((0, 3))).violations
    assert str(found) == "entries are prefixes at starts[0] ('ramp'), entry 0, operands 0 to 2: 3 against 4"


@for_each(
    ("table", "solution", "kind", "where"),
    [
        (RAMP, answer(), "every table has entries", "starts"),
        (RAMP, answer(()), "every table has entries", "starts[0] ('ramp')"),
        (RAMP, answer((1, 4)), "the first entry begins at the first operand", "starts[0]"),
        (RAMP, answer((0, 4, 4)), "entries ascend", "entry 2"),
        (RAMP, answer((0, 5, 4)), "entries ascend", "entry 2"),
        (RAMP, answer((0, 8)), "entries begin at operands", "starts[0]"),
        (RAMP, answer((0, 4), values=((1.0,),)), "every entry has a value", "values[0]"),
        (RAMP, answer((0, 4), values=((1.0,), (2.0,))), "every table has values", "values"),
    ],
)
def test_malformed_tables_have_no_error(table: dict[str, Any], solution: Any, kind: str, where: str) -> None:
    for exact in (False, True):
        found = evaluate(instance_of(table), solution, exact)
        assert found.objective is None
        assert found.violations[0].kind == kind
        assert where in found.violations[0].where


def test_given_values_are_checked() -> None:
    instance = instance_of(RAMP | {"step": 0.5})
    good = evaluate(instance, answer((0, 4), values=((1.0, 5.5),)))
    assert (good.objective, good.violations) == (2.0, ())
    bad = evaluate(instance, answer((0, 4), values=((1.25, 5.5),)), exact=True)
    assert bad.objective == Fraction(7, 4)
    assert [each.kind for each in bad.violations] == ["values are multiples of the step"]


@for_each(
    ("low", "high", "starts", "fits"),
    [
        (0, 7, (0,), True),
        (0, 7, (0, 4, 6, 7), True),
        (0, 7, (0, 2, 4), True),
        (0, 7, (0, 2), False),
        (0, 7, (0, 3, 4), False),
        (3, 9, (3,), True),
        (3, 9, (3, 8), True),
        (3, 9, (3, 4, 8), True),
        (3, 9, (3, 5, 6, 8), False),
        (5, 6, (5, 6), True),
    ],
)
def test_prefixes_are_aligned_blocks_some_of_which_stick_out(
    low: int, high: int, starts: tuple[int, ...], fits: bool
) -> None:
    table = {"name": "powers", "function": "exp2", "low": low, "high": high, "entries": "prefixes"}
    found = evaluate(instance_of(table, budget_bytes=9), answer(starts))
    assert [each.kind for each in found.violations] == ([] if fits else ["entries are prefixes"])
    assert not evaluate(instance_of(table | {"entries": "ranges"}, budget_bytes=9), answer(starts)).violations


@for_each("name", ["log2", "log2-sum", "log2-difference", "exp2"])
def test_functions_are_right_to_the_last_digits(name: Name) -> None:
    with mpmath.workdps(60):
        true = {
            "log2": lambda u: mpmath.log(u, 2),
            "log2-sum": lambda u: mpmath.log(1 + mpmath.power(2, -u), 2),
            "log2-difference": lambda u: mpmath.log(1 - mpmath.power(2, -u), 2),
            "exp2": lambda u: mpmath.power(2, u),
        }[name]
        for bits, low, high in ((0, 1, 40), (6, 1, 900), (20, 1, 60), (20, 2**20 - 20, 2**20 + 20)):
            values = float_values(name, low, high, bits)
            for z in range(low, high + 1, 7):
                with decimal.localcontext(DIGITS):
                    exact = Fraction(exact_value(name, z, bits))
                reference = true(mpmath.mpf(z) / 2**bits)
                digits = mpmath.mpf(exact.numerator) / exact.denominator
                assert abs(digits - reference) <= mpmath.mpf(10) ** -40 * max(1, abs(reference))
                assert values[z - low] == pytest.approx(float(reference), rel=1e-14, abs=4e-15)


@for_each("name", ["log2-sum", "log2-difference"])
def test_errors_relative_to_tiny_values_are_right(name: Name) -> None:
    # An operand further, the value is half as large: beside 1 both were nothing in 60 digits.
    table = {"name": "t", "function": name, "low": 300, "high": 301, "error": "relative"}
    for exact in (False, True):
        assert float(evaluate(instance_of(table), answer((300,)), exact).objective) == pytest.approx(1 / 3, rel=1e-12)


def test_logarithms_beside_one_keep_their_digits() -> None:
    table = {"name": "t", "function": "log2", "low": 2**40 + 1, "high": 2**40 + 3, "fraction_bits": 40}
    instance = instance_of(table | {"error": "relative"})
    assert float(evaluate(instance, answer((2**40 + 1,))).objective) == pytest.approx(0.5, rel=1e-9)


@for_each("shape", ["integers", "mantissas"])
@for_each("stepped", [False, True])
def test_exact_arithmetic_agrees_with_floating_point(shape: str, stepped: bool) -> None:
    instance = generate("table", 1, shape=shape, bits=5, signed=True, stepped=stepped, budget_bytes=10**6)
    assert isinstance(instance, TableInstance)
    rng = np.random.default_rng(3)
    starts = []
    for table in instance.tables:
        cuts = rng.choice(np.arange(table.low + 1, table.high + 1), size=9, replace=False)
        starts.append((table.low, *sorted(cuts.tolist())))
    solution = LookupTables(instance=instance.name, starts=tuple(starts))
    one, other = evaluate(instance, solution), evaluate(instance, solution, exact=True)
    assert isinstance(other.objective, Fraction)
    assert float(other.objective) == pytest.approx(one.objective, rel=1e-13)
    for name, value in one.details.items():
        assert float(other.details[name]) == pytest.approx(float(value), rel=1e-12, abs=1e-14)


def test_the_best_value_is_the_best_of_many() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        least, most = sorted(rng.uniform(0.1, 3, 2).tolist())
        for relative in (False, True):
            for step in (None, 0.25):
                value, error = best_values(np.array([least]), np.array([most]), relative, step)
                others = np.arange(0, 3.5, 0.25 if step else 0.001)
                scale = (least, most) if relative else (1, 1)
                worst = np.maximum(np.abs(others - least) / scale[0], np.abs(others - most) / scale[1])
                assert error[0] <= worst.min() + 1e-12
                assert error[0] == pytest.approx(max(abs(value[0] - least) / scale[0], abs(value[0] - most) / scale[1]))


@pytest.mark.parametrize("entries", ["ranges", "prefixes"])
def test_bounds_hold_for_every_number_of_entries(entries: str) -> None:
    tight = 0
    for instance in several(14, 40, tables=1, entries=entries):
        (table,) = instance.tables
        stair = staircase_of(table)
        bounds = least_errors(table, table.operands)
        for count in range(1, table.operands + 1):
            least = float(min(each for each in stair[: count + 1] if each is not None))
            assert bounds[count - 1] <= least + 1e-12
            tight += bounds[count - 1] >= 0.99 * least > 0
            if entries == "prefixes":
                assert bounds[count - 1] == pytest.approx(least, abs=1e-11)
    assert tight > 20


@pytest.mark.parametrize("goal", ["sum", "max"])
@pytest.mark.parametrize(("entries", "tightness"), [("ranges", 0.55), ("prefixes", 0.85)])
def test_bounds_hold_for_shared_memory(goal: str, entries: str, tightness: float) -> None:
    ratios = []
    for instance in several(10, 80, goal=goal, entries=entries):
        best = optimum(instance)
        bound = table_bound(instance)
        assert bound <= best + 1e-12
        if best > 0:
            ratios.append(bound / best)
    assert np.mean(ratios) > tightness


def test_the_bound_is_tight_where_a_function_climbs_evenly() -> None:
    table = RAMP | {"high": 1023, "samples": list(range(1024))}
    assert table_bound(instance_of(table, budget_bytes=32)) == pytest.approx(31 / 2)
    assert table_bound(instance_of(table, budget_bytes=2000)) == 0


def test_documents_come_back_unchanged() -> None:
    solution = answer((0, 4), values=((1.0, 5.5),))
    assert LookupTables.from_json(solution.to_json()) == solution
    table = LookupFunction(name="x", function="log2", low=1, high=4)
    assert table.values.tolist() == [0, 1, math.log2(3), 2]
