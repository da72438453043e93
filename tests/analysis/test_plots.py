import dataclasses
import math

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.patches import FancyArrowPatch

import ddlopt
from ddlopt.analysis import plots
from ddlopt.analysis.pictures.topology import FEW, link_loads
from ddlopt.instances import library
from ddlopt.models.errors import OptionError
from ddlopt.models.topology import Route, TopologyDesign, TopologyInstance, evaluate
from ddlopt.solvers.contracts import Evidence, Result, Status


def result(instance, design=None, method="m", status=Status.FEASIBLE, **figures):
    return Result(instance.name, instance.digest, "topology", method, status, solution=design, **figures)


def of_type(axes, kind):
    return [artist for artist in axes.get_children() if isinstance(artist, kind)]


def test_link_loads_are_what_the_check_finds(instance, design):
    loads = link_loads(instance, design)
    evaluation = evaluate(instance, design)
    assert evaluation.feasible
    assert max(load.sum() for load in loads.values()) == pytest.approx(evaluation.details["max_link_load_bytes"])
    np.testing.assert_allclose(loads[0, 1], [12e6 / 2, 6e6 / 2])
    np.testing.assert_allclose(loads[1, 2], [12e6, 6e6])


def test_every_link_is_drawn_and_the_busiest_is_the_widest(instance, design):
    figure = plots.solutions([result(instance, design, objective=0.018, bound=0.009)], [instance])
    arrows = of_type(figure.axes[0], FancyArrowPatch)
    assert len(arrows) == 5
    assert len({arrow.get_linewidth() for arrow in arrows}) > 1
    title = figure.axes[0].get_title()
    assert "square (n = 4, d = 2)" in title
    assert "m: 18 ms, gap 50.00 %" in title


def test_parallel_links_do_not_hide_each_other(instance, design):
    axes = plots.solutions([result(instance, design)], [instance]).axes[0]
    curves = {tuple(arrow.get_path().vertices.round(6).ravel()) for arrow in of_type(axes, FancyArrowPatch)}
    assert len(curves) == 5


def test_a_duplex_link_is_drawn_once(design):
    traffic = np.zeros((3, 3))
    traffic[0, 1] = traffic[1, 2] = 1.0
    instance = TopologyInstance(
        name="path", servers=3, degree=2, link_bandwidth_bytes_per_s=1.0, optics="duplex", traffic_bytes=traffic
    )
    routes = [Route(source=i, target=j, paths=((i, j),), fractions=(1.0,)) for i, j in ((0, 1), (1, 2))]
    path = TopologyDesign(instance="path", links=((0, 1, 1), (1, 2, 1)), planes=(((0, 1),), ((1, 2),)), routes=routes)
    axes = plots.solutions([result(instance, path)], [instance]).axes[0]
    assert len(of_type(axes, FancyArrowPatch)) == 2


def test_many_servers_are_drawn_as_one_collection():
    n = 4 * FEW
    traffic = np.zeros((n, n))
    traffic[np.arange(n), (np.arange(n) + 1) % n] = 1.0
    big = TopologyInstance(name="big", servers=n, degree=2, link_bandwidth_bytes_per_s=1.0, traffic_bytes=traffic)
    ring = TopologyDesign(instance="big", links=tuple((i, (i + 1) % n, 2) for i in range(n)))
    axes = plots.solutions([result(big, ring)], [big]).axes[0]
    (lines,) = (c for c in of_type(axes, LineCollection))
    assert len(lines.get_segments()) == 2 * n
    assert not of_type(axes, FancyArrowPatch)


def test_bars_are_relative_to_the_best_and_leave_references_out(instance):
    results = [
        result(instance, method="good", objective=2.0, bound=1.5),
        result(instance, method="poor", objective=3.0, bound=1.0),
        result(instance, method="ideal-switch", status=Status.REFERENCE, objective=1.0),
        result(instance, method="broken", status=Status.ERROR),
    ]
    axes = plots.comparison(results).axes[0]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([1.0, 1.5])
    (bound,) = of_type(axes, LineCollection)
    assert bound.get_segments()[0][0][1] == pytest.approx(0.75)


def of_family(family="scheduling", **figures):
    return Result("plan", "digest", family, status=Status.FEASIBLE, **figures)


