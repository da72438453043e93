"""The larger prior: what it sees of a simulated step, the network against plain loops, and plans without a search."""

import math

import numpy as np
import pytest
from deployment_plans import random_instance
from volume import for_each

from ddlopt.analysis.lab.plan_prior import graph_network
from ddlopt.analysis.lab.plan_prior.beam import beam
from ddlopt.analysis.lab.plan_prior.expert import searched
from ddlopt.analysis.lab.plan_prior.feedback import Observer
from ddlopt.analysis.lab.plan_prior.graph import FEATURES, Inputs, StateGraph
from ddlopt.analysis.lab.plan_prior.graph_network import EDGES, HEADS, HIDDEN, ROUNDS, log_probabilities, shapes
from ddlopt.analysis.lab.plan_prior.priors import GraphPrior
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import DeploymentInstance
from ddlopt.models.deployment.plan.simulator.simulate import _run
from ddlopt.models.deployment.plan.simulator.tasks import Expansion
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.priors import State, TablePrior
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.deployment.plan.tag import Tag, TreeSearch
from ddlopt.solvers.heuristic import Clock


def drawn(seed: int, **options) -> DeploymentInstance:
    return generate("random", seed, **{"groups": 4, "device_groups": 3, "memory": 4.0} | options)


def weights(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) / math.sqrt(shape[0]) for name, shape in shapes().items()}


