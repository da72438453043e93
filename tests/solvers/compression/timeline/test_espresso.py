"""Espresso's greedy against the same greedy written from its description, against the optimum, and its rules."""

import numpy as np
import pytest
from timeline_brute_force import brute_force, random_timeline_case
from volume import for_each

from ddlopt.models.compression import (
    Cluster,
    CompressionInstance,
    CompressionPlan,
    GradedGradient,
    Gradient,
    LevelInstance,
    Option,
    PointCurve,
    evaluate,
)
from ddlopt.solvers.compression.timeline.espresso import Espresso
from ddlopt.solvers.contracts import Limits, Status

BOTH = (True, False)


def choices(instance, thresholds=True):
    return Espresso(thresholds).solve(instance, Limits()).solution.choices


def plan(instance, chosen):
    return CompressionPlan(instance=instance.name, choices=tuple(chosen))


def time_of(instance, chosen):
    return evaluate(instance, plan(instance, chosen)).details["time_s"]


def last_gap(instance, chosen):
    """The last gradient that finds the wire free."""
    encode, wire, gap = 0.0, 0.0, 0
    for i, (gradient, choice) in enumerate(zip(instance.gradients, chosen, strict=True)):
        option = instance.option(i, choice)
        encode += option.encode_s
        if gradient.ready_s + encode >= wire:
            gap = i
        wire = max(wire, gradient.ready_s + encode) + option.occupation_s
    return gap


def slow_greedy(instance):
    """The greedy without sizes, every trial evaluated from scratch."""

    def best(chosen, i, wanted):
        budget = np.inf if instance.error_budget is None else instance.error_budget
        trials = []
        for choice in wanted:
            trial = [*chosen[:i], choice, *chosen[i + 1 :]]
            if sum(instance.option(j, c).error for j, c in enumerate(trial)) <= budget:
                trials.append((time_of(instance, trial), choice))
        if trials and min(trials)[0] < time_of(instance, chosen) * (1 - 1e-12):
            chosen[i] = min(trials)[1]

    chosen = [0] * instance.size
    for i in range(last_gap(instance, chosen), instance.size):
        menu = instance.menus[instance.gradients[i].menu]
        best(chosen, i, [k for k, option in enumerate(menu) if option.compressor == "fp16"])
    first = last_gap(instance, chosen)
    for i in sorted(range(first, instance.size), key=lambda i: (-instance.gradients[i].elements, -i)):
        best(chosen, i, range(len(instance.menus[instance.gradients[i].menu])))
    return chosen


def with_plain_first(instance):
    """The same with a first option that is no compression."""
    menus = tuple(
        (Option(label="plain", wire_s=9.0), *(o for o in menu if o.compressor != "none")) for menu in instance.menus
    )
    return CompressionInstance.from_data(instance.model_dump() | {"menus": menus, "fusion": False})


def test_every_step_is_that_of_the_description():
    rng, used = np.random.default_rng(1), 0
    for _ in range(60):
        case = random_timeline_case(rng, gradients=5, options=3, fusion=False, goal="time", whole=False)
        instance = with_plain_first(case)
        chosen = choices(instance, thresholds=False)
        assert time_of(instance, chosen) == pytest.approx(time_of(instance, slow_greedy(instance)), rel=1e-12)
        used += any(chosen)
    assert used > 40


@pytest.mark.parametrize("thresholds", BOTH)
def test_between_the_optimum_and_no_compression_and_within_the_budget(thresholds):
    rng, gaps, tight = np.random.default_rng(2), 0, 0
    for _ in range(50):
        instance = random_timeline_case(rng, goal="time")
        result = Espresso(thresholds).solve(instance, Limits())
        optimum, _ = brute_force(instance)
        assert result.checked
        assert result.objective >= optimum * (1 - 1e-9)
        gaps += result.objective > optimum * (1 + 1e-9)
        tight += instance.error_budget is not None
    assert gaps
    assert tight > 5


def one_of_each(elements, *, intra="pcie", labels="none fp16 inter all", ready=0.0, **changes):
    """Gradients of so many elements, each cheaper with every option further to the right."""
    offered = {
        "none": Option(label="none", wire_s=4.0),
        "fp16": Option(label="fp16", compressor="fp16", wire_s=3.0, error=0.1),
        "inter": Option(label="inter", compressor="dgc", ratio=0.01, scope="inter", wire_s=2.0, error=1.0),
        "all": Option(label="all", compressor="dgc", ratio=0.01, wire_s=1.0, error=2.0),
    }
    data = {
        "name": "sizes",
        "gradients": [Gradient(name=f"g{i}", shape=(n,), ready_s=ready * i, menu=0) for i, n in enumerate(elements)],
        "menus": [[offered[label] for label in labels.split()]],
        "cluster": Cluster(nodes=2, intra=intra, intra_bandwidth_bytes_per_s=1.0, inter_bandwidth_bytes_per_s=1.0),
    }
    return CompressionInstance.from_data(data | changes)


SIZES = [2**k + extra for k in (17, 19, 20, 22, 23) for extra in (0, 1)]


