"""Sequences of tensors in ONNX files: split, picked from, put together; sizes and parameters as without them."""

from importlib import import_module

import numpy as np
import pytest
from onnx_cases import DOMAIN, FLOAT, constant, drawn, function, helper, model, node, onnx, weights, whole, written
from refusals import one_line

from ddlopt.instances.readers import convert
from ddlopt.instances.readers.models.onnx_file import read_model
from ddlopt.instances.readers.models.onnx_layers import layers_of
from ddlopt.instances.readers.models.onnx_step import step_of
from ddlopt.models.errors import InstanceError

running = import_module("onnx.reference")


def parts(opset):
    """Chunks of four, the first and the last of which are picked, changed and put together."""
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        constant("four", np.int64(4)),
        node("SplitToSequence", ["h", "four"], ["s"], axis=-1),
        *(constant(name, np.int64(place)) for name, place in (("zero", 0), ("last", -1))),
        node("SequenceAt", ["s", "zero"], ["a"]),
        node("SequenceAt", ["s", "last"], ["b"]),
        node("Relu", ["a"], ["a1"]),
        node("SequenceConstruct", ["a1", "b"], ["t"]),
        node("ConcatFromSequence", ["t"], ["c"], axis=1),
        node("MatMul", ["c", "u"], ["y"]),
    ]
    return model(nodes, weights(w=drawn(6, 10), u=drawn(6, 3)), (2, 6), opset=opset), 60 + 18


def sized():
    """Parts of given sizes, of which one is left out and another one comes in."""
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        whole("sizes", 1, 2, 5),
        node("SplitToSequence", ["h", "sizes"], ["s"], axis=1),
        *(constant(name, np.int64(place)) for name, place in (("one", 1), ("zero", 0))),
        node("SequenceErase", ["s", "one"], ["s1"]),
        node("SequenceInsert", ["s1", "x", "zero"], ["s2"]),
        node("Identity", ["s2"], ["s3"]),
        node("ConcatFromSequence", ["s3"], ["c"], axis=1),
        node("MatMul", ["c", "u"], ["y"]),
    ]
    return model(nodes, weights(w=drawn(6, 8), u=drawn(12, 3)), (2, 6)), 48 + 36


def stacked(opset):
    """Rows one by one, collected, and put together along a new axis; their number makes a size."""
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node("SplitToSequence", ["h"], ["s"], axis=0, keepdims=0),
        node("SequenceEmpty", [], ["e"]),
        *(constant(f"place{row}", np.int64(row)) for row in range(2)),
        *(node("SequenceAt", ["s", f"place{row}"], [f"row{row}"]) for row in range(2)),
        node("SequenceInsert", ["e", "row0"], ["e1"]),
        node("SequenceInsert", ["e1", "row1"], ["e2"]),
        node("ConcatFromSequence", ["e2"], ["c"], axis=-1, new_axis=1),
        node("SequenceLength", ["s"], ["count"]),
        whole("flat", 1),
        node("Reshape", ["count", "flat"], ["count1"]),
        whole("rest", -1),
        node("Concat", ["count1", "rest"], ["sizes"], axis=0),
        node("Reshape", ["c", "sizes"], ["d"]),
        node("MatMul", ["d", "u"], ["y"]),
    ]
    return model(nodes, weights(w=drawn(6, 8), u=drawn(8, 3)), (2, 6), opset=opset), 48 + 24


def in_a_function():
    """A function that splits twice; weights go through a sequence."""
    halves = [
        constant("four", np.int64(4)),
        node("SplitToSequence", ["i", "four"], ["s"], axis=1),
        node("ConcatFromSequence", ["s"], ["o"], axis=1),
    ]
    nodes = [
        node("Halves", ["w"], ["w1"], domain=DOMAIN),
        node("MatMul", ["x", "w1"], ["h"]),
        node("Halves", ["h"], ["y"], domain=DOMAIN),
    ]
    called = [function("Halves", ["i"], ["o"], halves)]
    return model(nodes, weights(w=drawn(6, 8)), (2, 6), functions=called), 48


