"""The picture of aggregation trees: layers, colours by load, marks at switches that aggregate."""

import numpy as np
import pytest
from aggregation_graph_cases import plain_loads
from matplotlib import colormaps
from matplotlib.colors import Normalize, to_hex
from matplotlib.figure import Figure

from ddlopt.analysis.pictures.aggregation.graph import busy_s, draw, positions
from ddlopt.instances.generators import generate
from ddlopt.solvers.aggregation.graph.greedy import TakahashiMatsuyama
from ddlopt.solvers.contracts import Limits


@pytest.fixture(scope="module")
def drawn():
    instance = generate("aggregation", "fat-tree", 1, jobs=2, workers=5)
    solution = TakahashiMatsuyama().solve(instance, Limits()).solution
    axes = Figure().add_subplot()
    draw(axes, instance, solution)
    return instance, solution, axes


def test_a_fat_tree_is_drawn_in_four_layers(drawn):
    instance, _, _ = drawn
    heights = {node.name.rstrip("0123456789."): set() for node in instance.nodes}
    for v, (_, y) in positions(instance).items():
        heights[instance.nodes[v].name.rstrip("0123456789.")].add(y)
    assert heights == {"host": {0.0}, "edge": {1.0}, "aggregation": {2.0}, "core": {3.0}}
    assert len(set(positions(instance).values())) == len(instance.nodes)


def test_a_torus_is_placed_by_springs():
    places = positions(generate("aggregation", "torus", 0, jobs=1))
    assert len({round(y, 6) for _, y in places.values()}) > 4


def test_links_have_the_colour_of_their_busier_direction(drawn):
    instance, solution, axes = drawn
    busy = busy_s(instance, solution)
    lines = axes.collections[0]
    assert len(lines.get_segments()) == len(instance.links)
    scale = Normalize(0, max(busy))
    for colour, time_s in zip(lines.get_colors(), busy, strict=True):
        expected = "#d8d8d8" if time_s == 0 else to_hex(colormaps["viridis_r"](scale(time_s)))
        assert to_hex(colour) == expected
    loads = plain_loads(instance, solution)
    for link, time_s in zip(instance.links, busy, strict=True):
        both = loads.get(link.ends, 0.0), loads.get(link.ends[::-1], 0.0)
        assert time_s == pytest.approx(max(both) / link.bandwidth_bytes_per_s)


def test_switches_that_aggregate_say_for_how_many_jobs(drawn):
    instance, solution, axes = drawn
    pairs = {(j, route[-1]) for j, tree in enumerate(solution.trees) for route in tree} - {
        (j, job.server) for j, job in enumerate(instance.jobs)
    }
    marks = next(each for each in axes.collections if each.get_label() == "aggregates for so many jobs")
    assert len(marks.get_offsets()) == len({node for _, node in pairs}) > 0
    numbers = [int(text.get_text()) for text in axes.texts if text.get_text().isdigit()]
    assert sum(numbers) == len(pairs)
    servers = next(each for each in axes.collections if each.get_label() == "server of a job")
    assert np.allclose(
        servers.get_offsets(), [positions(instance)[v] for v in sorted({j.server for j in instance.jobs})]
    )
