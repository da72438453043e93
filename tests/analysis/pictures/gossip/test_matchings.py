"""Picture of matchings: each is drawn once, as wide as it is active."""

import pytest
from matplotlib.figure import Figure

from ddlopt.analysis.pictures.gossip.matchings import draw
from ddlopt.instances.library import load
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.gossip.matchings.exact import Matcha


def test_lines_are_matchings():
    instance = load("gossip/matcha-n8-50")
    solution = Matcha().solve(instance, Limits()).solution
    axes = Figure().add_subplot()
    draw(axes, instance, solution)
    lines = [part for part in axes.collections if part.get_label() != "" and hasattr(part, "get_segments")]
    ranked = sorted(zip(solution.probabilities, map(len, solution.matchings), strict=True), key=lambda pair: -pair[0])
    assert [len(part.get_segments()) for part in lines] == [count for _, count in ranked]
    for part, (chance, _) in zip(lines, ranked, strict=True):
        assert part.get_linewidth()[0] == pytest.approx(max(0.8, 5 * chance))
        assert part.get_label() == f"{chance:.2f}"
    assert axes.get_title() == "ρ = 0.64398, time 2.5 a round"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [f"{chance:.2f}" for chance, _ in ranked]