CASES = {
    **{f"parts, operator set {opset}": parts(opset) for opset in (11, 13, 17)},
    "sizes": sized(),
    **{f"rows, operator set {opset}": stacked(opset) for opset in (11, 17)},
    "in a function": in_a_function(),
}


@pytest.mark.parametrize("case", CASES)
def test_parameters_and_sizes_are_those_of_the_model(case, tmp_path):
    content, parameters = CASES[case]
    read = read_model(written(tmp_path, content))
    assert sum(each.layer.parameters for each in layers_of(read)) == parameters
    assert sum(each.gradient for each in step_of(read)) == parameters
    assert sum(each.elements for each in convert(tmp_path / "net.onnx", "onnx").gradients) == parameters
    (found,) = running.ReferenceEvaluator(content).run(None, {"x": np.ones((2, 6), np.float32)})
    assert read.nodes[read.outputs[0]].outputs[0] == found.shape


def test_a_sequence_costs_what_a_split_does(tmp_path):
    content, _ = parts(17)
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        whole("sizes", 4, 4, 2),
        node("Split", ["h", "sizes"], ["a", "m", "b"], axis=1),
        node("Relu", ["a"], ["a1"]),
        node("Concat", ["a1", "b"], ["c"], axis=1),
        node("MatMul", ["c", "u"], ["y"]),
    ]
    plain = model(nodes, weights(w=drawn(6, 10), u=drawn(6, 3)), (2, 6))
    costs = [
        [(each.numbers, each.flops) for each in step_of(read_model(written(tmp_path, one)))] for one in (content, plain)
    ]
    assert costs[0] == costs[1]


def test_all_of_a_sequence_that_goes_out_is_trained_for(tmp_path):
    nodes = [node("MatMul", ["x", each], [f"h{each}"]) for each in ("w", "u")]
    nodes.append(node("SequenceConstruct", ["hw", "hu"], ["y"]))
    content = model(nodes, weights(w=drawn(6, 8), u=drawn(6, 3)), (2, 6))
    del content.graph.output[:]
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))
    content.graph.output.append(helper.make_value_info("y", kind))
    assert sum(each.gradient for each in step_of(read_model(written(tmp_path, content)))) == 48 + 18


def picked(place, more=()):
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node("SplitToSequence", ["h"], ["s"], axis=0),
        *([] if place == "k" else [constant("at", np.int64(place))]),
        node("SequenceAt", ["s", "k" if place == "k" else "at"], ["y"], name="/pick"),
    ]
    return model(nodes, weights(w=drawn(6, 8)), (2, 6), more=more)


def wrong(kind, given, **attributes):
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node("SequenceConstruct", ["h"], ["s"]),
        node("SequenceEmpty", [], ["e"]),
        constant("zero", np.int64(0)),
        node(kind, given, ["y"], name="/odd", **attributes),
    ]
    return model(nodes, weights(w=drawn(6, 8)), (2, 6))


REFUSED = {
    "no such element": (picked(2), "operator '/pick' (SequenceAt) takes element 2 of 2"),
    "before the first": (picked(-3), "operator '/pick' (SequenceAt) takes element -1 of 2"),
    "data decide": (picked("k", [("k", onnx.TensorProto.INT64, ())]), "an element whose place depends on data"),
    "no sequence": (wrong("SequenceLength", ["h"]), "'/odd' (SequenceLength) reads a tensor in place of a sequence"),
    "empty": (
        wrong("ConcatFromSequence", ["e"], axis=0),
        "(ConcatFromSequence) puts an empty sequence together",
    ),
    "sizes of nothing": (wrong("SplitToSequence", ["h", "zero"]), "'/odd' (SplitToSequence) makes parts of size 0"),
    "axis": (wrong("SplitToSequence", ["h"], axis=2), "'/odd' (SplitToSequence) has the axis 2 of 2"),
    "another operator": (wrong("Relu", ["s"]), "operator '/odd' (Relu) works on a sequence, which is not read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_in_a_line(case, tmp_path):
    content, told = REFUSED[case]
    with one_line(InstanceError, told):
        convert(written(tmp_path, content), "onnx")
