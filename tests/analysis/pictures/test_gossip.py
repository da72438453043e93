"""Pictures of answers to problems of gossip: what is drawn is what was answered."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from volume import slow

import ddlopt
from ddlopt.analysis.pictures.gossip import circulant, exchange, matchings, period
from ddlopt.models.gossip import ExchangeInstance, ExchangeTimes, evaluate
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.gossip.matchings.exact import Matcha


def drawn(picture, instance, solution):
    axes = Figure().add_subplot()
    picture.draw(axes, instance, solution)
    return axes


@pytest.mark.parametrize(("name", "links"), [("n32-d4-averaging", 34), ("n256-d6-gap", 2)])
def test_every_generator_has_its_links(name, links):
    instance = ddlopt.load(f"gossip/circulant-{name}")
    solution = method("powers", "gossip").solve(instance, Limits()).solution
    axes = drawn(circulant, instance, solution)
    lines = sum(len(each.get_segments()) for each in axes.collections[:-1])
    assert lines == links * len(solution.generators)
    assert [text.get_text().split(":")[0] for text in axes.get_legend().get_texts()] == [
        f"±{generator}" for generator in solution.generators
    ]


@pytest.mark.parametrize(("more", "title"), [({"sends": 2}, "2 sends: 6"), ({"send_cost": 0.5}, "2 sends, with 0.5")])
def test_staleness_and_sends(more, title):
    instance = ExchangeInstance(name="line", points=np.arange(7.0)[:, np.newaxis], **more)
    solution = ExchangeTimes(instance="line", times=(2, 4))
    axes = drawn(exchange, instance, solution)
    curve, marks = axes.lines
    assert curve.get_ydata().tolist() == [0, 1, 0, 1, 0, 1, 4]
    assert curve.get_ydata().sum() == evaluate(instance, solution).details["staleness"]
    assert list(marks.get_xdata()) == [2, 4]
    assert axes.get_title().startswith(title.replace("6", "7"))


def test_lines_are_matchings():
    instance = ddlopt.load("gossip/matcha-n8-50")
    solution = Matcha().solve(instance, Limits()).solution
    axes = drawn(matchings, instance, solution)
    lines = [part for part in axes.collections if part.get_label() != "" and hasattr(part, "get_segments")]
    ranked = sorted(zip(solution.probabilities, map(len, solution.matchings), strict=True), key=lambda pair: -pair[0])
    assert [len(part.get_segments()) for part in lines] == [count for _, count in ranked]
    for part, (chance, _) in zip(lines, ranked, strict=True):
        assert part.get_linewidth()[0] == pytest.approx(max(0.8, 5 * chance))
        assert part.get_label() == f"{chance:.2f}"
    assert axes.get_title() == "ρ = 0.64398, time 2.5 a round"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [f"{chance:.2f}" for chance, _ in ranked]


@pytest.mark.parametrize("name", ["period-m8-step", slow("period-m16-two-valleys"), slow("period-cvx-m8")])
def test_the_plan_is_on_the_curve(name):
    instance = ddlopt.load(f"gossip/{name}")
    found = method("best-period", "gossip").solve(instance, Limits())
    axes = drawn(period, instance, found.solution)
    curve, plan = axes.lines[0], axes.lines[-1]
    assert list(plan.get_ydata()) == [pytest.approx(found.objective)]
    assert min(curve.get_ydata()) >= found.objective * (1 - 1e-4)
    assert axes.get_xlabel() == "period τ (steps)"
