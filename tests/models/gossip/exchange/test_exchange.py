"""Exchange times: data, check, exact mode, bound, drift, the program over paths."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pyomo.environ as pyo
import pytest
from exchange_cases import answer, instance, least, walk
from refusals import one_line
from volume import for_each

from ddlopt.models.errors import InstanceError, SolutionError
from ddlopt.models.gossip import ExchangeTimes, GossipProblem, bound, evaluate
from ddlopt.models.gossip.exchange.drift import drifts_away, quadrangles_hold
from ddlopt.models.gossip.exchange.formulations.exchange_path import ExchangePath
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model, lp_relaxation
from ddlopt.solvers.gossip.exchange.exact import OptimalTimes

DATA = {"family": "gossip", "problem": "exchange", "name": "x", "points": [[0], [1], [3]], "sends": 1}


@for_each(
    ("change", "line"),
    [
        ({"sends": None}, "either sends or send_cost says how often to send; none of them is given"),
        ({"send_cost": 1}, "either sends or send_cost says how often to send; both are given"),
        ({"sends": -1}, "sends: Input should be greater than or equal to 0 (got -1)"),
        ({"sends": None, "send_cost": 0}, "send_cost: Input should be greater than 0"),
        ({"points": []}, "points: expected a list of points, each a list of numbers"),
        ({"points": [[]]}, "points: expected points of one dimension or more"),
        ({"points": [[0, 1], [1]]}, "points: row 1 has 1 numbers, but row 0 has 2"),
        ({"points": [[0], 1]}, "points: row 1 is 1; expected a list of numbers"),
        ({"points": [[0], [True]]}, "points: row 1, column 0 is True; expected a number"),
        ({"points": [[0], ["1"]]}, "points: row 1, column 0 is '1'; expected a number"),
        ({"points": [[0], [1e200]]}, "points[1][0] is 1e+200; figures are 0 or of a size of 1e-100 to 1e+100"),
        ({"points": [[0], [10**400]]}, "points[1][0] is a number of 401 digits"),
        ({"blocks": [1, 1]}, "blocks have 2 columns together, but points have 1"),
        ({"blocks": [1, 0]}, "blocks[1] is 0; a tensor has at least 1 column"),
        ({"rates": [1, 1]}, "rates has 2 entries, but there are 3 points"),
        ({"rates": [1, 0, 1]}, "rates[1] is 0; a learning rate must be above 0"),
    ],
)
def test_bad_instances(change, line):
    with one_line(InstanceError, line):
        GossipProblem.from_data(DATA | change)


@pytest.mark.parametrize(
    ("times", "line"),
    [
        ([0], "times[0] is 0; it must come after step 0, where the model is known"),
        ([2, 2], "times[1] is 2; it must come after times[0], which is 2"),
    ],
)
def test_bad_answers(times, line):
    with pytest.raises(SolutionError) as caught:
        ExchangeTimes.from_data({"family": "gossip", "problem": "exchange", "instance": "x", "times": times})
    assert line in str(caught.value)


def test_json_gives_the_same_back():
    given = instance(walk(0, 5), sends=2, norm="plain", blocks=(1, 1), rates=(1.0,) * 5)
    again = GossipProblem.from_json(given.to_json())
    assert again == given
    assert (again.points == given.points).all()
    assert not again.points.flags.writeable


def test_staleness_by_hand():
    points = [[0, 0], [3, 4], [3, 4], [0, 4]]
    found = evaluate(instance(points, sends=1), answer(1))
    assert found.feasible
    assert (found.objective, dict(found.details)) == (9, {"sends": 1, "staleness": 9, "largest": 9})
    assert evaluate(instance(points, sends=1), answer()).objective == 25 + 25 + 16
    assert evaluate(instance(points, sends=1, norm="plain"), answer()).objective == 5 + 5 + 4
    assert evaluate(instance(points, send_cost=0.5, norm="plain"), answer(1, 3)).objective == 1


def test_violations():
    given = instance(walk(0, 5), sends=1)
    found = evaluate(given, answer(1, 3))
    assert [str(each) for each in found.violations] == ["number of sends at all steps: 2 against 1"]
    found = evaluate(given, answer(2, 5))
    assert found.objective is None
    assert [str(each) for each in found.violations] == ["send after the last step at times[1]: 5 against 4"]
    assert evaluate(instance(walk(0, 5), send_cost=1), answer(1, 2, 3, 4)).feasible


def test_exact_mode():
    given = instance([[0.1], [0.2], [0.7]], send_cost=0.3)
    found = evaluate(given, answer(1), exact=True).objective
    assert found == (Fraction(0.7) - Fraction(0.2)) ** 2 + Fraction(0.3)
    given = instance([[0, 0], [1, 1], [3, 4]], sends=0, norm="plain")
    found = evaluate(given, answer(), exact=True).objective
    above = found - 5
    assert above**2 >= 2
    assert (above - Fraction(1, 2**63)) ** 2 < 2
    tiny = instance([[0, 0], [1e-30, 1e-30]], sends=0, norm="plain")
    found = evaluate(tiny, answer(), exact=True).objective
    assert 2 * Fraction(1e-30) ** 2 <= found**2 <= 2 * (Fraction(1e-30) * (1 + Fraction(1, 2**62))) ** 2


@for_each("norm", ["squared", "plain"])
@for_each("steps", [2, 5, 8, 9])
def test_bound_holds(norm, steps):
    tight = 0.0
    for seed in range(6):
        points = walk(seed, steps, drift=[0.0, 3.0][seed % 2])
        for more in ({"sends": seed % steps}, {"send_cost": 0.5 + seed}):
            given = instance(points, norm=norm, **more)
            best = least(given)
            assert bound(given) <= best * (1 + 1e-12)
            tight = max(tight, bound(given) / best if best else 0.0)
    assert tight > 0.3


def test_bound_on_a_line():
    for steps in (1024, 1000):
        given = instance(np.arange(float(steps))[:, np.newaxis], sends=32)
        # In continuous time the optimum is steps³ / 3 (sends + 1)².
        assert 0.02 < bound(given) / (steps**3 / (3 * 33**2)) < 0.05


def quadrangles(points):
    """The inequality for all s < s' ≤ e < e', from sums."""
    steps = len(points)
    squares = ((points[:, np.newaxis] - points[np.newaxis]) ** 2).sum(axis=2)

    def cost(s, e):
        return squares[s, s:e].sum()

    return all(
        cost(s, e) + cost(s2, e2) <= cost(s, e2) + cost(s2, e) + 1e-12
        for s, s2, e, e2 in combinations(range(steps + 1), 4)
    )


def test_quadrangles_hold_where_models_drift_away():
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        points = np.cumsum(rng.standard_normal((7, 2)) + rng.choice([0.0, 1.0, 2.0]), axis=0)
        held = quadrangles_hold(points)
        assert held == quadrangles(points)
        certain = drifts_away(points)
        assert held or not certain
        seen.add((held, certain))
    assert len(seen) == 3


def test_drift_is_seen_in_any_axes():
    steps = np.abs(np.random.default_rng(0).standard_normal((200, 3)))
    rotation, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))
    assert drifts_away(np.cumsum(steps, axis=0))
    line = np.cumsum(steps[:, :1], axis=0) * rotation[0]
    assert drifts_away(line)
    assert drifts_away(line[:2])
    back = np.concatenate((line, line[:1]))
    assert not drifts_away(back)
    assert not quadrangles_hold(back)


def test_no_bound_is_of_rounding():
    """What is far from 0 or large may have an optimum of 0."""
    still = instance([[0.84581, 3.0027]] * 7, sends=None, send_cost=5.0)
    assert bound(still) == 0
    jump = instance([[0.0]] * 4 + [[5e20]] * 2)
    assert least(jump) == 0
    assert bound(jump) == 0
    found = OptimalTimes().solve(jump, Limits(gap=0.0))
    assert (found.objective, found.bound) == (0, 0)


@pytest.mark.parametrize("norm", ["squared", "plain"])
def test_relaxation_is_integral_with_a_price(norm):
    given = instance(walk(3, 9), send_cost=2.0, norm=norm)
    assert lp_relaxation(ExchangePath(), given).objective == pytest.approx(least(given), rel=1e-7)


def test_relaxation_with_a_budget_is_the_convex_hull():
    points = np.random.default_rng(2).standard_normal((9, 2))
    exactly = [least(instance(points, sends=m)) for m in range(9)]
    for m in range(1, 8):
        chords = [((j - m) * exactly[i] + (m - i) * exactly[j]) / (j - i) for i in range(m) for j in range(m + 1, 9)]
        hull = min(exactly[m], *chords)
        found = lp_relaxation(ExchangePath(), instance(points, sends=m)).objective
        assert found == pytest.approx(hull, rel=1e-7)


def test_ports():
    given = instance(walk(4, 6), sends=2)
    block = build_model("gossip", ExchangePath(), given).component("gossip")
    ExchangePath().start(block, given, answer(2, 5))
    assert [round(pyo.value(block.sent[t])) for t in range(1, 6)] == [0, 1, 0, 0, 1]
    assert ExchangePath().read(block, given) == answer(2, 5)
    value = ExchangePath().objective_value(given, pyo.value(block.objective))
    assert value == pytest.approx(float(evaluate(given, answer(2, 5)).objective))
    long = instance(np.zeros((301, 1)), sends=1)
    assert ExchangePath().refuses(long) == "it has a variable for each segment of 301 steps, at most 300"
