"""The multiple-choice knapsack against every choice of widths."""

import itertools

import numpy as np
import pytest
from volume import for_each, seeds

from ddlopt.models.scheduling.instance import most_workers
from ddlopt.models.scheduling.pool import Pool
from ddlopt.solvers.scheduling.slot.knapsack import scarce_resources, whole_costs
from ddlopt.solvers.scheduling.slot.knapsack_kernels import choose_widths


def best_widths(gains, costs, capacity):
    rows = [np.asarray(row, dtype=float) for row in gains]
    starts = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    return choose_widths(starts, np.concatenate(rows), np.asarray(costs, dtype=np.int64), capacity)


def _brute(gains, costs, capacity):
    choices = itertools.product(*(range(len(row)) for row in gains))
    fitting = (w for w in choices if sum(c * x for c, x in zip(costs, w, strict=True)) <= capacity)
    return max(sum(row[x] for row, x in zip(gains, w, strict=True)) for w in fitting)


def _random_gains(rng, widest):
    row = np.concatenate(([0.0], rng.normal(1.0, 2.0, rng.integers(0, widest + 1)).round(2)))
    row[1:][rng.random(len(row) - 1) < 0.2] = -np.inf
    return row


@for_each("seed", seeds(8, 400))
def test_best_widths_are_as_good_as_all_choices(seed):
    rng = np.random.default_rng(seed)
    jobs = int(rng.integers(1, 7))
    gains = [_random_gains(rng, (1, 2, 4)[seed % 3]) for _ in range(jobs)]
    costs = rng.integers(0, (2, 3, 5)[seed // 3 % 3], jobs) * (1 + seed % 2)
    capacity = int(rng.integers(0, 14))
    value, widths = best_widths(gains, costs, capacity)
    assert value == pytest.approx(_brute(gains, costs, capacity), abs=1e-12)
    assert value == pytest.approx(sum(row[w] for row, w in zip(gains, widths, strict=True)), abs=1e-12)
    assert widths @ costs <= capacity


def test_width_0_may_be_worth_something():
    value, widths = best_widths([[2.0, 3.0], [5.0, 4.0], [1.0, 9.0]], [1, 1, 1], 1)
    assert value == 2 + 5 + 9
    assert widths.tolist() == [0, 0, 1]


def test_large_and_mostly_single_workers_matches_the_fractional_bound():
    """Widths 1 with weight 1 are a greedy matter: the best C of them."""
    rng = np.random.default_rng(0)
    gains = np.column_stack([np.zeros(5000), rng.random(5000)])
    value, widths = best_widths(gains, np.ones(5000), 2000)
    assert value == pytest.approx(np.sort(gains[:, 1])[-2000:].sum())
    assert widths.sum() == 2000


@pytest.mark.parametrize(("missing", "held"), [(0.0, 3), (5e-10, 3), (5e-9, 2)])
def test_what_the_check_lets_pass_fits(missing, held):
    """Three workers of a GPU each on a hair less than three, as evaluate takes it; not on less than that."""
    _, capacity = whole_costs(Pool(np.array([[1.0], [1.0]]), np.array([3 * (1 - missing)]), True))
    assert capacity == held
    assert most_workers(np.array([[3 * (1 - missing)]]), np.array([1.0])).tolist() == [held]
    assert most_workers(np.array([[-1e-16]]), np.array([1.0])).tolist() == [0]


def test_amounts_become_whole_parts():
    costs, capacity = whole_costs(Pool(np.array([[0.5], [0.75], [0.1]]), np.array([2.3]), True))
    assert costs.tolist() == [10, 15, 2]
    assert capacity == 46
    assert "no multiples" in whole_costs(Pool(np.array([[np.pi], [1.0]]), np.array([2.3]), True))


def test_resources_that_cannot_run_short_are_left_out():
    cluster = Pool(np.array([[1.0, 2.0], [1.0, 3.0]]), np.array([4.0, 9.0]), True)
    assert scarce_resources(cluster, np.array([2, 2])).capacity.tolist() == [9.0]
    assert "2 resources" in whole_costs(scarce_resources(cluster, np.array([3, 2])))
    costs, capacity = whole_costs(scarce_resources(cluster, np.array([1, 1])))
    assert (costs.tolist(), capacity) == ([0, 0], 0)
