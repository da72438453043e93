"""Hot sets: data, check and bounds; and how many batches a sample needs."""

import json
import math
from fractions import Fraction

import hot_cases
import numpy as np
import pytest
from refusals import one_line
from scipy.optimize import linprog
from volume import for_each, seeds

from ddlopt.analysis.hot_sampling import expected_share, samples_for_set, samples_for_share
from ddlopt.models.aggregation import AggregationProblem, HotInstance, evaluate
from ddlopt.models.aggregation.hot.bounds import hot_bound
from ddlopt.models.aggregation.hot.items import items_of
from ddlopt.models.aggregation.hot.values import groups_of, saved_messages
from ddlopt.models.errors import InstanceError, OptionError, SolutionError

DATA = {
    "family": "aggregation",
    "problem": "hot",
    "name": "two",
    "jobs": [
        {"name": "a", "workers": 3, "frequencies": [0.5, 1.0, 0.25], "registers": [1, 2, 3]},
        {
            "name": "b",
            "workers": 2,
            "frequencies": [0.5, 0.5],
            "registers": 2,
            "iterations_per_s": 4.0,
            "saved_messages": [0.5, 0.25],
        },
    ],
    "switches": [{"name": "s", "registers": 5}, {"name": "t", "registers": 4, "workers": [2, 0]}],
}


def changed(*path, value) -> dict:
    data = json.loads(json.dumps(DATA))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return data


def test_reading_gives_the_class_of_the_problem() -> None:
    instance = AggregationProblem.from_data(DATA)
    assert isinstance(instance, HotInstance)
    assert instance.size == 5
    assert instance.passing == ((3, 2), (2, 0))
    assert instance.jobs[1].widths.tolist() == [2, 2]
    assert (instance.sense, instance.objective_unit) == ("maximize", "")


@for_each(
    ("data", "message"),
    [
        (changed("jobs", 0, "frequencies", value=[0.5, 1.25, 0]), "frequencies[1] is 1.25; a probability is in 0..1"),
        (changed("jobs", 0, "frequencies", value=[0.5, "x", 0]), "[1] is 'x'; expected a list of numbers"),
        (changed("jobs", 0, "frequencies", value=[0.5, True, 0]), "[1] is True; expected a list of numbers"),
        (changed("jobs", 0, "frequencies", value=[]), "frequencies is empty"),
        (changed("jobs", 0, "frequencies", value=0.5), "expected a list of numbers"),
        (changed("jobs", 0, "registers", value=[1, 2]), "registers has 2 numbers, but there are 3 frequencies"),
        (changed("jobs", 0, "registers", value=[1, 0, 1]), "registers[1] is 0; a parameter takes at least 1"),
        (changed("jobs", 0, "registers", value=1.5), "expected a list of whole numbers"),
        (changed("jobs", 0, "registers", value=[1, 2.5, 1]), "[1] is 2.5; expected a list of whole numbers"),
        (changed("jobs", 0, "registers", value=2**70), "registers is 1180591620717411303424; whole numbers go up"),
        (changed("jobs", 0, "registers", value=2**62), "all parameters take 13835058055282163716 registers; at most"),
        (changed("jobs", 0, "labels", value=["x"]), "labels has 1 names for 3 frequencies"),
        (changed("jobs", 1, "saved_messages", value=[0.5]), "saved_messages has 1 numbers"),
        (changed("jobs", 1, "saved_messages", value=[0.5, 1.5]), "saved_messages[1] is 1.5; of the messages of 2"),
        (changed("jobs", 0, "workers", value=0), "greater than or equal to 1"),
        (changed("switches", 1, "workers", value=[2]), "switches[1] ('t').workers has 1 numbers for 2 jobs"),
        (changed("switches", 1, "workers", value=[4, 0]), "workers[0] is 4, but job 'a' has 3 workers"),
        (changed("switches", 1, "workers", value=[2, 1]), "what job 'b' saves was measured with all workers"),
        (changed("switches", value=[]), "at least 1 item"),
    ],
)
def test_bad_data_is_refused_in_one_line(data: dict, message: str) -> None:
    with one_line(InstanceError, message):
        AggregationProblem.from_data(data)


def test_the_objective_by_hand() -> None:
    instance = HotInstance.from_data(DATA)
    answer = hot_cases.all_of(instance, placed=[[[1], [0]], [[0], []]])
    # a1 on s: 2 x (3 - 1); b0 on s: 4 x 2 x 0.5; a0 on t, which 2 workers pass: 1 - 0.75.
    for exact in (False, True):
        check = evaluate(instance, answer, exact)
        assert check.feasible
        assert check.objective == 4 + 4 + 0.25
        assert check.details["parameters"] == 3
        assert check.details["registers"] == 5
        assert check.details["ingress_share"] == pytest.approx(8.25 / (3 * (0.5 + 2 + 0.75) + 4 * 2 * 2))
    assert isinstance(check.objective, Fraction)


