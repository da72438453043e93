"""Forward passes that wait: the check, the bound, and the model against every plan there is."""

import json
from fractions import Fraction

import numpy as np
import pytest
from forward_brute_force import optimum_of, step_of, tiny
from refusals import one_line
from timeline_brute_force import brute_force
from volume import for_each, seeds

from ddlopt.models.compression import (
    CompressionInstance,
    CompressionProblem,
    ForwardInstance,
    ForwardPlan,
    Gradient,
    Option,
    evaluate,
)
from ddlopt.models.compression.forward.bounds import exact_forward_bound, forward_bound, priority_timeline
from ddlopt.models.compression.forward.formulations.forward_order import ForwardOrder
from ddlopt.models.compression.forward.schedule import planned, shown
from ddlopt.models.compression.forward.units import forward_unit_s
from ddlopt.models.errors import InstanceError
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact

MENU = (Option(label="none", wire_s=4.0), Option(label="half", compressor="fp16", encode_s=1.0, wire_s=2.0, error=0.5))
TWO = ForwardInstance(
    name="two",
    timeline=CompressionInstance(
        name="two",
        gradients=(
            Gradient(name="late", shape=(2,), ready_s=1.0, menu=0),
            Gradient(name="early", shape=(2,), ready_s=2.0, menu=0),
        ),
        menus=(MENU,),
    ),
    forward_s=(3.0, 5.0),
    parts=(1, 2),
)


def plan(choices, parts, order):
    return ForwardPlan(instance="two", choices=choices, parts=parts, order=order)


def solved(instance):
    return Exact("forward-order", "compression", ForwardOrder(), backend("highs")).solve(instance, Limits(30.0))


def test_by_hand():
    # As ready: 1..5, 5..9; the forward pass 9..14..17, which the wire's end alone decides.
    assert evaluate(TWO, plan((0, 0), (1, 1), (0, 1))).objective == 17
    # In two parts: 1..3 of the first, then 3..7 the one needed first, and 7..9 the rest: 7..12..15.
    result = evaluate(TWO, plan((0, 0), (2, 1), (0, 1, 0)))
    assert (result.objective, result.details["wire_end_s"], result.details["waiting_s"]) == (15, 9, 5)
    # Waiting for the one needed first: 2..6, the other 6..10: 6..11..14.
    assert evaluate(TWO, plan((0, 0), (1, 1), (1, 0))).objective == 14
    # Compressed, both: encoded at 2 and 4; 2..4 and 4..6: 6..11..14.
    found = evaluate(TWO, plan((1, 1), (1, 1), (0, 1)), exact=True)
    assert (found.objective, found.details["error"], found.details["compressed_gradients"]) == (14, 1, 2)


def test_the_bound_is_the_wire_that_is_interrupted():
    ready = [gradient.ready_s for gradient in priority_timeline(TWO).gradients]
    assert ready == [1 + 3, 2 + 8]
    assert forward_bound(TWO) == pytest.approx(13)  # early compressed: 2 + 8 + 1 + 2
    assert exact_forward_bound(TWO) == 13


@for_each("seed", seeds(3, 60))
def test_bounds_and_the_model_against_every_plan(seed):
    rng = np.random.default_rng(seed)
    instance = tiny(rng, gradients=2 + seed % 2, parts=(1, 2) if seed % 4 else (1,), budget=bool(seed % 3))
    best = optimum_of(instance)
    assert exact_forward_bound(instance) <= best
    assert forward_bound(instance) <= float(best) * (1 + 1e-9)
    result = solved(instance)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(float(best), rel=1e-6)


@for_each("seed", seeds(6, 60))
def test_parts_that_take_no_time_have_their_place(seed):
    """They start when what comes after them does, or what was before them ends."""
    instance = tiny(np.random.default_rng(seed), parts=(1, 2) if seed % 2 else (1,), least=0)
    result = solved(instance)
    assert (result.status, result.objective) == (Status.OPTIMAL, pytest.approx(float(optimum_of(instance)), rel=1e-6))


@for_each("seed", seeds(6, 40))
def test_the_check_says_what_the_statement_says(seed):
    rng = np.random.default_rng(seed)
    instance = tiny(rng, gradients=4, parts=(1, 2, 3))
    choices, parts = (tuple(rng.integers(low, high, 4).tolist()) for low, high in ((0, 2), (1, 4)))
    order = tuple(rng.permutation(np.repeat(np.arange(4), parts)).tolist())
    answer = ForwardPlan(instance="tiny", choices=choices, parts=parts, order=order)
    options = [instance.timeline.option(i, choice) for i, choice in enumerate(choices)]
    exact = evaluate(instance, answer, exact=True)
    assert exact.objective == step_of(instance, options, parts, order)
    assert isinstance(exact.objective, Fraction)
    pieces, layers = shown(instance, answer)
    assert layers[0].end_s == pytest.approx(float(exact.objective))
    assert pieces[-1].end_s == pytest.approx(float(exact.details["wire_end_s"]))


@for_each("seed", seeds(5, 30))
def test_of_whole_gradients_as_they_are_ready_the_forward_pass_waits_for_all(seed):
    instance = tiny(np.random.default_rng(seed), gradients=4, parts=(1,))
    assert float(optimum_of(instance, in_order=True)) == pytest.approx(
        brute_force(instance.timeline)[0] + sum(instance.forward_s)
    )


