"""Label setting: exact on tiny timelines, on published ones, under limits, and with bounds that hold."""

import json

import numpy as np
import pytest
from level_cases import a_little_late
from shared_data import shared_data
from timeline_brute_force import brute_force, random_timeline_case
from volume import for_each, seeds

from ddlopt.frontier.compression.timeline.label_setting.kernels import front_of_three, front_of_two
from ddlopt.frontier.compression.timeline.label_setting.label_setting import LabelSetting
from ddlopt.frontier.compression.timeline.label_setting.prices import Pricing
from ddlopt.frontier.compression.timeline.label_setting.search import bounded, ways_of
from ddlopt.frontier.compression.timeline.label_setting.tree import Search
from ddlopt.instances.generators.compression import generate
from ddlopt.instances.readers import convert
from ddlopt.models.compression import (
    CompressionInstance,
    CompressionPlan,
    ExponentialCurve,
    GradedGradient,
    Gradient,
    LevelInstance,
    Option,
    PointCurve,
    evaluate,
)
from ddlopt.models.compression.timeline.candidate_messages import candidate_messages
from ddlopt.models.compression.timeline.formulations.overlap_timeline import OverlapTimeline
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.heuristic import Clock

TO_THE_END = Limits(gap=0.0)


def solved(instance, limits=TO_THE_END, start=None, **options):
    return LabelSetting(**options).solve(instance, limits, start=start)


@for_each("seed", seeds(15, 150))
def test_tiny_timelines_of_all_kinds(seed):
    instance = random_timeline_case(np.random.default_rng(seed))
    best, _ = brute_force(instance)
    result = solved(instance)
    assert result.objective == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert result.bound == pytest.approx(best, rel=1e-10, abs=1e-12)


@for_each("seed", seeds(6, 60))
def test_no_bound_passes_a_plan_that_uses_a_budget_to_the_last_digit_let_pass(seed):
    """The check and the labels add up in different orders, and budgets were raised by no more than the check's."""
    instance = random_timeline_case(np.random.default_rng(7000 + seed), budget=True, whole=False)
    objective, plan = brute_force(instance)
    name, figure = ("error_budget", "error") if instance.goal == "time" else ("time_budget_s", "time_s")
    used = evaluate(instance, plan).details[figure]
    if used == 0:
        return  # no limit is near
    for digits in range(-3, 4):
        tight = instance.model_copy(update={name: used / (1 + 1e-9) * (1 + digits * np.finfo(float).eps)})
        if evaluate(tight, plan).feasible:
            result = solved(tight)
            assert result.objective is None or result.objective >= objective * (1 - 1e-9)
            assert result.bound <= objective * (1 + 1e-9)


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_bounds_hold_where_hardly_a_label_is_kept(seed, monkeypatch):
    monkeypatch.setattr("ddlopt.frontier.compression.timeline.label_setting.search._LEAST_WIDTH", 1)
    rng = np.random.default_rng(1000 + seed)
    instance = random_timeline_case(rng, gradients=5, options=3, whole=False)
    best, _ = brute_force(instance)
    result = solved(instance, Limits(gap=0.3), widths=(1,))
    assert result.bound <= best * (1 + 1e-9) + 1e-12
    assert result.objective >= best * (1 - 1e-9) - 1e-12
    divided = solved(instance, widths=(1, 2))
    assert divided.objective == pytest.approx(best, rel=1e-9, abs=1e-12)


@for_each("seed", seeds(6, 20))
def test_prices_bound_every_plan(seed):
    """Along the best plan no bound exceeds its value, whatever the multipliers."""
    rng = np.random.default_rng(2000 + seed)
    instance = random_timeline_case(rng, goal="time", budget=bool(seed % 2), fusion=bool(seed % 3))
    best, _ = brute_force(instance)
    pricing = Pricing(instance)
    messages = candidate_messages(instance)
    first = pricing.first(others=True)[0]
    weights = rng.dirichlet(np.ones(instance.size))
    drawn = first._replace(lambdas=weights, mu=0.5, credit=0.5 * (pricing.room or 0.0))
    if pricing.room is None:
        drawn = drawn._replace(mu=0.0, credit=0.0)
    ways = ways_of(instance.ready_s, messages, np.ones(len(messages.first), dtype=bool), None, None)
    _, bounds = bounded(ways, [first, drawn], np.inf, np.inf)
    assert bounds.rest[:, 0].max() <= best * (1 + 1e-9) + 1e-12
    kept, _ = bounded(ways, [first, drawn], best * (1 + 1e-9) + 1e-12, np.inf)
    assert kept.heads[-1] > 0
    assert kept.arcs.tail.min() == 0


@for_each("seed", seeds(3, 20))
def test_fronts(seed):
    rng = np.random.default_rng(seed)
    figures = rng.integers(0, 6, size=(3, 60)).astype(float)
    for front, chosen in ((front_of_two(*figures[:2]), figures[:2]), (front_of_three(*figures), figures)):
        points = {tuple(point) for point in chosen.T}
        wanted = {
            p for p in points if not any(q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in points)
        }
        assert sorted(tuple(chosen[:, place]) for place in front) == sorted(wanted)


