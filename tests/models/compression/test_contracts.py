"""Reading and writing the problems, and bad input."""

import json

import pytest
from refusals import one_line
from volume import for_each

from ddlopt.models.catalogue import family
from ddlopt.models.compression import (
    CompressionInstance,
    CompressionPlan,
    CompressionProblem,
    ExponentialCurve,
    GradedGradient,
    Gradient,
    LevelInstance,
    LevelPlan,
    Operator,
    Option,
    PointCurve,
    SfbInstance,
    SfbSelection,
    Tensor,
    evaluate,
)
from ddlopt.models.errors import InstanceError, SolutionError

SFB = SfbInstance(
    name="fc",
    operators=(
        Operator(name="forward", time_s=1.0, replicas=2, bandwidth_bytes_per_s=1.0),
        Operator(name="weights", time_s=2.0, replicas=2, bandwidth_bytes_per_s=1.0, gradient_bytes=30.0),
    ),
    tensors=(Tensor(producer=0, consumers=(1,), size_bytes=8.0),),
)
MENU = (Option(label="none", wire_s=4.0), Option(label="fp16", compressor="fp16", encode_s=1.0, wire_s=2.0, error=0.5))
TIMELINE = CompressionInstance(
    name="two",
    gradients=(Gradient(name="a", shape=(2,), ready_s=1.0, menu=0), Gradient(name="b", shape=(2,), ready_s=2, menu=0)),
    menus=(MENU,),
)
LEVELS = LevelInstance(
    name="ranks",
    gradients=(
        GradedGradient(
            name="w", shape=(4, 4), compressor="powersgd", wire_s_per_level=1.0,
            curve=PointCurve(levels=(1, 2, 4), errors=(4.0, 2.0, 0.0)),
        ),
        GradedGradient(
            name="v", shape=(64,), compressor="qsgd", wire_s_per_level=0.5,
            curve=ExponentialCurve(lowest=1, highest=8, scale=16.0),
        ),
    ),
    error_budget=3.0,
)  # fmt: skip
ANSWERS = {
    "fc": SfbSelection(instance="fc", duplicated=(1,)),
    "two": CompressionPlan(instance="two", choices=(0, 1)),
    "ranks": LevelPlan(instance="ranks", levels=(2, 3)),
}


@pytest.mark.parametrize("instance", [SFB, TIMELINE, LEVELS], ids=lambda each: each.problem)
def test_round_trip_through_the_family(instance):
    kind = family("compression")
    again = kind.instance.from_json(instance.to_json())
    assert again == instance
    assert type(again) is type(instance)
    answer = ANSWERS[instance.name]
    assert kind.solution.from_json(answer.to_json()) == answer
    exact, rounded = (kind.evaluate(instance, answer, exact=exact) for exact in (True, False))
    assert exact.feasible
    assert float(exact.objective) == pytest.approx(rounded.objective, rel=1e-12)
    assert kind.bound(instance) <= rounded.objective


def test_by_hand():
    # Data parallel: 30 bytes all-reduced; duplicated: half of 2 s more, and the other half of 8 bytes.
    assert evaluate(SFB, SfbSelection(instance="fc")).objective == 30.0
    assert evaluate(SFB, ANSWERS["fc"]).objective == 1.0 + 4.0
    # a: 1..5; b: encoded at 2 + 1, waits for the wire, 5..7.
    result = evaluate(TIMELINE, ANSWERS["two"])
    assert (result.objective, result.details["exposed_s"], result.details["error"]) == (7.0, 4.0, 0.5)
    assert evaluate(LEVELS, ANSWERS["ranks"]).objective == 2 + 1.5
    assert evaluate(LEVELS, ANSWERS["ranks"]).details["error"] == 2 + 16 / 64


def test_answers_of_another_problem():
    with pytest.raises(SolutionError, match="a level plan cannot answer the sufficient-factor instance 'fc'"):
        evaluate(SFB, LevelPlan(instance="fc", levels=(1,)))


def changed(instance, path, value):
    data = json.loads(instance.to_json())
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


