"""Pictures of answers to problems of aggregation: what is drawn is what was answered."""

import numpy as np
import pytest
from aggregation_graph_cases import plain_loads
from matplotlib import colormaps
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import Normalize, to_hex, to_rgba
from matplotlib.figure import Figure

from ddlopt.analysis.pictures.aggregation import graph, hot, registers
from ddlopt.analysis.pictures.aggregation import slots as slots_picture
from ddlopt.analysis.pictures.aggregation import table as table_picture
from ddlopt.analysis.pictures.aggregation import tree as tree_picture
from ddlopt.instances.generators import generate
from ddlopt.instances.library import load
from ddlopt.instances.library.aggregation.tree import example
from ddlopt.models.aggregation import (
    AggregatingSwitches,
    LookupTables,
    Placement,
    RegisterInstance,
    TableInstance,
    evaluate,
)
from ddlopt.solvers.aggregation.graph.search import TakahashiMatsuyama
from ddlopt.solvers.aggregation.hot.greedy import HotPrices
from ddlopt.solvers.aggregation.slots.methods import best
from ddlopt.solvers.contracts import Limits


def drawn(picture, instance, solution):
    axes = Figure().add_subplot()
    picture.draw(axes, instance, solution)
    return axes


@pytest.fixture(scope="module")
def drawn_graph():
    instance = generate("aggregation", "fat-tree", 1, jobs=2, workers=5)
    solution = TakahashiMatsuyama().solve(instance, Limits()).solution
    return instance, solution, drawn(graph, instance, solution)


def test_a_fat_tree_is_drawn_in_four_layers(drawn_graph):
    instance, _, _ = drawn_graph
    heights = {node.name.rstrip("0123456789."): set() for node in instance.nodes}
    for v, (_, y) in graph.positions(instance).items():
        heights[instance.nodes[v].name.rstrip("0123456789.")].add(y)
    assert heights == {"host": {0.0}, "edge": {1.0}, "aggregation": {2.0}, "core": {3.0}}
    assert len(set(graph.positions(instance).values())) == len(instance.nodes)


def test_a_torus_is_placed_by_springs():
    places = graph.positions(generate("aggregation", "torus", 0, jobs=1))
    assert len({round(y, 6) for _, y in places.values()}) > 4


def test_links_have_the_colour_of_their_busier_direction(drawn_graph):
    instance, solution, axes = drawn_graph
    busy = graph.busy_s(instance, solution)
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


def test_switches_that_aggregate_say_for_how_many_jobs(drawn_graph):
    instance, solution, axes = drawn_graph
    pairs = {(j, route[-1]) for j, tree in enumerate(solution.trees) for route in tree} - {
        (j, job.server) for j, job in enumerate(instance.jobs)
    }
    marks = next(each for each in axes.collections if each.get_label() == "aggregates, for a number of jobs")
    assert len(marks.get_offsets()) == len({node for _, node in pairs}) > 0
    numbers = [int(text.get_text()) for text in axes.texts if text.get_text().isdigit()]
    assert sum(numbers) == len(pairs)
    servers = next(each for each in axes.collections if each.get_label() == "server of a job")
    assert np.allclose(
        servers.get_offsets(), [graph.positions(instance)[v] for v in sorted({j.server for j in instance.jobs})]
    )


def test_a_line_has_the_colour_of_its_switch():
    instance = load("aggregation/hot-racks4-jobs3-p600")
    result = HotPrices().solve(instance, Limits())
    axes = drawn(hot, instance, result.solution)
    shown = [part for part in axes.collections if to_rgba(hot._NONE) != tuple(part.get_color()[0])]
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


def test_of_many_parameters_some_are_drawn():
    instance = generate("aggregation", "hot-zipf", parameters=50_000, memory=0.2)
    axes = drawn(hot, instance, HotPrices().solve(instance, Limits()).solution)
    assert 500 < sum(len(part.get_segments()) for part in axes.collections) <= hot.MOST_LINES


def test_a_placement_has_counts_marks_and_a_title():
    instance = RegisterInstance(
        name="drawn", parameters=4, arrays=2, capacity=3, entries=2, batches=((3,), (0, 1, 2), (0, 1), (2, 3))
    )
    axes = drawn(registers, instance, Placement(instance="drawn", arrays=(0, 0, 1, 1)))
    (image,), (marks,) = axes.images, axes.lines
    # Batches by size: (0, 1, 2), (0, 1), (2, 3), (3,).
    assert image.get_array().tolist() == [[2, 2, 0, 0], [1, 0, 2, 1]]
    assert list(marks.get_xdata()) == [1, 2]
    assert axes.get_title().startswith("7 packets; at best 5;")


