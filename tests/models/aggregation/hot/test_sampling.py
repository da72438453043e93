"""How many batches must be sampled: closed forms, and promises that are kept."""

import math

import numpy as np
import pytest
from volume import for_each

from ddlopt.models.aggregation.hot.sampling import expected_share, samples_for_set, samples_for_share
from ddlopt.models.aggregation.hot.values import saved_messages
from ddlopt.models.errors import OptionError

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
