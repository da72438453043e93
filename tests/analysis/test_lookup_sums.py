"""Sums by lookup tables: what is certified holds for every pair, and not by much."""

from typing import Any

import numpy as np
import pytest
from volume import for_each

from ddlopt.analysis.lookup_sums import largest_error, sum_chain
from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import LookupTables, TableInstance
from ddlopt.models.errors import NotApplicableError
from ddlopt.solvers.aggregation.table.exact import OptimalTables
from ddlopt.solvers.contracts import Limits


def solved(**options: Any) -> tuple[TableInstance, LookupTables]:
    instance = generate("table", 0, **options)
    solution = OptimalTables().solve(instance, Limits()).solution
    assert isinstance(instance, TableInstance)
    assert isinstance(solution, LookupTables)
    return instance, solution


@for_each("entries", ["ranges", "prefixes"])
@for_each(("shape", "bits", "gaps"), [("integers", 7, 1), ("mantissas", 5, 12)])
def test_no_pair_is_further_off_than_certified(entries: str, shape: str, bits: int, gaps: int) -> None:
    instance, solution = solved(shape=shape, bits=bits, entries=entries, signed=True)
    chain = sum_chain(instance, solution)
    worst, mean = largest_error(chain, gaps)
    assert 0.6 * chain.bound < worst <= chain.bound
    assert 0 < mean < 0.6 * worst
    lost, _ = largest_error(chain, gaps, minus=True)
    assert 0.5 * chain.bound < lost <= chain.bound


@for_each("seed", range(4))
def test_the_certificate_holds_for_bad_tables_too(seed: int) -> None:
    instance = generate("table", 0, bits=5, signed=True)
    assert isinstance(instance, TableInstance)
    rng = np.random.default_rng(seed)
    starts = []
    for table in instance.tables:
        cuts = rng.choice(np.arange(table.low + 1, table.high + 1), size=20, replace=False)
        starts.append((table.low, *sorted(cuts.tolist())))
    chain = sum_chain(instance, LookupTables(instance=instance.name, starts=tuple(starts)))
    for minus in (False, True):
        worst, _ = largest_error(chain, minus=minus)
        assert 0 < worst <= chain.bound


def test_small_numbers_beyond_the_table_are_left_out_within_the_bound() -> None:
    instance, _ = solved(shape="mantissas", bits=4)
    data = instance.model_dump(mode="json")
    data["tables"][1]["high"] = 2 * 2**7
    short = TableInstance.from_data(data)
    solution = OptimalTables().solve(short, Limits()).solution
    assert isinstance(solution, LookupTables)
    chain = sum_chain(short, solution)
    worst, _ = largest_error(chain, gaps=8)
    # log2(1 + 2^-2) is left out: a fifth of the sum.
    assert 0.15 < worst <= chain.bound < 0.3


def test_differences_below_the_cut_are_taken_for_nothing() -> None:
    instance, _ = solved(bits=6, signed=True)
    data = instance.model_dump(mode="json")
    data["tables"][2]["low"] = 32
    blunt = TableInstance.from_data(data)
    solution = OptimalTables().solve(blunt, Limits()).solution
    assert isinstance(solution, LookupTables)
    chain = sum_chain(blunt, solution)
    worst, _ = largest_error(chain, minus=True)
    # Numbers with a ratio of up to 2 ** 0.5 count as equal; the difference is a sixth of their sum.
    assert 0.15 < worst <= chain.bound < 0.2
    assert largest_error(chain)[0] < 0.05


def test_a_sum_to_the_last_bit() -> None:
    instance, solution = solved(bits=4, fraction_bits=12, budget_bytes=10**7)
    chain = sum_chain(instance, solution)
    x, y = np.array([15, 8, 1]), np.array([9, 8, 1])
    assert np.rint(chain.combined(x, y)).tolist() == [24, 16, 2]
    with pytest.raises(NotApplicableError, match="no table log2-difference"):
        chain.combined(x, y, minus=True)


@pytest.mark.parametrize(
    ("place", "field", "value", "message"),
    [
        (0, "step", None, "'logarithm' .* has step None, but logarithms have 4 fraction bits; set it to 0.0625"),
        (2, "fraction_bits", 5, "'power' .* has fraction_bits 5, and 'sum' has 4; make them equal"),
        (0, "function", "exp2", "has not the tables of a sum"),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(place: int, field: str, value: Any, message: str) -> None:
    instance, solution = solved(bits=4)
    data = instance.model_dump(mode="json")
    data["tables"][place][field] = value
    with pytest.raises(NotApplicableError, match=message):
        sum_chain(TableInstance.from_data(data), solution)