@for_each("seed", seeds(5, 30))
def test_a_wire_in_small_parts_comes_as_near_as_one_part_to_the_bound(seed):
    """Without launching: the time of the wire that is interrupted at will, and one part more at most."""
    instance = tiny(np.random.default_rng(seed), gradients=5, options=1, parts=(1, 64))
    menus = tuple(
        tuple(option.model_copy(update={"launch_s": 0.0}) for option in menu) for menu in instance.timeline.menus
    )
    timeline = instance.timeline.model_copy(update={"menus": menus})
    free = ForwardInstance(name="free", timeline=timeline, forward_s=instance.forward_s, parts=(1, 64))
    time, bound = float(evaluate(free, planned(free, (0,) * 5)).objective), float(exact_forward_bound(free))
    longest = max(menu[0].wire_s + menu[0].decode_s for menu in menus) / 64
    assert bound <= time * (1 + 1e-12)
    assert time <= (bound + longest) * (1 + 1e-9)


@for_each(
    ("answer", "kind"),
    [
        (plan((0,), (1, 1), (0, 1)), "every_gradient_has_an_option"),
        (plan((0, 0), (1,), (0, 1)), "every_gradient_has_parts"),
        (plan((0, 2), (1, 1), (0, 1)), "option_exists"),
        (plan((-1, 0), (1, 1), (0, 1)), "option_exists"),
        (plan((0, 0), (1, 3), (0, 1, 1, 1)), "number_of_parts_is_allowed"),
        (plan((0, 0), (1, 2), (0, 1)), "every_part_is_sent_once"),
        (plan((0, 0), (1, 1), (0, 1, 1)), "every_part_is_sent_once"),
        (plan((0, 0), (1, 1), (0, 1, 2)), "gradient_exists"),
        (plan((0, 0), (1, 1), (0, 1, -1)), "gradient_exists"),
    ],
)  # fmt: skip
def test_every_violation_is_found(answer, kind):
    found = evaluate(TWO, answer)
    assert [violation.kind for violation in found.violations] == [kind]
    assert found.objective is None


def test_a_budget_of_error_is_kept():
    limited = TWO.model_copy(update={"timeline": TWO.timeline.model_copy(update={"error_budget": 0.5})})
    found = evaluate(limited, plan((1, 1), (1, 1), (0, 1)))
    assert [violation.kind for violation in found.violations] == ["error_budget_is_kept"]
    assert evaluate(limited, plan((0, 1), (1, 1), (0, 1)), exact=True).feasible


@for_each(
    ("change", "line"),
    [
        ({"forward_s": [1.0]}, "forward_s has 1 entries, but there are 2 gradients"),
        ({"forward_s": [1.0, -1.0]}, r"forward_s\[1\]"),
        ({"parts": [2]}, r"parts are \[2\]; give increasing numbers, the first of them 1"),
        ({"parts": [1, 3, 3]}, r"parts are \[1, 3, 3\]"),
        ({"parts": []}, r"parts are \[\]"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(change, line):
    with one_line(InstanceError, match=line):
        CompressionProblem.from_data(json.loads(TWO.to_json()) | change)


@for_each(
    ("change", "line"),
    [
        ({"fusion": True}, "timeline has fusion"),
        ({"goal": "error", "time_budget_s": 9.0}, "timeline has goal 'error'"),
        ({"lanes": ["wire"], "menus": [[{"label": "none", "wire_s": 0.0}]]}, "timeline has lanes"),
        ({"menus": [[]]}, "is empty; give at least one option"),
    ],
)  # fmt: skip
def test_a_timeline_that_has_no_forward_pass_is_refused(change, line):
    data = json.loads(TWO.to_json())
    data["timeline"] |= change
    with one_line(InstanceError, match=line):
        CompressionProblem.from_data(data)


def test_the_model_starts_from_a_plan_and_reads_it_back():
    import pyomo.environ as pyo

    block = pyo.ConcreteModel()
    model = ForwardOrder()
    model.build(block, TWO)
    model.start(block, TWO, plan((0, 0), (2, 1), (0, 1, 0)))
    assert {key for key, variable in block.taken.items() if variable.value} == {(0, 0, 2), (1, 0, 1)}
    # (1, 1) does not exist: right behind (1, 0), which is between the parts of the other.
    assert {key: variable.value for key, variable in block.before.items()} == {
        (0, 0, 1, 0): 1, (0, 0, 1, 1): 1, (0, 1, 1, 0): 0, (0, 1, 1, 1): 0,
    }  # fmt: skip
    for key, at in {(0, 0): 1, (0, 1): 7, (1, 0): 3, (1, 1): 7}.items():
        block.starts[key].set_value(at / forward_unit_s(TWO))
    assert model.read(block, TWO).order == (0, 1, 0)


def test_too_many_parts_are_refused():
    assert "up to 128 parts to order" in ForwardOrder().refuses(TWO.model_copy(update={"parts": (1, 64)}))
    assert "this is a compression instance" in ForwardOrder().refuses(TWO.timeline)
