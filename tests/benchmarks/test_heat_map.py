import numpy as np

from benchmarks.compression.heat_map import heat_maps


def test_cells_are_where_they_belong():
    panels = {"greedy": {("a", "x"): 0.0, ("a", "y"): 12.0, ("b", "x"): 3.25, ("b", "y"): None}}
    figure = heat_maps(panels, ["a", "b"], ["x", "y"], "gaps")
    (axes,) = figure.axes
    shown = axes.images[0].get_array()
    np.testing.assert_array_equal(shown.filled(-1), [[0.0, 12.0], [3.25, -1.0]])
    assert [text.get_text() for text in axes.texts] == ["0.0", "12", "3.2"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "y"]
    assert axes.get_title() == "greedy"
