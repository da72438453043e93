"""The model of the timeline: against brute force, the closed form, the recursion, and by hand."""

import itertools

import numpy as np
import pyomo.environ as pyo
import pytest
from scipy.optimize import linprog
from timeline_brute_force import brute_force, every_plan, random_levels_case, random_timeline_case

from ddlopt.models.compression import CompressionInstance, CompressionPlan, Gradient, Operator, Option, SfbInstance
from ddlopt.models.compression import evaluate as check
from ddlopt.models.compression.timeline.candidate_messages import candidate_messages
from ddlopt.models.compression.timeline.choices import choices_of
from ddlopt.models.compression.timeline.formulations.overlap_timeline import OverlapTimeline
from ddlopt.models.compression.timeline.interchangeable_gradients import in_order, interchangeable
from ddlopt.models.compression.timeline.units import time_unit_s
from ddlopt.models.errors import SolverError
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

EXACT = Exact("overlap-timeline", "compression", OverlapTimeline())

NONE = Option(label="none", launch_s=1.0, wire_s=4.0)
HALF = Option(label="half", compressor="fp16", launch_s=1.0, encode_s=1.0, wire_s=2.0, error=0.5)
TWO = {
    "name": "two",
    "gradients": tuple(Gradient(name=name, shape=(2,), ready_s=ready, menu=0) for name, ready in (("a", 1), ("b", 2))),
    "menus": ((NONE, HALF),),
}


@pytest.mark.parametrize("fusion", [False, True], ids=["alone", "fusion"])
@pytest.mark.parametrize(
    ("goal", "budget"), [("time", False), ("time", True), ("error", False)], ids=["time", "budget", "error"]
)
def test_equal_to_brute_force(goal, budget, fusion):
    rng = np.random.default_rng([goal == "time", budget, fusion])
    for number in range(17):
        instance = random_timeline_case(rng, fusion=fusion, goal=goal, budget=budget)
        best, plan = brute_force(instance)
        result = EXACT.solve(instance, Limits(gap=0), start=plan if number % 2 else None)
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
        relaxed = lp_relaxation(OverlapTimeline(), instance).objective
        assert relaxed <= best + 1e-9 * max(1, best)


@pytest.mark.parametrize("goal", ["time", "error"])
def test_levels_are_equal_to_brute_force(goal):
    rng = np.random.default_rng(5)
    for _ in range(10):
        instance = random_levels_case(rng, goal=goal)
        best, _ = brute_force(instance)
        assert EXACT.solve(instance, Limits(gap=0)).objective == pytest.approx(best, rel=1e-8)


def closed_form(instance, recursion):
    """Relaxation without fusion by the closed form, or by the recursion, as a dense linear program over z and F, D."""
    choices = choices_of(instance)
    count, offered = choices.labels.shape
    exists = choices.labels >= 0
    encode, wire, error = (
        np.where(exists, each, 0.0) for each in (choices.encode_s, choices.occupation_s, choices.error)
    )
    size = count * offered + 2 * count

    def row(terms=(), **entries):
        made = np.zeros(size)
        for figures, places in terms:
            for i in places:
                made[i * offered : (i + 1) * offered] += figures[i]
        for name, places in entries.items():
            for place, value in places.items():
                made[count * offered + (count if name == "D" else 0) + place] += value
        return made

    rows, sides = [], []
    for i in range(count):
        ready = float(instance.ready_s[i])
        if recursion:
            rows += [row([(encode, [i])], D={i: -1.0} | ({i - 1: 1.0} if i else {}))]
            rows += [row([(wire, [i])], F={i: -1.0}, D={i: 1.0})]
            rows += [row([(wire, [i])], F={i: -1.0} | ({i - 1: 1.0} if i else {}))]
            sides += [0.0, -ready, 0.0]
        else:
            rows += [row([(encode, range(i + 1)), (wire, range(i, count))], F={count - 1: -1.0})]
            sides += [-ready]
    if instance.error_budget is not None:
        rows, sides = [*rows, row([(error, range(count))])], [*sides, instance.error_budget]
    once = np.array([row([(exists.astype(float), [i])]) for i in range(count)])
    upper = [(0, float(each)) for each in exists.ravel()] + [(0, None)] * (2 * count)
    found = linprog(row(F={count - 1: 1.0}), np.array(rows), sides, once, np.ones(count), bounds=upper)
    return found.fun


