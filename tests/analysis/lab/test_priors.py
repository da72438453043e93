"""Priors of TAG's search: what they say, what they do not depend on, and the network against PyTorch."""

import math

import numpy as np
import pytest

from ddlopt.analysis import pytorch
from ddlopt.analysis.lab.plan_prior import train_small
from ddlopt.analysis.lab.plan_prior.bound_prior import from_bound
from ddlopt.analysis.lab.plan_prior.features import ACTION_FEATURES, NODE_FEATURES, features
from ddlopt.analysis.lab.plan_prior.network import probabilities, trained
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import DeploymentInstance
from ddlopt.models.errors import OptionError
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan import priors
from ddlopt.solvers.deployment.plan.actions import Action, actions
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.deployment.plan.tag import Tag
from ddlopt.solvers.heuristic import Clock


def drawn(seed: int, **options) -> DeploymentInstance:
    return generate("random", seed, **{"groups": 4, "device_groups": 3, "memory": 4.0} | options)


def rows(prior, instance: DeploymentInstance) -> np.ndarray:
    state = priors.State(np.zeros(instance.groups, np.int64), np.arange(0))
    return prior.tables([state])[0]


def in_other_units(instance: DeploymentInstance, seconds: float, size: float) -> DeploymentInstance:
    """The same with other units of time and of bytes."""
    data = instance.model_dump(mode="json")
    for operator in data["operators"]:
        operator["times_s"] = {kind: [seconds * t for t in times] for kind, times in operator["times_s"].items()}
        operator["gradient_bytes"] *= size
        operator["resident_bytes"] *= size
    for tensor in data["tensors"]:
        tensor["size_bytes"] *= size
    for group in data["device_groups"]:
        group["memory_bytes"] *= size
        group["bandwidth_bytes_per_s"] *= size / seconds
    data["bandwidth_bytes_per_s"] = (instance.bandwidth_bytes_per_s * size / seconds).tolist()
    data["latency_s"] *= seconds
    cost = data["all_reduce"]
    cost["s_per_byte"] = [a * seconds / size for a in cost["s_per_byte"]]
    cost["fixed_s"] = [b * seconds for b in cost["fixed_s"]]
    cost["at_bytes_per_s"] *= size / seconds
    return DeploymentInstance.from_data(data)


@pytest.mark.parametrize("name", priors.known())
def test_priors_are_probabilities_and_rule_nothing_out(name):
    instance = drawn(1)
    rater = PlanRater(instance, ("even",))
    table = rows(priors.prior_named(name, rater, Clock(Limits(), None)), instance)
    assert table.shape == (4, len(rater.actions))
    assert (table > 0).all()
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-12)
    assert (table.std(axis=1).max() > 1e-3) == (name != "uniform")


def test_prior_of_the_bound_prefers_the_only_device_that_is_worth_anything():
    """One device computes a thousand times as fast as the other, and nothing is gained by both."""
    data = {
        "name": "unlike",
        "operators": [{"name": f"o{k}", "group": k, "times_s": {"slow": [1000.0], "fast": [1.0]}} for k in range(3)],
        "tensors": [{"producer": k, "consumers": [k + 1], "size_bytes": 1} for k in range(2)],
        "device_groups": [
            {"type": kind, "count": 1, "memory_bytes": 10, "bandwidth_bytes_per_s": 1} for kind in ("slow", "fast")
        ],
        "bandwidth_bytes_per_s": [[0, 1], [1, 0]],
    }
    rater = PlanRater(DeploymentInstance.from_data(data), ("even",))
    table = rows(from_bound(rater, Clock(Limits(), None)), rater.instance)
    # Model parallelism on both may have all operators on the fast one; a split by speed is not offered.
    poor = [Action((0,), "all_reduce"), *(Action((0, 1), mode) for mode in ("all_reduce", "parameter_server"))]
    worst = [rater.actions.index(action) for action in poor]
    np.testing.assert_allclose(table[:, worst], 0.25 / len(rater.actions), rtol=0.1)


