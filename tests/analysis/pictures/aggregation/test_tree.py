"""The picture of a tree: switches by what they do, links by their messages."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure

from ddlopt.analysis.pictures.aggregation.tree import draw, layout
from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.library.aggregation.tree import example
from ddlopt.models.aggregation import AggregatingSwitches


def drawn(instance, *switches):
    axes = Figure().add_subplot()
    draw(axes, instance, AggregatingSwitches(instance=instance.name, switches=switches))
    return axes


def test_links_are_as_wide_as_their_messages():
    axes = drawn(example(), (2, 4))
    (links,) = [each for each in axes.collections if isinstance(each, LineCollection)]
    assert np.array(links.get_linewidths()) / max(links.get_linewidths()) == pytest.approx(
        np.array([4, 3, 1, 2, 1, 5, 4]) / 5
    )
    points = [each for each in axes.collections if isinstance(each, PathCollection)]
    assert [len(each.get_offsets()) for each in points] == [0, 5, 2]
    texts = [text.get_text() for text in axes.texts]
    assert sorted(texts) == sorted([*"0123456", *"4312154", *"2654"])
    assert axes.get_legend().get_title().get_text() == "utilization 20 s"


def test_places_do_not_collide_and_parents_are_above():
    tree = generate("tree-random", 2, nodes=500)
    x, y = layout(tree)
    assert len({(a, b) for a, b in zip(x, y, strict=True)}) == 500
    assert all(y[up] == y[node] + 1 for node, up in enumerate(tree.parents) if up is not None)


def test_jobs_shade_switches_and_large_trees_have_no_labels():
    tree = generate("tree-random", 2, nodes=120, jobs=2, memory=2, capable=0.5)
    able = [node for node in range(120) if tree.memory[node]]
    axes = drawn(tree, tuple(able[:3]), tuple(able[:1]))
    *_, blue = [each for each in axes.collections if isinstance(each, PathCollection)]
    assert len({tuple(colour) for colour in blue.get_facecolors()}) == 2
    assert not axes.texts
    assert "has no memory" in [text.get_text() for text in axes.get_legend().get_texts()]