MODELS = {
    ("vgg16", "randomk", "nvlink"): 86.46,
    ("vgg16", "randomk", "pcie"): 97.23,
    ("resnet101", "dgc", "nvlink"): 143.65,
    ("resnet101", "dgc", "pcie"): 189.01,
    ("ugatit", "dgc", "nvlink"): 552.48,
    ("ugatit", "dgc", "pcie"): 663.14,
    ("LSTM", "efsignsgd", "nvlink"): 89.46,
    ("LSTM", "efsignsgd", "pcie"): 96.35,
}
"""Milliseconds on 8 nodes of 8 GPUs."""


@pytest.mark.parametrize("case", MODELS, ids="-".join)
def test_published_tensor_lists(case):
    model, compressor, intra = case
    path = shared_data(f"espresso/{model}.json")
    instance = convert(path, "espresso", compressor=compressor, intra=intra, two_level=intra == "pcie")
    result = solved(instance)
    assert result.gap < 1e-10
    assert 1e3 * result.objective == pytest.approx(MODELS[case], abs=0.0051)


@pytest.mark.parametrize(
    "options",
    [
        {"gradients": 60, "options": 12},
        {"gradients": 40, "error_budget_part": 0.3},
        {"gradients": 25, "options": 6, "goal": "error"},
        {"gradients": 15, "options": 5, "fusion": True, "error_budget_part": 0.3},
        {"gradients": 20, "options": 5, "fusion": True, "largest_bucket_bytes": 2e7},
    ],
    ids=lambda options: "-".join(options),
)
def test_equals_the_model_of_messages(options):
    instance = generate("random", 3, **options)
    other = Exact("overlap-timeline", "compression", OverlapTimeline()).solve(instance, Limits(gap=1e-9))
    result = solved(instance)
    assert result.gap < 1e-10
    assert result.objective == pytest.approx(other.objective, rel=1e-6)


def test_one_gradient_decides(monkeypatch):
    """The relaxation mixes the options of a gradient that is most of the budget: no prices prove the optimum."""
    monkeypatch.setattr("ddlopt.frontier.compression.timeline.label_setting.search._LEAST_WIDTH", 1)
    rng = np.random.default_rng(5)
    menus = []
    for _ in range(12):
        wire, error = rng.uniform(0.5, 1.0), rng.uniform(0.01, 0.1)
        menus.append((Option(label="none", wire_s=wire), Option(label="half", wire_s=wire / 2, error=error)))
    menus.append((Option(label="none", wire_s=10.0), Option(label="all", wire_s=7.0, error=0.9)))
    gradients = tuple(Gradient(name=str(i), shape=(8,), ready_s=0.0, menu=i) for i in range(13))
    instance = CompressionInstance(name="one", gradients=gradients, menus=tuple(menus), error_budget=0.97)
    result = solved(instance, widths=(2,))
    # All of the small ones may be compressed, and then the large one may not.
    assert result.objective == pytest.approx(sum(menu[1].wire_s for menu in menus[:-1]) + 10.0)
    assert result.details["parts"] > 1
    assert result.gap < 1e-10


@pytest.mark.parametrize("goal", ["time", "error"])
def test_levels_without_overlap_are_a_knapsack(goal):
    curves = (
        PointCurve(levels=(1, 2, 4), errors=(7.0, 3.0, 0.5)),
        ExponentialCurve(lowest=1, highest=6, scale=8.0),
        PointCurve(levels=(0, 3, 4), errors=(5.0, 1.0, 0.9)),
    )
    costs = (2.0, 0.75, 1.0)
    gradients = tuple(
        GradedGradient(name=str(i), shape=(64,), compressor="qsgd", curve=curve, wire_s_per_level=cost)
        for i, (curve, cost) in enumerate(zip(curves, costs, strict=True))
    )
    budget = {"error_budget": 2.2} if goal == "time" else {"time_budget_s": 9.0}
    instance = LevelInstance(name="knapsack", gradients=gradients, goal=goal, **budget)
    best, _ = brute_force(instance)
    result = solved(instance)
    assert result.objective == pytest.approx(best, rel=1e-12)
    assert result.solution.problem == "levels"


def test_alike_gradients_leave_few_labels():
    """Sums of the same figures in another order are equal on the grid: one label stands for all of them."""
    menu = (
        Option(label="none", wire_s=0.7, error=0.1),
        Option(label="half", wire_s=0.3, encode_s=0.1, error=0.3),
        Option(label="tenth", wire_s=0.1, encode_s=0.3, error=0.7),
    )
    gradients = tuple(Gradient(name=str(i), shape=(8,), ready_s=0.0, menu=0) for i in range(60))
    instance = CompressionInstance(name="alike", gradients=gradients, menus=(menu,), error_budget=21.0)
    result = solved(instance, start=solved(instance, Limits(gap=0.1)).solution)
    assert result.gap < 1e-10
    assert result.details["labels_of_a_gradient"] < 60 * 61


