"""The simulator of decentralised SGD, and policies of exchange."""

import itertools
import sys

import numpy as np
import pytest
from refusals import one_line
from volume import for_each

from ddlopt.analysis.gossip_training.data import batches, data_of, shards_of, split_of
from ddlopt.analysis.gossip_training.exchange import Place
from ddlopt.analysis.gossip_training.learners import Learners
from ddlopt.analysis.gossip_training.mixing import RULES, _plan, mixing_matrix
from ddlopt.analysis.gossip_training.policies import POLICIES, label_of, policy_of
from ddlopt.analysis.gossip_training.pushes import push
from ddlopt.analysis.gossip_training.training import Training, ratio_of, train
from ddlopt.instances.generators.gossip.graphs import network_of
from ddlopt.instances.workloads.digits import Perceptron
from ddlopt.models.errors import OptionError
from ddlopt.models.gossip.spectral.laplacians import laplacian

ROUNDING = 1e-12


def graph(shape="complete", nodes=4, degree=3):
    return network_of(np.random.default_rng(0), shape, nodes, degree)


def tiny(network=None, **options):
    return Training(network or graph(), **{"data": "wine", "epochs": 3, "batch": 8, "hidden": (5,)} | options)


def place(network, size=60, seed=0, spread=1.0):
    """A place with models that differ, in tensors of which the last is a third."""
    rng = np.random.default_rng(seed)
    first = rng.standard_normal((network.nodes, size)) * spread
    return Place(network, first, (slice(0, size // 3), slice(size // 3, size)), rng)


# --- perceptrons


def test_gradients_are_those_of_finite_differences():
    rng = np.random.default_rng(1)
    learners = Learners((5, 4, 3, 3))
    models = np.stack([learners.fresh(rng) for _ in range(3)]) + 0.05 * rng.standard_normal((3, learners.size))
    samples, classes = rng.standard_normal((3, 6, 5)), rng.integers(0, 3, (3, 6))
    found = learners.gradients(models, samples, classes)
    for k in range(learners.size):
        move = np.zeros(learners.size)
        move[k] = 1e-6
        ahead, behind = (learners.loss(models + s * move, samples, classes) for s in (1, -1))
        assert found[:, k] == pytest.approx((ahead - behind) / 2e-6, abs=1e-7)


def plain_sgd(training, seed, groups):
    """Accuracy of perceptrons trained one after the other, each on the batches of a group of workers.

    By the perceptron of the training jobs, which is written on its own.
    """
    rng = np.random.default_rng([seed, 0])
    split = split_of(training.data, rng)
    shards = shards_of(split.classes, training.network.nodes, training.shards, rng)
    first, widths = training.learners.fresh(rng), training.learners.widths
    shapes = [shape for pair in itertools.pairwise(widths) for shape in (pair, pair[1:])]
    chosen = list(batches(shards, training.batch, training.epochs, rng))
    assert len(chosen) == training.steps
    accuracies = []
    for group in groups:
        tensors = zip(training.learners.tensors, shapes, strict=True)
        network = Perceptron([first[tensor].reshape(shape).T.copy() for tensor, shape in tensors])
        for step, batch in enumerate(chosen):
            own = batch[group].ravel()
            rate = training.rate / (1 + step / training.decay)
            network.step(network.gradients(split.samples[own], split.classes[own]), rate)
        accuracies.append(network.accuracy(split.held_out, split.held_out_classes))
    return accuracies


def test_without_exchange_every_worker_is_plain_sgd():
    training = tiny(data="digits", hidden=(7,), epochs=1, batch=16)
    accuracies = plain_sgd(training, 3, [[worker] for worker in range(4)])
    run = train(training, policy_of("none"), 3)
    assert run.end.worker == pytest.approx(np.mean(accuracies), abs=ROUNDING)
    assert run.traffic == run.messages == 0
    assert run.end.distance > 0.01


def test_all_reduce_in_every_step_is_sgd_with_the_batches_of_all():
    training = tiny(data="digits", hidden=(7,), epochs=1, batch=16, shards="sorted")
    (accuracy,) = plain_sgd(training, 3, [[0, 1, 2, 3]])
    run = train(training, policy_of("all-reduce"), 3)
    assert run.end.averaged == pytest.approx(accuracy, abs=ROUNDING)
    assert run.end.worker == pytest.approx(accuracy, abs=ROUNDING)
    assert run.end.distance == pytest.approx(0, abs=ROUNDING)


# --- data


def test_shards_are_disjoint_and_sorted_ones_know_few_classes():
    classes = data_of("digits")[1]
    for kind, most in (("iid", 10), ("sorted", 3)):
        shards = shards_of(classes, 8, kind, np.random.default_rng(0))
        assert shards.shape == (8, len(classes) // 8)
        assert len(np.unique(shards)) == shards.size
        known = [len(np.unique(classes[own])) for own in shards]
        assert max(known) <= most
        assert kind == "sorted" or min(known) == 10


def test_an_epoch_shows_every_sample_once():
    shards = np.arange(24).reshape(2, 12)
    seen = list(batches(shards, 4, 2, np.random.default_rng(0)))
    assert len(seen) == 6
    for epoch in (seen[:3], seen[3:]):
        assert (np.sort(np.hstack(epoch), axis=1) == shards).all()
    assert (np.hstack(seen[:3]) != np.hstack(seen[3:])).any()


@pytest.mark.parametrize("name", ["wine", "iris", "breast_cancer"])
def test_features_are_scaled_by_what_is_trained_on(name):
    split = split_of(name, np.random.default_rng(0))
    assert split.samples.mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert split.samples.std(axis=0) == pytest.approx(1)
    assert len(split.classes) + len(split.held_out_classes) == len(data_of(name)[1])
    assert np.abs(split.held_out.mean(axis=0)).max() > 1e-3


@pytest.mark.parametrize("name", ["digits", "wine"])
def test_without_scikit_learn_there_is_one_line(name, monkeypatch):
    from ddlopt.instances.workloads.digits import images

    for known in (images, data_of):
        known.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(OptionError, match=r"scikit-learn, which is missing; pip install 'ddlopt\[train\]'"):
        tiny(data=name)


# --- traffic, by hand


@pytest.mark.parametrize(
    ("policy", "shape", "traffic", "messages"),
    [
        ("period:1", "complete", 1.0, 12.0),
        ("period:5", "complete", 2 / 12, 2.0),
        ("period:5,spread=yes", "complete", 2.25 / 12, 2.25),
        ("none", "cycle", 0.0, 0.0),
        ("dpsgd", "cycle", 2.0, 24.0),
        ("dpsgd:metropolis,every=4", "star", 3 * 1.5 / 12, 4.5),
        ("all-reduce", "complete", 1.5, 12 * 6.0),
        ("all-reduce:6", "complete", 0.25, 12.0),
        ("easgd:4", "complete", 0.5, 6.0),
        ("gosgd:1", "cycle", 1.0, 12.0),
        ("adaptive:0", "complete", 1.0, 12.0),
        ("adaptive:1e9", "complete", 0.0, 0.0),
        ("adaptive:0,check_every=3", "complete", 1 / 3, 4.0),
        ("adaptive:0,per_layer=yes", "complete", 1.0, 48.0),
        ("choco:none", "cycle", 2.0, 24.0),
        ("eventgrad:1,warm=99", "cycle", 2.0, 96.0),
        ("sparq:1e9", "cycle", 0.0, 0.0),
        ("matcha:1", "cycle", 2.0, 24.0),
    ],
)
def test_traffic_is_what_one_counts(policy, shape, traffic, messages):
    """Four workers, 12 steps; models of 4 tensors."""
    run = train(tiny(graph(shape), epochs=3), policy_of(policy))
    assert run.steps == 12
    assert (run.traffic, run.messages) == pytest.approx((traffic, messages))
    assert run.end.models == pytest.approx(run.models)


def test_compressed_messages_have_the_bytes_of_their_contents():
    training = tiny(graph("cycle"))
    size = training.learners.size
    assert size == 13 * 5 + 5 + 5 * 3 + 3
    signs = train(training, policy_of("choco:sign"))
    assert signs.models * signs.model_bytes == pytest.approx(12 * 2 * (size / 8 + 4))
    largest = train(training, policy_of("choco:top,keep=0.25"))
    assert largest.models * largest.model_bytes == pytest.approx(12 * 2 * round(size / 4) * 8)


def test_times_follow_the_traffic():
    run = train(tiny(), policy_of("period:4"))
    assert run.time(1.3) == run.time(1.3, barrier=True) == pytest.approx((1 + 1.3 / 4) / 2.3)
    star = train(tiny(graph("star")), policy_of("dpsgd"))
    assert star.time(2.0) == pytest.approx((1 + 2 * 1.5) / 3)
    assert star.time(2.0, barrier=True) == pytest.approx((1 + 2 * 3) / 3)


def test_the_ratio_of_the_published_claim():
    ratio = ratio_of(0.92, 0.52)
    assert ratio == pytest.approx(1.3)
    assert ratio / (1 + ratio) == pytest.approx(0.565, abs=5e-4)
    with pytest.raises(OptionError, match="cannot be saved"):
        ratio_of(0.5, 0.6)


# --- what policies do to models


@pytest.mark.parametrize("policy", ["all-reduce", "dpsgd:fdla"])
def test_models_stay_equal_under_exact_averaging(policy):
    """On a complete graph the fastest weights are those of the mean."""
    run = train(tiny(), policy_of(policy))
    assert run.end.distance < 1e-6
    assert run.end.worker == pytest.approx(run.end.averaged)


@for_each("policy", ["dpsgd", "dpsgd:metropolis", "dpsgd:fdla", "matcha:0.5", "choco:sign", "choco:top"])
@for_each("shape", ["cycle", "star"])
def test_symmetric_weights_keep_the_mean(policy, shape):
    where = place(graph(shape, 6))
    models = where.first.copy()
    models += where.rng.standard_normal(models.shape)
    mean, before = models.mean(axis=0), models.copy()
    exchange = policy_of(policy).begin(where)
    for step in range(5):
        exchange(models, step, 0.1)
        assert models.mean(axis=0) == pytest.approx(mean, abs=ROUNDING)
    assert np.abs(models - before).max() > 1e-3


@for_each("rule", RULES)
def test_mixing_matrices_are_symmetric_and_doubly_stochastic(rule):
    network = graph("star", 5)
    matrix = mixing_matrix(network, rule)
    assert (matrix == matrix.T).all()
    assert matrix.sum(axis=0) == pytest.approx(1)
    assert np.abs(np.linalg.eigvalsh(matrix - 0.2)).max() < 1 + 1e-9


def test_choco_without_compression_is_gossip():
    network = graph("cycle", 5)
    ours, theirs = place(network), place(network)
    models, others = ours.first + 1.0, theirs.first + 1.0
    models[2] += 3.0
    others[2] += 3.0
    choco = policy_of("choco:none,step=1").begin(ours)
    gossip = policy_of("dpsgd").begin(theirs)
    for step in range(4):
        choco(models, step, 0.1)
        gossip(others, step, 0.1)
        assert models == pytest.approx(others, abs=ROUNDING)


def test_choco_with_compression_reaches_consensus():
    where = place(graph("cycle", 5))
    models = where.first + where.rng.standard_normal(where.first.shape)
    mean = models.mean(axis=0)
    for policy, rounds in (("choco:sign", 400), ("choco:top,step=0.1", 400)):
        moved = models.copy()
        exchange = policy_of(policy).begin(where)
        for step in range(rounds):
            exchange(moved, step, 0.1)
        assert moved == pytest.approx(np.tile(mean, (5, 1)), abs=1e-2)


def test_a_receiver_takes_the_mean_of_all_that_arrives():
    models = np.array([[0.0], [2.0], [4.0], [10.0]])
    push(models, np.array([1, 2]), np.array([1, 0, 0, 0]), np.ones(4))
    assert models.ravel().tolist() == [2.0, 2.0, 4.0, 10.0]
    models = np.array([[0.0], [6.0]])
    assert push(models, np.array([1]), np.array([1, 0]), np.array([2.0, 1.0])).tolist() == [3.0, 1.0]
    assert models.ravel().tolist() == [2.0, 6.0]


def test_gosgd_keeps_the_weighted_mean():
    """The mean with its weights is kept by a push; with equal models nothing moves at all."""
    where = place(graph("cycle", 5))
    models, exchange = where.first.copy(), policy_of("gosgd:0.5").begin(where)
    before = models.copy()
    for step in range(300):
        exchange(models, step, 0.1)
    assert np.ptp(models, axis=0).max() < 1e-6
    assert (models.min(axis=0) >= before.min(axis=0) - ROUNDING).all()
    assert (models.max(axis=0) <= before.max(axis=0) + ROUNDING).all()


def test_gosgd_by_hand():
    """Worker 0 halves its weight and sends: worker 1 has (0 + 6 / 2) / 1.5; then it sends with half of 1.5."""

    class Drawn:
        numbers = iter([[0.1, 0.9], [0.5, 0.5], [0.9, 0.1], [0.5, 0.5]])

        def random(self, count):
            return np.array(next(self.numbers))

    where = Place(graph("complete", 2), np.zeros((2, 1)), (slice(0, 1),), Drawn())
    models, exchange = np.array([[6.0], [0.0]]), policy_of("gosgd:0.5").begin(where)
    assert exchange(models, 0, 0.1).messages.tolist() == [1, 0]
    assert models.ravel() == pytest.approx([6.0, 2.0])
    assert exchange(models, 1, 0.1).messages.tolist() == [0, 1]
    assert models.ravel() == pytest.approx([(0.5 * 6 + 0.75 * 2) / 1.25, 2.0])


def test_peers_are_neighbours_all_as_often():
    network = graph("star", 4)
    where = place(network)
    drawn = np.array([where.peers() for _ in range(3000)])
    assert (drawn[:, 1:] == 0).all()
    assert np.bincount(drawn[:, 0], minlength=4)[1:] / 3000 == pytest.approx(1 / 3, abs=0.05)
    assert 0 not in drawn[:, 0]


@for_each(
    ("options", "steps"),
    [
        ("0.33", [7, 16]),  # 0.66 of a vector of length 2, then 0.803 of one of length 2.43
        ("0.35,relative=absolute", [4, 8, 12, 16, 20]),
        ("3.5,relative=rate", [4, 8, 12, 16, 20]),
        ("0.35,norm=max", [4, 9, 16]),  # 0.35 of 1, 1.4 and 1.9
        ("0.35,relative=absolute,check_every=3", [6, 12, 18]),
    ],
)
def test_the_trigger_waits_for_the_change_since_it_sent(options, steps):
    """Both models (1, 1, 1, 1) grow by 0.1 in one place in each step, so that means change nothing."""
    first = np.ones((2, 4))
    where = Place(graph("complete", 2), first, (slice(0, 4),), np.random.default_rng(0))
    exchange, models, fired = policy_of(f"adaptive:{options}").begin(where), first.copy(), []
    for step in range(20):
        models[:, 0] += 0.1
        if exchange(models, step, 0.1).messages.any():
            fired.append(step + 1)
    assert fired == steps


def test_easgd_moves_workers_and_centre_by_hand():
    """α = 0.45: worker 1 gives 1.8 of its 4 to the centre, which then gives 0.81 to worker 0."""
    where = Place(graph("complete", 2), np.zeros((2, 1)), (slice(0, 1),), np.random.default_rng(0))
    models, exchange = np.array([[0.0], [4.0]]), policy_of("easgd:1").begin(where)
    exchange(models, 0, 0.1)
    assert models.ravel() == pytest.approx([0.0, 2.2])
    exchange(models, 1, 0.1)
    assert models.ravel() == pytest.approx([0.81, 2.02])


def test_choco_by_hand():
    """Estimates are wrong after compression, and it is they that are mixed."""
    where = Place(graph("path", 2), np.zeros((2, 2)), (slice(0, 2),), np.random.default_rng(0))
    first = np.array([[1.0, 3.0], [-4.0, 0.5]])
    # Signs times mean sizes, and the larger entries; both weights are 1/2, and half of that is stepped.
    for options, known in (
        ("sign,step=0.5", np.array([[2.0, 2.0], [-2.25, 2.25]])),
        ("top,keep=0.5,step=0.5", np.array([[0.0, 3.0], [-4.0, 0.0]])),
    ):
        models, exchange = first.copy(), policy_of(f"choco:{options}").begin(where)
        exchange(models, 0, 0.1)
        assert models == pytest.approx(first + 0.25 * (known[::-1] - known))


def test_eventgrad_is_silent_where_norms_do_not_change():
    """Norms, not differences: a vector that turns is not noticed."""
    network = graph("complete", 2)
    where = Place(network, np.array([[3.0, 4.0]] * 2), (slice(0, 2),), np.random.default_rng(0))
    exchange = policy_of("eventgrad:1,warm=0").begin(where)
    assert exchange(np.array([[3.0, 8.0]] * 2), 0, 0.1).messages.tolist() == [1, 1]
    assert exchange(np.array([[8.0, 3.0]] * 2), 1, 0.1).messages.tolist() == [0, 0]


# --- MATCHA


@pytest.mark.parametrize("options", ["0.4", "0.4,plan=matcha-edges", "0.4,plan=equal-activation", "1,plan=vanilla"])
def test_matcha_activates_as_often_as_its_plan_says(options):
    network, policy, rounds = graph("random", 7), policy_of(f"matcha:{options}"), 4000
    where = place(network)
    plan = _plan(network, policy.budget, policy.plan)
    exchange, models = policy.begin(where), where.first.copy()
    sent = np.mean([exchange(models, step, 0.1).messages for step in range(rounds)], axis=0)
    wanted = np.zeros(7)
    for probability, matching in zip(plan.probabilities, plan.matchings, strict=True):
        for edge in matching:
            wanted[list(network.edges[edge])] += probability
    assert sent == pytest.approx(wanted, abs=0.05)
    assert sum(plan.probabilities) <= policy.budget * max(network.degrees) + 1e-9


def test_matcha_with_all_matchings_is_gossip_with_the_weights_of_the_plan():
    network = graph("random", 7)
    where = place(network)
    weights = np.array(_plan(network, 2.0, "vanilla").weights)
    models = where.first.copy()
    policy_of("matcha:2,plan=vanilla").begin(where)(models, 0, 0.1)
    assert models == pytest.approx((np.eye(7) - laplacian(7, network.ends, weights)) @ where.first)


# --- names, seeds, bad options


@for_each("name", POLICIES)
def test_the_same_seed_is_the_same_run(name):
    network = graph("cycle", 5)
    first, again, other = (train(tiny(network), policy_of(name), seed) for seed in (4, 4, 5))
    assert first == again
    assert first.moments != other.moments


def test_policies_differ_in_nothing_but_the_exchange():
    """A policy that never sends is no exchange, whatever it draws."""
    silent, alone = (train(tiny(), policy_of(text), 2) for text in ("adaptive:1e9", "none"))
    assert silent.moments == alone.moments


@for_each(
    ("text", "label"),
    [
        ("none", "none"),
        ("period:12", "period:12"),
        ("period", "period:1"),
        ("adaptive:norm=max,threshold=0.1", "adaptive:0.1,norm=max"),
        ("adaptive:0.1,per_layer=on", "adaptive:0.1,per_layer=true"),
        ("sparq:4,keep=0.5", "sparq:4,keep=0.5"),
        ("dpsgd:fdla", "dpsgd:fdla"),
    ],
)
def test_labels_read_as_what_they_are_of(text, label):
    policy = policy_of(text)
    assert label_of(policy) == label
    assert policy_of(label) == policy


@for_each(
    ("text", "said"),
    [
        ("gossip", "there is no policy 'gossip'; expected one of none, period, adaptive"),
        ("none:3", "none has no options"),
        ("period:0", "every is 0; expected at least 1"),
        ("period:x", "every is 'x'; expected a whole number"),
        ("period:2.5", "every is '2.5'; expected a whole number"),
        ("adaptive:-1", "threshold is -1; expected at least 0"),
        ("adaptive:nan", "threshold is nan; expected at least 0"),
        ("adaptive:size=3", "adaptive has no option 'size'; expected one of threshold, norm"),
        ("adaptive:norm=l7", "norm is 'l7'; expected one of l2, max"),
        ("adaptive:per_layer=maybe", "per_layer is 'maybe'; expected yes or no"),
        ("gosgd:1.5", "probability is 1.5; expected above 0, at most 1"),
        ("matcha:0", "budget is 0; expected above 0, at most 2"),
        ("choco:zip", "compress is 'zip'; expected one of"),
        ("choco:keep=0", "keep is 0; expected above 0"),
        ("dpsgd:best", "weights is 'best'; expected one of equal, metropolis"),
    ],
)
def test_bad_policies_are_one_line(text, said):
    with one_line(OptionError, said):
        policy_of(text)


@for_each(
    ("options", "said"),
    [
        ({"data": "mnist"}, "there is no data set 'mnist'; expected one of digits"),
        ({"shards": "random"}, "shards is 'random'"),
        ({"epochs": 0}, "epochs is 0"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"hidden": ()}, "hidden is ()"),
        ({"batch": 40}, "4 workers have 35 samples of 'wine' each, fewer than the batch, 40"),
    ],
)
def test_bad_trainings_are_one_line(options, said):
    with pytest.raises(OptionError) as problem:
        tiny(**options)
    assert said in str(problem.value)


def test_all_pairs_of_policy_and_shape_work():
    for name, shape in itertools.product(POLICIES, ("complete", "star")):
        run = train(tiny(graph(shape, 3), epochs=1), policy_of(name), moments=2)
        assert len(run.moments) == 2
        assert np.isfinite(run.end.distance)