def test_long_lists_are_added_up_in_parts(monkeypatch) -> None:
    instance = HotInstance.from_data(DATA)
    answer = hot_cases.all_of(instance, placed=[[[1], [0]], [[0], []]])
    for cells in (1, 2):
        monkeypatch.setattr("ddlopt.models.aggregation.hot.evaluate._CELLS", cells)
        assert evaluate(instance, answer).objective == 4 + 4 + 0.25


@for_each(
    ("placed", "kind", "meaningful"),
    [
        ([[[1], [0]]], "every switch has its sets", False),
        ([[[1]], [[0], []]], "a switch has a set of each job", False),
        ([[[3], []], [[], []]], "parameter exists", False),
        ([[[-1], []], [[], []]], "parameter exists", False),
        ([[[1], []], [[1], []]], "a parameter is on one switch", True),
        ([[[0, 0], []], [[], []]], "a parameter is on one switch", True),
        ([[[1, 2], []], [[0], []]], None, True),
        ([[[1, 2], [0]], [[], []]], "registers suffice", True),
        ([[[], []], [[1, 2], []]], "registers suffice", True),
    ],
)
def test_what_a_set_may_violate(placed: list, kind: str | None, meaningful: bool) -> None:
    instance = HotInstance.from_data(DATA)
    check = evaluate(instance, hot_cases.all_of(instance, placed=placed))
    assert [violation.kind for violation in check.violations] == ([kind] if kind else [])
    assert (check.objective is not None) is meaningful


def test_answers_that_are_none() -> None:
    instance = HotInstance.from_data(DATA)
    with pytest.raises(SolutionError, match=r"\[0\] is 1.5"):
        hot_cases.all_of(instance, placed=[[[1.5], []], [[], []]])


@for_each("workers", [1, 2, 3, 8, 64, 1000])
def test_saved_messages_have_all_their_digits(workers: int) -> None:
    p = np.concatenate([10.0 ** -np.arange(13), [0.5, 0.999, 0.1 / workers, 0.0999 / workers, 0.0]])
    exact = [workers * Fraction(each) - (1 - (1 - Fraction(each)) ** workers) for each in p.tolist()]
    assert saved_messages(p, workers) == pytest.approx([float(each) for each in exact], rel=2e-14, abs=0)


def test_the_check_has_all_digits_of_rare_parameters() -> None:
    data = changed("jobs", 0, "frequencies", value=[1e-9, 3e-7, 1e-12])
    instance = HotInstance.from_data(data)
    answer = hot_cases.all_of(instance, placed=[[[0, 1], []], [[2], []]])
    exact = hot_cases.exact_value(instance, answer)
    assert evaluate(instance, answer).objective == pytest.approx(exact, rel=1e-12, abs=0)


@for_each("seed", seeds(6, 30))
def test_the_bound_is_that_of_the_linear_relaxation(seed: int) -> None:
    instance = hot_cases.drawn(seed, jobs=1 + seed % 3, switches=1 + seed % 4, most=12)
    items = items_of(instance, groups_of(instance))
    count, switches = items.values.shape
    if not count:
        assert hot_bound(instance) == 0
        return
    once = np.kron(np.eye(count), np.ones(switches))
    fits = np.kron(items.width, np.eye(switches))
    limits = np.concatenate([np.ones(count), [switch.registers for switch in instance.switches]])
    relaxed = linprog(-items.values.ravel(), A_ub=np.concatenate([once, fits]), b_ub=limits, bounds=(0, None))
    assert hot_bound(instance) == pytest.approx(-relaxed.fun, rel=1e-6, abs=1e-9)
    assert hot_bound(instance) >= -relaxed.fun * (1 - 1e-9)


@for_each("seed", range(12))
def test_the_bound_holds_for_the_best_set(seed: int) -> None:
    instance = hot_cases.drawn(100 + seed, jobs=2, switches=1 + seed % 2, most=4)
    assert hot_bound(instance) >= float(hot_cases.best_by_enumeration(instance)) * (1 - 1e-12)


ZIPF = np.arange(1.0, 301.0) ** -1.1


def test_two_parameters_by_hand() -> None:
    # Hoeffding: two terms exp(-2 N 0.2 ** 2); Chernoff: by symmetry the threshold is 1/2.
    p = np.array([0.3, 0.7])
    assert samples_for_set(p, 1, 0.05, "hoeffding") == math.ceil(math.log(2 / 0.05) / (2 * 0.2**2))
    rate = 0.5 * math.log(0.5 / 0.7) + 0.5 * math.log(0.5 / 0.3)
    assert samples_for_set(p, 1, 0.05) == math.ceil(math.log(2 / 0.05) / rate)


def test_a_parameter_that_is_never_touched_is_never_mistaken() -> None:
    p = np.array([0.0, 0.01, 0.0])
    assert samples_for_set(p, 1, 0.1) == math.ceil(math.log(10) / -math.log1p(-0.01))


def test_trivial_sets_need_no_sample() -> None:
    p = np.array([0.3, 0.7])
    assert samples_for_set(p, 0, 0.1) == samples_for_set(p, 2, 0.1) == 0
    assert samples_for_share(p, 1, 0.2, 0.1) == 0
    assert samples_for_share(p, 2, 0.9, 0.1) == 0


