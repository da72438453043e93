"""Each figure against a case calculated by hand, and against a public implementation where there is one."""

import io
import math

import numpy as np
import pandas as pd
import pytest

from ddlopt.analysis.bench.figures import anytime, pairs, profiles, statistics, tabular
from ddlopt.models.errors import OptionError
from ddlopt.solvers.contracts import relative_gap

NAN, INF = float("nan"), float("inf")


def test_gap_to_best():
    # 12 against 10: 2/12; 8 against 10 where more is better: 2/8; better than the best known: 0; -9 against -10: 1/9
    gaps = statistics.gap_to_best(
        [12.0, 8.0, 9.0, -9.0, NAN, 1.0, 0.0, 0.0], [10, 10, 10, -10, 10, 0, 0, 1], [0, 1, 0, 0, 0, 0, 0, 1]
    )
    assert gaps[:4] == pytest.approx([1 / 6, 0.25, 0.0, 1 / 9])
    assert np.isnan(gaps[4])
    assert gaps[5:].tolist() == [1.0, 0.0, INF]


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
    from scipy.stats import gmean

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
    from scipy.stats import wilcoxon

    tenths, others = np.array([4, 5, 8, 6, 5, 4]), np.array([5, 8, 2, 7, 6, 0])
    assert wilcoxon(0.1 * tenths - 0.1 * others).pvalue < 0.95
    assert pairs.compare(0.1 * tenths, 0.1 * others).p_value == wilcoxon(tenths - others).pvalue == 1.0


def test_finite_costs_as_scipy_has_them():
    from scipy.stats import wilcoxon

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


TABLE = pd.DataFrame({"method": ["a_b", "50 % & more | x"], "time": [1.23456, float("nan")], "wins": [3, 4]})
WRITTEN = {"time": lambda value: f"{value:.2f}"}


def test_markdown():
    assert tabular.markdown(TABLE, WRITTEN) == (
        "| method | time | wins |\n| --- | ---: | ---: |\n| a_b | 1.23 | 3 |\n| 50 % & more \\| x | – | 4 |\n"
    )


def test_latex():
    text = tabular.latex(TABLE, WRITTEN, caption="A & B", label="tab:x")
    assert text.splitlines() == [
        r"\begin{table}", r"\centering", r"\caption{A \& B}", r"\label{tab:x}", r"\begin{tabular}{lrr}", r"\toprule",
        r"method & time & wins \\", r"\midrule", r"a\_b & 1.23 & 3 \\", r"50 \% \& more | x & -- & 4 \\",
        r"\bottomrule", r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "escaped"), [("\\{}", r"\textbackslash{}\{\}"), ("a^~#$", r"a\textasciicircum{}\textasciitilde{}\#\$")]
)
def test_what_means_something_to_latex(raw, escaped):
    assert tabular.latex_text(raw) == escaped


def test_csv_has_no_formulas():
    table = pd.DataFrame({"=name": pd.Categorical(["=1+1", "b"]), "figure": [-1.5, 2.0], "mixed": ["-3", None]})
    assert tabular.csv_text(table) == "'=name,figure,mixed\n'=1+1,-1.5,-3\nb,2.0,\n"


def test_csv_keeps_all_digits():
    read = pd.read_csv(io.StringIO(tabular.csv_text(TABLE)))
    assert read["time"][0] == 1.23456
    assert list(read["method"]) == list(TABLE["method"])
