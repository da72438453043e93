"""Random timelines: every feature, budgets that can be kept, and refusals."""

import pytest

from ddlopt.instances.generators.compression import generate
from ddlopt.instances.generators.compression.random import MOST_OPTIONS
from ddlopt.models.compression import CompressionPlan, evaluate


def test_what_is_asked_for():
    instance = generate(
        "random", 3, gradients=40, options=12, nodes=4, gpus_per_node=8, intra="pcie", fusion=True,
        largest_bucket_bytes=1e6,
    )  # fmt: skip
    assert instance.size == len(instance.menus) == 40
    assert instance.most_options == 12
    assert (instance.cluster.workers, instance.cluster.intra) == (32, "pcie")
    assert (instance.fusion, instance.largest_bucket_bytes) == (True, 1e6)
    assert {len(gradient.shape) for gradient in instance.gradients} == {1, 2, 4}
    assert all(menu[0].label == "none" and menu[0].error == 0 for menu in instance.menus)
    # The same compressors for all, powersgd apart, so that gradients can share buckets.
    labels = [{option.label for option in menu if option.compressor != "powersgd"} for menu in instance.menus]
    assert len(set.intersection(*labels)) > 1


def test_larger_gradients_cost_more():
    menus = {
        gradient.elements: instance.menus[gradient.menu]
        for instance in [generate("random", 0, gradients=60, options=MOST_OPTIONS, spread=0.0)]
        for gradient in instance.gradients
    }
    sizes = sorted(menus)
    for option in menus[sizes[0]]:
        larger = next((each for each in menus[sizes[-1]] if each.label == option.label), option)
        assert larger.wire_s >= option.wire_s
        assert larger.encode_s >= option.encode_s
        assert larger.error >= option.error


@pytest.mark.parametrize("budget_part", [0.0, 0.3, 1.0])
def test_error_budgets_lie_between_the_least_and_the_largest_error(budget_part):
    instance = generate("random", 5, gradients=10, error_budget_part=budget_part)
    largest = sum(max(option.error for option in menu) for menu in instance.menus)
    assert instance.least_error <= instance.error_budget <= largest * (1 + 1e-12)
    least = [min(range(len(menu)), key=lambda o, menu=menu: menu[o].error) for menu in instance.menus]
    assert evaluate(instance, CompressionPlan(instance="", choices=tuple(least))).feasible


@pytest.mark.parametrize("budget_part", [0.0, 0.5, 1.0])
def test_time_budgets_can_be_kept(budget_part):
    instance = generate("random", 6, gradients=10, goal="error", time_budget_part=budget_part)
    quick = [
        min(range(len(menu)), key=lambda o, menu=menu: menu[o].encode_s + menu[o].occupation_s)
        for menu in instance.menus
    ]
    assert evaluate(instance, CompressionPlan(instance="", choices=tuple(quick))).feasible
    plain = evaluate(instance, CompressionPlan(instance="", choices=(0,) * 10))
    assert plain.feasible == (budget_part == 1.0)
    assert plain.objective == 0