def test_prior_of_the_bound_is_uniform_where_time_is_up():
    instance = drawn(1)
    rater = PlanRater(instance, ("even",))
    clock = Clock(Limits(), None)
    clock.interrupted = True
    table = rows(from_bound(rater, clock), instance)
    np.testing.assert_array_equal(table, rows(priors.uniform(rater), instance))


@pytest.mark.parametrize("prior", ["bound", "learned"])
def test_same_seed_same_answer_and_the_plan_is_checked(prior):
    instance = drawn(3)
    first, second = (Tag(prior, playouts=100).solve(instance, Limits(), 5) for _ in range(2))
    assert first.method == f"tag:prior={prior}"
    assert first.checked
    assert first.details["playouts"] == 100
    assert first.solution == second.solution


def test_features_have_their_shapes_and_are_finite():
    instance = drawn(4, groups=5)
    offered = actions(instance)
    made = features(instance, offered)
    assert made.nodes.shape == (5, NODE_FEATURES)
    assert made.edges.shape == (5, 5)
    assert made.actions.shape == (5, len(offered), ACTION_FEATURES)
    assert all(np.isfinite(each).all() for each in made)
    np.testing.assert_array_equal(made.edges.sum(axis=1).round(12) % 1, 0)


@pytest.mark.parametrize(("seconds", "size"), [(1000.0, 1.0), (1.0, 1e-3), (8.0, 0.125)])
def test_features_are_free_of_units(seconds, size):
    instance = drawn(5)
    other = in_other_units(instance, seconds, size)
    for one, two in zip(features(instance, actions(instance)), features(other, actions(other)), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


def test_features_change_where_bandwidth_does():
    instance = drawn(5)
    data = instance.model_dump(mode="json")
    data["bandwidth_bytes_per_s"] = (10 * instance.bandwidth_bytes_per_s).tolist()
    other = DeploymentInstance.from_data(data)
    assert not np.allclose(features(instance, actions(instance)).nodes, features(other, actions(other)).nodes)


def test_weights_of_the_package_fit_the_network():
    assert {name: weight.shape for name, weight in trained().items()} == train_small.shapes()


def examples(count: int) -> list[train_small.Example]:
    """All groups want the action in which they would compute soonest."""
    made = []
    for seed in range(count):
        instance = drawn(10 + seed)
        given = features(instance, actions(instance, ("even",)))
        made.append(train_small.Example(given, given.actions[:, :, 11].argmin(axis=1)))
    return made


def test_training_needs_pytorch(monkeypatch):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr(pytorch.importlib, "import_module", refuse)
    with pytest.raises(OptionError, match=r"ddlopt\[learn\]"):
        train_small.fit([], 1, 0)


def test_training_learns_a_rule_and_repeats_itself():
    torch = pytest.importorskip("torch", reason="training needs PyTorch: pip install 'ddlopt[learn]'")
    torch.set_num_threads(1)
    given = examples(5)
    weights = train_small.fit(given, epochs=40, seed=3)
    assert {name: weight.shape for name, weight in weights.items()} == train_small.shapes()

    def loss(each: train_small.Example, of) -> float:
        table = probabilities(of, each.features)
        return -float(np.log(table[np.arange(len(each.chosen)), each.chosen]).mean())

    start = train_small.fit(given, epochs=0, seed=3)
    assert sum(loss(each, weights) for each in given) < 0.6 * sum(loss(each, start) for each in given)
    again = train_small.fit(given, epochs=2, seed=3), train_small.fit(given, epochs=2, seed=3)
    assert all(np.array_equal(again[0][name], again[1][name]) for name in weights)


def test_network_in_numpy_is_that_of_pytorch():
    torch = pytest.importorskip("torch", reason="training needs PyTorch: pip install 'ddlopt[learn]'")
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=shape) / math.sqrt(shape[0]) for name, shape in train_small.shapes().items()}
    instance = drawn(7, groups=6)
    given = features(instance, actions(instance))
    scores = train_small._scores(
        torch, {name: torch.tensor(each) for name, each in weights.items()}, *map(torch.tensor, given)
    )
    expected = torch.softmax(scores, dim=1).numpy()
    np.testing.assert_allclose(probabilities(weights, given), expected, rtol=1e-9)
