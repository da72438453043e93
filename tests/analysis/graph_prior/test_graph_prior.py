"""What the graph network is trained on, and that training learns."""

import numpy as np
import pytest

from ddlopt.analysis.graph_prior import fit as fitting
from ddlopt.analysis.graph_prior.drawn import instances
from ddlopt.analysis.graph_prior.examples import imitation, searched, self_play
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.errors import OptionError
from ddlopt.solvers.deployment.plan.prior.graph import Inputs
from ddlopt.solvers.deployment.plan.prior.graph_network import log_probabilities
from ddlopt.solvers.deployment.plan.rater import PlanRater


def drawn(seed: int):
    return generate("random", seed, groups=8, device_groups=2, memory=4.0)


def test_instances_are_the_same_for_a_seed_and_not_those_of_the_library():
    first, second = list(instances(4, 3)), list(instances(4, 3))
    assert [each.digest for each in first] == [each.digest for each in second]
    assert len({each.digest for each in first} | {each.digest for each in instances(4, 4)}) == 8
    assert first[3].name.startswith("random")
    for network in ("vgg19", "resnet101", "inception", "bert-small", "bert-large", "transformer-base"):
        assert not any(each.name.startswith(network) for each in first)


def test_imitation_says_what_is_good_beside_the_plan():
    instance = drawn(1)
    rater = PlanRater(instance, ("even",))
    best = searched(rater, 2000, 0)
    made = imitation(instance, False, 2000, 8, 0)
    assert made.target.shape == (8, 8, len(rater.actions))
    np.testing.assert_allclose(made.target.sum(axis=2), 1, rtol=1e-5)
    np.testing.assert_allclose(made.weight.sum(axis=1), 1, rtol=1e-5)
    time_s = rater.rate(best).time_s
    for group in range(8):
        offer = best.copy()
        offer[group] = made.target[0, group].argmax()
        assert rater.rate(offer).time_s <= time_s * (1 + 1e-12)
    # States go from nothing decided to all but one group, and what is decided counts no more.
    assert [(each == 0).sum() for each in made.weight] == list(range(8))


def test_self_play_says_what_was_visited():
    instance = drawn(2)
    made, again = (self_play(instance, None, 100, 0) for _ in range(2))
    assert made.target.shape[:2] == (2, 8)
    assert np.array_equal(made.target, again.target)
    order = PlanRater(instance, ("even",)).by_work
    for depth in range(2):
        assert made.weight[depth].argmax() == order[depth]
        assert made.weight[depth].sum() == 1
        shares = made.target[depth, order[depth]]
        assert shares.sum() == pytest.approx(1, rel=1e-5)
        assert shares * 100 == pytest.approx(np.round(shares * 100), abs=1e-3)


def test_training_needs_pytorch(monkeypatch):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr(fitting.importlib, "import_module", refuse)
    with pytest.raises(OptionError, match=r"ddlopt\[learn\]"):
        fitting.fit([], {}, 1, 0)


def test_training_learns_and_repeats_itself():
    torch = pytest.importorskip("torch", reason="training needs PyTorch: pip install 'ddlopt[learn]'")
    torch.set_num_threads(1)
    given = [imitation(drawn(seed), False, 300, 8, 0) for seed in (3, 4)]
    begin = fitting.start(1)

    def loss(weights) -> float:
        lost = 0.0
        for inputs, target, weight in given:
            table = log_probabilities(np, weights, Inputs(*inputs))
            # What is left of the cross entropy with the entropy of the target, which no weights go below.
            beyond = target * (np.log(np.maximum(target, 1e-30)) - table)
            lost += float((weight * beyond.sum(-1)).sum())
        return lost

    one, two = (fitting.fit(given, begin, 40, 1) for _ in range(2))
    assert loss(one) < 0.85 * loss(begin)
    assert all(np.array_equal(one[name], two[name]) for name in one)
