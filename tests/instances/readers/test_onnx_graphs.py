"""What people's ONNX files are made of: sizes that the file calculates, weights behind arithmetic, functions, branches.

All parameters of a model must be there again in the gradients, in the pieces that strategies are for and in the
training step.
"""

import itertools
import os
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from onnx_cases import (
    BOOL,
    DOMAIN,
    FLOAT,
    INT64,
    READ,
    branches,
    constant,
    drawn,
    function,
    helper,
    model,
    node,
    onnx,
    tied,
    weights,
    whole,
    written,
)
from refusals import one_line

from ddlopt.instances.readers import convert
from ddlopt.instances.readers.models.onnx_file import read_model
from ddlopt.instances.readers.models.onnx_layers import layers_of, told_of
from ddlopt.instances.readers.models.onnx_pieces import graph_of_model
from ddlopt.instances.readers.models.onnx_step import step_of
from ddlopt.models.errors import InstanceError
from ddlopt.models.reading import reading_up_to

running = import_module("onnx.reference")


@pytest.mark.parametrize("case", READ)
def test_parameters_are_those_of_the_model(case, tmp_path):
    content, parameters = READ[case]
    read = read_model(written(tmp_path, content))
    layers = layers_of(read)
    assert sum(each.layer.parameters for each in layers) == parameters
    assert sum(np.prod(shape) for each in layers for _, shape in each.layer.tensors) == parameters
    assert sum(each.gradient for each in step_of(read)) == parameters
    pieces = graph_of_model(read).pieces
    assert sum(layer.parameters for piece in pieces for layer in (*piece.split, *piece.after)) == parameters
    assert sum(each.elements for each in convert(tmp_path / "net.onnx", "onnx").gradients) == parameters


def outputs(content):
    """Shapes of all outputs of nodes that the package's own reference implementation runs, with data that is drawn."""
    everything = onnx.ModelProto.FromString(content.SerializeToString())
    for each in content.graph.node:
        for name in each.output:
            if name not in {one.name for one in everything.graph.output}:
                everything.graph.output.append(helper.make_tensor_value_info(name, FLOAT, None))
    given = {}
    for entry in content.graph.input:
        kind = onnx.helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type)
        given[entry.name] = np.ones([dim.dim_value for dim in entry.type.tensor_type.shape.dim], kind)
    names = [one.name for one in everything.graph.output]
    found = running.ReferenceEvaluator(everything).run(names, given)
    return {name: np.shape(each) for name, each in zip(names, found, strict=True)}


NOT_RUN = ("functions", "vector")
"""What the reference implementation does not run: attributes of functions, operators without outputs."""


@pytest.mark.parametrize("case", [case for case in READ if case not in NOT_RUN])
def test_sizes_are_those_that_the_model_has_when_it_runs(case, tmp_path):
    content, _ = READ[case]
    shapes = outputs(content)
    read = read_model(written(tmp_path, content))
    made = {each.name or each.output[0]: each.output[0] for each in content.graph.node}
    found = {each.name: each.outputs[0] for each in read.nodes if each.name in made}
    assert found or case in ("functions", "constants of a function")
    assert found == {name: shapes[made[name]] for name in found}


def test_products_cost_what_they_do_whatever_the_weight_is_made_of(tmp_path):
    """A multiplication and an addition for every number of the weight and every place where it is used."""
    costs = {
        "slices": [2 * 6 * 4, 2 * 6 * 4, 2 * 4 * 3],
        "weight norm": [2 * 108 * 36],
        "gates": [2 * 2 * (48 + 64)],
        "einsum": [2 * 5 * 64],
        "attention": [*(3 * [2 * 5 * 64]), 4 * 5 * 8 * 5, 8 * 40],
    }
    for case, flops in costs.items():
        read = read_model(written(tmp_path, READ[case][0]))
        assert [each.layer.flops for each in layers_of(read) if each.layer.flops] == flops, case


def test_a_weight_of_which_a_layer_uses_a_part_is_whole_everywhere(tmp_path):
    nodes = [*(whole(name, at) for name, at in (("zero", 0), ("half", 4), ("axis", 1)))]
    nodes += [node("Slice", ["w", "zero", "half", "axis"], ["wa"]), node("MatMul", ["x", "wa"], ["y"])]
    read = read_model(written(tmp_path, model(nodes, weights(w=drawn(6, 8)), (2, 6))))
    assert [(piece.columns, piece.everywhere) for piece in graph_of_model(read).pieces] == [(1, True)]


