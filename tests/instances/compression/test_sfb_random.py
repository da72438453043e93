"""Random training graphs: of the size and kind asked for, the same for the same seed, and worth deciding."""

import numpy as np
import pytest
from volume import for_each

from ddlopt.instances.generators import generate
from ddlopt.instances.generators.compression.sfb_random import random_graph
from ddlopt.models.compression import SfbInstance
from ddlopt.models.compression.sfb.cut_network import minimum_cut


def made(seed=0, **options):
    return generate("compression", "sfb-random", seed=seed, **options)


@for_each("shape", ["training", "any"])
@for_each("operators", [2, 3, 4, 5, 61])
def test_size(shape, operators):
    instance = made(operators=operators, shape=shape)
    assert isinstance(instance, SfbInstance)
    assert instance.size == operators


def test_training_graph():
    instance = made(operators=90)
    names = [operator.name for operator in instance.operators]
    kinds = [name.split("-")[0] for name in names]
    assert kinds == ["forward"] * 30 + ["error"] * 30 + ["gradient"] * 30
    assert [kind == "gradient" for kind in kinds] == [each.gradient_bytes > 0 for each in instance.operators]
    read = {name: set() for name in names}
    for tensor in instance.tensors:
        for consumer in tensor.consumers:
            read[names[consumer]].add(names[tensor.producer])
    for i in range(30):
        inputs = read[f"forward-{i}"]
        assert bool(inputs) == (i > 0)
        # A gradient of weights needs what the forward operator read, and the error; errors go the other way.
        assert read[f"gradient-{i}"] == inputs | {f"error-{i}"}
        later = {f"error-{k}" for k in range(30) if f"forward-{i}" in read[f"forward-{k}"]}
        assert read[f"error-{i}"] == later | {f"forward-{i}"}


def test_options_reach_the_instance():
    options = {
        "replicas": 8,
        "network_gigabit_per_s": 8.0,
        "cost_model": "tag_code",
        "broadcast": "per_edge",
        "penalty_s": 1e-3,
    }
    instance = made(fixed_part=0.0, **options)
    assert {(each.replicas, each.bandwidth_bytes_per_s) for each in instance.operators} == {(8, 1e9)}
    assert (instance.cost_model, instance.broadcast) == ("tag_code", "per_edge")
    assert instance.duplication_penalty_s == 1e-3
    assert instance.eligible.all()
    mixed = made(operators=200, mixed_replicas=True, fixed_part=0.5)
    assert {each.replicas for each in mixed.operators} == {1, 2, 3, 4}
    assert len({each.bandwidth_bytes_per_s for each in mixed.operators}) == 3
    assert 60 < sum(each.can_duplicate for each in mixed.operators) < 140


def test_samples_scale_what_they_should():
    one, many = made(samples=1, shape="any"), made(samples=10, shape="any")
    # Bytes are whole.
    assert [each.size_bytes for each in many.tensors] == pytest.approx(
        [10 * each.size_bytes for each in one.tensors], abs=5
    )
    assert [each.gradient_bytes for each in one.operators] == [each.gradient_bytes for each in many.operators]
    assert (many.extra_s > one.extra_s).all()


def test_budgets_are_parts_of_all():
    free, tight = made(), made(memory_part=0.25, compute_part=0.5)
    assert not free.budgeted
    memory = np.array([each.memory_bytes for each in free.operators])[free.eligible].sum()
    assert tight.memory_budget_bytes == pytest.approx(0.25 * memory)
    assert tight.compute_budget_s == pytest.approx(0.5 * free.extra_s[free.eligible].sum())
    assert tight.operators == free.operators


@for_each("shape", ["training", "any"])
@for_each("broadcast", ["per_tensor", "per_edge"])
def test_the_choice_is_not_trivial(shape, broadcast):
    for seed in range(5):
        instance = made(seed=seed, operators=150, shape=shape, broadcast=broadcast)
        gradients = instance.sync_s > 0
        saved = minimum_cut(instance).duplicated[gradients & instance.eligible]
        assert 0.1 < saved.mean() < 0.95
        assert minimum_cut(instance).duplicated[~gradients].any()


@pytest.mark.slow
def test_many_operators():
    instance = random_graph(np.random.default_rng(0), 20_000, "any", width=1)
    assert instance.size == 20_000
    assert len(instance.tensors) > 20_000
