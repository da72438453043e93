"""Several lanes: the check, the bound, the model and the methods against an enumeration that follows every message."""

from fractions import Fraction

import numpy as np
import pytest
from lane_brute_force import brute_force, random_lane_case
from refusals import one_line
from timeline_brute_force import random_timeline_case
from volume import for_each, seeds

import ddlopt
from ddlopt.certificates.compression.timeline.exact_bounds import exact_timeline_bound
from ddlopt.models.compression import CompressionInstance, CompressionPlan, Gradient, Option, Stage, evaluate
from ddlopt.models.compression.timeline.formulations.lane_timeline import LaneTimeline
from ddlopt.models.errors import InstanceError, NotApplicableError
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, lp_relaxation

EXACT = Exact("lane-timeline", "compression", LaneTimeline())
WIRE = Option(label="wire", compressor="none", wire_s=0.0, stages=(Stage(lane="wire", launch_s=1.0, busy_s=3.0),))
CPU = Option(
    label="cpu", compressor="dgc", device="cpu", wire_s=0.0, error=0.5,
    stages=(Stage(lane="cpu", busy_s=2.0), Stage(lane="wire", launch_s=1.0, busy_s=1.0)),
)  # fmt: skip
TWO = CompressionInstance(
    name="two",
    gradients=tuple(
        Gradient(name=name, shape=(2,), ready_s=ready, menu=0) for name, ready in (("a", 1.0), ("b", 2.0), ("c", 3.0))
    ),
    menus=((WIRE, CPU),),
    lanes=("cpu", "wire"),
)


def changed(instance, **changes):
    return CompressionInstance.from_data(instance.model_dump() | changes)


def plan(*choices, buckets=()):
    return CompressionPlan(instance="two", choices=choices, buckets=buckets)


def test_by_hand():
    # On the wire 1..5, 5..9, 9..13.
    assert evaluate(TWO, plan(0, 0, 0)).objective == 13.0
    # a on the CPU 1..3 and the wire 3..5, b on the CPU 3..5 and the wire 5..7, c behind it 7..11.
    found = evaluate(TWO, plan(1, 1, 0))
    assert (found.objective, found.details["cpu_busy_s"], found.details["wire_busy_s"]) == (11.0, 4.0, 8.0)
    # The CPU is the longer lane: 1..3..5..7, then two seconds of wire.
    assert evaluate(TWO, plan(1, 1, 1)).objective == 9.0
    # Who leaves the CPU out does not wait for it, but messages of the wire stay in order: b only after a, at 5.
    assert evaluate(TWO, plan(1, 0, 0)).objective == 13.0
    # In one bucket all of the CPU comes first, from 3 on; launched once.
    fused = changed(TWO, fusion=True)
    assert evaluate(fused, plan(1, 1, 1, buckets=(3,))).objective == 3 + 6 + 1 + 3


@for_each("fusion", [False, True])
@for_each(("goal", "budget"), [("time", False), ("time", True), ("error", False)])
@for_each("seed", seeds(2, 40))
def test_the_model_and_the_default_are_what_an_enumeration_finds(goal, budget, fusion, seed):
    instance = random_lane_case(np.random.default_rng([seed, budget, fusion]), fusion=fusion, goal=goal, budget=budget)
    best, answer = brute_force(instance)
    assert float(evaluate(instance, answer, exact=True).objective) == pytest.approx(best, rel=1e-12, abs=1e-12)
    result = EXACT.solve(instance, Limits(gap=0), start=answer if seed % 2 else None)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
    relaxed = lp_relaxation(LaneTimeline(), instance).objective
    assert relaxed <= best + 1e-9 * max(1, best)
    bound = ddlopt.models.compression.timeline.bounds.timeline_bound(instance)
    assert bound <= best * (1 + 1e-9) + 1e-12
    exact = exact_timeline_bound(instance)
    assert isinstance(exact, Fraction)
    assert exact <= evaluate(instance, answer, exact=True).objective
    found = ddlopt.solve(instance, "exact", gap=1e-6)
    assert found.objective == pytest.approx(best, rel=1e-5, abs=1e-9)
    assert found.bound == pytest.approx(best, rel=1e-5, abs=1e-6)


@for_each("name", ["lane-search", "espresso", "espresso:thresholds=false", "none", "all"])
@for_each("seed", seeds(3, 60))
def test_heuristics_are_never_better_than_the_optimum(name, seed):
    instance = random_lane_case(np.random.default_rng([7, seed]), fusion=False)
    best, _ = brute_force(instance)
    asked = method(name, "compression")
    result = asked.solve(instance, Limits(), 1)
    if result.solution is None:
        assert instance.goal == "error" or name == "all"
        return
    assert result.checked
    assert result.objective >= best * (1 - 1e-9)
    assert result.solution == asked.solve(instance, Limits(), 1).solution


def test_the_search_finds_most_optima():
    found = []
    for seed in range(12):
        instance = random_lane_case(np.random.default_rng([9, seed]), fusion=False, goal="time")
        result = method("lane-search", "compression").solve(instance, Limits())
        found.append(result.objective <= brute_force(instance)[0] * (1 + 1e-9))
    assert sum(found) >= 10


def test_one_lane_is_the_wire():
    """A wire written as a lane has the times, the bound and the relaxation of the wire."""
    for seed in range(6):
        wire = random_timeline_case(np.random.default_rng([11, seed]), goal="time", budget=False, fusion=False)
        menus = [
            [
                option.model_copy(
                    update={
                        "launch_s": 0.0,
                        "wire_s": 0.0,
                        "decode_s": 0.0,
                        "stages": (
                            Stage(lane="wire", launch_s=option.launch_s, busy_s=option.wire_s + option.decode_s),
                        ),
                    }
                )
                for option in menu
            ]
            for menu in wire.menus
        ]
        lane = CompressionInstance.from_data(wire.model_dump() | {"menus": menus, "lanes": ("wire",)})
        chosen = tuple(int(seed) % len(wire.menus[each.menu]) for each in wire.gradients)
        answer = CompressionPlan(instance="tiny", choices=chosen)
        one, other = evaluate(wire, answer), evaluate(lane, answer)
        assert one.objective == pytest.approx(other.objective, rel=1e-12)
        assert one.details == pytest.approx(other.details, rel=1e-12)
        assert EXACT.solve(lane, Limits(gap=0)).objective == pytest.approx(
            ddlopt.solve(wire, "overlap-timeline", gap=0).objective, rel=1e-9, abs=1e-9
        )


@pytest.mark.parametrize("name", ["overlap-timeline", "label-setting", "secopa", "lgreco"])
def test_methods_for_one_wire_refuse_lanes(name):
    with one_line(NotApplicableError, "lanes cpu, wire"):
        ddlopt.solve(TWO, name)
    with one_line(NotApplicableError, "there are none"):
        ddlopt.solve("compression/measured-digits-w8-1g", "lane-search")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"lanes": ("wire", "cpu")}, "passed at most once, in this order"),
        ({"lanes": ("cpu", "cpu")}, "no two have the same name"),
        ({"lanes": ()}, "with stages on ['wire'], but lanes are []"),
        ({"menus": ((WIRE.model_copy(update={"wire_s": 1.0}),),)}, "there are lanes; write stages"),
    ],
)
def test_odd_lanes_are_one_line(changes, says):
    with one_line(InstanceError, says):
        changed(TWO, **changes)


def test_what_has_no_lanes_is_written_as_before():
    instance = ddlopt.load("compression/measured-digits-w8-1g")
    assert "lanes" not in instance.to_json()
    assert "stages" not in instance.to_json()
