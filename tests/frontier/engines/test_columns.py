"""The restricted master program and smoothed prices, on cutting stock: rolls of 10 into pieces, patterns as columns."""

from itertools import product

import numpy as np
import pytest

from ddlopt.frontier.engines.columns import INF, Priced, RestrictedMaster, Smoothing
from ddlopt.models.errors import SolverError

SIZES, WANTED, ROLL = np.array([3, 4, 5]), np.array([7, 5, 6]), 10
PATTERNS = [
    np.array(counts) for counts in product(range(4), range(3), range(3)) if 0 < np.array(counts) @ SIZES <= ROLL
]


def of_all_patterns() -> float:
    """The program over every pattern."""
    master = RestrictedMaster("patterns")
    for wanted in WANTED.tolist():
        master.add_row(float(wanted), INF)
    for pattern in PATTERNS:
        master.add(1.0, range(3), pattern)
    return master.solve().value


def opened() -> RestrictedMaster:
    """With a pattern of one piece each."""
    master = RestrictedMaster("patterns")
    for wanted in WANTED.tolist():
        row = master.add_row(float(wanted), INF)
        master.add(1.0, [row], [1.0])
    return master


def generated(part: float) -> tuple[float, Smoothing, int]:
    """Value, smoothing and columns after column generation."""
    master, smoothing = opened(), Smoothing(part)

    def oracle(prices: np.ndarray) -> Priced:
        best = max(PATTERNS, key=lambda pattern: float(pattern @ prices))
        worth = float(best @ prices)
        bound = float(prices @ WANTED) / max(1.0, worth)  # Farley: prices over the best worth are feasible duals
        # Columns join by the program's prices.
        new = float(best @ now) > 1 + 1e-9
        if new:
            master.add(1.0, range(3), best)
        return Priced(bound, int(new))

    while True:
        optimum = master.solve()
        now = optimum.duals
        if not smoothing.ask(now, oracle):
            return optimum.value, smoothing, master.columns


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6])
def test_generation_ends_at_the_program_over_all_columns(part):
    value, smoothing, columns = generated(part)
    assert value == pytest.approx(of_all_patterns())
    assert smoothing.bound == pytest.approx(value)
    assert columns < 3 + len(PATTERNS)


def test_the_best_prices_prove_the_bound_again():
    value, smoothing, _ = generated(0.4)
    assert all(pattern @ smoothing.prices <= 1 + 1e-9 for pattern in PATTERNS)
    assert smoothing.prices @ WANTED == pytest.approx(value)


def test_prices_between_are_asked_first_and_those_of_the_program_if_they_give_nothing():
    smoothing, asked = Smoothing(0.25), []

    def oracle(prices: np.ndarray) -> Priced:
        asked.append(prices.tolist())
        return Priced(-float(prices.sum()), int(prices[0] == 8.0))

    assert smoothing.ask(np.array([4.0]), oracle) == 0
    assert smoothing.ask(np.array([8.0]), oracle) == 1
    assert asked == [[4.0], [7.0], [8.0]]
    assert smoothing.bound == -4.0
    assert smoothing.prices.tolist() == [4.0]


def test_a_worse_bound_does_not_move_the_best_prices():
    smoothing = Smoothing(0.5)
    assert smoothing.note(2.0, np.array([1.0]))
    assert not smoothing.note(2.0, np.array([3.0]))
    assert smoothing.prices.tolist() == [1.0]


def test_rows_come_after_columns_and_go_again():
    master = RestrictedMaster("numbers")
    column = master.add(-1.0, upper=3.0)
    assert master.solve().value == -3.0
    row = master.add_row(-INF, 2.0, [column], [1.0])
    assert master.solve().value == -2.0
    assert master.solve().duals[row] == -1.0
    later = master.add(-2.0, [row], [1.0], upper=1.0)
    assert master.solve().values.tolist() == [1.0, 1.0]
    master.set_cost(later, 0.0)
    assert master.solve().value == -2.0
    master.set_bounds(column, 0.0, 1.0)
    assert master.solve().value == -1.0
    master.set_bounds(column, 0.0, 3.0)
    master.keep(0, 1)
    assert (master.rows, master.columns, master.solve().value) == (0, 1, -3.0)


def test_a_program_without_solution_is_an_error_that_names_it():
    master = RestrictedMaster("numbers")
    assert master.add_rows(2, 1.0, 1.0) == 0
    master.add(0.0, [1], [1.0])
    with pytest.raises(SolverError, match="over numbers ended with 'Infeasible'"):
        master.solve()


def test_what_highs_refuses_is_an_error():
    master = RestrictedMaster("numbers")
    with pytest.raises(SolverError, match="HiGHS did not add a column in the linear program over numbers"):
        master.add(1.0, [5], [1.0])
