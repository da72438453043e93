"""Gavel's policies as linear programs, against the bisection and closed forms."""

import numpy as np
import pytest
from volume import for_each

from benchmarks.scheduling.gavel_makespan import bisection, jobs
from ddlopt.models.errors import OptionError
from ddlopt.solvers.scheduling.online.time_shares import makespan_shares, max_min_shares


@pytest.mark.parametrize("seed", range(3))
def test_the_bisection_is_at_most_five_percent_above(seed):
    data = jobs(24, seed)
    exact = makespan_shares(*data).level
    found, _ = bisection(*data, "CLARABEL")
    assert exact * (1 - 1e-6) <= found <= 1.05 * exact


@for_each("seed", range(20))
def test_makespan_shares_are_feasible_and_reach_the_level(seed):
    throughputs, widths, accelerators, steps = jobs(30, seed)
    shares, makespan = makespan_shares(throughputs, widths, accelerators, steps)
    assert (widths @ shares <= accelerators * (1 + 1e-9)).all()
    assert (shares.sum(axis=1) <= 1 + 1e-9).all()
    assert ((throughputs * shares).sum(axis=1) * makespan >= steps * (1 - 1e-7)).all()


def test_one_type_is_the_larger_of_area_and_longest():
    """On equal accelerators the fluid makespan has a closed form."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        widths, hours = rng.integers(1, 5, 6).astype(float), rng.uniform(1, 9, 6)
        expected = max(hours.max(), widths @ hours / 8)
        found = makespan_shares(np.ones((6, 1)), widths, np.array([8.0]), hours).level
        assert found == pytest.approx(expected, rel=1e-7)


def test_max_min_of_equal_jobs_is_an_equal_split():
    shares, level = max_min_shares(np.ones((4, 2)), np.ones(4), np.array([1.0, 1.0]), np.ones(4))
    assert shares.sum(axis=1) == pytest.approx(np.full(4, 0.5))
    assert level == pytest.approx(0.5)


def test_max_min_gives_the_fast_type_to_whom_it_helps():
    """Job 0 is no faster on the second type, job 1 four times: what is left of the fast type is job 1's."""
    throughputs = np.array([[1.0, 1.0], [1.0, 4.0]])
    shares, level = max_min_shares(throughputs, np.ones(2), np.ones(2), np.array([1.0, 1.6]))
    assert level == pytest.approx(1.0)
    assert shares[0] == pytest.approx([1, 0], abs=1e-6)
    assert shares[1] == pytest.approx([0, 1], abs=1e-6)


def test_bad_input_is_one_line():
    with pytest.raises(OptionError, match="job 1 has throughput on no type"):
        makespan_shares(np.array([[1.0], [0.0]]), np.ones(2), np.ones(1), np.ones(2))
    with pytest.raises(OptionError, match="job 0 has a width"):
        makespan_shares(np.ones((2, 1)), np.array([0.0, 1.0]), np.ones(1), np.ones(2))
    with pytest.raises(OptionError, match="throughputs are 2 x 1"):
        makespan_shares(np.ones((2, 1)), np.ones(3), np.ones(1), np.ones(2))