def test_equal_frequencies_at_the_break_are_never_told_apart() -> None:
    p = np.array([0.5, 0.2, 0.2, 0.1])
    assert samples_for_set(p, 2, 0.1) == math.inf
    assert samples_for_share(p, 2, 0.999, 0.1) < math.inf


def test_what_only_the_hottest_parameter_decides() -> None:
    # The other two are equal: all that may not happen is that the first is missed.
    tie = np.array([0.9, 0.2, 0.2])
    assert samples_for_share(tie, 2, 0.8, 0.05) == samples_for_set(tie[:2], 1, 0.05)
    # The first two are equal: all that may not happen is that the last is taken.
    low = np.array([0.9, 0.9, 0.1])
    assert samples_for_share(low, 1, 0.8, 0.05) == samples_for_set(low[1:], 1, 0.05)


def test_chernoff_needs_fewer_than_hoeffding() -> None:
    for size in (5, 20, 80):
        assert samples_for_set(ZIPF, size, 0.05) < samples_for_set(ZIPF, size, 0.05, "hoeffding")
        for share in (0.9, 0.99):
            assert samples_for_share(ZIPF, size, share, 0.05) < samples_for_share(ZIPF, size, share, 0.05, "hoeffding")


def test_more_of_anything_takes_more_batches() -> None:
    shares = [samples_for_share(ZIPF, 20, share, 0.05) for share in (0.8, 0.9, 0.95, 0.99, 0.999)]
    assert shares == sorted(shares)
    assert len(set(shares)) > 3
    assert samples_for_share(ZIPF, 20, 0.9, 0.01) > samples_for_share(ZIPF, 20, 0.9, 0.1)
    assert samples_for_share(ZIPF, 20, 1 - 1e-12, 0.05) == samples_for_set(ZIPF, 20, 0.05)


@pytest.mark.parametrize("size", [3, 8])
def test_the_set_is_right_as_often_as_promised(size: int) -> None:
    p, delta, rng = ZIPF[:40], 0.2, np.random.default_rng(size)
    samples = int(samples_for_set(p, size, delta))
    wrong = 0
    for _ in range(200):
        seen = rng.binomial(samples, p)
        wrong += seen[:size].min() <= seen[size:].max()
    assert wrong <= delta * 200


@for_each("share", [0.8, 0.95])
@for_each("value", [None, lambda p: saved_messages(p, 8)])
def test_the_share_is_captured_as_often_as_promised(share: float, value) -> None:
    size, delta, rng = 20, 0.2, np.random.default_rng(1)
    worth = ZIPF if value is None else value(ZIPF)
    samples = int(samples_for_share(ZIPF, size, share, delta, value=value))
    missed = 0
    for _ in range(200):
        # Of parameters seen equally often the coldest: the bound is for any choice.
        order = np.lexsort((ZIPF, -rng.binomial(samples, ZIPF)))[:size]
        missed += worth[order].sum() < share * worth[:size].sum()
    assert missed <= delta * 200


def test_a_fiftieth_of_the_batches_is_too_few() -> None:
    size, rng = 20, np.random.default_rng(1)
    samples = int(samples_for_share(ZIPF, size, 0.95, 0.2)) // 50
    missed = 0
    for _ in range(100):
        order = np.lexsort((ZIPF, -rng.binomial(samples, ZIPF)))[:size]
        missed += ZIPF[order].sum() < 0.95 * ZIPF[:size].sum()
    assert missed > 50


@pytest.mark.parametrize("size", [3, 20, 100])
def test_the_mean_share_is_what_it_is_said_to_be_at_least(size: int) -> None:
    stated, best = [], ZIPF[:size].sum()
    for samples in (2, 10, 50, 300):
        rng = np.random.default_rng(samples)
        shares = []
        for _ in range(300):
            # Of parameters seen equally often the coldest.
            order = np.lexsort((ZIPF, -rng.binomial(samples, ZIPF)))[:size]
            shares.append(ZIPF[order].sum() / best)
        stated.append(expected_share(ZIPF, size, samples))
        assert stated[-1] <= np.mean(shares) + 4 * np.std(shares) / np.sqrt(300)
    assert stated == sorted(stated)
    assert stated[-1] > 0.9


def test_the_mean_share_of_two_parameters_by_hand() -> None:
    # One batch: missed if it touches the second (0.4) or not the first (0.2), by the bound; 1 at most.
    assert expected_share(np.array([0.4, 0.8]), 1, 1) == pytest.approx(1 - 0.4 * (0.4 + 0.2) / 0.8)
    assert expected_share(np.array([0.4, 0.8]), 2, 1) == 1
    with pytest.raises(OptionError, match="samples is 0"):
        expected_share(ZIPF, 3, 0)


def test_odd_options_are_refused() -> None:
    with pytest.raises(OptionError, match="delta is 0"):
        samples_for_set(ZIPF, 3, 0.0)
    with pytest.raises(OptionError, match="size is 301, but there are 300 parameters"):
        samples_for_set(ZIPF, 301, 0.1)
    with pytest.raises(OptionError, match=r"share is 1\.0"):
        samples_for_share(ZIPF, 3, 1.0, 0.1)