def test_all_outputs_are_trained_for(tmp_path):
    """Detectors give classes and boxes; what only one of them depends on has gradients too."""
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node("MatMul", ["h", "v"], ["y"]),
        node("MatMul", ["h", "u"], ["z"]),
        node("Softmax", ["z"], ["p"]),
    ]
    content = model(nodes, weights(w=drawn(6, 8), v=drawn(8, 3), u=drawn(8, 5)), (2, 6))
    content.graph.output.append(helper.make_tensor_value_info("p", FLOAT, None))
    step = step_of(read_model(written(tmp_path, content)))
    assert sum(each.gradient for each in step) == 48 + 24 + 40
    assert [each.numbers for each in step if each.name == "outputs/forward"] == [3 + 5]


def test_gradients_of_what_layers_share_are_added_up(tmp_path):
    """Of a weight and of a scale with its shift, each used twice; biases of their own are not."""
    step = step_of(read_model(written(tmp_path, READ["shared"][0])))
    summed = [(each.gradient, len(each.reads)) for each in step if each.name.endswith("weight sum")]
    assert sorted(summed) == [(12, 2), (36, 2)]


def test_a_turned_weight_has_outputs_before_inputs(tmp_path):
    nodes = [node("Transpose", ["w"], ["turned"], perm=[1, 0]), node("MatMul", ["x", "turned"], ["y"])]
    read = read_model(written(tmp_path, model(nodes, weights(w=drawn(3, 6)), (2, 6))))
    assert layers_of(read)[0].layer.tensors == (("weight", (3, 6)),)


def test_which_branch_runs_is_told(tmp_path):
    told = convert(written(tmp_path, branches(None, 2, 8)), "onnx").source
    assert "of 1 x If that depend on data ('h') the branch with more weights is the one that runs" in told
    assert "taken for no parameters: 24 numbers in 2 constants ('wthen', 'uthen')" in told
    assert "If" not in convert(written(tmp_path, branches(True)), "onnx").source


# What is no parameter


def adds(constant_array):
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Add", ["h", "c"], ["y"])]
    return model(nodes, weights(w=drawn(6, 8), c=constant_array), (2, 5, 6))


ANGLES = np.outer(np.arange(5), 0.5 ** np.arange(4))
FIXED = {
    "mask": np.triu(np.full((5, 8), -1e9, np.float32), 1),
    "ones and zeros": np.tri(5, 8, dtype=np.float32),
    "nothing hidden": np.zeros((5, 8), np.float32),
    "sines and cosines": np.stack([np.sin(ANGLES), np.cos(ANGLES)], axis=2).reshape(5, 8).astype(np.float32),
    "slopes": np.outer(0.3 ** np.arange(1, 6), np.arange(8)).astype(np.float32),
}


@pytest.mark.parametrize("case", FIXED)
def test_masks_and_tables_of_positions_are_no_parameters_and_told(case, tmp_path):
    read = read_model(written(tmp_path, adds(FIXED[case])))
    assert sum(each.layer.parameters for each in layers_of(read)) == 48
    assert told_of(read) == "; taken for no parameters: 40 numbers in 1 constants ('c')"


@pytest.mark.parametrize(
    "trained",
    [
        *(
            drawn(5, 8),
            np.tri(5, 8, dtype=np.float32) + drawn(5, 8),
            drawn(8),
            np.zeros(8, "f"),
            np.arange(8.0).astype("f"),
        ),
        np.outer(drawn(5), np.arange(8)).astype("f") + 1e-3 * drawn(5, 8),
    ],
)
def test_other_constants_that_are_added_are_parameters(trained, tmp_path):
    read = read_model(written(tmp_path, adds(trained)))
    assert sum(each.layer.parameters for each in layers_of(read)) == 48 + trained.size
    assert told_of(read) == ""


def test_rows_that_an_exporter_repeated_are_counted_once(tmp_path):
    """A token for each sample, and a bias for each pair of positions that was looked up by their distance."""
    distances = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    nodes = [
        node("Concat", ["tokens", "x"], ["all"], axis=1),
        node("MatMul", ["all", "w"], ["h"]),
        node("Transpose", ["h"], ["turned"], perm=[0, 2, 1]),
        node("MatMul", ["h", "turned"], ["logits"]),
        node("Add", ["logits", "biases"], ["y"]),
    ]
    stored = weights(tokens=np.tile(drawn(1, 1, 6), (3, 1, 1)), w=drawn(6, 4), biases=drawn(5, 3)[distances].T.copy())
    read = read_model(written(tmp_path, model(nodes, stored, (3, 4, 6))))
    assert [each.layer.tensors for each in layers_of(read) if each.layer.tensors] == [
        (("token", (1, 6)),),
        (("weight", (4, 6)),),
        (("shift", (5, 3)),),
    ]
    told = "; rows counted once that an exporter repeated: 72 numbers in 2 constants ('tokens', 'biases')"
    assert told_of(read) == told


