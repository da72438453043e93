"""ONNX models become instances with the layers of the file, at the cost of the same layers built from a paper."""

from collections import Counter
from dataclasses import astuple
from pathlib import Path

import pytest

from ddlopt.instances.generators.codesign import generate as codesign
from ddlopt.instances.generators.compression.timeline import network
from ddlopt.instances.generators.deployment.network import network as deployment
from ddlopt.instances.readers import convert
from ddlopt.instances.readers.models.onnx_file import read_model
from ddlopt.instances.readers.models.onnx_layers import layers_of, workload_of
from ddlopt.instances.readers.models.onnx_pieces import graph_of_model
from ddlopt.instances.readers.models.onnx_step import step_of
from ddlopt.instances.workloads.networks.network_graphs import training_step
from ddlopt.models.errors import InstanceError, OptionError

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed: pip install 'ddlopt[onnx]'")
helper, FLOAT, INT64 = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
REAL = Path(onnx.__file__).parent / "backend/test/data/light"
"""Networks without weights that come with the package."""


def tensor(name, *shape):
    return helper.make_tensor(name, FLOAT, shape, [0.0] * _size(shape))


def _size(shape):
    return 1 if not shape else shape[0] * _size(shape[1:])


def model(nodes, weights, inputs, output, opset=17):
    """A model as bytes; inputs are (name, type, shape)."""
    values = [helper.make_tensor_value_info(*each) for each in inputs]
    graph = helper.make_graph(nodes, "net", values, [helper.make_tensor_value_info(output, FLOAT, None)], weights)
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=domains).SerializeToString()


def language_model():
    """Rows of a table, two dense layers without a bias and with one, and products with the same table in the end."""
    nodes = [
        helper.make_node("Gather", ["embed.weight", "tokens"], ["rows"]),
        helper.make_node("LayerNormalization", ["rows", "norm.weight", "norm.bias"], ["normed"]),
        helper.make_node("MatMul", ["normed", "onnx::MatMul_7"], ["wide"], name="/up/MatMul"),
        helper.make_node("Relu", ["wide"], ["active"]),
        helper.make_node("MatMul", ["active", "down"], ["product"]),
        helper.make_node("Add", ["down.bias", "product"], ["narrow"]),
        helper.make_node("Mul", ["narrow", "half"], ["scaled"]),
        helper.make_node("Transpose", ["embed.weight"], ["turned"]),
        helper.make_node("MatMul", ["scaled", "turned"], ["logits"]),
    ]
    weights = [tensor("embed.weight", 10, 4), tensor("norm.weight", 4), tensor("norm.bias", 4), tensor("half")]
    weights += [tensor("onnx::MatMul_7", 4, 6), tensor("down", 6, 4), tensor("down.bias", 4)]
    return model(nodes, weights, [("tokens", INT64, ["batch", "sequence"])], "logits")


def written(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["vgg19", "resnet50"])
def test_published_networks_cost_what_those_from_papers_do(name):
    read, built = convert(REAL / f"light_{name}.onnx", "onnx"), network(None, name)
    assert [(each.shape, each.ready_s) for each in read.gradients] == [
        (each.shape, each.ready_s) for each in built.gradients
    ]
    assert read.menus == built.menus


@pytest.mark.parametrize("path", sorted(REAL.glob("*.onnx")), ids=lambda path: path.stem)
def test_all_operators_of_published_networks_are_known(path):
    read = convert(path, "onnx")
    assert "want of a rule" not in read.source
    assert convert(path, "onnx-topology").allreduce_groups[0].gradient_bytes == 4 * sum(
        each.elements for each in read.gradients
    )


def counts(step):
    """What operators read and cost, whatever they are called."""
    return Counter((len(each.reads), *astuple(each)[2:]) for each in step)


@pytest.mark.parametrize("name", ["vgg19", "resnet50"])
def test_published_networks_have_the_operators_of_those_from_papers(name):
    step = step_of(read_model(REAL / f"light_{name}.onnx"))
    assert counts(step) == counts(training_step(name))
    groups = {"groups": 6, "devices_of": "two-machines"}
    read, built = convert(REAL / f"light_{name}.onnx", "onnx-deployment", **groups), deployment(None, name, **groups)
    assert [each.times_s for each in read.operators] == [each.times_s for each in built.operators]
    assert read.tensors == built.tensors


def test_a_published_network_has_the_strategies_of_that_from_its_paper():
    """Pieces have other names; costs, layouts, groups and edges are the same."""
    as_job = {"servers": 12, "degree": 4, "gpus_per_server": 1, "gigabit_per_s": 25.0, "batch": 128}
    read = convert(REAL / "light_resnet50.onnx", "onnx-codesign", **as_job).model_dump()
    built = codesign("job", job="resnet50", servers=12).model_dump()
    for data in (read, built):
        del data["name"], data["source"]
        for layer in data["layers"]:
            del layer["name"]
    assert str(read) == str(built)


