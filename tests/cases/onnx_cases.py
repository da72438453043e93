"""ONNX models of the kinds that people have, small, each with its parameters as counted by hand.

Sizes that the file calculates, weights in constants and behind arithmetic, tied tables, normalisations, functions and
branches, as PyTorch and others write them.
"""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed: pip install 'ddlopt[onnx]'")
helper, numpy_helper = onnx.helper, onnx.numpy_helper
FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
node = helper.make_node
DOMAIN = "own"


def drawn(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def weights(**arrays):
    return [numpy_helper.from_array(np.asarray(array), name.replace("__", ".")) for name, array in arrays.items()]


def constant(name, value):
    return node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value)))


def whole(name, *values):
    return constant(name, np.array(values, dtype=np.int64))


def model(nodes, stored=(), shape=(2, 3, 8, 8), *, opset=17, output="y", kind=FLOAT, functions=(), more=()):
    """A model that reads ``x`` of a shape, and ``more`` (name, type, shape)."""
    inputs = [helper.make_tensor_value_info(*each) for each in (("x", kind, shape), *more)]
    outputs = [helper.make_tensor_value_info(output, FLOAT, None)]
    graph = helper.make_graph(nodes, "net", inputs, outputs, list(stored))
    domains = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=domains, functions=functions)


def function(name, inputs, outputs, nodes, attributes=()):
    domains = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_function(DOMAIN, name, inputs, outputs, nodes, domains, attributes)


def written(tmp_path, content):
    path = tmp_path / "net.onnx"
    path.write_bytes(content.SerializeToString())
    return path


# Sizes


