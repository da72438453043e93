"""Generated and bundled instances of matchings."""

import pytest

from ddlopt.instances.generators import generate
from ddlopt.instances.library.gossip.matchings import instances


def made(seed=0, **options):
    return generate("gossip", "matchings", seed=seed, **options)


def test_the_budget_is_a_share_of_the_largest_degree():
    instance = made(seed=2, nodes=20, degree=5, share=0.3)
    assert instance.budget == pytest.approx(0.3 * instance.network.degrees.max())
    assert not instance.times


def test_times_are_drawn():
    instance = made(shape="torus", slowest=3.0, activation="single")
    assert instance.activation == "single"
    assert len(instance.times) == len(instance.network.edges) == 32
    assert 1 <= min(instance.times) < max(instance.times) <= 3


def test_bundled_instances_are_small_and_of_all_sorts():
    bundled = list(instances())
    assert len({instance.name for instance in bundled}) == len(bundled) >= 8
    assert sum(len(instance.to_json()) for instance in bundled) < 100_000
    assert {instance.activation for instance in bundled} == {"independent", "single"}
    assert any(instance.times for instance in bundled)
    assert {bool(instance.matchings) for instance in bundled} == {True, False}