@pytest.mark.parametrize("path", sorted(REAL.glob("*.onnx")), ids=lambda path: path.stem)
def test_every_layer_is_in_one_piece(path):
    read = read_model(path)
    pieces = graph_of_model(read).pieces
    names = [piece.name for piece in pieces]
    assert len(set(names)) == len(names)
    assert all(read in names[:place] for place, piece in enumerate(pieces) for read in piece.reads)
    inside = Counter(layer for piece in pieces for layer in (*piece.split, *piece.after))
    assert inside == Counter(workload_of(read, 1).layers)


def test_pieces_of_a_model_with_a_shared_table(tmp_path):
    """A table is whole everywhere, the layer that uses it once more is cut by words; what needs all numbers is not."""
    path = written(tmp_path / "net.onnx", language_model())
    pieces = {piece.name: piece for piece in graph_of_model(read_model(path, ["sequence=5"])).pieces}
    assert {name: (piece.reads, piece.columns, piece.rows, piece.everywhere) for name, piece in pieces.items()} == {
        "embed": ((), 1, 1, True),
        "norm": (("embed",), 1, 1, False),
        "onnx::MatMul_7": (("norm",), 6, 4, False),
        "down": (("onnx::MatMul_7",), 4, 6, False),
        "logits": (("down",), 10, 1, False),
    }
    options = {"dims": ("sequence=5",), "servers": 4, "degree": 2}
    layers = {layer.name: layer for layer in convert(path, "onnx-codesign", **options).layers}
    assert [strategy.name for strategy in layers["embed"].strategies] == ["data"]
    assert "column-2" in [strategy.name for strategy in layers["logits"].strategies]


def test_channels_by_themselves_follow_and_shuffles_need_all(tmp_path):
    """A depthwise convolution goes with what it reads; two that read the same are pieces; so is a shuffle."""
    nodes = [
        helper.make_node("Conv", ["x", "point.weight"], ["a"]),
        helper.make_node("Conv", ["a", "depth.weight"], ["b"], group=6, pads=[1, 1, 1, 1]),
        helper.make_node("Reshape", ["b", "apart"], ["c"]),
        helper.make_node("Transpose", ["c"], ["d"], perm=[0, 2, 1, 3, 4]),
        helper.make_node("Reshape", ["d", "together"], ["e"]),
        helper.make_node("AveragePool", ["e"], ["left"], kernel_shape=[1, 1], name="left"),
        helper.make_node("MaxPool", ["e"], ["right"], kernel_shape=[1, 1], name="right"),
        helper.make_node("Concat", ["left", "right"], ["both"], axis=1),
        helper.make_node("Conv", ["both", "last.weight"], ["y"], group=2),
    ]
    weights = [
        tensor("point.weight", 6, 3, 1, 1),
        tensor("depth.weight", 6, 1, 3, 3),
        tensor("last.weight", 4, 6, 1, 1),
    ]
    weights += [
        helper.make_tensor(name, INT64, (len(to),), to)
        for name, to in (("apart", [1, 2, 3, 4, 4]), ("together", [1, 6, 4, 4]))
    ]
    path = written(tmp_path / "net.onnx", model(nodes, weights, [("x", FLOAT, [1, 3, 4, 4])], "y"))
    found = [(piece.name, piece.reads, piece.columns, piece.rows) for piece in graph_of_model(read_model(path)).pieces]
    assert found == [
        ("point", (), 6, 3),
        ("d", ("point",), 1, 1),
        ("left", ("d",), 6, 1),
        ("right", ("d",), 6, 1),
        ("last", ("left", "right"), 4, 1),
    ]


def test_a_step_of_a_model_with_a_shared_table(tmp_path):
    """Both summands of the table's gradient are added before they are all-reduced; scaling by a number is left out."""
    path = written(tmp_path / "net.onnx", language_model())
    step = step_of(read_model(path, ["sequence=5"]))
    named = {each.name: each for each in step}
    (total,) = (each for each in step if each.name == "embed/weight sum")
    assert (total.gradient, sorted(step[read].name for read in total.reads)) == (
        40,
        ["embed/weight", "logits/weight"],
    )
    assert named["logits/forward"].flops == 2 * 50 * 4
    assert not any("scaled" in each.name or "turned" in each.name for each in step)
    assert convert(path, "onnx-deployment", dims=("sequence=5",), groups=3).operators


def test_layers_are_counted_for_a_sample(tmp_path):
    path = written(tmp_path / "net.onnx", language_model())
    found = {each.layer.name: each.layer for each in layers_of(read_model(path, ["sequence=5", "batch=3"]))}
    costs = {name: (each.flops, each.tensors) for name, each in found.items() if each.flops or each.tensors}
    assert costs == {
        "embed": (0, (("weight", (10, 4)),)),
        "norm": (8 * 20, (("scale", (4,)), ("shift", (4,)))),
        "onnx::MatMul_7": (2 * 30 * 4, (("weight", (6, 4)),)),
        "down": (2 * 20 * 6, (("weight", (4, 6)),)),
        "down.bias": (20, (("shift", (4,)),)),
        "logits": (2 * 50 * 4, ()),
    }
    assert workload_of(read_model(path, ["sequence=5"]), 8) == workload_of(
        read_model(path, ["sequence=5", "batch=3"]), 8
    )


