"""Each figure against a case calculated by hand, and against a public implementation where there is one."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import gmean

from ddlopt.analysis.bench.figures import statistics
from ddlopt.models.errors import OptionError
from ddlopt.solvers.contracts import relative_gap

NAN, INF = float("nan"), float("inf")


def test_gap_to_best():
    # 12 against 10: 2/10; 8 against 10 where more is better: 2/10; better than the best known: 0; -9 against -10: 1/10
    gaps = statistics.gap_to_best(
        [12.0, 8.0, 9.0, -9.0, NAN, 1.0, 0.0], [10, 10, 10, -10, 10, 0, 0], [0, 1, 0, 0, 0, 0, 0]
    )
    assert gaps[:4] == pytest.approx([0.2, 0.2, 0.0, 0.1])
    assert np.isnan(gaps[4])
    assert gaps[5:].tolist() == [INF, 0.0]


@pytest.mark.parametrize("maximise", [False, True])
def test_gap_to_bound_is_that_of_results(maximise):
    pairs = [(12.0, 10.0), (10.0, 12.0), (-3.0, -4.0), (5.0, 5.0), (0.0, 0.0), (0.0, 1.0), (0.0, -1.0)]
    gaps = statistics.gap_to_bound(*np.array(pairs).T, maximise)
    sense = "maximize" if maximise else "minimize"
    expected = [relative_gap(z, b, sense) for z, b in pairs]
    assert gaps == pytest.approx([NAN if gap is None else gap for gap in expected], nan_ok=True)


def test_shifted_geometric_mean():
    # ((1 + 1)(7 + 1))^(1/2) - 1 = 4 - 1
    assert statistics.shifted_geometric_mean([1.0, 7.0], 1.0) == pytest.approx(3.0)
    assert statistics.shifted_geometric_mean([0.0, 7.0], 0.0) == 0.0
    assert math.isnan(statistics.shifted_geometric_mean([]))
    times = np.random.default_rng(0).exponential(20.0, 50)
    assert statistics.shifted_geometric_mean(times, 10.0) == pytest.approx(gmean(times + 10.0) - 10.0)
    for wrong in ([-1.0], 1.0), ([1.0], -1.0):
        with pytest.raises(OptionError):
            statistics.shifted_geometric_mean(*wrong)


def test_par():
    # (2 + 4 + 10 · 60) / 3
    assert statistics.par([2.0, 4.0, 61.0], [True, True, False], [60.0, 60.0, 60.0], 10) == pytest.approx(202.0)
    # without a limit the longest time stands in for it: (2 + 10 · 5) / 2
    assert statistics.par([2.0, 5.0], [True, False], [NAN, NAN], 10) == pytest.approx(26.0)
    assert math.isnan(statistics.par([], [], []))


@pytest.fixture
def runs():
    return pd.DataFrame(
        [
            ("a", "optimal", 10.0, "minimize", 11.0),
            ("a", "feasible", 12.0, "minimize", 11.0),
            ("a", "reference", 1.0, "minimize", 11.0),
            ("b", "feasible", 3.0, "maximize", 5.0),
            ("b", "killed", NAN, "maximize", 5.0),
            ("c", "infeasible", NAN, "minimize", NAN),
        ],
        columns=["instance_digest", "status", "objective", "sense", "best_objective"],
    )


def test_best_known_is_the_better_of_library_and_runs_in_either_sense(runs):
    best = statistics.best_known(runs)
    assert best[["a", "b"]].to_dict() == {"a": 10.0, "b": 5.0}
    assert np.isnan(best["c"])
    assert statistics.best_known(runs.assign(best_objective=[NAN] * 6))["b"] == 3.0


def test_what_is_solved(runs):
    assert statistics.solved(runs).tolist() == [True, True, False, True, False, True]
    runs["gap_to_best"] = [0.0, 0.2, NAN, 0.4, NAN, NAN]
    assert statistics.solved(runs, target=0.2).tolist() == [True, True, False, False, False, True]
    for status in statistics.FAILURES:
        assert not statistics.solved(runs.assign(status=status)).any()


def test_time_to_target():
    trace = [[1.0, None, 5.0], [2.0, 20.0, 5.0], [3.0, 11.0, 5.0], [9.0, 10.0, 10.0]]
    assert statistics.time_to_target(trace, 10.0, 0.1) == 3.0
    assert statistics.time_to_target(trace, 10.0, 0.0) == 9.0
    assert statistics.time_to_target(trace, 9.0, 0.0) == INF
    assert statistics.time_to_target(trace, 20.0, 0.0, maximise=True) == 2.0
    assert statistics.time_to_target([], 10.0, 0.1) == INF
