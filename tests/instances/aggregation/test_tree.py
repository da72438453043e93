"""Generated and bundled trees."""

import numpy as np
import pytest

from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.library.aggregation.tree import example, instances


def depths(tree):
    found = {}
    for node in tree.order:
        above = tree.parents[node]
        found[node] = 0 if above is None else found[above] + 1
    return [found[node] for node in range(tree.size)]


def test_a_complete_tree():
    tree = generate("tree-complete", 3, arity=3, levels=4, loads="power", rates="exponential", message_s=0.5)
    assert tree.size == 1 + 3 + 9 + 27
    assert all(len(below) in (0, 3) for below in tree.children)
    level = depths(tree)
    assert [bool(load) for load in tree.jobs[0].loads] == [each == 3 for each in level]
    assert all(2 <= load <= 63 for load in tree.jobs[0].loads if load)
    assert tree.seconds_per_message == tuple(0.5 / 2 ** (3 - each) for each in level)
    linear = generate("tree-complete", 3, arity=3, levels=4, rates="linear", message_s=6.0)
    assert linear.seconds_per_message == tuple(6.0 / (4 - each) for each in level)


def test_a_random_tree_has_what_was_asked_for():
    tree = generate("tree-random", 4, nodes=200, jobs=3, loaded=0.25, memory=2, capable=0.4, budget=None)
    assert tree.size == 200
    assert [sum(load > 0 for load in job.loads) for job in tree.jobs] == [50] * 3
    assert sorted(set(tree.memory)) == [0, 2]
    assert sum(room > 0 for room in tree.memory) == 80
    assert all(1 <= load <= 9 for job in tree.jobs for load in job.loads if load)
    assert tree.budget is None
    assert all(0.5 <= 1e-3 / seconds <= 2.0001 for seconds in tree.seconds_per_message)


def test_depth_goes_from_bushes_to_paths():
    deepest = [max(depths(generate("tree-random", 1, nodes=300, depth=depth))) for depth in (0.0, 0.9, 1.0)]
    assert deepest[0] < 25 < deepest[1] < deepest[2] == 299


def test_bundled_trees():
    found = {tree.name: tree for tree in instances()}
    assert found["tree-soar-n7-k2"] == example()
    assert {tree.goal for tree in found.values()} == {"utilization", "congestion"}
    assert {len(tree.jobs) for tree in found.values()} == {1, 2, 4, 8}
    assert max(tree.size for tree in found.values()) == 1023
    assert max(depths(found["tree-deep-n1000-k40"])) > 100
    assert np.mean([room == 0 for room in found["tree-random-n500-k25"].memory]) == pytest.approx(0.5)
