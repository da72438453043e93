"""What tables and pictures of thresholds say."""

from math import inf

import pytest
from matplotlib.figure import Figure
from sfb_cases import changed, dense

from benchmarks.compression.pays import draw, pays, table
from ddlopt.models.errors import NotApplicableError, OptionError


def two_layers(**options):
    """The dense layer, and one that is never worth it; the last layer comes first, as in the backward pass."""
    one = dense(**options)
    small = one.operators[2].model_copy(update={"name": "small/weight", "gradient_bytes": 4.0})
    tensors = tuple(each.model_copy(update={"consumers": (2, 3)}) for each in one.tensors)
    return changed(one, operators=(*one.operators, small), tensors=tensors, broadcast="per_edge")


def test_figures_are_at_the_instances_own_bandwidth():
    # D = 4 devices of 10 Gb/s, b = 32: e = 0.75 ms, s = 1.5 g / B, w = 0.75 S / B.
    weights, small = pays(two_layers())
    g, size = 4.0 * 25088 * 4096, 4.0 * 128 * (25088 + 4096)
    assert (weights.operator, weights.gradient_bytes, weights.factor_bytes) == (2, g, size)
    assert weights.bandwidth_bytes_per_s == pytest.approx((1.5 * g - 0.75 * size) / 0.75e-3, rel=1e-12)
    assert weights.batch == pytest.approx(1.5 * g / (0.75 * size + 0.75e-3 * 1.25e9), rel=1e-12)
    assert small.bandwidth_bytes_per_s == 0


def test_the_table_goes_from_the_first_layer_to_the_last():
    head, _, small, weights = table(two_layers(), samples=128).splitlines()
    assert "samples of all devices" in head
    row = pays(two_layers())[0]
    cells = [cell.strip() for cell in weights.strip("|").split("|")]
    assert cells[:3] == ["weights", "411", "14.94"]
    assert float(cells[3].replace(",", "")) == pytest.approx(row.bandwidth_bytes_per_s * 8e-9, rel=1e-3)
    assert float(cells[4].replace(",", "")) == pytest.approx(row.batch * 128, rel=1e-3)
    assert small.split("|")[4].strip() == "never"
    assert "small" not in table(two_layers(), least_bytes=8)
    assert "always" in table(two_layers(time_s=0.0))


def test_the_picture_has_a_line_for_each_instance():
    instances = {"32": two_layers(), "64": two_layers(batch=64), "free": two_layers(time_s=0.0)}
    figure = Figure()
    axes = figure.add_subplot()
    draw(axes, instances, title="dense")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["32", "64", "free"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["small", "weights"]
    assert axes.get_yscale() == "log"
    low, high = axes.get_ylim()
    for line, instance in zip(axes.lines, instances.values(), strict=False):
        weights, small = (each.bandwidth_bytes_per_s * 8e-9 for each in pays(instance))
        drawn = line.get_ydata()
        assert small == 0
        assert low < drawn[0] < drawn[1] < high
        assert drawn[1] == pytest.approx(3 * axes.lines[0].get_ydata()[1] if weights == inf else weights)


def test_what_cannot_be_drawn():
    axes = Figure().add_subplot()
    with pytest.raises(OptionError, match="different gradients"):
        draw(axes, {"two": two_layers(), "one": dense()})
    with pytest.raises(OptionError, match="no gradient is all-reduced"):
        draw(axes, {"one": dense()}, least_bytes=1e12)
    with pytest.raises(NotApplicableError, match="has budgets"):
        table(dense(memory_budget_bytes=1.0))
