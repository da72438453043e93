"""Pictures of compression answers show what happens."""

from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import ddlopt
from ddlopt.analysis.pictures.compression import forward
from ddlopt.analysis.pictures.compression.timeline import Bar, bars, plain_plan
from ddlopt.analysis.views import picture_of
from ddlopt.instances import library
from ddlopt.models.compression import CompressionInstance, CompressionPlan, Gradient, Option, Stage, evaluate

MENU = (
    Option(label="fp16", compressor="fp16", encode_s=1.0, wire_s=2.0, error=0.5),
    Option(label="none", wire_s=3.0, launch_s=1.0),
)
TWO = CompressionInstance(
    name="two",
    gradients=(Gradient(name="a", shape=(2,), ready_s=1.0, menu=0), Gradient(name="b", shape=(2,), ready_s=2, menu=0)),
    menus=(MENU,),
    fusion=True,
)


def plan(*choices, buckets=()):
    return CompressionPlan(instance="two", choices=choices, buckets=buckets)


def test_bars_are_the_lanes_of_the_timeline():
    assert list(bars(TWO, plan(0, 1))) == [
        Bar("backward", 0.0, 1.0),
        Bar("encode", 1.0, 2.0),
        Bar("backward", 2.0, 3.0),
        Bar("wire", 2.0, 4.0, "fp16"),
        Bar("wire", 4.0, 8.0, "none"),
    ]
    assert max(bar.end_s for bar in bars(TWO, plan(0, 1))) == evaluate(TWO, plan(0, 1)).objective


def test_a_bucket_is_one_bar():
    (message,) = [bar for bar in bars(TWO, plan(0, 0, buckets=(2,))) if bar.lane == "wire"]
    assert message == Bar("wire", 4.0, 8.0, "fp16")


def test_every_lane_has_its_bars():
    stages = (Stage(lane="cpu", busy_s=2.0), Stage(lane="net", busy_s=1.0))
    data = TWO.model_dump() | {"lanes": ("cpu", "net")}
    data["menus"] = ((Option(label="none", wire_s=0.0, stages=stages),),)
    lanes = CompressionInstance.from_data(data)
    shown = [bar for bar in bars(lanes, plan(0, 0)) if bar.lane in lanes.lanes]
    assert shown == [
        Bar("cpu", 1.0, 3.0, "none"), Bar("net", 3.0, 4.0, "none"),
        Bar("cpu", 3.0, 5.0, "none"), Bar("net", 5.0, 6.0, "none"),
    ]  # fmt: skip
    labels = [text.get_text() for text in drawn(lanes, plan(0, 0)).get_yticklabels()]
    assert labels == ["net", "cpu", "encode", "backward"] * 2


def test_without_compression_the_plain_option_is_taken_wherever_it_stands():
    assert plain_plan(TWO).choices == (1, 1)


def test_without_compression_is_what_the_method_none_answers():
    instance = ddlopt.load("compression/hipress-resnet50-n16")  # several options without compression
    assert sum(option.compressor == "none" for option in instance.menus[0]) > 1
    assert plain_plan(instance).choices == ddlopt.solve(instance, "none").solution.choices


def drawn(instance, solution):
    axes = Figure().add_subplot()
    picture_of(instance)(axes, instance, solution)
    return axes


def test_a_timeline_has_the_plan_below_what_it_is_without():
    axes = drawn(TWO, plan(0, 0))
    before, after = (each for each in axes.collections if isinstance(each, PatchCollection))
    assert (len(before.get_paths()), len(after.get_paths())) == (4, 6)
    ends = [path.vertices[:, 0].max() for path in (before.get_paths()[-1], after.get_paths()[-1])]
    assert ends == [9000.0, 6000.0]
    texts = {text.get_text(): text.get_position() for text in axes.texts}
    assert set(texts) == {"without compression: 9000 ms", "as planned: 6000 ms"}
    assert len({height for _, height in texts.values()}) == 2, "one text a timeline, none over another"
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"none", "fp16"}


def test_levels_are_drawn_as_a_timeline():
    instance = ddlopt.load("compression/levels-random-i20")
    axes = drawn(instance, ddlopt.solve(instance, "uniform").solution)
    assert len(axes.collections) >= 2


def test_a_selection_shows_which_gradients_are_spared():
    instance = ddlopt.load("compression/sfb-vgg16-b4-w16-25g")
    solution = ddlopt.solve(instance, "min-cut").solution
    axes = drawn(instance, solution)
    labels = [text.get_text() for text in axes.get_yticklabels()]
    colours = [patch.get_facecolor() for patch in axes.patches]
    spared = {instance.operators[node].name for node in solution.duplicated}
    assert labels[0] == "dense.0/weight"
    assert [label in spared for label in labels] == [colour == to_rgba("#c0392b") for colour in colours]
    assert 0 < sum(label in spared for label in labels) < len(labels)


def test_a_forward_pass_that_waits_has_three_lanes_twice():
    instance = ddlopt.load("compression/forward-tiny-g4")
    axes = Figure().add_subplot()
    forward.draw(axes, instance, library.best("compression/forward-tiny-g4"))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["forward", "wire", "backward"] * 2
    planned = evaluate(instance, library.best("compression/forward-tiny-g4")).objective
    assert axes.texts[1].get_text() == f"as planned (dark: needed first): {1e3 * planned:.4g} ms"