def test_a_module_is_called_as_its_weights_say(tmp_path):
    nodes = [helper.make_node("Gemm", ["x", "head.fc.weight", "head.fc.bias"], ["y"], transB=1)]
    weights = [tensor("head.fc.weight", 3, 4), tensor("head.fc.bias", 3)]
    read = convert(written(tmp_path / "net.onnx", model(nodes, weights, [("x", FLOAT, [2, 4])], "y")), "onnx")
    assert [(each.name, each.shape) for each in read.gradients] == [
        ("head.fc.bias", (3,)),
        ("head.fc.weight", (3, 4)),
    ]


def test_what_is_not_known_is_told_and_costs_its_bytes(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("CumSum", ["y", "axis"], ["z"]),
    ]
    weights = [tensor("w", 4, 3), helper.make_tensor("axis", INT64, (), [1])]
    path = written(tmp_path / "net.onnx", model(nodes, weights, [("x", FLOAT, [2, 4])], "z"))
    assert "costed by the bytes they move, for want of a rule: 1 x CumSum" in convert(path, "onnx").source
    unknown = layers_of(read_model(path))[1].layer
    assert (unknown.flops, unknown.inputs, unknown.outputs) == (0, 3, 3)


def test_weights_of_an_operator_of_somebodys_own_are_trained_and_its_sizes_are_those_of_the_file(tmp_path):
    nodes = [
        helper.make_node("Fused", ["x", "w", "scale"], ["y"], domain="own"),
        helper.make_node("MatMul", ["y", "head"], ["z"]),
    ]
    values = [helper.make_tensor_value_info(name, FLOAT, ["batch", "seq", 3]) for name in ("y", "other")]
    content = onnx.ModelProto.FromString(
        model(
            nodes,
            [tensor("w", 4, 3), tensor("scale", 3), tensor("head", 3, 2)],
            [("x", FLOAT, ["batch", "seq", 4])],
            "z",
        )
    )
    content.graph.value_info.extend(values)
    path = written(tmp_path / "net.onnx", content.SerializeToString())
    read = convert(path, "onnx", dims=("seq=5",))
    assert "for want of a rule: 1 x own.Fused" in read.source
    assert [(each.name, each.shape) for each in read.gradients] == [("head.weight", (2, 3)), ("w.weight1", (4, 3))]
    assert layers_of(read_model(path, ("seq=5",)))[0].layer.outputs == 15


DENSE = [helper.make_node("MatMul", ["x", "w"], ["y"])]
BAD = {
    "no file": (None, {}, InstanceError, "No such file"),
    "text": (b"a text that is none", {}, InstanceError, "no ONNX file, or a part of one"),
    "empty": (b"", {}, InstanceError, "it has no operators"),
    "truncated": (language_model()[:-40], {}, InstanceError, "no ONNX file, or a part of one"),
    "open size": (language_model(), {}, OptionError, r"no size: 'sequence'; set dims=\[\"sequence=SIZE"),
    "odd size": (language_model(), {"dims": ("sequence",)}, OptionError, "it is a list of name=size"),
    "other size": (language_model(), {"dims": ("sequence=3", "words=4")}, OptionError, "there is no dimension 'words'"),
    "newer": (
        model(DENSE, [tensor("w", 4, 3)], [("x", FLOAT, [2, 4])], "y", 999), {}, InstanceError, "operator set 999"
    ),
    "misfit": (model(DENSE, [tensor("w", 5, 3)], [("x", FLOAT, [2, 4])], "y"), {}, InstanceError, "do not fit"),
    "stranger": (
        model([helper.make_node("Odd", ["x"], ["y"], domain="own"), helper.make_node("Relu", ["y"], ["z"])], [],
              [("x", FLOAT, [2, 4])], "z"),
        {}, InstanceError, r"the size of 'y' at operator 'y' \(own.Odd\) cannot be found",
    ),
    "untrained": (
        model([helper.make_node("Relu", ["x"], ["y"])], [], [("x", FLOAT, [2, 4])], "y"),
        {}, InstanceError, "no weights",
    ),
    "nothing comes in": (
        model([helper.make_node("Relu", ["w"], ["y"])], [tensor("w", 4)], [], "y"),
        {}, InstanceError, "its output does not depend",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_a_line(case, tmp_path):
    content, options, kind, told = BAD[case]
    path = tmp_path / "net.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(kind, match=told) as refused:
        convert(path, "onnx", **options)
    assert "\n" not in str(refused.value)
