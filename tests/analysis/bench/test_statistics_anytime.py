"""Primal and dual integrals by hand, in the notation of Berthold (2013)."""

import numpy as np
import pytest

from ddlopt.analysis.bench.figures import anytime

TRACE = [[1.0, None, 5.0], [2.0, 20.0, 5.0], [4.0, 12.5, 8.0], [8.0, 10.0, 10.0]]


def test_primal_gap():
    values, best = [20.0, 12.5, 10.0, -1.0, np.nan, 8.0], 10.0
    assert anytime.primal_gap(values, best) == pytest.approx([0.5, 0.2, 0.0, 1.0, 1.0, 0.2])
    assert anytime.primal_gap([0.0, 1.0], 0.0).tolist() == [0.0, 1.0]


def test_primal_integral_by_hand():
    # 1 for 2 s, 10/20 for 2 s, 2.5/12.5 for 4 s, 0 for 2 s
    assert anytime.integral(TRACE, 10.0, 10.0) == pytest.approx(2 + 1 + 0.8)
    assert anytime.integral(TRACE, 10.0, 3.0) == pytest.approx(2 + 0.5)
    assert anytime.integral([], 10.0, 10.0) == 10.0


def test_dual_integral_by_hand():
    # 1 for 1 s, 5/10 for 3 s, 2/10 for 4 s, 0 for 2 s
    assert anytime.integral(TRACE, 10.0, 10.0, of=anytime.BOUND) == pytest.approx(1 + 1.5 + 0.8)


def test_the_gap_at_a_time_is_that_of_the_latest_point_and_never_grows():
    assert anytime.gap_at(TRACE, 10.0, [0.0, 2.0, 3.9, 4.0, 99.0]).tolist() == pytest.approx([1, 0.5, 0.5, 0.2, 0])
    worse_later = [[1.0, 10.0, None], [2.0, 20.0, None]]
    assert anytime.gap_at(worse_later, 10.0, [3.0]).tolist() == [0.0]


def test_the_integral_is_the_area_under_the_gap():
    rng = np.random.default_rng(0)
    trace = [[t, 10 + 90 / (k + 1), None] for k, t in enumerate(np.sort(rng.random(12)) * 9)]
    fine = (np.arange(200_000) + 0.5) * 10 / 200_000
    assert anytime.integral(trace, 10.0, 10.0) == pytest.approx(10 * anytime.gap_at(trace, 10.0, fine).mean(), rel=1e-4)
