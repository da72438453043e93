"""The timeline's dual bound: below every choice, at the linear relaxation's value, and exact arithmetic agrees."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from timeline_brute_force import brute_force, random_levels_case, random_timeline_case
from volume import for_each, seeds

from ddlopt.frontier.compression.bounds import level_prices, timeline_prices
from ddlopt.frontier.compression.timeline.dual.bound import dual_bound
from ddlopt.frontier.compression.timeline.dual.relaxation import option_prices
from ddlopt.models.compression import bound
from ddlopt.models.compression.levels.bounds import level_bound
from ddlopt.models.compression.timeline.bounds import timeline_bound
from ddlopt.models.compression.timeline.choices import Choices, as_timeline, choices_of
from ddlopt.models.errors import InfeasibleError


@for_each("seed", seeds(8, 100))
def test_bound_of_the_family(seed):
    """Between the closed form with the cheapest of everything and the optimum."""
    rng = np.random.default_rng(seed)
    instance = random_timeline_case(rng) if seed % 3 else random_levels_case(rng)
    best, _ = brute_force(instance)
    below = bound(instance)
    assert below <= best * (1 + 1e-12)
    choices = choices_of(as_timeline(instance))
    if instance.goal == "error":
        assert below >= instance.least_error
        return
    wire = choices.wire_s if as_timeline(instance).fusion else choices.occupation_s
    before = np.append(0.0, np.cumsum(choices.encode_s.min(axis=1))[:-1])
    after = np.append(np.cumsum(wire.min(axis=1)[::-1])[::-1][1:], 0.0)
    assert below >= (choices.ready_s + before + (choices.encode_s + wire).min(axis=1) + after).max() * (1 - 1e-12)


def test_levels_are_the_options_of_a_timeline():
    for seed in range(20):
        instance = random_levels_case(np.random.default_rng(seed))
        for one, other in ((level_bound, timeline_bound), (level_prices, timeline_prices)):
            assert one(instance) == pytest.approx(other(as_timeline(instance)), rel=1e-12)


def random_choices(rng, n=None, m=None):
    """A few gradients, menus of unequal length, ties and zeros among the figures."""
    n = int(rng.integers(1, 6)) if n is None else n
    m = int(rng.integers(1, 5)) if m is None else m
    counts = rng.integers(1, m + 1, n)
    counts[rng.integers(n)] = m
    draw = rng.random((4, n, m)) * rng.choice([0.0, 1.0], (4, n, m), p=[0.2, 0.8])
    figures = np.where(np.arange(m) < counts[:, None], draw, np.inf) * np.array([0.5, 1.0, 0.3, 1.0])[:, None, None]
    labels = np.where(
        np.arange(m) < counts[:, None], rng.permuted(np.tile(np.arange(m + 1), (n, 1)), axis=1)[:, :m], -1
    )
    ready = np.sort(rng.random(n)) * n / 2
    return Choices(ready, *figures, counts, labels, rng.integers(1, 5, n) * 4.0)


def timeline(choices, picked, sizes=None):
    """(time, error) of a choice, message by message."""
    free, delay, first = 0.0, 0.0, 0
    for size in sizes or (1,) * len(picked):
        places = range(first, first + size)
        first += size
        delay += sum(choices.encode_s[k, picked[k]] for k in places)
        launch = max(choices.launch_s[k, picked[k]] for k in places)
        busy = launch + sum(choices.wire_s[k, picked[k]] for k in places)
        free = max(free, choices.ready_s[first - 1] + delay) + busy
    return free, sum(choices.error[k, o] for k, o in enumerate(picked))


def bucketings(choices, picked, limit):
    n = len(picked)
    for cuts in itertools.product((False, True), repeat=n - 1):
        ends = [k + 1 for k, cut in enumerate(cuts) if cut] + [n]
        starts = [0, *ends[:-1]]
        buckets = [range(start, end) for start, end in zip(starts, ends, strict=True)]
        alike = all(len({choices.labels[k, picked[k]] for k in bucket}) == 1 for bucket in buckets)
        small = all(len(b) == 1 or sum(choices.bytes[k] for k in b) <= limit for b in buckets)
        if alike and small:
            yield tuple(len(bucket) for bucket in buckets)


def everything(choices, fusion=False, limit=np.inf):
    """(time, error) of all choices."""
    for picked in itertools.product(*(range(count) for count in choices.counts)):
        for sizes in bucketings(choices, picked, limit) if fusion else (None,):
            yield timeline(choices, picked, sizes)


def budgets(choices):
    least = choices.error.min(axis=1).sum()
    most = np.where(np.isfinite(choices.error), choices.error, 0.0).max(axis=1).sum()
    return (None, *(least + part * (most - least) for part in (0.0, 0.1, 0.5)))


@for_each("seed", seeds(8, 60))
@for_each("fusion", [False, True])
def test_below_every_choice(seed, fusion):
    rng = np.random.default_rng(seed)
    choices = random_choices(rng)
    limit = None if seed % 3 else 12.0
    outcomes = list(everything(choices, fusion, np.inf if limit is None else limit))
    for budget in budgets(choices):
        best = min(time for time, error in outcomes if budget is None or error <= budget * (1 + 1e-9))
        found = dual_bound(choices, "time", budget, fusion, limit)
        assert found.value <= best
        assert found.lambdas.min() >= 0
        assert found.mu >= 0
    fastest, slowest = min(time for time, _ in outcomes), max(time for time, _ in outcomes)
    for part in (0.0, 0.1, 0.5):
        budget = fastest + part * (slowest - fastest)
        best = min(error for time, error in outcomes if time <= budget * (1 + 1e-9))
        assert dual_bound(choices, "error", budget, fusion, limit).value <= best


def relaxation(choices, budget):
    """Least time where options may be mixed, by a linear program."""
    n, m = choices.error.shape
    there = np.isfinite(choices.error)
    encode, wire, error = (
        np.where(there, each, 0.0) for each in (choices.encode_s, choices.occupation_s, choices.error)
    )
    rows = []
    for i in range(n):
        part = np.zeros((n, m))
        part[: i + 1] += encode[: i + 1]
        part[i:] += wire[i:]
        rows.append(np.append(part, -1.0))
    limits = [-choices.ready_s]
    if budget is not None:
        rows.append(np.append(error, 0.0))
        limits.append([budget])
    one = np.append(np.kron(np.eye(n), np.ones(m)), np.zeros((n, 1)), axis=1)
    ends = [(0, 1 if each else 0) for each in there.ravel()] + [(0, None)]
    cost = np.append(np.zeros(n * m), 1.0)
    return linprog(cost, np.array(rows), np.concatenate(limits), one, np.ones(n), ends, method="highs").fun


@for_each("seed", range(10))
def test_value_of_the_linear_relaxation(seed):
    choices = random_choices(np.random.default_rng(seed), n=20, m=5)
    for budget in budgets(choices)[:1] + budgets(choices)[2:]:
        found, least = dual_bound(choices, "time", budget), relaxation(choices, budget)
        assert found.value >= least * (1 - 1e-7)  # more where options are left out for the budget
        if budget is None:
            assert found.value <= least * (1 + 1e-9)
        # The least error at that time: the two goals are two views of one trade-off.
        elif found.value <= least * (1 + 1e-9) and found.mu > 1e-6:
            assert dual_bound(choices, "error", least).value == pytest.approx(budget, rel=1e-6)


def test_one_gradient():
    """The bound is the best option."""
    choices = random_choices(np.random.default_rng(3), n=1, m=4)
    fastest = min(time for time, _ in everything(choices))
    assert dual_bound(choices, "time", None).value == pytest.approx(fastest, rel=1e-9)


def exact_value(choices, goal, budget, fusion, lambdas, mu):
    """The formula in fractions: the cheapest choice, and with fusion the cheapest places for buckets to end."""
    weights = [Fraction(each) for each in lambdas]
    total, mu, upto = sum(weights), Fraction(mu), Fraction(0)
    value = -(mu if goal == "time" else total) * Fraction(budget)
    ends, runs = Fraction(0), {}  # least costs so far: the last bucket ended; it goes on, by label
    for k, weight in enumerate(weights):
        since, upto = total - upto, upto + weight
        value += weight * Fraction(choices.ready_s[k])
        costs = {}
        for o in range(choices.counts[k]):
            encode, wire, launch, error = (
                Fraction(each[k, o]) for each in (choices.encode_s, choices.wire_s, choices.launch_s, choices.error)
            )
            before = min(ends, runs.get(choices.labels[k, o], ends)) if fusion else ends
            cost = before + since * encode + upto * wire + mu * error
            costs[choices.labels[k, o]] = cost, cost + upto * launch
        runs, ends = {label: cost for label, (cost, _) in costs.items()}, min(end for _, end in costs.values())
    return (value + ends) / (total if goal == "time" else 1)


@for_each("goal", ["time", "error"])
@for_each("fusion", [False, True])
@for_each("seed", range(4))
def test_exact_arithmetic_agrees(goal, fusion, seed):
    """At the multipliers given nothing was added by rounding, and next to nothing was taken away."""
    choices = random_choices(np.random.default_rng(seed), n=30, m=6)
    budget = budgets(choices)[2]
    if goal == "error":
        budget = 1.2 * dual_bound(choices, "time", None, fusion).value
    found = dual_bound(choices, goal, budget, fusion)
    value = exact_value(choices, goal, budget, fusion, found.lambdas, found.mu)
    assert Fraction(found.value) <= value
    assert found.value == pytest.approx(float(value), rel=1e-7)


@for_each("goal", ["time", "error"])
@for_each("seed", range(4))
def test_with_fusion_the_price_of_the_budget_is_the_best(goal, seed):
    choices = random_choices(np.random.default_rng(seed), n=30, m=6)
    budget = budgets(choices)[2] if goal == "time" else 1.2 * dual_bound(choices, "time", None, True).value
    found = dual_bound(choices, goal, budget, True)
    for factor in (0.9, 0.99, 1.01, 1.1):
        at = (found.lambdas, factor * found.mu) if goal == "time" else (factor * found.lambdas, found.mu)
        assert float(exact_value(choices, goal, budget, True, *at)) <= found.value * (1 + 1e-5)


@for_each("seed", range(5))
def test_prices_tell_what_an_option_costs_at_least(seed):
    choices = random_choices(np.random.default_rng(seed), n=4, m=4)
    found = dual_bound(choices, "time", None)
    prices = option_prices(choices, choices.occupation_s, found.lambdas, found.mu)
    above = prices - prices.min(axis=1, keepdims=True)
    for picked in itertools.product(*(range(count) for count in choices.counts)):
        time, _ = timeline(choices, picked)
        assert time >= found.value + sum(above[k, o] for k, o in enumerate(picked)) - 1e-12


def test_a_bucket_pays_for_one_launch():
    """Three equal gradients, of which two fit a bucket: two launches; without a limit one."""
    shape = (3, 1)
    choices = Choices(
        np.zeros(3), np.zeros(shape), np.full(shape, 1.0), np.full(shape, 0.5), np.zeros(shape), np.ones(3, int),
        np.zeros(shape, int), np.full(3, 4.0),
    )  # fmt: skip
    for limit, launches in ((None, 1), (12.0, 1), (8.0, 2), (4.0, 3)):
        assert dual_bound(choices, "time", None, True, limit).value == pytest.approx(3 + 0.5 * launches, rel=1e-9)
    other = choices._replace(labels=np.array([[0], [1], [0]]))
    assert dual_bound(other, "time", None, True).value == pytest.approx(3 + 0.5 * 3, rel=1e-9)


def test_budgets_that_nothing_keeps():
    choices = random_choices(np.random.default_rng(1), n=5, m=3)
    fastest = dual_bound(choices, "time", None).value
    with pytest.raises(InfeasibleError, match=r"no choice keeps the time budget of .* s: all take at least"):
        dual_bound(choices, "error", 0.99 * fastest)
    least = choices.error.min(axis=1).sum()
    with pytest.raises(InfeasibleError, match="no choice keeps the error budget"):
        dual_bound(choices, "time", 0.99 * least)
