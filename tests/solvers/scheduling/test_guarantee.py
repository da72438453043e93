"""What is proven of the greedy, against the optimum of tiny instances."""

import re

import numpy as np
import pytest
from scheduling_brute_force import brute_force, random_instance
from volume import for_each, slow

from ddlopt.models.scheduling import evaluate
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.gadget import Gadget
from ddlopt.solvers.scheduling.guarantee import guarantee, refusal


def greedy(instance, oracle="auto"):
    schedule, details = Gadget(oracle=oracle).answer(instance, 0, Clock(Limits(), None), None)
    found = evaluate(instance, schedule)
    assert not found.violations
    return float(found.objective), schedule, details


KINDS = [
    {"deadlines": True, "jobs": 4},
    {"deadlines": True, "places": (2, 2), "min_workers": True},
    {"deadlines": True, "latency": True, "pollux": True},
    {"utilities": ("capped",), "deadlines": True, "jobs": 4},
]


@pytest.mark.parametrize("cases", [12, slow(200)])
def test_the_greedy_has_its_part_of_the_optimum(cases):
    rng = np.random.default_rng(1)
    parts = []
    for number in range(cases):
        drawn = random_instance(rng, **KINDS[number % len(KINDS)])
        best = brute_force(drawn).objective
        value, _, details = greedy(drawn)
        assert details["smallest_beta"] == 1.0
        assert details["guaranteed_part"] == 0.5
        assert value >= best / 2 - 1e-9
        assert value <= best + 1e-9
        parts.append(value / best if best else 1.0)
    assert min(parts) < 0.95


@for_each("kind", [{"places": (2, 2), "network": "star"}, {"places": (2, 1, 1), "network": "mesh"}, {"uneven": True}])
@for_each("cases", [6, slow(25)])
def test_with_the_ratio_that_an_oracle_proves_of_itself(kind, cases):
    rng = np.random.default_rng(2)
    proven = []
    for _ in range(cases):
        drawn = random_instance(rng, deadlines=True, **kind)
        value, _, details = greedy(drawn, "packing")
        beta = details["smallest_beta"]
        assert details["guaranteed_part"] == pytest.approx(beta / (1 + beta))
        assert value >= details["guaranteed_part"] * brute_force(drawn).objective - 1e-9
        proven.append(beta)
    assert 0 < min(proven) < 1


@for_each(
    ("kind", "reason"),
    [
        ({"energy": True}, "energy has a price"),
        ({"utilities": ("all_or_nothing",)}, r"the utility of jobs\[0\] 'job-0', all_or_nothing, is not concave"),
        ({"preemptive": False}, "in one piece"),
        ({"places": (2, 2), "contention": True}, "jobs share bandwidth"),
        ({"objective": "max_min"}, "the objective is 'max_min', not 'utility'"),
        ({"objective": "makespan"}, "the objective is 'makespan', not 'utility'"),
    ],
)
def test_no_guarantee_where_its_assumptions_do_not_hold(kind, reason):
    drawn = random_instance(np.random.default_rng(1), **{"slots": 12, **kind})
    assert guarantee(drawn, 1.0) is None
    assert re.search(reason, refusal(drawn))
    _, _, details = greedy(drawn)
    assert "guaranteed_part" not in details


def test_shared_bandwidth_has_no_guarantee_either():
    drawn = random_instance(np.random.default_rng(1), places=(2, 2), network="star")
    assert refusal(drawn.model_copy(update={"bandwidth": "shared"})).startswith("jobs share bandwidth")


def test_the_part_falls_with_the_oracle():
    drawn = random_instance(np.random.default_rng(1))
    assert guarantee(drawn, 1.0) == 0.5
    assert guarantee(drawn, 0.5) == pytest.approx(1 / 3)
    assert guarantee(drawn, 0.0) == 0.0
    assert guarantee(drawn, 1.1) is None


def test_a_greedy_cut_short_promises_nothing():
    clock = Clock(Limits(time_s=1e-9), None)
    drawn = random_instance(np.random.default_rng(1))
    schedule, details = Gadget().answer(drawn, 0, clock, None)
    assert schedule.runs == ()
    assert set(details) == {"slots_simulated"}
    assert Gadget().certificate(drawn, schedule, clock) is None