def test_maximised_objectives_are_at_most_the_best_and_their_bound_is_above(instance):
    own = {"sense": "maximize", "unit": ""}
    results = [
        of_family(method="good", objective=4.0, bound=6.0, **own),
        of_family(method="poor", objective=3.0, bound=5.0, **own),
        result(instance, method="good", objective=2.0, bound=1.0),
        result(instance, method="poor", objective=3.0),
    ]
    axes = plots.comparison(results).axes[0]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([1.0, 0.75, 1.0, 1.5])
    assert [line.get_segments()[0][0][1] for line in of_type(axes, LineCollection)] == pytest.approx([1.25, 0.5])
    assert [text.get_text() for text in axes.texts] == ["1", "0.75", "1", "1.50"]
    assert min(text.get_position()[1] for text in axes.texts[:2]) > 1.25
    assert axes.get_ylabel() == "objective relative to the best found"


def test_a_bound_far_off_the_scale_leaves_the_bars_visible():
    results = [of_family(method="good", objective=1.0, bound=1000.0, sense="maximize", unit="")]
    axes = plots.comparison(results).axes[0]
    assert axes.get_ylim()[1] < 6
    assert [line.get_marker() for line in axes.lines] == ["^"]


def test_instances_of_one_name_in_two_families_are_two(instance):
    results = [
        of_family(method="m", objective=4.0),
        dataclasses.replace(result(instance, method="m", objective=8.0), instance="plan"),
    ]
    axes = plots.comparison(results).axes[0]
    assert [bar.get_height() for bar in axes.patches] == [1.0, 1.0]


def test_a_gap_is_that_to_the_best_bound_of_all(instance, design):
    """Whatever bound a heuristic has itself: the library's, and those beside it."""
    weak = result(instance, design, method="weak", objective=0.02, bound=0.005)
    strong = result(instance, design, method="strong", objective=0.018, bound=0.015)
    titles = [axes.get_title() for axes in plots.solutions([weak, strong], [instance]).axes[:2]]
    assert "weak: 0.02 s, gap 25.00 %" in "".join(titles).replace("20 ms", "0.02 s")


def test_an_optimum_with_a_certificate_is_not_called_one_in_floating_point():
    danoint = ddlopt.load("topology/danoint")
    found = result(danoint, library.best("topology/danoint"), status=Status.OPTIMAL, objective=65.66666666666667)
    found = dataclasses.replace(found, bound=65.0, evidence=Evidence.SOLVER)
    title = plots.solutions([found], [danoint]).axes[0].get_title()
    assert title.endswith("gap 0.01 %\noptimal (exact certificate in the library)")
    worse = dataclasses.replace(found, objective=70.0)
    assert plots.solutions([worse], [danoint]).axes[0].get_title().endswith("optimal (floating point)")


def test_a_title_has_the_unit(instance, design):
    shown = result(instance, design, objective=0.018, bound=0.024, sense="maximize", unit="jobs")
    assert "m: 0.018 jobs, gap 33.33 %" in plots.solutions([shown], [instance]).axes[0].get_title()


def test_a_bar_far_off_the_scale_still_says_its_ratio(instance):
    results = [result(instance, method="good", objective=1.0), result(instance, method="awful", objective=250.0)]
    axes = plots.comparison(results).axes[0]
    assert max(bar.get_height() for bar in axes.patches) <= 5
    assert "250" in [text.get_text() for text in axes.texts]
    assert math.isfinite(axes.get_ylim()[1])


@pytest.mark.parametrize("ending", plots.FORMATS)
def test_a_picture_appears_whole(tmp_path, instance, design, ending):
    path = tmp_path / f"design{ending}"
    plots.save(plots.solutions([result(instance, design)], [instance]), path)
    start = path.read_bytes()[:5]
    assert start in (b"\x89PNG\r", b"<?xml", b"%PDF-")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_nothing_to_draw_is_said(tmp_path, instance):
    with pytest.raises(OptionError, match="no result carries a solution"):
        plots.solutions([result(instance)], [instance])
    with pytest.raises(OptionError, match="no result has an objective"):
        plots.comparison([result(instance)])
    with pytest.raises(OptionError, match=r"must end in \.png"):
        plots.picture_path(tmp_path / "picture.bmp")