def test_bars_are_the_parts_of_slots_and_links():
    instance = generate("aggregation", "slots", 7, jobs=10, racks=2, memory=0.02, servers=0.8, spread=0.8)
    solution = best(instance, "highs").solve(instance, Limits()).solution
    axes = drawn(slots_picture, instance, solution)
    rows = len(instance.switches) + len(instance.links)
    assert len(axes.get_yticks()) == rows
    assert "rack1 up" in axes.get_yticklabels()[-1].get_text()
    bars = [bar for bar in axes.patches if bar.get_facecolor() != to_rgba(slots_picture._FREE)]
    for s in range(len(instance.switches)):
        own = sum(bar.get_width() for bar in bars if round(bar.get_y() + 0.4) == s)
        given = sum(
            own_slots[job.switches.index(s)]
            for job, own_slots in zip(instance.jobs, solution.slots, strict=True)
            if s in job.switches
        )
        assert own == pytest.approx(given / instance.switches[s].slots)
    back = sum(rate is None for rate in solution.rates_bytes_per_s)
    assert back > 0
    assert f"{back} of 10 jobs fall back" in axes.get_xlabel()


def test_every_table_is_drawn_with_its_error():
    ramp = {"name": "ramp", "function": "samples", "high": 7, "samples": [0, 1, 2, 3, 4, 5, 6, 7], "weight": 2}
    powers = {"name": "powers", "function": "exp2", "low": 4, "high": 11, "fraction_bits": 2, "error": "relative"}
    instance = TableInstance.from_data({"name": "two", "tables": [ramp, powers], "budget_bytes": 9})
    solution = LookupTables(instance="two", starts=((0, 4), (4, 6, 8)))
    axes = drawn(table_picture, instance, solution)
    columns = [axes.child_axes[:2], axes.child_axes[2:]]
    found = evaluate(instance, solution)
    for (above, below), table in zip(columns, instance.tables, strict=True):
        function, steps = above.lines
        assert function.get_ydata().tolist() == table.values.tolist()
        error, *levels = below.lines
        largest = table.weight * float(found.details[f"error {table.name}"])
        assert [line.get_ydata()[0] for line in levels] == pytest.approx([-largest, largest])
        assert np.abs(error.get_ydata()).max() == pytest.approx(largest)
        assert len(np.unique(steps.get_ydata())) == found.details[f"entries {table.name}"]
    assert columns[0][0].lines[1].get_ydata().tolist() == [1.5] * 4 + [5.5] * 4
    assert columns[1][1].lines[0].get_xdata().tolist() == [1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75]
    assert columns[0][0].get_title() == "ramp\n2 entries"


def test_given_values_and_long_tables():
    table = {"name": "l", "function": "log2", "low": 1, "high": 2**14}
    instance = TableInstance.from_data({"name": "one", "tables": [table], "budget_bytes": 2})
    axes = drawn(table_picture, instance, LookupTables(instance="one", starts=((1, 9),), values=((1.0, 2.0),)))
    above, below = axes.child_axes
    assert set(above.lines[1].get_ydata()) == {1.0, 2.0}
    assert 1000 < len(below.lines[0].get_xdata()) <= 4000
    assert below.lines[1].get_ydata()[0] == -12


def test_links_are_as_wide_as_their_messages():
    axes = drawn(tree_picture, example(), AggregatingSwitches(instance=example().name, switches=((2, 4),)))
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
    tree = generate("aggregation", "tree-random", 2, nodes=500)
    x, y = tree_picture.layout(tree)
    assert len({(a, b) for a, b in zip(x, y, strict=True)}) == 500
    assert all(y[up] == y[node] + 1 for node, up in enumerate(tree.parents) if up is not None)


def test_jobs_shade_switches_and_large_trees_have_no_labels():
    tree = generate("aggregation", "tree-random", 2, nodes=120, jobs=2, memory=2, capable=0.5)
    able = [node for node in range(120) if tree.memory[node]]
    switches = (tuple(able[:3]), tuple(able[:1]))
    axes = drawn(tree_picture, tree, AggregatingSwitches(instance=tree.name, switches=switches))
    *_, blue = [each for each in axes.collections if isinstance(each, PathCollection)]
    assert len({tuple(colour) for colour in blue.get_facecolors()}) == 2
    assert not axes.texts
    assert "has no memory" in [text.get_text() for text in axes.get_legend().get_texts()]
