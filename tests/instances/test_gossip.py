"""Matchings and trajectories: reduced ones keep distances, recorded ones are the same again."""

import numpy as np
import pytest
from library_cases import bundled

import ddlopt
from ddlopt.instances.workloads.trajectories import _reduced, drifting


def distances(points):
    return np.sqrt(((points[:, np.newaxis] - points[np.newaxis]) ** 2).sum(axis=2))


@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_reduced_trajectories_keep_distances(offset):
    rng = np.random.default_rng(0)
    rows = offset + np.cumsum(rng.standard_normal((40, 300)) / 10, axis=0)
    rows[0] = offset
    full = _reduced(np.random.default_rng(1), rows, 40)
    assert full.shape[1] <= 40
    np.testing.assert_allclose(distances(full), distances(rows), atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(full, axis=1), np.linalg.norm(rows, axis=1), atol=1e-9)
    few = _reduced(np.random.default_rng(1), rows, 10)
    assert few.shape == (40, 10)
    ratios = (distances(few)[rows[:, 0] != 0] ** 2).mean() / (distances(rows)[rows[:, 0] != 0] ** 2).mean()
    assert ratios == pytest.approx(1, abs=0.2)
    steps = [(np.diff(each, axis=0) ** 2).sum() for each in (few, rows)]
    assert steps[0] == pytest.approx(steps[1], rel=0.4)


def test_drawn_trajectories():
    rng = np.random.default_rng
    smooth = drifting(rng(0), 400, 3, 100.0, 1.0, 0.0, 0.0)
    lengths = np.linalg.norm(np.diff(smooth, axis=0), axis=1)
    np.testing.assert_allclose(lengths, 1 / (1 + np.arange(399) / 100), rtol=1e-12)
    noisy = drifting(rng(0), 400, 3, 1e9, 0.0, 2.0, 0.0)
    around = np.diff(noisy - drifting(rng(0), 400, 3, 1e9, 0.0, 0.0, 0.0), axis=0)
    assert (around**2).sum(axis=1).mean() == pytest.approx(4, rel=0.2)
    pulled = drifting(rng(0), 400, 3, 1e9, 0.0, 2.0, 0.5) - drifting(rng(0), 400, 3, 1e9, 0.0, 0.0, 0.0)
    assert np.abs(pulled).max() < np.abs(np.cumsum(around, axis=0)).max() / 2


def test_recorded_again_they_are_the_same():
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn: pip install 'ddlopt[train]'")
    from ddlopt.instances.library.gossip.exchange import recorded

    for again in recorded():
        stored = ddlopt.load(f"gossip/{again.name}")
        assert stored.model_dump(exclude={"points", "source"}) == again.model_dump(exclude={"points", "source"})
        np.testing.assert_allclose(stored.points, again.points, atol=1e-3)
        assert sum(again.blocks) == again.points.shape[1]
        assert len(again.blocks) == (4 if "mlp" in again.name else 2)


def test_the_budget_is_a_share_of_the_largest_degree():
    instance = ddlopt.generate("gossip", "matchings", seed=2, nodes=20, degree=5, share=0.3)
    assert instance.budget == pytest.approx(0.3 * instance.network.degrees.max())
    assert not instance.times


def test_times_are_drawn():
    instance = ddlopt.generate("gossip", "matchings", shape="torus", slowest=3.0, activation="single")
    assert instance.activation == "single"
    assert len(instance.times) == len(instance.network.edges) == 32
    assert 1 <= min(instance.times) < max(instance.times) <= 3


def test_bundled_matchings_are_of_all_sorts():
    matchings = [each for each in bundled("gossip").values() if each.problem == "matchings"]
    assert {instance.activation for instance in matchings} == {"independent", "single"}
    assert any(instance.times for instance in matchings)
    assert {bool(instance.matchings) for instance in matchings} == {True, False}