@for_each(
    ("intra", "labels", "expected"),
    [
        ("pcie", "none fp16 inter all", [0, 1, 1, 1, 1, 2, 2, 2, 2, 3]),
        ("nvlink", "none fp16 inter all", [0, 1, 1, 2, 2, 2, 2, 3, 3, 3]),
        ("pcie", "none fp16 inter", [0, 1, 1, 1, 1, 2, 2, 2, 2, 2]),
        # What compresses everything is the compression there is.
        ("pcie", "none fp16 all", [0, 1, 1, 1, 1, 2, 2, 2, 2, 2]),
        ("pcie", "none inter all", [0, 0, 0, 0, 0, 1, 1, 1, 1, 2]),
    ],
)
def test_sizes(intra, labels, expected):
    assert list(choices(one_of_each(SIZES, intra=intra, labels=labels))) == expected


def test_without_a_cluster_sizes_are_those_of_nvlink():
    assert choices(one_of_each([2**19 + 1, 2**20], cluster=None)) == (2, 2)


def test_without_sizes_all_is_compressed():
    assert set(choices(one_of_each(SIZES), thresholds=False)) == {3}


def test_nothing_is_compressed_before_a_gap():
    # The wire is free again after 4 s, so only the last gradient ends the iteration.
    instance = one_of_each([2**24] * 4, ready=4.0)
    assert choices(instance) == (0, 0, 0, 3)
    assert choices(instance, thresholds=False) == (0, 0, 0, 3)


def test_of_equal_sizes_the_later_one_is_compressed_first():
    # Encoding delays what is still computed; only one of them pays.
    menu = [Option(label="none", wire_s=1.0), Option(label="dgc", compressor="dgc", encode_s=0.8, wire_s=0.1)]
    instance = one_of_each([2**24] * 2, menus=[menu])
    assert choices(instance) == (0, 1)


@pytest.mark.parametrize("thresholds", BOTH)
def test_what_gains_nothing_is_left_as_it_is(thresholds):
    menu = [Option(label="none", wire_s=1.0), Option(label="dgc", compressor="dgc", encode_s=0.5, wire_s=0.5)]
    assert choices(one_of_each([2**24] * 3, menus=[menu]), thresholds) == (0, 1, 1)


@pytest.mark.parametrize("thresholds", BOTH)
def test_steps_that_would_break_the_budget_are_skipped(thresholds):
    # The larger gradients come first and use the budget up; fp16 for the last would fit only without them.
    instance = one_of_each([2**20 + 1, 2**24, 2**24], labels="none all", error_budget=4.0)
    assert choices(instance, thresholds) == (0, 1, 1)


@pytest.mark.parametrize("thresholds", BOTH)
def test_a_start_of_least_error_where_nothing_may_stay_as_it_is(thresholds):
    lossy = [Option(label="sign", compressor="sign", wire_s=1.0, error=3.0), Option(label="none", wire_s=5.0, error=2)]
    assert choices(one_of_each([1], menus=[lossy], error_budget=2.0), thresholds) == (1,)
    lossy = [lossy[0], Option(label="fp16", compressor="fp16", wire_s=2.0, error=1.0)]
    assert choices(one_of_each([1, 1], menus=[lossy], error_budget=2.0), thresholds) == (1, 1)


def test_of_several_ways_to_compress_nothing_the_quickest():
    whole = [Option(label="none in 1 part", wire_s=3.0), Option(label="none in 2 parts", wire_s=2.0)]
    assert choices(one_of_each([1, 2**24], menus=[whole])) == (1, 1)


def test_answers_a_problem_of_levels():
    curve = PointCurve(levels=(1, 2, 4), errors=(4.0, 2.0, 0.0))
    parts = [
        GradedGradient(name=f"w{i}", shape=(4, 4), compressor="powersgd", wire_s_per_level=1.0, curve=curve)
        for i in range(3)
    ]
    instance = LevelInstance(name="ranks", gradients=parts, error_budget=7.0)
    result = Espresso(thresholds=False).solve(instance, Limits())
    assert result.checked
    # From the last one on: 12 s at rank 4, the last to rank 1, then the second to rank 2.
    assert result.solution.levels == (4, 2, 1)


@pytest.mark.parametrize("thresholds", BOTH)
def test_goal_error_ends_as_soon_as_the_time_budget_is_kept(thresholds):
    def solved(budget):
        timed = one_of_each([2**24] * 3, labels="none all", goal="error", time_budget_s=budget)
        return Espresso(thresholds).solve(timed, Limits())

    found = [solved(budget).objective for budget in (12.0, 11.0, 6.0, 3.0)]
    assert found == [0.0, 2.0, 4.0, 6.0]


def test_goal_error_without_a_way_to_keep_the_time_budget():
    small = one_of_each([1000] * 3, labels="none all", goal="error", time_budget_s=11.0)
    result = Espresso().solve(small, Limits())
    assert (result.status, result.solution) == (Status.NO_SOLUTION, None)
    assert result.message == "it ends at 12 s, after time_budget_s, 11"
    assert Espresso(thresholds=False).solve(small, Limits()).objective == 2.0


def test_large_gradients_are_halved_even_where_that_takes_longer():
    """By its size alone, as in the original; without sizes only where the iteration ends earlier."""
    menu = (Option(label="none", wire_s=1.0), Option(label="fp16", compressor="fp16", encode_s=5.0, wire_s=0.9))
    large = Gradient(name="w", shape=(2**17 + 1,), ready_s=0.0, menu=0)
    instance = CompressionInstance(name="one", gradients=(large,), menus=(menu,))
    assert choices(instance) == (1,)
    assert choices(instance, thresholds=False) == (0,)
    small = large.model_copy(update={"shape": (2**17,)})
    assert choices(CompressionInstance(name="one", gradients=(small,), menus=(menu,))) == (0,)
