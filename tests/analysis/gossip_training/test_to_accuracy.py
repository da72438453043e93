"""Time to an accuracy: tuning, controls, messages that are late."""

import math

import numpy as np
import pytest
from refusals import one_line
from volume import for_each

from ddlopt.analysis.gossip_training.clocks import Timing
from ddlopt.analysis.gossip_training.data import batches, shards_of, split_of
from ddlopt.analysis.gossip_training.mixing import _plan, uniform
from ddlopt.analysis.gossip_training.policies import label_of, policy_of
from ddlopt.analysis.gossip_training.to_accuracy import Race
from ddlopt.analysis.gossip_training.training import Training, train
from ddlopt.instances.generators.gossip.graphs import network_of
from ddlopt.models.errors import OptionError


def training(shape="cycle", nodes=4, **options):
    network = network_of(np.random.default_rng(0), shape, nodes, 3)
    return Training(network, **{"data": "wine", "epochs": 8, "batch": 8, "hidden": (5,)} | options)


@pytest.fixture(scope="module")
def race():
    timings = {"even": Timing(message_s=2.0), "slow": Timing(message_s=2.0, slow_chance=0.3, slow_factor=8.0)}
    return Race(training(), timings, 0.9, rates=(1e-4, 0.1, 0.4), every=2, tuning=(7, 8), seeds=(0, 1, 2))


def test_the_clock_stops_at_the_first_moment_that_is_accurate_enough(race):
    policy = policy_of("period:2")
    found = race.run(policy, 0.4, 0)
    whole = train(training(rate=0.4), policy, 0, training().steps // 2)
    first = next(moment for moment in whole.moments if moment.averaged >= 0.9)
    assert (found.steps, found.models) == (first.steps, first.models)
    assert found.seconds[0] == first.steps + 2.0 * first.models
    assert found.seconds[1] > found.seconds[0]
    assert found.best == first.averaged


def test_a_target_that_is_not_reached_takes_for_ever(race):
    policy = policy_of("none")
    found = race.run(policy, 1e-4, 0)
    assert found.seconds == (math.inf, math.inf)
    assert found.steps == race.training.steps
    lazy = Race(race.training, race.timings, 0.9, rates=(1e-4,), tuning=(7,), seeds=(0,)).row(policy, "even")
    assert lazy.reached == 0
    assert math.isnan(lazy.seconds.mean)


@for_each("timing", ["even", "slow"])
def test_rates_are_those_that_tuning_seeds_find_best(race, timing):
    policy = policy_of("dpsgd")
    at = list(race.timings).index(timing)

    def loss(rate):
        seconds = [race.run(policy, rate, seed).seconds[at] for seed in (7, 8)]
        return sum(each == math.inf for each in seconds), np.mean(seconds)

    assert loss(race.rate_of(policy, timing)) == min(map(loss, race.rates))
    row = race.row(policy, timing)
    runs = [race.run(policy, row.rate, seed) for seed in (0, 1, 2)]
    assert row.seconds.mean == pytest.approx(np.mean([run.seconds[at] for run in runs if run.seconds[at] < math.inf]))
    assert row.rate > 1e-4


def test_ratios_are_paired_by_seed(race):
    one, two = policy_of("dpsgd"), policy_of("period:2")
    rates = [race.rate_of(policy, "even") for policy in (one, two)]
    first, second = (
        [race.run(policy, rate, seed).seconds[0] for seed in range(3)]
        for policy, rate in zip((one, two), rates, strict=True)
    )
    wanted = [mine / other for mine, other in zip(first, second, strict=True) if max(mine, other) < math.inf]
    assert race.ratio(one, two, "even").mean == pytest.approx(np.mean(wanted))


def test_controls_send_as_much_in_a_step(race):
    policy = policy_of("matcha:0.3")
    traffic = race.row(policy, "even").traffic
    period, matchings = race.controls(policy, "even")
    assert 1 / period.every <= traffic < 1 / (period.every - 1)
    assert period.spread
    long = train(training(epochs=400), matchings)
    assert long.traffic == pytest.approx(traffic, rel=0.1)
    assert matchings.plan == "equal-activation"
    assert race.controls(policy_of("none"), "even") == (None, None)
    assert race.controls(policy_of("period:1"), "even")[0] is None


def test_equally_likely_matchings_send_as_much_as_is_asked_for():
    network = network_of(np.random.default_rng(0), "random", 7, 3)
    all_of_them = 2 * len(network.edges) / 7
    assert uniform(network, 1.01 * all_of_them) is None
    for part in (1.0, 0.25):
        policy = uniform(network, part * all_of_them)
        plan = _plan(network, policy.budget, policy.plan)
        sent = sum(p * 2 * len(edges) / 7 for p, edges in zip(plan.probabilities, plan.matchings, strict=True))
        assert sent == pytest.approx(part * all_of_them, rel=0.01)
        assert len(set(plan.probabilities)) == 1
        assert label_of(policy).endswith("plan=equal-activation")


# --- messages that are late


def test_late_messages_move_models_later_by_as_much():
    """Periodic averaging at step 3 of 6, two steps late: what it moved is added after step 5."""
    late, prompt = training(epochs=2, late=2), training(epochs=2)
    policy, steps = policy_of("all-reduce:3"), prompt.steps
    rng = np.random.default_rng([1, 0])
    split, learners = split_of("wine", rng), prompt.learners
    shards = shards_of(split.classes, 4, "iid", rng)
    models, moved = np.tile(learners.fresh(rng), (4, 1)), {}
    distances = []
    for step, chosen in enumerate(batches(shards, 8, 2, rng)):
        models = models - prompt.rate_at(step) * learners.gradients(
            models, split.samples[chosen], split.classes[chosen]
        )
        if (step + 1) % 3 == 0:
            moved[step + 2] = models.mean(axis=0) - models
        models = models + moved.get(step, 0.0)
        distances.append(float(np.sqrt(((models - models.mean(axis=0)) ** 2).sum(axis=1).mean())))
    found = train(late, policy, 1, moments=steps)
    assert [moment.distance for moment in found.moments] == pytest.approx(distances)
    assert found.moments != train(prompt, policy, 1, moments=steps).moments
    assert found.models == train(prompt, policy, 1).models


@for_each(
    ("change", "said"),
    [
        ({"target": 0.0}, "target is 0; expected an accuracy above 0"),
        ({"of": "best"}, "of is 'best'; expected averaged or worker"),
        ({"every": 0}, "every is 0; expected at least 1 step"),
        ({"tuning": (3,), "seeds": (2, 3)}, "seed 3 is for tuning and for the report"),
    ],
)
def test_bad_races_are_one_line(change, said):
    with one_line(OptionError, said):
        Race(training(), {"even": Timing()}, **change)


def test_messages_cannot_be_early():
    with one_line(OptionError, "late is -1; expected 0 or more steps"):
        training(late=-1)
