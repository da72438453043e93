"""Wins, ties, losses and the paired test: by hand and against SciPy and statsmodels."""

import numpy as np
import pytest
from scipy.stats import wilcoxon

from ddlopt.analysis.bench.figures import pairs

INF, NAN = float("inf"), float("nan")


def test_wins_ties_losses_by_hand():
    ours = [1.0, 2.0, 3.0, INF, INF, 5.0, NAN, 1.0]
    other = [2.0, 2.0, 1.0, 1.0, INF, INF, 1.0, NAN]
    assert pairs.compare(ours, other)[:3] == (2, 2, 2)


def test_the_p_value_by_hand():
    # Six wins of six with different sizes: only the two extreme of 2^6 signs are as far out.
    found = pairs.compare([0.0] * 6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert found == (6, 0, 0, pytest.approx(2 / 64))
    assert pairs.compare([1.0, 2.0], [1.0, 2.0]) == (0, 2, 0, 1.0)
    assert np.isnan(pairs.compare([], []).p_value)


def test_a_failure_has_the_largest_rank():
    # |d| ranks 1, 2, 3 for -1, -2, failure: W = min(1 + 2, 3) = 3, and no split of three ranks is more even.
    assert pairs.compare([0.0, 0.0, INF], [1.0, 2.0, 0.0]).p_value == 1.0
    # The same with a small loss instead: W = 1, as far out as 4 of 8 signs.
    assert pairs.compare([0.0, 0.0, 0.5], [1.0, 2.0, 0.0]).p_value == pytest.approx(0.5)


def test_rounding_ranks_no_difference_higher():
    tenths, others = np.array([4, 5, 8, 6, 5, 4]), np.array([5, 8, 2, 7, 6, 0])
    assert wilcoxon(0.1 * tenths - 0.1 * others).pvalue < 0.95
    assert pairs.compare(0.1 * tenths, 0.1 * others).p_value == wilcoxon(tenths - others).pvalue == 1.0


def test_finite_costs_as_scipy_has_them():
    rng = np.random.default_rng(5)
    a, b = rng.random((2, 40))
    assert pairs.compare(a, b).p_value == pytest.approx(wilcoxon(a, b).pvalue)


def test_holm_by_hand():
    # 0.01 · 4; 0.02 · 3; 0.03 · 2 is no more than what came before; 0.9 · 1
    assert pairs.holm([0.03, 0.9, 0.01, NAN, 0.02])[[0, 1, 2, 4]] == pytest.approx([0.06, 0.9, 0.04, 0.06])
    assert np.isnan(pairs.holm([NAN])).all()
    assert pairs.holm([0.6, 0.7]).tolist() == [1.0, 1.0]


def test_holm_as_statsmodels_has_it():
    multitest = pytest.importorskip("statsmodels.stats.multitest", reason="statsmodels is not installed")
    values = np.random.default_rng(6).random(12) ** 3
    assert pairs.holm(values) == pytest.approx(multitest.multipletests(values, method="holm")[1])


def test_wins_count_ties_for_all_and_failures_for_none():
    costs = [[1.0, 1.0, 2.0], [3.0, 2.0, INF], [INF, INF, INF]]
    assert pairs.wins(costs).tolist() == [1, 2, 0]
