"""Bounds and checks of compression on two or three gradients, whose times are added up by hand."""

from fractions import Fraction

import pytest

from ddlopt.models.compression import (
    CompressionInstance,
    CompressionPlan,
    Gradient,
    Operator,
    Option,
    SfbInstance,
    SfbSelection,
    Tensor,
    bound,
    evaluate,
)
from ddlopt.models.compression.forward.bounds import exact_forward_bound
from ddlopt.models.compression.forward.instance import ForwardInstance
from ddlopt.models.compression.levels.instance import ExponentialCurve, GradedGradient, LevelInstance, LevelPlan
from ddlopt.models.compression.sfb import bounds as sfb_bounds
from ddlopt.models.errors import InfeasibleError

GRADIENTS = tuple(Gradient(name=f"g{place}", shape=(1,), ready_s=place, menu=place) for place in (0, 1))
MENUS = (
    (Option(label="small", compressor="dgc", encode_s=2, wire_s=1, launch_s=1, error=3),),
    (Option(label="small", compressor="dgc", encode_s=3, wire_s=4, launch_s=0.25, error=4),),
)
"""Encoded at 2 and, as the pass waits for it, at 1 + 2 + 3; then 4 and a launch on the wire."""


def timeline(**more):
    return CompressionInstance(**({"name": "two", "gradients": GRADIENTS, "menus": MENUS} | more))


def test_what_is_before_and_after_a_gradient_counts():
    assert bound(timeline()) == pytest.approx(1 + 2 + 3 + 4.25)
    late = tuple(each.model_copy(update={"ready_s": 20}) for each in GRADIENTS)
    plain = (MENUS[0], (MENUS[1][0].model_copy(update={"encode_s": 0}),))
    assert bound(timeline(gradients=late, menus=plain)) == pytest.approx(20 + 2 + 2 + 4.25)
    forward = ForwardInstance(name="forward", timeline=timeline(), forward_s=(0.5, 0.25))
    assert exact_forward_bound(forward) == 1 + Fraction(3, 4) + 2 + 3 + Fraction(17, 4)
    assert bound(forward) == pytest.approx(11)


def test_what_takes_too_long_for_a_budget_is_infeasible():
    for budget, fits in ((11, True), (10.25, True), (10.2, False), (6, False)):
        instance = timeline(goal="error", time_budget_s=budget)
        if fits:
            assert bound(instance) == 7
        else:
            with pytest.raises(InfeasibleError, match=r"all take at least 10\.25 s"):
                bound(instance)


def test_a_bucket_has_the_longest_launch_of_its_gradients():
    plan = CompressionPlan(instance="two", choices=(0, 0), buckets=(2,))
    found = evaluate(timeline(fusion=True), plan, exact=True)
    assert found.objective == 1 + 2 + 3 + 1 + 4 + 1


def test_levels_say_when_the_pass_ends():
    gradients = tuple(
        GradedGradient(
            name=f"g{ready}", shape=(1,), compressor="qsgd", ready_s=ready, encode_s=0.5, wire_s_per_level=2,
            curve=ExponentialCurve(lowest=1, highest=2, scale=16),
        )
        for ready in (1, 4)
    )  # fmt: skip
    found = evaluate(
        LevelInstance(name="levels", gradients=gradients, error_budget=5), LevelPlan(instance="levels", levels=(1, 2))
    )
    assert found.objective == 4 + 1 + 4
    assert found.details["backward_s"] == 4 + 0.5 + 0.5
    assert found.details["error"] == 4 + 1


def operators(**more):
    """Gradients of 3, 1 and 3 bytes on two replicas: what all cost is 3, 1, 3; the first and last duplicate for 1."""
    own = [
        Operator(name=name, time_s=time_s, replicas=2, bandwidth_bytes_per_s=1.0, gradient_bytes=size, **fixed)
        for name, time_s, size, fixed in (
            ("a", 2.0, 3.0, {}), ("b", 2.0, 1.0, {"can_duplicate": False}), ("c", 2.0, 3.0, {}),
        )
    ]  # fmt: skip
    tensors = (Tensor(producer=1, consumers=(0, 2), size_bytes=8.0),)
    return SfbInstance(**({"name": "three", "operators": own, "tensors": tensors, "duplication_penalty_s": 0.5} | more))


def test_gradients_cost_their_all_reduce_or_what_duplicates_their_operator(monkeypatch):
    instance = operators()
    assert sfb_bounds.sfb_closed_form(instance) == (1 + 0.5) + 1 + (1 + 0.5)
    for most, least in ((2, 4), (3, 7)):  # with the broadcast of 4 nothing is worth duplicating
        monkeypatch.setattr(sfb_bounds, "_MOST_FLOW", most)
        assert sfb_bounds.sfb_bound(instance) == pytest.approx(least)


@pytest.mark.parametrize(("broadcast", "paid"), [("per_tensor", 4), ("per_edge", 8)])
def test_a_tensor_is_sent_once_or_to_each_that_wants_it(broadcast, paid):
    found = evaluate(operators(broadcast=broadcast), SfbSelection(instance="three", duplicated=(0, 2)))
    assert found.details["broadcast_s"] == paid
    assert found.objective == 1 + 1 + 1 + paid + 2 * 0.5


@pytest.mark.parametrize("node", [3, -1])
def test_an_operator_that_is_none_cannot_be_duplicated(node):
    found = evaluate(operators(), SfbSelection(instance="three", duplicated=(node,)))
    assert [each.kind for each in found.violations] == ["operator_exists"]
