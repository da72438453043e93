"""Pictures of circulant graphs."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

import ddlopt
from ddlopt.analysis.pictures.gossip.circulant import draw
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits

mpl.use("Agg")


@pytest.mark.parametrize(("name", "links"), [("n32-d4-averaging", 34), ("n256-d6-gap", 2)])
def test_every_generator_has_its_links(name, links):
    instance = ddlopt.load(f"gossip/circulant-{name}")
    solution = method("powers", "gossip").solve(instance, Limits()).solution
    figure, axes = plt.subplots()
    draw(axes, instance, solution)
    drawn = sum(len(each.get_segments()) for each in axes.collections[:-1])
    assert drawn == links * len(solution.generators)
    assert [text.get_text().split(":")[0] for text in axes.get_legend().get_texts()] == [
        f"±{generator}" for generator in solution.generators
    ]
    plt.close(figure)
