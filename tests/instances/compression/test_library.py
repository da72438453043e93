"""The bundled instances of sufficient factor broadcasting, and what is stored as best of them."""

import functools

import pytest
from volume import slow

from ddlopt.instances import best
from ddlopt.instances.library.compression.sfb import instances
from ddlopt.models.compression import SfbInstance, SfbSelection, evaluate
from ddlopt.solvers.compression.sfb.min_cut import MinCut
from ddlopt.solvers.contracts import Limits


@functools.cache
def bundled(budgeted=None):
    return [instance for instance in instances() if budgeted in (None, instance.budgeted)]


def test_what_the_library_must_hold():
    everything, free = bundled(), bundled(budgeted=False)
    assert len(free) >= 24 + 4
    assert len(everything) - len(free) >= 4
    names = [instance.name for instance in free]
    models = {name.removeprefix("sfb-").rsplit("-b", 1)[0] for name in names if "random" not in name}
    assert {"vgg16", "vgg19", "resnet50", "bert-base", "gpt2", "transformer-base"} <= models
    assert {instance.operators[0].replicas for instance in everything} >= {2, 4, 16}
    gigabits = {instance.operators[0].bandwidth_bytes_per_s * 8 / 1e9 for instance in everything}
    assert gigabits >= {10, 25, 100}
    assert {instance.cost_model for instance in everything} == {"per_link", "tag_code"}
    assert {instance.broadcast for instance in everything} == {"per_tensor", "per_edge"}
    assert "sfb-vgg16-b32-w4-25g" in names
    assert all(isinstance(instance, SfbInstance) for instance in everything)


@pytest.mark.parametrize("step", [5, slow(1)])
def test_the_best_selection_is_a_minimum_cut(step):
    for instance in bundled(budgeted=False)[::step]:
        stored = evaluate(instance, best(f"compression/{instance.name}"), exact=True)
        assert stored.feasible, instance.name
        optimum = MinCut().solve(instance, Limits()).objective
        assert float(stored.objective) == pytest.approx(optimum, rel=1e-9), instance.name


@pytest.mark.parametrize("number", [3, slow(None)])
def test_budgets_bind(number):
    for instance in bundled(budgeted=True)[:number]:
        stored = evaluate(instance, best(f"compression/{instance.name}"), exact=True)
        assert stored.feasible, instance.name
        data = instance.model_dump() | {"memory_budget_bytes": None, "compute_budget_s": None}
        unlimited = MinCut().solve(SfbInstance.from_data(data), Limits())
        assert not evaluate(instance, unlimited.solution).feasible, instance.name
        nothing = evaluate(instance, SfbSelection(instance=instance.name)).objective
        assert unlimited.objective < float(stored.objective) < nothing, instance.name
