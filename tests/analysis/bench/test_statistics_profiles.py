"""Performance and data profiles: by hand, against another implementation, and their bands."""

import numpy as np
import pandas as pd
import pytest

from ddlopt.analysis.bench.figures import profiles

INF, NAN = float("inf"), float("nan")

# Problems × methods; the ratios are 1 2 | 3 1 | inf 1 | inf inf
COSTS = np.array([[1.0, 2.0], [6.0, 2.0], [INF, 4.0], [INF, INF]])


def test_performance_profile_by_hand():
    profile = profiles.performance_profile(COSTS[..., None], [1.0, 2.0, 3.0, 100.0])
    assert profile.share.tolist() == [[0.25, 0.25, 0.5, 0.5], [0.5, 0.75, 0.75, 0.75]]
    assert profile.low is profile.share
    assert profile.high is profile.share


def test_a_best_cost_of_zero_is_a_ratio_of_one():
    profile = profiles.performance_profile([[[0.0], [1.0]], [[0.0], [0.0]]], [1.0, 1e9])
    assert profile.share.tolist() == [[1.0, 1.0], [0.5, 0.5]]


def test_rounding_does_not_make_a_ratio_larger():
    total = 0.1 + 0.2
    assert total / 0.1 > 3
    profile = profiles.performance_profile([[[0.1], [total]]], [3.0])
    assert profile.share.tolist() == [[1.0], [1.0]]


def test_performance_profile_as_another_package_has_it():
    theirs = pytest.importorskip("perfprof.perfprof", reason="perfprof is not installed")
    costs = np.random.default_rng(1).exponential(1.0, (40, 3))
    costs[::7, 0] = NAN  # how that package knows failures
    best = theirs._best_timings(costs)
    at = np.sort(costs[:, 1] / best)
    ours = profiles.performance_profile(np.nan_to_num(costs, nan=INF)[..., None], at)
    for method in range(3):
        ratios = theirs._theta(costs[:, method], best)
        assert ours.share[method] == pytest.approx([(ratios <= x * (1 + 1e-12)).mean() for x in at])


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_method_that_was_not_run_has_not_solved_and_hinders_nobody(seeds):
    costs = np.repeat([[[1.0], [NAN]], [[2.0], [1.0]]], seeds, axis=-1)
    assert profiles.performance_profile(costs, [1.0, 2.0]).share.tolist() == [[0.5, 1.0], [0.5, 0.5]]


def test_data_profile_by_hand():
    profile = profiles.data_profile(COSTS[..., None], [0.5, 2.0, 6.0])
    assert profile.share.tolist() == [[0.0, 0.25, 0.5], [0.0, 0.5, 0.75]]


def test_a_profile_never_falls_and_the_band_holds_it():
    rng = np.random.default_rng(2)
    costs = rng.exponential(1.0, (30, 3, 5))
    costs[rng.random(costs.shape) < 0.1] = INF
    profile = profiles.performance_profile(costs, np.geomspace(1, 50, 20), seed=7)
    assert (np.diff(profile.share) >= 0).all()
    assert (profile.low <= profile.share + 1e-12).all()
    assert (profile.high >= profile.share - 1e-12).all()
    assert (profile.low < profile.high).any()


def test_bands_come_from_the_seed_and_from_differing_runs_alone():
    rng = np.random.default_rng(3)
    costs = rng.exponential(1.0, (10, 2, 4))
    first, again = (profiles.data_profile(costs, [0.5, 1.0], seed=1) for _ in range(2))
    assert (first.low == again.low).all()
    assert (first.low < first.high).any()
    same = profiles.data_profile(np.repeat(costs[..., :1], 4, axis=-1), [0.5, 1.0])
    assert (same.low == same.high).all()


def test_curve_and_band_of_one_problem_with_two_outcomes_are_known():
    # One problem, one method, runs of cost 1 and 3: of two drawn, both are 1 (1/4), one is (1/2), or none (1/4).
    profile = profiles.data_profile([[[1.0, 3.0]]], [0.5, 2.0, 3.5], draws=4000, level=0.4)
    assert profile.share[0] == pytest.approx([0.0, 0.5, 1.0], abs=0.03)
    assert profile.low.tolist() == [[0.0, 0.5, 1.0]]
    assert profile.high.tolist() == [[0.0, 0.5, 1.0]]
    wide = profiles.data_profile([[[1.0, 3.0]]], [2.0], draws=4000, level=0.6)
    assert (wide.low.tolist(), wide.high.tolist()) == ([[0.0]], [[1.0]])


def test_a_profile_of_several_runs_is_that_expected_of_one_run_each():
    # Ratios of the second method to the first over all 3 · 2 pairs: 4/1 4/2 4/8, 1/1 1/2 1/8 -> at most 1: 4 of 6.
    costs = np.array([[[1.0, 2.0, 8.0], [4.0, 1.0, NAN]]])
    profile = profiles.performance_profile(costs, [1.0, 2.0], draws=4000)
    assert profile.share[1] == pytest.approx([4 / 6, 5 / 6], abs=0.03)
    assert profile.share[0] == pytest.approx([3 / 6, 5 / 6], abs=0.03)


def test_medians_leave_out_what_was_not_run():
    values = [[3.0, NAN, 1.0], [NAN, NAN, NAN], [2.0, INF, INF], [4.0, 1.0, NAN], [1.0, INF, NAN]]
    assert profiles.medians(values).tolist() == [2.0, INF, INF, 2.5, INF]
    rng = np.random.default_rng(4)
    some = rng.random((50, 6))
    assert profiles.medians(some) == pytest.approx(np.median(some, axis=-1))


def test_cube():
    runs = pd.DataFrame(
        [("p", "x", 1.0), ("p", "x", 2.0), ("p", "y", 3.0), ("q", "y", 4.0), ("q", "z", 5.0)],
        columns=["instance_digest", "label", "cost"],
    )
    cube = profiles.cube(runs, "cost", ["y", "x"])
    assert cube.shape == (2, 2, 2)
    assert np.nan_to_num(cube, nan=-1).tolist() == [[[3, -1], [1, 2]], [[4, -1], [-1, -1]]]
