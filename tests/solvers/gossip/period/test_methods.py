"""Methods for the problem ``period``."""

import math

import networkx as nx
import numpy as np
import pytest
from volume import for_each, seeds, slow

import ddlopt
from ddlopt.analysis.gossip_convex.period import GeometricProgram
from ddlopt.instances.generators import generate
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.gossip import evaluate
from ddlopt.models.gossip.period.instance import PeriodInstance
from ddlopt.models.gossip.period.time_to_target import TimeToTarget
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.gossip.period.rounds import Mixing
from ddlopt.solvers.gossip.period.rules import adacomm_period
from ddlopt.solvers.gossip.period.search import best_period

TIGHT = Limits(gap=1e-8)
POSYNOMIAL = {0.2: (0.04015, 5.507, 2715.76), 0.6538: (0.02506, 4.860, 4506.20), 0.9: (0.01358, 4.437, 8549.54)}


def period(name, **options):
    return generate("gossip", "period", name=name, **options)


def solve(name, instance, limits=TIGHT):
    return (method(name, "gossip") if isinstance(name, str) else name).solve(instance, limits)


def changed(instance, **fields):
    return PeriodInstance.from_data(instance.model_dump(mode="json") | fields)


def test_closed_form():
    found = solve("best-period", ddlopt.load("gossip/period-m8-step"))
    assert found.objective == pytest.approx(2559.472, abs=5e-4)
    assert found.solution.period == pytest.approx(4.0829, abs=5e-5)
    assert found.status is Status.OPTIMAL
    # (C/Y)(√(1 + YE/(BC)) − 1)
    e, b = 0.05 - 0.05 / 8 + 0.05**2, 0.05**2 * 1.2 / 0.8
    assert found.solution.period == pytest.approx(4 * (math.sqrt(1 + e / (4 * b)) - 1), rel=1e-12)
    assert found.bound == pytest.approx(found.objective, rel=1e-11)


@pytest.mark.parametrize("mixing", POSYNOMIAL)
def test_geometric_program_and_branch_and_bound_agree(mixing):
    asked = changed(period("a", mixing=mixing), deviation="posynomial")
    step, best, seconds = POSYNOMIAL[mixing]
    for name in ("best-period", GeometricProgram()):
        found = solve(name, asked)
        assert found.objective == pytest.approx(seconds, abs=5e-3)
        assert found.solution.period == pytest.approx(best, abs=1e-3)
        assert found.solution.step_size == pytest.approx(step, abs=6e-6)
    exact = solve("best-period", changed(asked, deviation="exact")).objective
    kept = solve(GeometricProgram(), changed(asked, deviation="exact"))
    assert exact < kept.objective < kept.details["promised_s"]


@for_each("seed", seeds(4, 12))
@for_each("whole", [False, True])
def test_against_a_grid(seed, whole):
    rng = np.random.default_rng(seed)
    asked = period(
        "a",
        workers=int(rng.integers(2, 200)),
        ratio=10.0 ** rng.uniform(-1, 2),
        target=10.0 ** rng.uniform(-2, 0),
        mixing=rng.uniform(0, 0.95),
        step_size=None if seed % 2 else 0.005,
        whole=whole,
    )
    found = solve("best-period", asked)
    times = TimeToTarget.of(asked)
    periods = np.arange(1.0, 3000.0) if whole else np.geomspace(1.0, 3000.0, 3000)
    grid = min(times.seconds(float(each), asked.communication_s, asked.mixing) for each in periods)
    assert found.objective <= grid * (1 + 1e-12)
    assert found.objective >= grid * (1 - (1e-12 if whole else 1e-4))
    assert found.gap <= 1e-8


def test_two_valleys():
    """With a free step and an all-reduce, neighbours of the best whole period need not lead to it from period 1."""
    asked = ddlopt.load("gossip/period-m16-two-valleys")
    times = TimeToTarget.of(asked)
    seconds = [times.seconds(float(each), 40.0, 0.0) for each in range(1, 100)]
    assert seconds[0] < seconds[1] > seconds[2]
    found = solve("best-period", asked)
    assert found.solution.period == 1 + int(np.argmin(seconds)) == 41
    # With more workers the noise of their mean is less, and the first valley is the deeper one.
    many = changed(asked, workers=64)
    assert solve("best-period", many).solution.period == 1


def test_communication_for_nothing_is_best_at_each_step():
    found = best_period(TimeToTarget.of(period("a")), 0.0, 0.5, False, 1e-9)
    assert found.period == 1
    assert found.bound == pytest.approx(found.seconds, rel=1e-8)


def test_targets_out_of_reach():
    for name in ("best-period", "synchronous", "adacomm"):
        assert solve(name, period("a", step_size=1.0)).status is Status.INFEASIBLE


