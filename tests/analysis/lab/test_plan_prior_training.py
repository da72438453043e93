"""What the graph network is trained on, and that training learns."""

import math
from importlib.resources import files

import numpy as np
import pytest

from ddlopt.analysis import pytorch as learning
from ddlopt.analysis.lab.plan_prior import __main__ as command
from ddlopt.analysis.lab.plan_prior import fit as fitting
from ddlopt.analysis.lab.plan_prior.drawn import instances
from ddlopt.analysis.lab.plan_prior.examples import imitation, on_own_way, self_play
from ddlopt.analysis.lab.plan_prior.expert import Counted, completed, cut, searched
from ddlopt.analysis.lab.plan_prior.graph import Inputs
from ddlopt.analysis.lab.plan_prior.graph_network import log_probabilities
from ddlopt.analysis.lab.plan_prior.network import MADE_BY
from ddlopt.analysis.lab.plan_prior.priors import GRAPH_WEIGHTS
from ddlopt.analysis.lab.plan_prior.validation import Drawn, behind, validation
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.errors import OptionError
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.deployment.plan.search import Walk
from ddlopt.solvers.heuristic import Clock


def drawn(seed: int, memory: float = 4.0):
    return generate("random", seed, groups=8, device_groups=2, memory=memory)


def test_instances_are_the_same_for_a_seed_and_not_those_of_the_library():
    first, second = list(instances(8, 3)), list(instances(8, 3))
    assert [each.digest for each in first] == [each.digest for each in second]
    assert len({each.digest for each in first} | {each.digest for each in instances(8, 4)}) == 16
    assert first[7].name.startswith("random")
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
        # The plan's own action has half of the probability by itself, so that it is the likeliest.
        assert made.plan[group] == made.target[0, group].argmax()
    # States go from nothing decided to all but one group, and what is decided counts no more.
    assert [(each == 0).sum() for each in made.weight] == list(range(8))


def all_cuts(rater: PlanRater, row: np.ndarray, order: np.ndarray) -> list[float]:
    """Seconds of all plans that do another thing up to some group, or from one on."""
    found = []
    for place in range(1, len(order)):
        for part in (order[:place], order[place:]):
            for action in range(len(rater.actions)):
                offer = row.copy()
                offer[part] = action
                rating = rater.rate(offer)
                found.append(rating.time_s if rating.fits else math.inf)
    return found


def test_cuts_help_until_no_cut_does():
    helped = 0
    for seed in range(6):
        rater = PlanRater(drawn(seed), ("even",))
        row, rating = rater.best_uniform(Clock(Limits(), None))
        walk = Walk(rater, Counted(rater, math.inf), np.random.default_rng(0))
        found, found_rating = cut(walk, row, rating)
        assert found_rating == rater.rate(found) <= rating
        helped += found_rating < rating
        if found_rating.fits:
            assert min(all_cuts(rater, found, walk.order)) >= found_rating.time_s * (1 - 1e-12)
    assert helped > 1


def test_search_ends_after_so_many_simulations_and_repeats_itself():
    raters = [PlanRater(drawn(1), ("even",)) for _ in range(2)]
    one, two = (searched(rater, 2000, 3) for rater in raters)
    assert np.array_equal(one, two)
    # The last descent may be in the middle of the actions of some groups.
    assert 2000 <= raters[0].rated < 2000 + 3 * len(raters[0].actions)


def test_what_is_decided_stays():
    rater = PlanRater(drawn(4), ("even",))
    row = np.random.default_rng(0).integers(len(rater.actions), size=8)
    decided = rater.by_work[:3]
    found, rating = completed(rater, row, decided, 500, 0)
    np.testing.assert_array_equal(found[decided], row[decided])
    assert rating == rater.rate(found) < rater.rate(row)


