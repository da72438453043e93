"""The bundled instances of sufficient factor broadcasting, and what is stored as best of them."""

import pytest
from volume import some, spread

from ddlopt.instances import best
from ddlopt.instances.library.compression.sfb import instances
from ddlopt.models.compression import SfbInstance, SfbSelection, evaluate
from ddlopt.solvers.compression.sfb.min_cut import MinCut
from ddlopt.solvers.contracts import Limits

MADE = {instance.name: instance for instance in instances()}
FREE = [name for name, instance in MADE.items() if not instance.budgeted]
LIMITED = [name for name, instance in MADE.items() if instance.budgeted]


def test_what_the_library_must_hold():
    assert len(FREE) >= 24 + 4
    assert len(LIMITED) >= 4
    models = {name.removeprefix("sfb-").rsplit("-b", 1)[0] for name in FREE if "random" not in name}
    assert {"vgg16", "vgg19", "resnet50", "bert-base", "gpt2", "transformer-base"} <= models
    assert {instance.operators[0].replicas for instance in MADE.values()} >= {2, 4, 16}
    gigabits = {instance.operators[0].bandwidth_bytes_per_s * 8 / 1e9 for instance in MADE.values()}
    assert gigabits >= {10, 25, 100}
    assert {instance.cost_model for instance in MADE.values()} == {"per_link", "tag_code"}
    assert {instance.broadcast for instance in MADE.values()} == {"per_tensor", "per_edge"}
    assert "sfb-vgg16-b32-w4-25g" in MADE
    assert all(isinstance(instance, SfbInstance) for instance in MADE.values())


@pytest.mark.parametrize("name", spread(FREE, 5))
def test_the_best_selection_is_a_minimum_cut(name):
    instance = MADE[name]
    stored = evaluate(instance, best(f"compression/{name}"), exact=True)
    assert stored.feasible
    assert float(stored.objective) == pytest.approx(MinCut().solve(instance, Limits()).objective, rel=1e-9)


@pytest.mark.parametrize("name", some(LIMITED, 3))
def test_budgets_bind(name):
    instance = MADE[name]
    stored = evaluate(instance, best(f"compression/{name}"), exact=True)
    assert stored.feasible
    data = instance.model_dump() | {"memory_budget_bytes": None, "compute_budget_s": None}
    free = SfbInstance.from_data(data)
    unlimited = MinCut().solve(free, Limits())
    assert not evaluate(instance, unlimited.solution).feasible
    nothing = evaluate(instance, SfbSelection(instance=name)).objective
    assert unlimited.objective < float(stored.objective) < nothing