def test_a_start_is_kept_where_it_is_best():
    instance = random_timeline_case(np.random.default_rng(7), gradients=5, options=3, goal="time", fusion=True)
    best, plan = brute_force(instance)
    plan = CompressionPlan.from_data(json.loads(plan.to_json()))
    result = solved(instance, start=plan)
    assert result.solution.choices == plan.choices
    assert result.objective == pytest.approx(best, rel=1e-12)
    assert result.bound == pytest.approx(best, rel=1e-10)


@pytest.mark.parametrize("goal", ["time", "error"])
def test_when_the_time_is_up_there_is_a_plan_and_a_bound(goal):
    instance = generate(
        "random", 5, gradients=120, options=8, goal=goal, **({"error_budget_part": 0.3} if goal == "time" else {})
    )
    limited = solved(instance, Limits(time_s=1e-9, gap=0.0))
    free = solved(instance, Limits(gap=1e-5))
    assert limited.status in (Status.FEASIBLE, Status.OPTIMAL)
    assert limited.bound <= free.objective * (1 + 1e-9)
    assert limited.objective >= free.bound
    assert limited.details["passes"] == 1


def test_a_time_budget_that_nothing_keeps():
    instance = generate("random", 1, gradients=8, goal="error")
    data = json.loads(instance.to_json()) | {"time_budget_s": 1e-6}
    none = solved(CompressionInstance.from_data(data))
    assert none.status == "infeasible"
    assert "keeps the time budget of 1e-06 s" in none.message


def test_a_bound_on_the_time_stays_in_use():
    """Without one a later pass would find plans that exceed the time budget."""
    instance = generate("random", 2, gradients=30, options=6, goal="error", time_budget_part=0.1)
    search = Search(instance, Clock(TO_THE_END, None))
    (part,) = search.open
    part.prices = part.pricing.first(others=True)
    for width in (10, 100):
        search._pass(part, width)
        assert [each.goal for each in part.prices].count(False) == 1


def alike_case(rng, goal, count=6):
    """Gradients of two menus in turn, whose options partly come before each other, with many ties."""
    figures = ((0, 6, 0), (1, 4, 1), (1, 3, 4), (3, 1, 3)), ((0, 3, 0), (1, 2, 2), (2, 2, 1))
    menus = tuple(
        tuple(Option(label=f"o{k}", encode_s=e, wire_s=c, error=x) for k, (e, c, x) in enumerate(menu))
        for menu in figures
    )
    ready = rng.integers(0, 4, count).cumsum().tolist()
    gradients = tuple(Gradient(name=f"g{i}", shape=(2,), ready_s=each, menu=i % 2) for i, each in enumerate(ready))
    budget = {"error_budget": int(rng.integers(1, 15))} if goal == "time" else {"time_budget_s": ready[-1] + 14}
    return CompressionInstance(name="alike", gradients=gradients, menus=menus, goal=goal, **budget)


@pytest.mark.parametrize("goal", ["time", "error"])
@pytest.mark.parametrize("seed", seeds(2, 12))
def test_gradients_alike(seed, goal, monkeypatch):
    monkeypatch.setattr("ddlopt.frontier.compression.timeline.label_setting.search._LEAST_WIDTH", 1)
    monkeypatch.setattr("ddlopt.frontier.compression.timeline.label_setting.tree._FAR", 0.1 * (seed % 2))
    instance = alike_case(np.random.default_rng(seed), goal)
    best, _ = brute_force(instance)
    for widths in ((1,), (2, 4), (100,)):
        result = solved(instance, widths=widths)
        assert result.objective == pytest.approx(best, rel=1e-9)
        assert result.bound == pytest.approx(best, rel=1e-9)


def test_what_is_out_of_order_is_left_out():
    search = Search(alike_case(np.random.default_rng(1), "time"), Clock(TO_THE_END, None))
    assert [group.gradients for group in search.groups] == [(0, 2, 4), (1, 3, 5)]
    first = search.open.first()[1].pricing.choices
    allowed = np.isfinite(first.error)
    allowed[2] = [False, True, False, False]
    search._keep_order(allowed, 2)
    assert allowed[0, :4].tolist() == [True, True, False, False]
    assert allowed[4, :4].tolist() == [False, True, True, True]
    assert allowed[1::2].sum() == 9


def test_the_search_ends_after_so_many_parts():
    instance = generate("random", 5, gradients=120, options=8, error_budget_part=0.3)
    result = solved(instance, widths=(30,), most_parts=3)
    assert result.details["parts"] == 3
    assert result.status is Status.FEASIBLE
    assert result.bound < result.objective


def test_a_plan_that_the_check_lets_pass_is_bounded():
    tight, optimum = a_little_late()
    assert LabelSetting().solve(tight, Limits(10.0, 0.0)).bound <= optimum * (1 + 1e-9)
