"""Picture of a hot set: what is drawn is what is placed."""

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from ddlopt.analysis.pictures.aggregation import hot as aggregation_hot
from ddlopt.analysis.pictures.aggregation.hot import draw
from ddlopt.instances.generators import generate
from ddlopt.instances.library import load
from ddlopt.solvers.aggregation.hot.greedy import HotPrices
from ddlopt.solvers.contracts import Limits


def drawn(instance):
    result = HotPrices().solve(instance, Limits())
    axes = Figure().add_subplot()
    draw(axes, instance, result.solution)
    return axes, result


def test_a_line_has_the_colour_of_its_switch() -> None:
    instance = load("aggregation/hot-racks4-jobs3-p600")
    axes, result = drawn(instance)
    shown = [part for part in axes.collections if to_rgba(aggregation_hot._NONE) != tuple(part.get_color()[0])]
    counts = [len(own) for job in range(3) for own in [switch[job] for switch in result.solution.placed]]
    assert [len(part.get_segments()) for part in shown] == counts
    assert sum(counts) == result.details["parameters"]
    everything = sum(len(part.get_segments()) for part in axes.collections)
    assert everything == sum(np.count_nonzero(job.frequencies) for job in instance.jobs)
    job, own = instance.jobs[0], result.solution.placed[1][0]
    ranked = np.sort(job.frequencies)[::-1]
    places = [int(segment[0][0]) for segment in shown[1].get_segments()]
    assert sorted(ranked[place - 1] for place in places) == sorted(job.frequencies[own])
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert named == [f"on {switch.name} ({switch.registers} registers)" for switch in instance.switches]
    assert axes.get_title().startswith(f"{100 * result.details['ingress_share']:.1f} %")


def test_of_many_parameters_some_are_drawn() -> None:
    axes, _ = drawn(generate("aggregation", "hot-zipf", parameters=50_000, memory=0.2))
    assert 500 < sum(len(part.get_segments()) for part in axes.collections) <= aggregation_hot.MOST_LINES