def test_tables_that_were_calculated_while_exporting_are_no_parameters(tmp_path):
    """Boxes of a detector, say, between operators, where all weights are stored by name."""
    nodes = [node("MatMul", ["x", "w"], ["h"]), constant("boxes", drawn(5, 8)), node("Mul", ["h", "boxes"], ["y"])]
    for stored in (weights(w=drawn(6, 8)), ()):
        more = [] if stored else [constant("w", drawn(6, 8))]
        read = read_model(written(tmp_path, model([*more, *nodes], stored, (2, 5, 6))))
        assert sum(each.layer.parameters for each in layers_of(read)) == 48 + (0 if stored else 40)


def test_frequencies_of_positions_are_no_parameters(tmp_path):
    """As of rotary embeddings: each with each position, whether these come in or are calculated."""
    for more, first in (([("p", INT64, [5, 1])], "p"), ([], "range")):
        nodes = [
            constant("range", np.arange(5, dtype=np.int64)[:, None]),
            node("Cast", [first], ["real"], to=FLOAT),
            node("MatMul", ["real", "frequencies"], ["angles"]),
            node("Cos", ["angles"], ["cosines"]),
            node("MatMul", ["x", "w"], ["h"]),
            node("Mul", ["h", "cosines"], ["y"]),
        ]
        content = model(nodes, weights(w=drawn(6, 8), frequencies=drawn(1, 8)), (2, 5, 6), more=more)
        read = read_model(written(tmp_path, content))
        assert sum(each.layer.parameters for each in layers_of(read)) == 48
        assert "8 numbers in 1 constants ('frequencies')" in told_of(read)


def test_a_product_with_one_hot_rows_is_a_lookup_of_parameters(tmp_path):
    nodes = [
        constant("depth", np.int64(6)),
        constant("values", np.array([0, 1])),
        node("OneHot", ["x", "depth", "values"], ["whole"]),
        node("Cast", ["whole"], ["rows"], to=FLOAT),
        node("MatMul", ["rows", "w"], ["y"]),
    ]
    read = read_model(written(tmp_path, model(nodes, weights(w=drawn(6, 8)), (2, 5), kind=INT64)))
    assert sum(each.layer.parameters for each in layers_of(read)) == 48


def test_a_normalisation_without_scales_has_none(tmp_path):
    """PyTorch writes GroupNorm as InstanceNormalization with ones and zeros, and its scale and shift behind that."""
    ones, zeros = np.ones(3, np.float32), np.zeros(3, np.float32)
    for inline in (True, False):
        nodes = [constant("s", ones), constant("b", zeros)] if inline else []
        nodes += [node("InstanceNormalization", ["x", "s", "b"], ["n"]), node("Conv", ["n", "w"], ["y"])]
        stored = weights(w=drawn(4, 3, 1, 1), **({} if inline else {"s": ones, "b": zeros}))
        read = read_model(written(tmp_path, model(nodes, stored)))
        assert sum(each.layer.parameters for each in layers_of(read)) == (12 if inline else 18)


def test_weights_that_nothing_uses_are_told(tmp_path):
    content = model([node("MatMul", ["x", "w"], ["y"])], weights(w=drawn(6, 8), spare=drawn(3, 5)), (2, 6))
    told = convert(written(tmp_path, content), "onnx").source
    assert "taken for no parameters: 15 numbers in 1 constants ('spare')" in told


def test_running_means_need_no_telling(tmp_path):
    nodes = [node("BatchNormalization", ["x", "s", "b", "mean", "variance"], ["y"])]
    stored = weights(s=drawn(3), b=drawn(3, seed=1), mean=drawn(3, seed=2), variance=np.abs(drawn(3, seed=3)))
    read = read_model(written(tmp_path, model(nodes, stored)))
    assert (sum(each.layer.parameters for each in layers_of(read)), told_of(read)) == (6, "")


def test_a_table_in_another_file_may_be_the_last_weight_as_well(tmp_path):
    """Its numbers are not looked for: the same place is the same table, and of a turned one nobody can tell."""
    content, _ = tied()
    for each in content.graph.initializer:
        each.ClearField("raw_data")
        each.data_location = onnx.TensorProto.EXTERNAL
        each.external_data.add(key="location", value=f"{len(each.name)}.bin")
    read = read_model(written(tmp_path, content))
    assert sum(each.layer.parameters for each in layers_of(read)) == 80 + 16 + 80
    assert "'onnx::MatMul_9' may be the table 'words.weight' once more, whose numbers are elsewhere" in told_of(read)