def viewed(opset):
    """``x.view(x.size(0), -1)`` as PyTorch writes it, for the operator sets that have axes as attributes or inputs."""
    axes = {"axes": [0]} if opset < 13 else {}
    of = [] if opset < 13 else ["axes"]
    nodes = [
        node("Conv", ["x", "c.weight", "c.bias"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Shape", ["c"], ["shape"]),
        constant("first", np.int64(0)),
        constant("rest", np.int64(-1)),
        *([] if opset < 13 else [whole("axes", 0)]),
        node("Gather", ["shape", "first"], ["samples"], axis=0),
        node("Unsqueeze", ["samples", *of], ["samples1"], **axes),
        node("Unsqueeze", ["rest", *of], ["rest1"], **axes),
        node("Concat", ["samples1", "rest1"], ["to"], axis=0),
        node("Reshape", ["c", "to"], ["flat"]),
        node("Gemm", ["flat", "l.weight", "l.bias"], ["y"], transB=1),
    ]
    stored = weights(c__weight=drawn(4, 3, 3, 3), c__bias=drawn(4), l__weight=drawn(10, 256), l__bias=drawn(10))
    return model(nodes, stored, opset=opset), 108 + 4 + 2560 + 10


def padded():
    """``F.pad`` with constant amounts."""
    nodes = [
        whole("given", 1, 1, 1, 1),
        whole("missing", 4),
        node("ConstantOfShape", ["missing"], ["zeros"], value=numpy_helper.from_array(np.zeros(1, np.int64))),
        node("Concat", ["given", "zeros"], ["both"], axis=0),
        whole("pairs", -1, 2),
        node("Reshape", ["both", "pairs"], ["paired"]),
        *(whole(name, at) for name, at in (("start", -1), ("end", -(2**63) + 1), ("axis", 0), ("step", -1))),
        node("Slice", ["paired", "start", "end", "axis", "step"], ["turned"]),
        node("Transpose", ["turned"], ["ordered"], perm=[1, 0]),
        whole("flat", -1),
        node("Reshape", ["ordered", "flat"], ["amounts64"]),
        node("Cast", ["amounts64"], ["amounts"], to=INT64),
        node("Pad", ["x", "amounts"], ["wide"], mode="constant"),
        node("Conv", ["wide", "w"], ["y"], kernel_shape=[3, 3]),
    ]
    return model(nodes, weights(w=drawn(4, 3, 3, 3))), 108


def chunked():
    """``chunk`` of queries and keys, whose ends are calculated from the size of a dimension."""
    nodes = [
        node("MatMul", ["x", "w"], ["both"]),
        node("Shape", ["both"], ["shape"]),
        whole("last", 2),
        node("Gather", ["shape", "last"], ["width"], axis=0),
        *(whole(name, value) for name, value in (("zero", 0), ("one", 1), ("two", 2))),
        node("Add", ["width", "one"], ["more"]),
        node("Div", ["more", "two"], ["half"]),
        node("Mul", ["half", "two"], ["all"]),
        node("Slice", ["both", "zero", "half", "last"], ["q"]),
        node("Slice", ["both", "half", "all", "last"], ["k"]),
        node("Transpose", ["k"], ["turned"], perm=[0, 2, 1]),
        node("MatMul", ["q", "turned"], ["logits"]),
        node("MatMul", ["logits", "u"], ["y"]),
    ]
    return model(nodes, weights(w=drawn(6, 8), u=drawn(5, 3)), (2, 5, 6)), 48 + 15


def scaled_size():
    """An image enlarged to a size that is calculated in floating point."""
    nodes = [
        node("Conv", ["x", "w"], ["c"], kernel_shape=[1, 1]),
        node("Shape", ["c"], ["shape"]),
        *(whole(name, value) for name, value in (("two", 2), ("four", 4), ("zero", 0))),
        node("Slice", ["shape", "zero", "two"], ["front"]),
        node("Slice", ["shape", "two", "four"], ["image"]),
        node("Cast", ["image"], ["real"], to=FLOAT),
        constant("factor", np.float32(2.5)),
        node("Mul", ["real", "factor"], ["large"]),
        node("Floor", ["large"], ["floor"]),
        node("Cast", ["floor"], ["back"], to=INT64),
        node("Concat", ["front", "back"], ["sizes"], axis=0),
        node("Resize", ["c", "", "", "sizes"], ["z"]),
        node("Conv", ["z", "v"], ["y"], kernel_shape=[20, 20]),
    ]
    return model(nodes, weights(w=drawn(4, 3, 1, 1), v=drawn(2, 4, 20, 20))), 12 + 3200


# Weights


def in_constants():
    nodes = [
        constant("fw", drawn(8, 10)),
        constant("fb", drawn(10)),
        node("MatMul", ["x", "fw"], ["m"]),
        node("Add", ["m", "fb"], ["a"]),
        node("Gemm", ["a", "gw", "gb"], ["y"]),
    ]
    return model(nodes, weights(gw=drawn(10, 5), gb=drawn(5)), (2, 8)), 80 + 10 + 50 + 5


def behind_slices():
    """Two halves of one matrix."""
    nodes = [
        *(whole(name, at) for name, at in (("zero", 0), ("half", 4), ("all", 8), ("axis", 1))),
        node("Slice", ["w", "zero", "half", "axis"], ["wa"]),
        node("Slice", ["w", "half", "all", "axis"], ["wb"]),
        node("MatMul", ["x", "wa"], ["a"]),
        node("MatMul", ["x", "wb"], ["b"]),
        node("Add", ["a", "b"], ["h"]),
        node("MatMul", ["h", "u"], ["y"]),
    ]
    return model(nodes, weights(w=drawn(6, 8), u=drawn(4, 3)), (2, 6)), 48 + 12


def normalised_weight():
    """``weight_norm`` of a convolution that nobody folded: direction and length."""
    nodes = [
        node("ReduceL2", ["c.v"], ["length"], axes=[1, 2, 3], keepdims=1),
        node("Div", ["c.v", "length"], ["unit"]),
        node("Mul", ["unit", "c.g"], ["w"]),
        node("Conv", ["x", "w", "c.bias"], ["y"], kernel_shape=[3, 3]),
    ]
    return model(nodes, weights(c__v=drawn(4, 3, 3, 3), c__g=drawn(4, 1, 1, 1), c__bias=drawn(4))), 108 + 4 + 4


def quantised():
    """Weights in eight bits, with a scale for each column; the scales follow from the weights."""
    nodes = [
        node("DequantizeLinear", ["q", "scale", "zero"], ["w"], axis=1),
        node("MatMul", ["x", "w"], ["h"]),
        node("MatMul", ["h", "u"], ["y"]),
    ]
    packed = np.random.default_rng(0).integers(-100, 100, (6, 8)).astype(np.int8)
    stored = weights(q=packed, scale=np.abs(drawn(8)), zero=np.zeros(8, np.int8), u=drawn(8, 3))
    return model(nodes, stored, (2, 6), opset=21), 48 + 24


def merged_gates():
    """The gates of an LSTM in another order, directions stacked, biases joined."""
    nodes = []
    for name in ("ih", "hh"):
        for place, (first, last) in enumerate(((0, 4), (12, 16), (4, 12))):
            nodes += [whole(f"{name}{place}a", first), whole(f"{name}{place}b", last), whole(f"{name}{place}c", 0)]
            nodes += [node("Slice", [f"w_{name}", *(f"{name}{place}{at}" for at in "abc")], [f"{name}{place}"])]
        nodes += [node("Concat", [f"{name}{place}" for place in range(3)], [f"{name}_all"], axis=0)]
        nodes += [whole(f"{name}axis", 0), node("Unsqueeze", [f"{name}_all", f"{name}axis"], [f"{name}_one"])]
    nodes += [
        node("Concat", ["b_ih", "b_hh"], ["b"], axis=0),
        node("Unsqueeze", ["b", "ihaxis"], ["b_one"]),
        node("LSTM", ["x", "ih_one", "hh_one", "b_one"], ["y"], hidden_size=4),
    ]
    stored = weights(w_ih=drawn(16, 3), w_hh=drawn(16, 4), b_ih=drawn(16), b_hh=drawn(16, seed=1))
    return model(nodes, stored, (5, 2, 3)), 48 + 64 + 32


def embedded():
    """Words by data, positions and kinds of words by constants: their rows do not depend on data."""
    nodes = [
        node("Gather", ["words.weight", "x"], ["rows"]),
        whole("places", 0, 1, 2, 3, 4),
        node("Gather", ["places.weight", "places"], ["at"]),
        constant("kind", np.zeros(5, np.int64)),
        node("Gather", ["kinds.weight", "kind"], ["of"]),
        node("Add", ["at", "of"], ["fixed"]),
        node("Add", ["rows", "fixed"], ["sum"]),
        node("LayerNormalization", ["sum", "norm.weight", "norm.bias"], ["y"]),
    ]
    stored = weights(
        words__weight=drawn(20, 4), places__weight=drawn(8, 4), kinds__weight=drawn(2, 4), norm__weight=drawn(4),
        norm__bias=drawn(4, seed=1),
    )  # fmt: skip
    return model(nodes, stored, (2, 5), kind=INT64), 80 + 32 + 8 + 8


def looked_up():
    """Rows by numbers that are calculated from data; nothing wants an error there."""
    nodes = [node("Abs", ["x"], ["i"]), node("Gather", ["words", "i"], ["rows"]), node("MatMul", ["rows", "w"], ["y"])]
    return model(nodes, weights(words=drawn(20, 4), w=drawn(4, 3)), (2, 5), kind=INT64), 80 + 12


def with_token():
    """A token that is repeated for each sample and put before the others, as in vision transformers."""
    nodes = [
        whole("to", 2, 1, 6),
        node("Expand", ["token", "to"], ["tokens"]),
        node("Concat", ["tokens", "x"], ["all"], axis=1),
        node("Add", ["all", "places"], ["sum"]),
        node("MatMul", ["sum", "w"], ["y"]),
    ]
    return model(nodes, weights(token=drawn(1, 1, 6), places=drawn(1, 6, 6), w=drawn(6, 3)), (2, 5, 6)), 6 + 36 + 18


def tied(once=False):
    """A table of words that the exporter stores once more, turned."""
    nodes = [
        node("Gather", ["words.weight", "x"], ["rows"]),
        node("MatMul", ["rows", "w"], ["h"]),
        *([node("Transpose", ["words.weight"], ["onnx::MatMul_9"], perm=[1, 0])] if once else []),
        node("MatMul", ["h", "onnx::MatMul_9"], ["y"]),
    ]
    table = drawn(20, 4)
    stored = {"words__weight": table, "w": drawn(4, 4)} | ({} if once else {"onnx::MatMul_9": table.T.copy()})
    return model(nodes, weights(**stored), (2, 5), kind=INT64), 80 + 16


def alike():
    """Two layers that were copied from one before training are two all the same."""
    nodes = [node("MatMul", ["x", "one.weight"], ["h"]), node("MatMul", ["h", "two.weight"], ["y"])]
    return model(nodes, weights(one__weight=drawn(6, 6), two__weight=drawn(6, 6)), (2, 6)), 72


def shared_norm():
    """One scale at two places, and a dense layer that shares its weight and has a bias of its own."""
    nodes = [
        node("Gemm", ["x", "w", "b"], ["a"]),
        node("LayerNormalization", ["a", "scale", "shift"], ["c"]),
        node("Gemm", ["c", "w", "d"], ["e"]),
        node("LayerNormalization", ["e", "scale", "shift"], ["f"]),
        node("MatMul", ["f", "v"], ["y"]),
    ]
    stored = weights(
        w=drawn(6, 6), b=drawn(6), d=drawn(6, seed=1), scale=drawn(6, seed=2), shift=drawn(6, seed=3), v=drawn(6, 3)
    )
    return model(nodes, stored, (2, 6)), 36 + 12 + 12 + 18


# Operators


def normalised_by_groups():
    nodes = [
        node("GroupNormalization", ["x", "s", "b"], ["n"], num_groups=2),
        node("Conv", ["n", "w"], ["y"], kernel_shape=[3, 3]),
    ]
    return model(nodes, weights(s=drawn(8), b=drawn(8, seed=1), w=drawn(4, 8, 3, 3)), (1, 8, 4, 4), opset=21), 304


def attention():
    nodes = [
        *(node("MatMul", ["x", f"w{each}"], [each]) for each in "qkv"),
        node("Attention", [*"qkv"], ["a"], q_num_heads=2, kv_num_heads=2),
        node("RMSNormalization", ["a", "g"], ["y"]),
    ]
    stored = weights(wq=drawn(8, 8), wk=drawn(8, 8, seed=1), wv=drawn(8, 8, seed=2), g=drawn(8))
    return model(nodes, stored, (2, 5, 8), opset=23), 192 + 8


def by_vector():
    """A product with one vector, and an operator that gives nothing."""
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("MatMul", ["h", "v"], ["y"]), node("Relu", ["h"], [])]
    return model(nodes, weights(w=drawn(6, 8), v=drawn(8)), (2, 6)), 48 + 8


def einsum():
    nodes = [node("Einsum", ["x", "w"], ["y"], equation="bsd,dhk->bshk")]
    return model(nodes, weights(w=drawn(8, 2, 4)), (2, 5, 8)), 64


# Functions and branches


def with_functions():
    """A dense layer with a bias as a function, called twice, the second time inside another; it has an attribute."""
    dense = function(
        "Dense",
        ["i", "w", "b"],
        ["o"],
        [node("MatMul", ["i", "w"], ["p"]), node("Add", ["p", "b"], ["s"]), leaky("s", "o")],
        ["alpha"],
    )
    block = function("Block", ["i", "w", "b"], ["o"], [node("Dense", ["i", "w", "b"], ["o"], domain=DOMAIN, alpha=0.2)])
    nodes = [
        node("Dense", ["x", "w", "b"], ["h"], domain=DOMAIN, name="first", alpha=0.1),
        node("Block", ["h", "v", "c"], ["y"], domain=DOMAIN, name="second"),
    ]
    stored = weights(w=drawn(6, 8), b=drawn(8), v=drawn(8, 4), c=drawn(4))
    return model(nodes, stored, (2, 6), functions=[dense, block]), 48 + 8 + 32 + 4


def leaky(before, after):
    """An activation function whose slope is an attribute of the function around it."""
    made = node("LeakyRelu", [before], [after])
    made.attribute.add(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    return made


def constants_of_a_function():
    """What a function stores is there once, however often it is called."""
    body = [constant("w", drawn(6, 6)), constant("b", drawn(6))]
    body += [node("MatMul", ["i", "w"], ["p"]), node("Add", ["p", "b"], ["o"])]
    nodes = [node("Same", ["x"], ["h"], domain=DOMAIN), node("Same", ["h"], ["y"], domain=DOMAIN)]
    return model(nodes, (), (2, 6), functions=[function("Same", ["i"], ["o"], body)]), 36 + 6


def branches(condition, then=8, other=8):
    """A branch with a weight of its own each; the condition is known or comes in."""

    def branch(name, width):
        body = [node("MatMul", ["x", f"w{name}"], ["m"]), node("MatMul", ["m", f"u{name}"], [f"o{name}"])]
        stored = weights(**{f"w{name}": drawn(6, width), f"u{name}": drawn(width, 6)})
        return helper.make_graph(body, name, [], [helper.make_tensor_value_info(f"o{name}", FLOAT, None)], stored)

    nodes = [
        *([] if condition is None else [constant("c", np.bool_(condition))]),
        node("If", ["c"], ["h"], then_branch=branch("then", then), else_branch=branch("else", other)),
        node("MatMul", ["h", "v"], ["y"]),
    ]
    more = [("c", BOOL, [])] if condition is None else []
    return model(nodes, weights(v=drawn(6, 3)), (2, 6), more=more)


READ = {
    **{f"view, operator set {opset}": viewed(opset) for opset in (9, 11, 12, 13, 14, 17)},
    "pad": padded(),
    "chunk": chunked(),
    "a size in floating point": scaled_size(),
    "constant nodes": in_constants(),
    "slices": behind_slices(),
    "weight norm": normalised_weight(),
    "quantised": quantised(),
    "gates": merged_gates(),
    "embedded": embedded(),
    "looked up": looked_up(),
    "token": with_token(),
    "tied, stored twice": tied(),
    "tied, stored once": tied(once=True),
    "alike": alike(),
    "shared": shared_norm(),
    "group normalisation": normalised_by_groups(),
    "attention": attention(),
    "vector": by_vector(),
    "einsum": einsum(),
    "functions": with_functions(),
    "constants of a function": constants_of_a_function(),
    "then": (branches(True, 8, 2), 2 * 48 + 18),
    "else": (branches(False, 8, 2), 2 * 12 + 18),
    "either": (branches(None, 2, 8), 2 * 48 + 18),
}