def test_adacomm_is_right_at_the_horizon_of_the_best_plan():
    asked = ddlopt.load("gossip/period-m8-step")
    best = solve("best-period", asked)
    at_horizon = math.sqrt(2 * 4 / (0.05**3 * 1.5 * best.objective))
    assert at_horizon == pytest.approx(best.solution.period, rel=1e-9)
    found = solve("adacomm", asked)
    horizon = solve("synchronous", asked).objective
    assert found.solution.period == pytest.approx(math.sqrt(2 * 4 / (0.05**3 * 1.5 * horizon)))
    assert best.objective < found.objective < horizon


def test_adacomm_rule():
    assert adacomm_period(16, 1.0) == 16
    assert adacomm_period(16, 0.25) == 8
    assert adacomm_period(16, 0.26) == 9
    assert adacomm_period(16, 0.25, 0.25) == 64
    assert adacomm_period(4, 1e-9) == 1


def test_adacomm_takes_the_period_of_its_formula():
    """With the mixing that ``evaluate`` says of rounds in which every matching is as likely."""
    asked = ddlopt.load("gossip/period-cvx-m8")
    found, times, count = solve("adacomm", asked).solution, TimeToTarget.of(asked), len(asked.rounds.matchings)
    assert found.activation == pytest.approx((1 / count,) * count)
    mixing, communication_s = evaluate(asked, found).details["mixing"], sum(asked.rounds.times_s) / count
    step, horizon_s = times.step(1.0, mixing), times.seconds(1.0, communication_s, mixing)
    noise = step**3 * times.drift * (1 + mixing) / (1 - mixing)
    assert found.period == pytest.approx(math.sqrt(2 * times.initial_gap * communication_s / (noise * horizon_s)))
    assert 1.1 < found.period < times.most


@pytest.mark.parametrize("name", ["period-torus-m16", slow("period-regular-m16-uneven"), slow("period-cvx-m8")])
def test_designed_rounds(name):
    asked = ddlopt.load(f"gossip/{name}")
    found = solve("best-period", asked, Limits(gap=1e-5))
    assert found.status is Status.OPTIMAL
    assert evaluate(asked, found.solution, exact=True).feasible
    rng = np.random.default_rng(1)
    times, count = TimeToTarget.of(asked), len(asked.rounds.matchings)
    best = np.array(found.solution.activation)
    for spread in (0.3, 0.05, 0.01):
        for _ in range(30):
            chances = np.maximum(0, best + spread * rng.normal(size=count))
            chances *= rng.uniform(0.8, 1) / max(1.0, chances.sum())
            near = found.solution.period * math.exp(spread * rng.normal())
            tried = found.solution.model_copy(update={"activation": tuple(chances.tolist()), "period": max(1.0, near)})
            details = evaluate(asked, tried).details
            step = times.step(tried.period, details["mixing"]) if details else tried.step_size
            value = evaluate(asked, tried.model_copy(update={"step_size": step})).objective
            assert value is None or value >= found.bound
    assert solve("adacomm", asked).objective > found.objective


def test_with_equal_times_no_round_is_empty():
    """For φτ = 2τ/g − τ falls when g and τ grow in proportion, while C/τ stays."""
    asked = period("a", workers=8, shape="hypercube")
    found = solve("best-period", asked, Limits(gap=1e-5))
    assert sum(found.solution.activation) == pytest.approx(1, abs=1e-6)
    assert found.solution.activation == pytest.approx((1 / 3,) * 3, abs=1e-6)
    generic = solve(GeometricProgram(), asked)
    assert found.objective * (1 - 1e-5) <= generic.objective <= found.objective * 1.01
    assert sum(generic.solution.activation) == pytest.approx(1, abs=1e-6)


def test_lines_are_above_and_points_below():
    asked = period("a", workers=10, shape="random", degree=4, uneven=2.0, seed=3)
    mixing = Mixing(asked.rounds)
    for seconds in (1.0, 4.0, 9.0):
        mixing.settle(seconds, 1e-9)
    for seconds in np.linspace(0.2, 12, 30):
        reached, chances = mixing.reached(float(seconds))
        assert reached <= mixing.most(float(seconds))
        assert float(mixing.times @ chances) <= seconds * (1 + 1e-12)
    for seconds in (1.0, 4.0, 9.0):
        assert mixing.reached(seconds)[0] == pytest.approx(mixing.most(seconds), rel=1e-7)


def test_uneven_times_are_no_geometric_program():
    with pytest.raises(NotApplicableError, match="its matchings take different times"):
        solve(GeometricProgram(), ddlopt.load("gossip/period-cvx-m8"))


def test_matchings_are_matchings():
    for seed in range(5):
        asked = period("a", workers=12, shape="random", degree=5, seed=seed)
        edges = asked.rounds.network.edges
        for matching in asked.rounds.matchings:
            assert nx.is_matching(asked.rounds.network.graph, {edges[each] for each in matching})