def test_network_learns_about_its_own_way():
    # With memory for every plan, so that none of its states is left out.
    instance, own = drawn(1, 100.0), fitting.start(0)
    rater = PlanRater(instance, ("even",))
    plan = searched(rater, 1000, 0)
    made, again = (on_own_way(instance, False, own, plan, 200, 4, 0) for _ in range(2))
    assert np.array_equal(made.target, again.target)
    assert made.target.shape == (4, 8, len(rater.actions))
    np.testing.assert_allclose(made.target.sum(axis=2), 1, rtol=1e-5)
    order = rater.by_work
    for number, (target, weight) in enumerate(zip(made.target, made.weight, strict=True)):
        decided = order[: 2 * number]
        assert (weight[decided] == 0).all()
        assert weight.argmax() == order[2 * number]
        # What is decided has one action, the network's; the way begins where nothing is decided.
        assert (target[decided].max(axis=1) == 1).all()
        np.testing.assert_array_equal(target[decided].argmax(axis=1), made.target[-1, decided].argmax(axis=1))


def test_validation_is_on_instances_of_its_own():
    drawn_here = list(validation(8, 400))
    names = {each.instance.digest for each in drawn_here}
    assert len(names) >= 6
    assert not names & {each.digest for each in instances(8, command.arguments().get_default("seed"))}


def test_behind_is_a_ratio_of_times():
    instance, own = drawn(1), fitting.start(0)
    rater = PlanRater(instance, ("even",))
    searched(rater, 2000, 0)
    best_s = rater.best_rating.time_s
    found = behind(Drawn(instance, False, best_s), own, 20)
    twice = behind(Drawn(instance, False, best_s / 2), own, 20)
    np.testing.assert_allclose(np.subtract(twice, found), math.log(2), rtol=1e-9)
    # What says nothing in particular is behind a search.
    assert found.argmax > 0


@pytest.mark.slow
def test_command_makes_the_same_weights_again(tmp_path, capsys, monkeypatch):
    pytest.importorskip("torch", reason="training needs PyTorch: pip install 'ddlopt[learn]'")
    words = ["--instances", "2", "--plans", "300", "--steps", "8", "--rounds", "1", "--games", "1", "--seed", "3"]
    written = [tmp_path / name for name in ("one.npz", "two.npz", "three.npz")]
    kept = ["--keep", str(tmp_path / "kept")]
    for file, more in zip(written, ([], kept, kept), strict=True):
        command.main([*words, "--out", str(file), *more])
    made = [dict(np.load(file)) for file in written]
    assert str(made[0][MADE_BY]) == "--by imitation " + " ".join(words)
    for other in made[1:]:
        assert all(np.array_equal(each, other[name]) for name, each in made[0].items())
    monkeypatch.setattr(command, "_VALIDATED", 2)
    command.main(["--plans", "300", "--validate", str(written[0])])
    assert "mean of" in capsys.readouterr().out


def test_weights_of_the_package_are_those_of_the_command():
    file = files("ddlopt.analysis.lab.plan_prior").joinpath(GRAPH_WEIGHTS)
    with file.open("rb") as stream, np.load(stream) as arrays:
        assert str(arrays[MADE_BY]) == command.made_by(command.arguments().parse_args([]))


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

    monkeypatch.setattr(learning.importlib, "import_module", refuse)
    with pytest.raises(OptionError, match=r"ddlopt\[learn\]"):
        fitting.fit([], {}, 1, 0)


def test_training_learns_and_repeats_itself():
    torch = pytest.importorskip("torch", reason="training needs PyTorch: pip install 'ddlopt[learn]'")
    torch.set_num_threads(1)
    given = [imitation(drawn(seed), False, 300, 8, 0) for seed in (3, 4)]
    begin = fitting.start(1)

    def loss(weights) -> float:
        lost = 0.0
        for inputs, target, weight, _ in given:
            table = log_probabilities(np, weights, Inputs(*inputs))
            # What is left of the cross entropy with the entropy of the target, which no weights go below.
            beyond = target * (np.log(np.maximum(target, 1e-30)) - table)
            lost += float((weight * beyond.sum(-1)).sum())
        return lost

    one, two = (fitting.fit(given, begin, 40, 1) for _ in range(2))
    assert loss(one) < 0.85 * loss(begin)
    assert all(np.array_equal(one[name], two[name]) for name in one)