def test_closed_form_recursion_and_waits_have_one_relaxation():
    rng = np.random.default_rng(3)
    for budget in (False, True) * 4:
        instance = random_timeline_case(rng, gradients=5, options=3, fusion=False, goal="time", budget=budget)
        relaxed = lp_relaxation(OverlapTimeline(), instance).objective
        assert relaxed == pytest.approx(closed_form(instance, recursion=False), rel=1e-6, abs=1e-9)
        assert relaxed == pytest.approx(closed_form(instance, recursion=True), rel=1e-6, abs=1e-9)


def test_relaxation_by_hand():
    """With parts p, q of a, b halved the rows are 11 - p - 2 q and 7 + p - q: the error is spent on b."""
    one = CompressionInstance(**TWO, error_budget=0.5)
    assert lp_relaxation(OverlapTimeline(), one).objective == pytest.approx(9)
    assert EXACT.solve(one, Limits(gap=0)).solution.choices == (0, 1)
    half = CompressionInstance(**TWO, error_budget=0.25)
    # Neither may be halved, so that those messages are not even there; by parts of them it would be 10.
    assert lp_relaxation(OverlapTimeline(), half).objective == pytest.approx(11)
    more = CompressionInstance(**TWO, error_budget=0.75)
    assert lp_relaxation(OverlapTimeline(), more).objective == pytest.approx(8.5)
    assert EXACT.solve(more, Limits(gap=0)).objective == pytest.approx(9)


def test_a_bucket_saves_a_launch():
    """Fused: ready with the second, then 1 + 8 on the wire; alone 1 + 5 + 5. Both together are 16 bytes."""
    for ready, limit, buckets, time in (
        (2.0, None, None, 11),
        (1.5, None, (2,), 10.5),
        (1.5, 16.0, (2,), 10.5),
        (1.5, 15.0, (1, 1), 11),
    ):
        gradients = tuple(Gradient(name=f"g{each}", shape=(2,), ready_s=each, menu=0) for each in (1.0, ready))
        data = TWO | {"menus": ((NONE,),), "gradients": gradients}
        result = EXACT.solve(CompressionInstance(**data, fusion=True, largest_bucket_bytes=limit), Limits())
        assert result.objective == pytest.approx(time)
        assert buckets in (None, result.solution.buckets)


def test_messages_left_out():
    worse = Option(label="worse", compressor="sign", launch_s=2.0, encode_s=1.0, wire_s=2.0, error=0.1)
    menus = ((NONE, HALF, worse),)
    alone = CompressionInstance(**{**TWO, "menus": menus})
    assert candidate_messages(alone).keys == [(0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)]
    # Its error is less, which only counts where errors have a budget.
    counted = CompressionInstance(**{**TWO, "menus": menus}, error_budget=0.4)
    assert candidate_messages(counted).keys == [(0, 0, 0), (0, 0, 2), (1, 1, 0), (1, 1, 2)]
    free = (Option(label="free", wire_s=4.0), HALF)
    fused = CompressionInstance(**{**TWO, "menus": (free,)}, fusion=True)
    assert candidate_messages(fused).keys == [(0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 0), (1, 1, 1)]


def test_a_start_is_taken_over_or_replaced_by_no_worse_messages():
    rng = np.random.default_rng(8)
    for _ in range(30):
        instance = random_timeline_case(rng, goal="time", budget=False)
        states = list(every_plan(instance))
        state = states[int(rng.integers(len(states)))]
        plan = CompressionPlan(instance="tiny", choices=state.choices, buckets=state.buckets)
        block = build_model("compression", OverlapTimeline(), instance).component("compression")
        OverlapTimeline().start(block, instance, plan)
        taken = OverlapTimeline().read(block, instance)
        assert check(instance, taken).objective <= state.wire * (1 + 1e-9)


def alike(rng, count=7):
    """Gradients of one menu, whose options partly come before each other."""
    figures = ((0, 6, 0), (1, 4, 1), (1, 3, 4), (2, 4, 0.5), (3, 1, 3))
    menu = tuple(
        Option(label=f"o{k}", encode_s=float(e), wire_s=float(c), error=float(x)) for k, (e, c, x) in enumerate(figures)
    )
    ready = np.cumsum(rng.uniform(0, 4, count)).tolist()
    gradients = tuple(Gradient(name=f"g{i}", shape=(2,), ready_s=each, menu=0) for i, each in enumerate(ready))
    return CompressionInstance(name="alike", gradients=gradients, menus=(menu,), error_budget=float(rng.uniform(1, 15)))