@for_each(
    ("instance", "path", "value", "line"),
    [
        (SFB, ["problem"], "sbf", "problem is 'sbf'; use one of: forward, levels, sfb, timeline"),
        (SFB, ["tensors", 0, "consumers"], [2], r"tensors\[0\].consumers names operator 2, but there are 2 operators"),
        (SFB, ["tensors", 0, "consumers"], [0], "tensors form a cycle: forward -> forward"),
        (SFB, ["tensors", 0, "consumers"], [1, 1], "names an operator twice"),
        (TIMELINE, ["menus", 0, 0, "compressor"], "zip", r"menus\[0\]\[0\].compressor: Input should be 'none', 'fp16'"),
        (TIMELINE, ["menus", 0, 0, "ratio"], 1.5, "less than or equal to 1"),
        (TIMELINE, ["menus", 0, 0, "ratio"], 0, "greater than 0"),
        (TIMELINE, ["menus", 0, 1, "rank"], 3, r"option 'fp16' of rank 3, but gradients\[0\] 'a' is a matrix of 2 x 1"),
        (TIMELINE, ["menus", 0, 1, "label"], "none", "two options of one label"),
        (TIMELINE, ["menus", 0], [], r"menus\[0\] is empty"),
        (TIMELINE, ["gradients", 1, "menu"], 1, r"gradients\[1\].menu is 1, but there are 1 menus"),
        (TIMELINE, ["gradients", 1, "ready_s"], 0.5, r"gradients\[1\].ready_s is 0.5, but gradients\[0\].ready_s is 1"),
        (TIMELINE, ["time_budget_s"], 3.0, "time_budget_s belongs to goal 'error'"),
        (TIMELINE, ["goal"], "error", "time_budget_s is missing"),
        (TIMELINE, ["menus", 0, 0, "wire_s"], -1, "greater than or equal to 0"),
        (LEVELS, ["error_budget"], 1e-5, "error_budget is 1e-05, but no choice of levels has less than 0.000244"),
        (LEVELS, ["error_budget"], None, "goal 'time' needs error_budget"),
        (LEVELS, ["gradients", 0, "shape"], [4, 3], "a curve up to rank 4, but it is a matrix of 4 x 3"),
        (LEVELS, ["gradients", 0, "curve", "errors"], [4.0, 3.9, 0.0], "not convex"),
        (LEVELS, ["gradients", 0, "curve", "errors"], [4.0, 4.5, 0.0], r"errors\[1\] is 4.5, after 4"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(instance, path, value, line):
    with one_line(InstanceError, match=line):
        CompressionProblem.from_data(changed(instance, path, value))


def test_figures_of_parts_that_a_program_made_are_looked_at_too():
    first, second = TIMELINE.gradients
    # 26 digits: more than the file can be read back with.
    parts = (first.model_copy(update={"shape": (10**25, 2)}), second)
    with pytest.raises(ValueError, match=r"gradients\[0\].shape\[0\] is 10+; whole numbers go up to"):
        CompressionInstance(name="two", gradients=parts, menus=(MENU,))


def test_an_infeasible_error_budget_names_the_smallest_feasible_one():
    data = json.loads(TIMELINE.to_json()) | {"menus": [[json.loads(MENU[1].model_dump_json())]], "error_budget": 0.5}
    with pytest.raises(InstanceError, match=r"error_budget is 0.5, but no choice has less than 1.0"):
        CompressionProblem.from_data(data)


@for_each(
    ("instance", "answer", "kind"),
    [
        (SFB, SfbSelection(instance="fc", duplicated=(5,)), "operator_exists"),
        (SFB, SfbSelection(instance="fc", duplicated=(1, 1)), "operator_is_named_once"),
        (SFB.model_copy(update={"compute_budget_s": 0.5}), ANSWERS["fc"], "compute_budget_is_kept"),
        (TIMELINE, CompressionPlan(instance="two", choices=(0,)), "every_gradient_has_an_option"),
        (TIMELINE, CompressionPlan(instance="two", choices=(0, 2)), "option_exists"),
        (TIMELINE, CompressionPlan(instance="two", choices=(0, 0), buckets=(2,)), "gradients_may_be_fused"),
        (TIMELINE, CompressionPlan(instance="two", choices=(0, 0), buckets=(1,)), "buckets_cover_all_gradients"),
        (TIMELINE.model_copy(update={"fusion": True}), CompressionPlan(instance="two", choices=(0, 1), buckets=(2,)),
         "bucket_has_one_kind_of_option"),
        (TIMELINE.model_copy(update={"error_budget": 0.4}), ANSWERS["two"], "error_budget_is_kept"),
        (LEVELS, LevelPlan(instance="ranks", levels=(3, 3)), "level_is_allowed"),
        (LEVELS, LevelPlan(instance="ranks", levels=(1, 1)), "error_budget_is_kept"),
        (LEVELS, LevelPlan(instance="ranks", levels=(1,)), "every_gradient_has_a_level"),
    ],
)  # fmt: skip
def test_every_violation_is_found(instance, answer, kind):
    assert [violation.kind for violation in evaluate(instance, answer).violations] == [kind]
