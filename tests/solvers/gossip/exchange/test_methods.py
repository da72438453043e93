"""Exchange times: the optimum in several ways, prices and hulls, rules that see only the past."""

import math

import numpy as np
import pytest
from exchange_cases import instance, least, walk
from volume import for_each, seeds, some

import ddlopt
from benchmarks.gossip.exchange import by_table
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.gossip import ExchangeInstance
from ddlopt.models.gossip.exchange.formulations.exchange_path import ExchangePath
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact, lp_relaxation
from ddlopt.solvers.gossip.exchange.exact import OptimalTimes
from ddlopt.solvers.gossip.exchange.kernels import dynamic_program as kernels
from ddlopt.solvers.gossip.exchange.rules import _RULES, ExchangeRule
from ddlopt.solvers.gossip.exchange.search import Effort, Search, Trajectory, spliced
from ddlopt.solvers.heuristic import Clock

EXACT = Limits(gap=0)


@for_each("norm", ["squared", "plain"])
@for_each("seed", some(range(6), (1,)))
def test_brute_force(norm, seed):
    steps = 2 + 2 * seed if seed < 5 else 9
    points = walk(seed, steps, drift=seed % 3) if seed < 5 else np.random.default_rng(0).standard_normal((steps, 2))
    for more in ({"sends": 0}, {"sends": steps // 3}, {"sends": steps + 3}, {"send_cost": 0.1 + seed}):
        given = instance(points, norm=norm, **more)
        best = least(given)
        assert by_table(given) == pytest.approx(best, rel=1e-9, abs=1e-12)
        for method in (OptimalTimes(), Exact("exchange-path", "gossip", ExchangePath())):
            result = method.solve(given, EXACT)
            assert result.status == "optimal"
            assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-9)


@for_each("norm", ["squared", "plain"])
@for_each("seed", seeds(5, 20))
def test_the_search_over_prices_is_exact(norm, seed):
    """Against the table over steps and sends, of walks, of noise around a point, and of both."""
    rng = np.random.default_rng(seed)
    points = walk(seed, 70, 3, drift=seed % 3) if seed % 4 else rng.standard_normal((70, 3))
    for more in ({"sends": int(rng.integers(1, 40))}, {"send_cost": float(rng.exponential(20.0))}):
        given = instance(points, norm=norm, **more)
        found = OptimalTimes().solve(given, EXACT)
        assert found.status == "optimal"
        assert found.objective == pytest.approx(by_table(given), rel=1e-9)


@pytest.mark.parametrize("name", ["exchange-tiny-return-t12", "exchange-return-t300"])
def test_between_vertices_of_the_hull(name):
    """No price gives the budget: what is left between is searched, and the bound of prices is the relaxation's."""
    given = ddlopt.load(f"gossip/{name}")
    found, best = OptimalTimes().solve(given, EXACT), by_table(given)
    assert found.details["gap_by_price"] > 0.015
    assert found.details["segments"] < given.size * 12
    assert found.status == "optimal"
    assert found.objective == pytest.approx(best, rel=1e-9)
    if given.size < 50:
        search = Search(Trajectory(given.points, False, False, Clock(EXACT, None)), 4)
        assert search.run()
        assert search.bound == pytest.approx(lp_relaxation(ExchangePath(), given).objective, rel=1e-6)
        assert search.few.sends < 4 < search.many.sends
        assert search.bound < 0.99 * found.objective


@for_each("sends", [1, 7, 29, 40, 49, 98])
def test_a_line_has_segments_of_two_lengths(sends):
    """Of constant speed; prices between two lengths are ties over many budgets."""
    given = instance(np.arange(100.0)[:, np.newaxis], sends=sends)
    short, longer = divmod(100, sends + 1)

    def squares(n):
        return (n - 1) * n * (2 * n - 1) // 6

    best = (sends + 1 - longer) * squares(short) + longer * squares(short + 1)
    for drift in (True, False):
        result = OptimalTimes(drift=drift).solve(given, EXACT)
        assert result.details["queue"] == drift
        assert (result.status, result.objective) == ("optimal", best)
        assert len(result.solution.times) == sends


@for_each("seed", range(6))
def test_the_queue_is_exact(seed):
    rng = np.random.default_rng(seed)
    steps = np.abs(rng.standard_normal((120, 3))) / (1 + np.arange(120)[:, np.newaxis] / 20)
    given = instance(1000 + np.cumsum(steps, axis=0), sends=int(rng.integers(1, 60)))
    found, best = OptimalTimes().solve(given, EXACT), by_table(given)
    assert found.details["queue"] == 1
    assert found.status == "optimal"
    assert found.objective == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("plain", [False, True])
def test_margins_are_what_they_promise(plain):
    """A segment above the best prefix by more than the margin is never better, wherever it ends."""
    pruned = 0
    for seed in range(8):
        points = walk(seed, 60, 2, drift=seed % 3) if seed % 4 else np.random.default_rng(seed).standard_normal((60, 2))
        for price in (0.5, 5.0, 50.0):
            margin = kernels.margins(points, price, plain)
            free = np.full(61, 1e18)
            cost, _, _, many = kernels.penalised(points, price, plain, free, 0.0, math.inf)
            again, _, ends, few = kernels.penalised(points, price, plain, margin, 0.0, math.inf)
            assert again == pytest.approx(cost, rel=1e-12)
            slack = 3.0 * price
            _, _, later, between = kernels.penalised(points, price, plain, margin, slack, math.inf)
            assert few <= between <= many
            assert (later >= ends).all()
            pruned += many > 1.5 * few
    assert pruned >= 4


@for_each("seed", range(4))
def test_margins_are_at_least_what_sends_can_save(seed):
    """For every t and e: what the best sends of [t, e) cost, less squared distances from the mean."""
    steps = 40
    points = walk(seed, steps, drift=seed) if seed % 2 else np.random.default_rng(seed).standard_normal((steps, 2))
    for price in (1.0, 30.0, 1000.0):
        margin = kernels.margins(points, price, False)
        for t in range(1, steps):
            cost, _, _, _ = kernels.penalised(points[t:], price, False, np.full(steps + 1, 1e18), 0.0, math.inf)
            for e in range(t + 1, steps + 1):
                own = points[t:e]
                assert margin[t] >= (price + cost[e - t] - ((own - own.mean(axis=0)) ** 2).sum()) * (1 - 1e-12)


def least_from_any(own, plain):
    """What staleness from any one vector is at least: from the mean, or by pairs that are half a power of 2 apart."""
    if not plain:
        return ((own - own.mean(axis=0)) ** 2).sum()
    half = 2 ** (len(own).bit_length() - 1) // 2
    return np.linalg.norm(own[half : 2 * half] - own[:half], axis=1).sum() if half else 0.0


@for_each("plain", [False, True])
@for_each("price", [0.5, 20.0, 300.0])
def test_margins_by_their_definition(plain, price):
    steps = 40
    points = walk(9, steps, drift=1.0)
    apart = np.linalg.norm(points[:, np.newaxis] - points[np.newaxis], axis=2) ** (1 if plain else 2)
    wanted, known = [0.0] * (steps + 1), steps
    for t in reversed(range(steps)):
        short = apart[t, t:known].sum()
        if known < steps and short <= kernels.SHORT * price:
            wanted[t] = price + short + wanted[known]
            continue
        known, best = t, math.inf
        paid, spent, last = price, 0.0, t
        for e in range(t + 1, steps + 1):
            if spent >= kernels.LEVEL * price:
                paid, spent, last = paid + spent + price, 0.0, e - 1
            spent += apart[e - 1, last]
            saved = paid + spent - least_from_any(points[t:e], plain) + wanted[e]
            best = min(best, max(paid + spent, saved if e < steps else 0.0))
        wanted[t] = best
    assert kernels.margins(points, price, plain) == pytest.approx(wanted, rel=1e-9)


@for_each("plain", [False, True])
@for_each("slack", [0.0, 3.0, 100.0])
def test_no_segment_of_a_good_path_is_lost(plain, slack):
    for seed in range(4):
        points, price = walk(seed, 40, drift=seed % 2), 5.0
        margin = kernels.margins(points, price, plain)
        cost, _, ends, _ = kernels.penalised(points, price, plain, margin, slack, math.inf)
        rest = kernels.to_go(points, price, plain, ends)
        limit = (cost[-1] + slack) * (1 + 1e-12)
        near = kernels.near_arcs(points, price, plain, ends, cost, rest, limit, 10**6)
        apart = np.linalg.norm(points[:, np.newaxis] - points[np.newaxis], axis=2) ** (1 if plain else 2)
        every = [(s, e, apart[s:e, s].sum()) for s in range(40) for e in range(s + 1, 41)]
        before, _, _, _ = kernels.penalised(points, price, plain, np.full(41, 1e18), 0.0, math.inf)
        after = kernels.to_go(points, price, plain, np.full(40, 40))
        wanted = {(s, e) for s, e, value in every if before[s] + price * (s > 0) + value + after[e] <= limit}
        assert set(zip(near[0].tolist(), near[1].tolist(), strict=True)) == wanted
        assert len(wanted) < len(every)


def test_splices():
    """The best of all beginnings of one path and ends of the other."""
    first = set()
    for seed in range(12):
        points = walk(seed, 30)
        trajectory = Trajectory(points, False, False, Clock(EXACT, None))
        rng = np.random.default_rng(seed)
        few, many = (tuple(sorted((1 + rng.permutation(29)[:count]).tolist())) for count in (4, 9))
        found = spliced(few, many, 6, trajectory)
        splices = {
            (*head[:i], *tail[j:]): head
            for head, tail in ((few, many), (many, few))
            for i in range(len(head) + 1)
            for j in range(len(tail) + 1)
            if i + len(tail) - j == 6 and (*head[:i], *tail[j:]) == tuple(sorted({*head[:i], *tail[j:]}))
        }
        best = min(splices, key=trajectory.staleness)
        assert trajectory.staleness(found) == pytest.approx(trajectory.staleness(best))
        first.add(splices[best])
    assert {len(each) for each in first} == {4, 9}


@pytest.mark.slow
def test_long_trajectories():
    given = ddlopt.generate("gossip", "exchange-drift", steps=30_000, width=2, sends=1000, decay=5000.0)
    result = OptimalTimes().solve(given, EXACT)
    assert result.status == "optimal"
    assert result.details["open_segments"] < 300
    even = ExchangeRule("fixed-period").solve(given, Limits())
    assert result.objective < even.objective


def test_a_first_price_comes_from_fewer_points(monkeypatch):
    given = ddlopt.generate("gossip", "exchange-drift", steps=6000, width=1, sends=40, decay=600.0)
    whole = OptimalTimes().solve(given, EXACT)
    monkeypatch.setattr("ddlopt.solvers.gossip.exchange.search._EFFORT", Effort(subsampled=1000, long=20))
    search = Search(Trajectory(given.points, False, False, Clock(EXACT, None)), 40)
    first = search._first_price()
    assert first == pytest.approx(whole.details["price"], rel=0.3)
    result = OptimalTimes().solve(given, EXACT)
    assert result.status == whole.status == "optimal"
    assert result.objective == pytest.approx(whole.objective, rel=1e-9)


def test_time_limit():
    given = ddlopt.generate("gossip", "exchange-drift", steps=3000, width=2, sends=40)
    result = OptimalTimes().solve(given, Limits(gap=0, time_s=1e-9))
    assert result.message == "time limit passed"
    assert result.status == "feasible"
    assert len(result.solution.times) == 40
    priced = ExchangeInstance(name="x", points=given.points, send_cost=10.0)
    result = OptimalTimes().solve(priced, Limits(gap=0, time_s=1e-9))
    assert (result.message, result.status) == ("time limit passed", "feasible")


@for_each("points", [np.zeros((5, 2)), np.ones((1, 3)), [[0.0], [0.0], [1.0]]])
@for_each("more", [{"sends": 0}, {"sends": 1}, {"send_cost": 0.5}])
def test_models_that_hardly_move(points, more):
    given = instance(points, **more)
    for method in (OptimalTimes(), *map(ExchangeRule, sorted(set(_RULES) - {"rate-threshold"}))):
        result = method.solve(given, EXACT)
        assert result.objective >= least(given)
        assert result.checked
    assert OptimalTimes().solve(given, EXACT).objective == least(given)


@for_each("rule", sorted(_RULES))
def test_rules_see_only_the_past(rule):
    points = walk(1, 200, 4)
    changed = points.copy()
    changed[120:] *= -3.0
    more = {"rates": tuple(1 / (1 + t / 50) for t in range(200)), "blocks": (1, 3), "sends": 20}
    for level in (0.5, 3.0, 10.0):
        times = [_RULES[rule](instance(each, **more), 7)(level) for each in (points, changed)]
        assert [t for t in times[0] if t < 120] == [t for t in times[1] if t < 120]
        assert len(times[0]) < 200
        assert list(times[0]) == sorted(set(times[0]))
    assert len(times[0]) > 0


def test_rules_keep_the_budget_and_use_it():
    """With a model that hardly moves, whose levels are small, as with one that runs."""
    rates = tuple(1 / (1 + t / 50) for t in range(100))
    for sends, scale in ((0, 1.0), (99, 1.0), (10, 1.0), (10, 1e-4)):
        given = instance(scale * walk(2, 100, 3), rates=rates, sends=sends)
        least = OptimalTimes().solve(given, EXACT).objective
        for rule in _RULES:
            result = ExchangeRule(rule).solve(given, Limits(), seed=3)
            assert 0.8 * sends <= len(result.solution.times) <= sends
            assert result.objective >= least * (1 - 1e-9)
    drawn = [ExchangeRule("random-times").solve(given, Limits(), seed=seed).solution for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_rules_by_hand():
    """Of a model that jumps by 1, 2, 4 … at steps 1, 2, 3 …"""
    points = np.array([[2.0**t, 0.0] for t in range(7)])
    ones = np.ones(7)
    # 1 2 4 8 16 32 64: distances above 5
    assert kernels_times("by_distance", points, 5.0, ones, False) == [3, 4, 5, 6]
    assert kernels_times("by_distance", points, 6.9, ones, True) == [3, 6]
    assert kernels_times("by_distance", points, 5.0, 2.0 ** np.arange(7), False) == []
    # Sums of squares since the last send, 1 + 9 + 49 and then 64 and more; of distances, 1 + 3 + 7 + 15, 16 + 48.
    assert kernels_times("by_sum", points, 20.0, False) == [3, 4, 5, 6]
    assert kernels_times("by_sum", points, 20.0, True) == [4, 6]
    # Speeds: 1 at first; a distance of 3 in 2 steps is a speed of 1.5.
    assert kernels_times("by_speed", points, 2.0, 1.0)[:2] == [3, 5]
    for norm, power in (("plain", 1 / 2), ("squared", 1 / 3)):
        times = _RULES["speed-rule"](instance(points, norm=norm, sends=1), 0)(4.0)
        assert times.tolist() == kernels_times("by_speed", points, 4.0, power)
    # Slopes: 1 twice after step 1; then a change of 6 at step 3 exceeds 3, of slope 3.
    assert kernels_times("by_norms", points, 3.0, np.array([0, 1, 2]))[:2] == [1, 3]


def kernels_times(name, *arguments):
    from ddlopt.solvers.gossip.exchange.kernels import rules as exchange_rule_kernels

    return getattr(exchange_rule_kernels, name)(*arguments).tolist()


@pytest.mark.slow
def test_constant_staleness_is_nearly_optimal_where_the_speed_changes_slowly():
    """What the continuous problem says: a rule at a fixed distance, and a fixed period, are off by known factors."""
    steps = 20_000
    speed = 1.0 / (1.0 + np.arange(steps) / 4000.0)
    given = instance(np.cumsum(speed)[:, np.newaxis], sends=200)
    best = OptimalTimes().solve(given, EXACT).objective

    def of(power):
        """Continuous staleness where sends are in proportion to the speed to a power."""
        density = speed**power
        density *= 201 / density.sum()
        return (speed**2 / (3 * density**2)).sum()

    assert best == pytest.approx(of(2 / 3), rel=0.02)
    for rule, power in (("threshold", 1.0), ("fixed-period", 0.0), ("speed-rule", 2 / 3), ("sum-rule", 2 / 3)):
        found = ExchangeRule(rule).solve(given, Limits()).objective
        assert found / best == pytest.approx(of(power) / of(2 / 3), rel=0.05), rule


def test_rules_for_a_price():
    """As good as the best of its budgets: the rule is tried at each."""
    points, price = walk(5, 60, 2), 4.0
    given = instance(points, send_cost=price)
    best = OptimalTimes().solve(given, EXACT)
    assert len(best.solution.times) == 16
    for rule in sorted(set(_RULES) - {"rate-threshold"}):
        found = ExchangeRule(rule).solve(given, Limits()).objective
        assert found >= best.objective * (1 - 1e-9)
        for sends in (1, 16):
            kept = ExchangeRule(rule).solve(instance(points, sends=sends), Limits())
            assert found <= (kept.objective + price * len(kept.solution.times)) * (1 + 1e-9)


def test_refusals():
    given = instance(walk(0, 5), sends=1)
    with pytest.raises(NotApplicableError, match="it needs the learning rates of the steps"):
        ExchangeRule("rate-threshold").solve(given, Limits())