@pytest.mark.slow
def test_order_among_gradients_alike():
    rng = np.random.default_rng(21)
    shuffled = 0
    for _ in range(8):
        instance = alike(rng)
        messages = candidate_messages(instance)
        (group,) = interchangeable(messages)
        assert group.gradients == tuple(range(7))
        any_order, ordered = (
            Exact("x", "compression", OverlapTimeline(ordered=each)).solve(instance, Limits(gap=0))
            for each in (False, True)
        )
        assert any_order.objective == pytest.approx(ordered.objective)
        assert inversions(group, messages, ordered.solution.choices) == 0
        for choices in rng.integers(0, 5, (20, 7)).tolist():
            keys = [(i, i, k) for i, k in enumerate(choices)]
            if not set(keys) <= set(messages.keys):
                continue
            shuffled += inversions(group, messages, choices) > 0
            plans = [[option for _, _, option in each] for each in (keys, sorted(in_order(messages, keys)))]
            assert inversions(group, messages, plans[1]) == 0
            block = build_model("compression", OverlapTimeline(), instance).component("compression")
            OverlapTimeline().start(block, instance, CompressionPlan(instance="alike", choices=tuple(choices)))
            assert all(pyo.value(row.body) <= 1 for row in block.later_ones_are_compressed_more.values())
            before, after = (check(instance, CompressionPlan(instance="alike", choices=tuple(each))) for each in plans)
            assert after.details["time_s"] <= before.details["time_s"] * (1 + 1e-12)
            assert after.details["error"] == pytest.approx(before.details["error"])
    assert shuffled > 50


def inversions(group, messages, choices):
    places = [messages.keys.index((i, i, k)) - group.messages[i, 0] for i, k in enumerate(choices)]
    return sum(group.comes_before[later, sooner] for sooner, later in itertools.combinations(places, 2))


def test_ports_serve_a_host_model():
    """A host forbids a message and asks for a wait."""
    instance = CompressionInstance(**TWO)
    model = build_model("compression", OverlapTimeline(), instance)
    block, unit = model.component("compression"), time_unit_s(instance)
    free = EXACT.backend.solve(model, Limits(gap=0))
    assert free.objective * unit == pytest.approx(8)
    model.none = pyo.Constraint(expr=block.sent[0, 0, 1] + block.sent[1, 1, 1] == 0)
    model.later = pyo.Constraint(expr=block.wait[0] * unit >= 3)
    assert EXACT.backend.solve(model, Limits(gap=0)).objective * unit == pytest.approx(11 + 3)
    assert pyo.value(block.time) * unit == pytest.approx(14)


def test_values_that_describe_no_plan():
    instance = CompressionInstance(**TWO)
    block = build_model("compression", OverlapTimeline(), instance).component("compression")
    for values, message in (
        ((0.5, 0.5, 1, 0), r"gradients 0..0 are sent 0.5 times"),
        ((1, 1, 1, 0), "gradient 0 is sent after 1 others"),
        ((1, 0, 0, 0), "1 of 2 gradients are sent"),
    ):
        for variable, value in zip(block.sent.values(), values, strict=True):
            variable.set_value(value, skip_validation=True)
        with pytest.raises(SolverError, match=message):
            OverlapTimeline().read(block, instance)


def test_a_time_budget_that_cannot_be_kept_and_one_that_just_can():
    tight = CompressionInstance(**TWO, goal="error", time_budget_s=7.9999)
    assert EXACT.solve(tight, Limits()).status is Status.INFEASIBLE
    # Without the family's bound, which knows it before.
    assert EXACT.backend.solve(build_model("compression", OverlapTimeline(), tight), Limits()).objective is None
    just = CompressionInstance(**TWO, goal="error", time_budget_s=8.0)
    assert EXACT.solve(just, Limits()).objective == pytest.approx(1.0)


def test_refuses_what_it_does_not_cover():
    other = SfbInstance(name="x", operators=(Operator(name="a", time_s=1, bandwidth_bytes_per_s=1),))
    assert "which a sufficient-factor instance does not have" in OverlapTimeline().refuses(other)
    many = tuple(Gradient(name=f"g{i}", shape=(2,), ready_s=i, menu=0) for i in range(640))
    assert OverlapTimeline().refuses(CompressionInstance(name="x", gradients=many, menus=((NONE,),))) is None
    fused = CompressionInstance(name="x", gradients=many, menus=((NONE,),), fusion=True)
    assert OverlapTimeline().refuses(fused).startswith("there are 205120 messages")