@pytest.mark.parametrize(("place", "parameters"), [("words.bin", 80), ("other.bin", 160)])
def test_two_tables_at_one_place_of_another_file_are_one(place, parameters, tmp_path):
    nodes = [node("Gather", ["words", "x"], ["rows"]), node("Gemm", ["rows", "last"], ["y"], transB=1)]
    content = model(nodes, weights(words=drawn(20, 4), last=drawn(20, 4)), (5,), kind=INT64)
    for each, location in zip(content.graph.initializer, ("words.bin", place), strict=True):
        each.ClearField("raw_data")
        each.data_location = onnx.TensorProto.EXTERNAL
        each.external_data.add(key="location", value=location)
    read = read_model(written(tmp_path, content))
    assert sum(each.layer.parameters for each in layers_of(read)) == parameters


# Refused


def nested(depth, calls=1):
    """Functions of which each calls the one before, so many times."""
    made = [function("F0", ["i"], ["o"], [node("Relu", ["i"], ["o"])])]
    for place in range(1, depth):
        names = ["i", *(f"t{call}" for call in range(1, calls)), "o"]
        body = [node(f"F{place - 1}", [before], [after], domain=DOMAIN) for before, after in itertools.pairwise(names)]
        made.append(function(f"F{place}", ["i"], ["o"], body))
    nodes = [node("MatMul", ["x", "w"], ["h"]), node(f"F{depth - 1}", ["h"], ["y"], domain=DOMAIN)]
    return model(nodes, weights(w=drawn(6, 8)), (2, 6), functions=made)


def recursive(among=1):
    made = [
        function(f"F{place}", ["i"], ["o"], [node(f"F{(place + 1) % among}", ["i"], ["o"], domain=DOMAIN)])
        for place in range(among)
    ]
    return model([node("F0", ["x"], ["y"], domain=DOMAIN)], (), (2, 6), functions=made)


def loop():
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("MatMul", ["v", "w"], ["u"]), node("Identity", ["go"], ["on"])],
        "body",
        [info("i", INT64, []), info("go", BOOL, []), info("v", FLOAT, None)],
        [info("on", BOOL, []), info("u", FLOAT, None)],
        weights(w=drawn(6, 6)),
    )
    return model([whole("times", 3), node("Loop", ["times", "", "x"], ["y"], body=body, name="/decode")], (), (2, 6))


REFUSED = {
    "26 functions": (nested(26, 2), "operators; at most 100000 are read"),
    "functions in functions": (nested(70), "functions are nested more than 60 deep, at 'F9'"),
    "recursion": (recursive(), "the function 'F0' calls itself"),
    "recursion by others": (recursive(3), "the function 'F0' calls itself"),
    "loop": (loop(), "operator '/decode' (Loop) is control flow"),
    "depends on data": (
        model([node("MatMul", ["x", "w"], ["h"]), node("NonZero", ["h"], ["y"])], weights(w=drawn(6, 8)), (2, 6)),
        "the size of 'y' at operator 'y' (NonZero) cannot be found",
    ),
    "odd constant": (
        model([node("ConstantOfShape", ["n"], ["c"]), node("Reshape", ["x", "c"], ["y"])],
              weights(n=np.array([2**40, 2**20])), (2, 6)),
        "operator 'y' (Reshape)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_in_a_line(case, tmp_path):
    content, told = REFUSED[case]
    with one_line(InstanceError, told):
        convert(written(tmp_path, content), "onnx")


def test_names_that_are_no_text_are_refused_in_a_line(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(adds(drawn(8)).SerializeToString().replace(b"MatMul", b"MatM\xfel"))
    with one_line(InstanceError, "names in it are no text"):
        convert(path, "onnx")


def test_functions_within_the_limit_are_read(tmp_path):
    read = read_model(written(tmp_path, nested(10, 2)))
    assert len(read.nodes) == 1 + 2**9


def test_only_regular_files_of_a_size_are_read(tmp_path):
    pipe = tmp_path / "pipe.onnx"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with one_line(InstanceError, "it is not a regular file"):
            convert(path, "onnx")
    path = written(tmp_path, adds(drawn(8)))
    with reading_up_to(100), one_line(InstanceError, "it has more than 100 bytes; ddlopt --max-file-mb N"):
        convert(path, "onnx")