@for_each("seed", range(6))
def test_feedback_is_that_of_the_readable_simulator(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, operators=10, groups=3, device_groups=2)
    rater = PlanRater(instance)
    plain = [number for number, action in enumerate(rater.actions) if action.mode != "parameter_server"]
    for _ in range(5):
        row = rng.choice(plain, size=3)
        seen = Observer(rater.simulator).see(row)
        run = _run(Expansion(instance, rater.simulator.deployment(row), float))
        assert seen.time_s == pytest.approx(run.now / run.per_s, rel=1e-12)
        times = {id(task): (start / run.per_s, finish / run.per_s) for task, start, finish in run.log}
        spans, idle = np.zeros(3), np.zeros(3)
        for place, operator in enumerate(instance.operators):
            own = [task for task, _, _ in run.log if task.kind == "compute" and task.operator == place]
            starts, ends = zip(*(times[id(task)] for task in own), strict=True)
            waits = [times[id(later)][0] - times[id(task)][1] for task in own for later in task.next]
            share = len(instance.members[operator.group])
            spans[operator.group] += (max(ends) - min(starts)) / share
            idle[operator.group] += max(0.0, min(waits, default=0.0)) / share
        np.testing.assert_allclose(seen.span_s, spans, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(seen.idle_after_s, idle, rtol=1e-9, atol=1e-9 * seen.time_s)
        busy = {str(resource): units / run.per_s for resource, units in run.busy.items()}
        for device in range(instance.devices):
            assert seen.busy_s[device] == pytest.approx(busy.get(f"device {device}", 0.0), rel=1e-9)
        for source, target in ((0, 1), (1, 0)):
            assert seen.link_s[source, target] == pytest.approx(busy.get(f"group link {source} {target}", 0), rel=1e-9)
        assert seen.channel_s == pytest.approx(busy.get("collective", 0.0), rel=1e-9)


def by_loops(own: dict[str, np.ndarray], inputs: Inputs) -> np.ndarray:
    """The network for the first state, written edge by edge."""

    def normal(nodes):
        return [(each - each.mean()) / np.sqrt(each.var() + 1e-5) for each in nodes]

    nodes = {
        "op": [np.tanh(each @ own["in/op"] + own["in/op/b"]) for each in inputs.ops[0]],
        "device": [np.tanh(each @ own["in/device"] + own["in/device/b"]) for each in inputs.devices[0]],
    }
    width = HIDDEN // HEADS

    def edge(name, target, source):
        """Features of one edge, None where there is none."""
        if name in ("prev", "succ"):
            found = inputs.passed[target, source] if name == "prev" else inputs.passed[source, target]
            return found if found[0] > 0 else None
        if name == "place":
            return inputs.place[0, source, target]
        return inputs.place[0, target, source] if name == "serve" else inputs.link[0, target, source]

    for k in range(ROUNDS):
        level = {kind: normal(each) for kind, each in nodes.items()}
        for kind in ("op", "device"):
            for place in range(len(level[kind])):
                target, messages = level[kind][place], []
                for name, (source_kind, target_kind, _) in EDGES.items():
                    if target_kind != kind:
                        continue
                    w = {part: own[f"{k}/{name}/{part}"] for part in ("value", "edge", "from", "to", "along")}
                    told = np.zeros(HIDDEN)
                    for head in range(HEADS):
                        total, part = 0.0, np.zeros(width)
                        cut = slice(head * width, (head + 1) * width)
                        for number, source in enumerate(level[source_kind]):
                            along = edge(name, place, number)
                            if along is None:
                                continue
                            score = (source @ w["from"] + target @ w["to"] + along @ w["along"])[head]
                            share = np.exp(score if score > 0 else 0.2 * score)
                            total += share
                            part += share * (source @ w["value"] + along @ w["edge"])[cut]
                        told[cut] = part / total if total else 0.0
                    messages.append(told)
                joined = np.concatenate([target, np.mean(messages, axis=0)])
                nodes[kind][place] = nodes[kind][place] + np.tanh(joined @ own[f"{k}/{kind}"] + own[f"{k}/{kind}/b"])
    ops, devices = normal(nodes["op"]), normal(nodes["device"])
    scores = np.empty(inputs.actions.shape[:2])
    for group, actions in enumerate(inputs.actions):
        for action, features in enumerate(actions):
            seen = []
            for device, has in zip(devices, inputs.chosen[action], strict=True):
                first = np.tanh(np.append(device, has) @ own["out/device"] + own["out/device/b"])
                seen.append(np.tanh(first @ own["out/device2"] + own["out/device2/b"]))
            hidden = np.mean(seen, axis=0) @ own["out/chosen"] + ops[group] @ own["out/op"]
            scores[group, action] = np.tanh(hidden + features @ own["out/action"] + own["out/b"]) @ own["out/score"]
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


def states(instance: DeploymentInstance, seed: int, count: int = 2) -> Inputs:
    rater, rng = PlanRater(instance), np.random.default_rng(seed)
    graph = StateGraph(rater)
    rows = rng.integers(len(rater.actions), size=(count, instance.groups))
    return graph.inputs([graph.see(row, np.arange(k)) for k, row in enumerate(rows)])


def test_network_is_that_of_plain_loops():
    own, inputs = weights(0), states(drawn(7, groups=3, device_groups=2), 1)
    table = np.exp(log_probabilities(np, own, inputs))
    np.testing.assert_allclose(table[0], by_loops(own, inputs), rtol=1e-9)
    other = np.exp(log_probabilities(np, own, Inputs(*(each[1:] for each in inputs[:4]), *inputs[4:])))
    np.testing.assert_allclose(table[1], other[0], rtol=1e-9)
    assert not np.allclose(table[0], table[1])


def test_numpy_and_pytorch_agree():
    torch = pytest.importorskip("torch", reason="training needs PyTorch: pip install 'ddlopt[learn]'")
    own, inputs = weights(1), states(drawn(8, groups=5), 2)
    tensors = {name: torch.tensor(each) for name, each in own.items()}
    expected = log_probabilities(torch, tensors, Inputs(*(torch.tensor(each) for each in inputs))).numpy()
    np.testing.assert_allclose(log_probabilities(np, own, inputs), expected, rtol=1e-9)


def test_names_of_device_groups_do_not_matter_to_the_network():
    """The actions' scores follow their device groups to whatever places these have."""
    own, inputs = weights(2), states(drawn(9), 3)
    order = np.array([2, 0, 1])
    moved = inputs._replace(
        devices=inputs.devices[:, order],
        place=inputs.place[:, :, order],
        link=inputs.link[:, order][:, :, order],
        chosen=inputs.chosen[:, order],
    )
    np.testing.assert_allclose(log_probabilities(np, own, moved), log_probabilities(np, own, inputs), rtol=1e-9)


def test_inputs_have_their_shapes_and_change_with_the_plan():
    instance = drawn(4, groups=5)
    inputs = states(instance, 0)
    actions = len(PlanRater(instance).actions)
    assert inputs.ops.shape == (2, 5, FEATURES["op"])
    assert inputs.devices.shape == (2, 3, FEATURES["device"])
    assert inputs.place.shape == (2, 5, 3, FEATURES["place"])
    assert inputs.link.shape == (2, 3, 3, FEATURES["link"])
    assert inputs.passed.shape == (5, 5, FEATURES["passed"])
    assert inputs.actions.shape == (5, actions, FEATURES["action"])
    assert all(np.isfinite(each).all() for each in inputs)
    assert all(not np.array_equal(each[0], each[1]) for each in inputs[:4])


def test_weights_of_the_package_fit_the_network():
    from ddlopt.analysis.lab.plan_prior.network import trained
    from ddlopt.analysis.lab.plan_prior.priors import GRAPH_WEIGHTS

    assert {name: each.shape for name, each in trained(GRAPH_WEIGHTS).items()} == shapes()


def test_rounds_are_seen(monkeypatch):
    own, inputs = weights(3), states(drawn(5), 4)
    whole = log_probabilities(np, own, inputs)
    monkeypatch.setattr(graph_network, "ROUNDS", ROUNDS - 1)
    assert not np.allclose(whole, log_probabilities(np, own, inputs))


def table_of(rater: PlanRater, row: np.ndarray, sure: float) -> TablePrior:
    count = len(rater.actions)
    table = np.full((len(row), count), (1 - sure) / (count - 1))
    table[np.arange(len(row)), row] = sure
    return TablePrior(table)


def test_beam_finds_what_the_prior_says():
    instance = drawn(3, groups=5)
    rater = PlanRater(instance, ("even",))
    row = np.random.default_rng(0).integers(len(rater.actions), size=5)
    said_s = beam(rater, table_of(rater, row, 0.6), 1, Clock(Limits(), None))
    assert said_s == PlanRater(instance, ("even",)).rate(row).time_s
    assert beam(rater, table_of(rater, row, 0.6), 4, Clock(Limits(), None)) == said_s


def test_beam_finds_a_plan_that_is_likelier_than_one_step_at_a_time():
    """The second likeliest action of the first group is followed by a sure one, the likeliest by none."""
    instance = drawn(3, groups=2)

    class TwoSteps(TablePrior):
        def tables(self, given):
            table = np.full((len(given), *self.table.shape), 1e-3)
            order = PlanRater(instance, ("even",)).by_work
            for k, (row, decided) in enumerate(given):
                if not len(decided):
                    table[k, order[0], :2] = 0.5, 0.4
                elif row[order[0]] == 0:
                    table[k, order[1]] = 1 / table.shape[2]
                else:
                    table[k, order[1], 3] = 0.9
            return table

    rater = PlanRater(instance, ("even",))
    prior, clock = TwoSteps(np.zeros((2, len(rater.actions)))), Clock(Limits(), None)
    greedy_s, said_s = (beam(PlanRater(instance, ("even",)), prior, width, clock) for width in (1, 2))
    row = np.empty(2, np.int64)
    row[rater.by_work] = 1, 3
    assert said_s == rater.rate(row).time_s
    assert greedy_s != said_s


def test_tree_comes_to_the_plan_of_a_sure_prior_and_asks_for_its_states():
    instance = drawn(6, groups=5)
    rater = PlanRater(instance, ("even",))
    row = searched(PlanRater(instance, ("even",)), 500, 0)
    asked = []

    class Noting(TablePrior):
        def tables(self, given):
            asked.extend(given)
            return super().tables(given)

    search = TreeSearch(rater, Noting(table_of(rater, row, 1 - 1e-6).table), np.random.default_rng(0))
    for _ in range(60):
        search.playout()
    assert rater.best_rating.time_s <= PlanRater(instance, ("even",)).rate(row).time_s
    order = rater.by_work
    assert len(asked[0].decided) == 0
    np.testing.assert_array_equal(asked[0].row, rater.baseline())
    for state in asked[1:]:
        depth = len(state.decided)
        np.testing.assert_array_equal(state.decided, order[:depth])
        assert (state.row[order[depth:]] == state.row[order[0]]).all()
    assert any(np.array_equal(state.row[order[:4]], row[order[:4]]) for state in asked if len(state.decided) == 4)


def test_filled_playouts_begin_with_what_the_prior_prefers():
    instance = drawn(6, groups=5)
    rater = PlanRater(instance, ("even",))
    row = np.random.default_rng(2).integers(len(rater.actions), size=5)
    said_s = rater.rate(row).time_s
    seen = []
    rate = rater.rate

    def noting(offer, **options):
        seen.append(offer.copy())
        return rate(offer, **options)

    search = TreeSearch(rater, table_of(rater, row, 0.9), np.random.default_rng(0), "prior")
    rater.rate = noting
    for _ in range(20):
        search.playout()
    np.testing.assert_array_equal(seen[0], row)
    assert rater.best_rating.time_s <= said_s
    # Each differs from what the prior prefers in the groups that are decided alone, and the first in none of the rest.
    order = rater.by_work
    alone = [offer for offer in seen if (offer[order[1:]] == row[order[1:]]).all()]
    assert len(alone) > 1


@pytest.mark.parametrize(
    ("options", "spelled"),
    [
        ({}, ""),
        ({"fill": "prior"}, ",fill=prior"),
    ],
)
def test_same_seed_same_answer(options, spelled):
    instance = drawn(3)
    made = Tag("graph", playouts=100, **options)
    first, second = (made.solve(instance, Limits(), 5) for _ in range(2))
    assert first.method == "tag:prior=graph" + spelled
    assert first.checked
    assert first.solution == second.solution


def test_probabilities_are_of_one():
    instance = drawn(3)
    rater = PlanRater(instance)
    prior = GraphPrior(rater, weights(5))
    row = rater.baseline()
    table = prior.tables([State(row, np.arange(0)), State(row, np.arange(2))])
    assert table.shape == (2, 4, len(rater.actions))
    np.testing.assert_allclose(table.sum(axis=2), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fill": "prior"}, "fill=prior takes a prior that prefers something"),
        ({"fill": "second", "prior": "graph"}, "use one of: first, prior"),
    ],
)
def test_options_that_do_nothing_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        Tag(**options)
