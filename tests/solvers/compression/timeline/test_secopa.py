"""SeCoPa: its authors' plan, its optimum where nothing overlaps, and our repair under a budget."""

import numpy as np
import pytest
from timeline_brute_force import brute_force, random_timeline_case
from volume import for_each, slow

from ddlopt.instances.workloads.compression.planner_costs import hipress_menu
from ddlopt.models.compression import CompressionInstance, Gradient, Option
from ddlopt.solvers.compression.timeline.secopa import Secopa
from ddlopt.solvers.contracts import Limits, Status


def one_after_the_other(case):
    """The same with all gradients ready at once and encoding on the wire: the time is a sum."""
    menus = [
        [option.model_copy(update={"encode_s": 0.0, "wire_s": option.wire_s + option.encode_s}) for option in menu]
        for menu in case.menus
    ]
    gradients = [gradient.model_copy(update={"ready_s": 0.0}) for gradient in case.gradients]
    return CompressionInstance.from_data(case.model_dump() | {"menus": menus, "gradients": gradients})


def test_optimal_where_nothing_overlaps():
    rng, better = np.random.default_rng(3), 0
    for _ in range(40):
        case = random_timeline_case(rng, fusion=False, goal="time", budget=False)
        sums = one_after_the_other(case)
        result = Secopa().solve(sums, Limits())
        assert result.objective == pytest.approx(brute_force(sums)[0], rel=1e-9)
        assert result.objective == pytest.approx(result.details["separate_s"], rel=1e-9)
        # With overlap the same choices are only feasible.
        overlapping = Secopa().solve(case, Limits())
        assert overlapping.solution.choices == result.solution.choices
        better += overlapping.objective > brute_force(case)[0] * (1 + 1e-9)
    assert better


@pytest.mark.parametrize("draws", [12, slow(80)])
def test_repair_keeps_the_budget_and_loses_at_most_one_step(draws):
    rng, moved, optimal = np.random.default_rng(4), 0, 0
    for _ in range(draws):
        case = one_after_the_other(random_timeline_case(rng, gradients=5, options=3, fusion=False, goal="time"))
        if case.error_budget is None:
            continue
        result = Secopa().solve(case, Limits())
        free = Secopa().solve(CompressionInstance.from_data(case.model_dump() | {"error_budget": None}), Limits())
        optimum, _ = brute_force(case)
        costs = [[o.encode_s + o.occupation_s for o in menu] for menu in case.menus]
        largest = max(max(menu) - min(menu) for menu in costs)
        assert optimum * (1 - 1e-9) <= result.objective <= optimum + largest + 1e-9
        moved += result.solution.choices != free.solution.choices
        optimal += result.objective <= optimum * (1 + 1e-9)
    assert moved > draws / 16
    assert optimal > moved / 2


def test_repair_goes_along_the_hull():
    # 1 s saves 4 of the error, 3 s save 5: the last option is reached from the middle one, at 2 s.
    menu = [
        Option(label="sign", compressor="sign", wire_s=1.0, error=5.0),
        Option(label="fp16", compressor="fp16", wire_s=2.0, error=1.0),
        Option(label="none", wire_s=4.0),
    ]
    data = {
        "name": "hull",
        "gradients": [Gradient(name=f"g{i}", shape=(1,), ready_s=0.0, menu=0) for i in range(3)],
        "menus": [menu],
    }
    found = {
        budget: Secopa()
        .solve(CompressionInstance.from_data(data | {"error_budget": budget}), Limits())
        .solution.choices
        for budget in (15.0, 14.0, 7.0, 3.0, 2.5, 0.0)
    }
    assert found == {15.0: (0, 0, 0), 14.0: (1, 0, 0), 7.0: (1, 1, 0), 3.0: (1, 1, 1), 2.5: (2, 1, 1), 0.0: (2, 2, 2)}


def test_repair_takes_the_least_time_for_the_error_saved_first():
    """At 0.1 s a unit of the third, 0.8 of the second, whose next option would be at 1, and 0.9 of the first."""
    menus = [
        [("sign", 1.0, 5.0), ("none", 5.5, 0.0)],
        [("sign", 1.0, 5.0), ("fp16", 1.5, 4.5), ("none", 5.0, 0.0)],
        [("sign", 10.0, 5.0), ("none", 10.5, 0.0)],
    ]
    data = {
        "name": "prices",
        "gradients": [Gradient(name=f"g{i}", shape=(1,), ready_s=0.0, menu=i) for i in range(3)],
        "menus": [[Option(label=n, compressor=n, wire_s=s, error=e) for n, s, e in menu] for menu in menus],
    }
    for budget, choices in ((15.0, (0, 0, 0)), (10.0, (0, 0, 1)), (5.0, (0, 2, 1)), (0.0, (1, 2, 1))):
        case = CompressionInstance.from_data(data | {"error_budget": budget})
        assert Secopa().solve(case, Limits()).solution.choices == choices


@for_each(
    ("elements", "label"),
    [
        (64, "none in 4 parts"),
        (589824, "none in 4 parts"),
        (1048576, "ternary in 1 part"),
        (1179648, "ternary in 2 parts"),
        (2359296, "ternary in 4 parts"),
        (102760448, "ternary in 4 parts"),
    ],
)
def test_the_plan_that_its_authors_publish_for_vgg_19_on_4_nodes(elements, label):
    instance = CompressionInstance.from_data(
        {
            "name": "one",
            "gradients": [Gradient(name="w", shape=(elements,), ready_s=0.0, menu=0)],
            "menus": [hipress_menu((elements,), 4)],
        }
    )
    chosen = Secopa().solve(instance, Limits()).solution.choices[0]
    assert instance.option(0, chosen).label == label


def test_goal_error_moves_while_the_time_budget_is_kept():
    rng, optimal, none = np.random.default_rng(5), 0, 0
    for _ in range(40):
        case = random_timeline_case(rng, goal="error", fusion=False)
        result, (optimum, _) = Secopa().solve(case, Limits()), brute_force(case)
        if result.status is Status.NO_SOLUTION:
            assert "after time_budget_s" in result.message
            none += 1
            continue
        assert result.checked
        assert result.objective >= optimum * (1 - 1e-9)
        optimal += result.objective <= optimum * (1 + 1e-9)
    assert 0 < none < 20
    assert optimal > 10


def test_without_time_for_the_budget_there_is_no_plan():
    rng, none = np.random.default_rng(6), 0
    for _ in range(20):
        result = Secopa().solve(random_timeline_case(rng, fusion=False, goal="time", budget=True), Limits(1e-9))
        if result.status is Status.NO_SOLUTION:
            assert "the time is up" in result.message
            none += 1
    assert none > 0
