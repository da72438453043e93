"""Networks as lists of gradients and as operator graphs: against published lists, totals and figures, and by hand."""

import json
import math

import networkx
import pytest
from shared_data import shared_data
from volume import for_each

from ddlopt.instances.generators.compression import generate
from ddlopt.instances.workloads import A100, PASSES, V100, Accelerator, backward_gradients
from ddlopt.instances.workloads.networks import published as networks
from ddlopt.instances.workloads.networks.layers import dense
from ddlopt.instances.workloads.networks.network_graphs import MODELS, network, training_step
from ddlopt.instances.workloads.networks.training_graph import Tape, operator_time_s
from ddlopt.models.compression import SfbSelection, evaluate
from ddlopt.models.errors import UnknownNameError

WORKLOADS = {
    "vgg16": networks.vgg16(32),
    "vgg19": networks.vgg19(32),
    "resnet50": networks.resnet50(32),
    "resnet101": networks.resnet101(32),
    "bert": networks.bert(12, 768, 128, 32),
    "gpt2": networks.gpt2(4),
    "transformer": networks.transformer(32),
    "candle": networks.candle([64, 64], [64, 1], 8),
}


# Gradients ------------------------------------------------------------------------------------------------------------


@for_each("workload", WORKLOADS.values())
def test_tensors_hold_the_parameters(workload):
    for layer in workload.layers:
        assert sum(math.prod(shape) for _, shape in layer.tensors) == layer.parameters, layer
    gradients = backward_gradients(workload, V100)
    assert sum(gradient.elements for gradient in gradients) == workload.dense_parameters
    assert len({gradient.name for gradient in gradients}) == len(gradients)


@pytest.mark.parametrize(
    ("name", "parameters", "tensors"),
    [
        ("vgg19", 143_667_240, 38),  # torchvision, VGG19_Weights
        ("resnet101", 44_549_160, 314),  # torchvision, ResNet101_Weights
        ("gpt2", 124_439_808, 148),  # the released 124M model
    ],
)
def test_totals_are_the_published_ones(name, parameters, tensors):
    assert WORKLOADS[name].parameters == parameters
    assert len(backward_gradients(WORKLOADS[name], V100)) == tensors


def test_transformer_has_about_65_million_parameters():
    # Vaswani et al., table 3: 65 · 10⁶ for the base model, whose vocabulary is "about 37000" tokens.
    assert WORKLOADS["transformer"].parameters == pytest.approx(65e6, rel=0.03)
    h = 512
    blocks = 6 * (12 * h**2 + 13 * h) + 6 * (16 * h**2 + 19 * h)
    assert WORKLOADS["transformer"].parameters == 37000 * h + blocks


@pytest.mark.parametrize(
    ("name", "tensors", "millions"), [("vgg16", 32, 138.36), ("resnet50", 161, 25.56), ("resnet101", 314, 44.55)]
)
def test_gradients_come_in_the_recorded_order(name, tensors, millions):
    recorded = json.loads(shared_data(f"espresso/{name}.json").read_text())["tensors"]
    gradients = backward_gradients(WORKLOADS[name], V100)
    assert [gradient.elements for gradient in gradients] == [tensor["elements"] for tensor in recorded]
    assert len(gradients) == tensors
    assert sum(gradient.elements for gradient in gradients) / 1e6 == pytest.approx(millions, abs=0.005)
    for gradient, tensor in zip(gradients, recorded, strict=True):
        assert gradient.name.endswith((".weight", ".scale")) == tensor["name"].endswith(".weight")


def test_order_and_shapes_within_layers():
    first = backward_gradients(WORKLOADS["bert"], V100)[:16]
    assert [(gradient.name.removeprefix("block.11."), gradient.shape) for gradient in first[:6]] == [
        ("pooler.bias", (768,)),
        ("pooler.weight", (768, 768)),
        ("norm.1.scale", (768,)),
        ("norm.1.shift", (768,)),
        ("feed.1.bias", (768,)),
        ("feed.1.weight", (768, 3072)),
    ]
    projections = [gradient.name.split(".")[-2] for gradient in first[10:16]]
    assert projections == ["output", "output", "value", "value", "key", "key"]
    stem = backward_gradients(WORKLOADS["resnet50"], V100)[-1]
    assert (stem.name, stem.shape) == ("stem.conv.weight", (64, 3, 7, 7))


def test_parameters_that_are_shared_come_last():
    assert backward_gradients(WORKLOADS["gpt2"], V100)[-1].shape == (50257, 768)
    assert backward_gradients(WORKLOADS["transformer"], V100)[-1].shape == (37000, 512)


def test_gradients_are_ready_after_two_forward_passes_of_all_later_layers():
    workload = WORKLOADS["vgg16"]
    gradients = backward_gradients(workload, A100, 7)
    ready = [gradient.ready_s for gradient in gradients]
    assert ready == sorted(ready)
    assert ready[0] == ready[1] == 2 * A100.forward_s(workload.layers[-1], 7)
    assert ready[-1] == pytest.approx((PASSES - 1) * sum(A100.forward_s(layer, 7) for layer in workload.layers))
    own = backward_gradients(workload, A100)
    assert own == backward_gradients(workload, A100, 32)
    assert own[-1].ready_s > ready[-1]


# Operator graphs ------------------------------------------------------------------------------------------------------

STEPS = {model: training_step(model) for model in MODELS}


def named(step, name):
    (place,) = (place for place, each in enumerate(step) if each.name == name)
    return place


def reads(model, name):
    step = STEPS[model]
    return [step[read].name for read in step[named(step, name)].reads]


@for_each("model", MODELS)
def test_graph_is_acyclic_and_connected_and_serves_the_gradients(model):
    step = STEPS[model]
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(step)))
    graph.add_edges_from((read, place) for place, each in enumerate(step) for read in each.reads)
    assert networkx.is_directed_acyclic_graph(graph)
    assert networkx.is_weakly_connected(graph)
    assert all(len(set(each.reads)) == len(each.reads) for each in step)
    assert len({each.name for each in step}) == len(step)
    for place, each in enumerate(step):
        assert (graph.out_degree(place) == 0) == (each.gradient > 0), each.name
        assert (graph.in_degree(place) == 0) == (each.local and "/" not in each.name), each.name
        assert (each.numbers + each.partial > 0) == (graph.out_degree(place) > 0), each.name


@for_each("model", MODELS)
def test_every_layer_is_used_with_its_counts(model):
    step, workload = STEPS[model], network(model, 1)
    forward = [each for each in step if each.name.endswith("/forward")]
    assert sum(each.flops for each in forward) == workload.flops
    found = {each.name.removesuffix("/forward"): each for each in forward}
    for layer in workload.layers:
        if not layer.name.endswith("products"):
            assert (found[layer.name].flops, found[layer.name].numbers) == (layer.flops, layer.outputs)


@for_each("model", MODELS)
def test_gradients_of_the_graph_are_those_of_the_backward_pass(model):
    listed = backward_gradients(network(model, 1), V100)
    scales = sorted(2 * each.elements for each in listed if each.name.endswith(".scale"))
    others = sorted(each.elements for each in listed if not each.name.endswith((".scale", ".shift")))
    graph = [each for each in STEPS[model] if each.gradient]
    assert sorted(each.gradient for each in graph if each.name.endswith("/scale and shift")) == scales
    assert sorted(each.gradient for each in graph if not each.name.endswith("/scale and shift")) == others


@pytest.mark.parametrize("model", ["vgg16", "resnet50"])
def test_backward_products_cost_twice_the_forward_ones_but_for_the_images(model):
    multiplied = {layer.name: layer.flops for layer in network(model, 1).layers if layer.flops and layer.parameters}
    multiplied = {name: flops for name, flops in multiplied.items() if "norm" not in name}
    first = next(iter(multiplied.values()))
    backward = {f"{name}/{role}" for name in multiplied for role in ("error", "weight")}
    flops = sum(each.flops for each in STEPS[model] if each.name in backward)
    assert flops == 2 * sum(multiplied.values()) - first


@for_each("model", MODELS)
def test_errors_are_as_large_as_what_they_are_errors_of(model):
    step = STEPS[model]
    for each in step:
        if each.name.endswith(("/error", "/error sum")):
            layer = each.name.rsplit("/", 1)[0]
            if f"{layer}/forward" in {other.name for other in step}:
                forward = step[named(step, f"{layer}/forward")]
                wanted = forward if each.name.endswith("sum") else step[forward.reads[0]]
                assert each.numbers == wanted.numbers, each.name


def test_what_a_convolution_block_reads():
    block = "stage.1.0"
    assert reads("resnet50", f"{block}.add/forward") == [f"{block}.2.norm/forward", f"{block}.shortcut.norm/forward"]
    # Addition hands the same error to both of its inputs; what two operators read gets the sum of two errors.
    assert reads("resnet50", f"{block}.2.conv/weight") == [f"{block}.1.relu/forward", f"{block}.2.norm/error"]
    for norm in ("2.norm", "shortcut.norm"):
        conv = norm.replace("norm", "conv")
        assert reads("resnet50", f"{block}.{norm}/error") == [f"{block}.{conv}/forward", f"{block}.relu/error"]
    assert reads("resnet50", "stage.0.2.relu/error sum") == [f"{block}.shortcut.conv/error", f"{block}.0.conv/error"]
    assert reads("vgg16", "pool.4/error") == ["conv.4.2.relu/forward", "pool.4/forward", "dense.0/error"]
    assert reads("resnet50", "pool/error") == ["classes/error"]
    assert reads("vgg16", "conv.0.0/weight") == ["images", "conv.0.0.relu/error"]


def test_what_attention_reads():
    # S = Q Kᵀ, P = softmax S, C = P V:  dP = dC Vᵀ, dV = Pᵀ dC, dQ = dS K, dK = dSᵀ Q.
    name = "block.3.attention"
    expected = {
        "scores/forward": ["query/forward", "key/forward"],
        "softmax/forward": ["scores/forward"],
        "context/forward": ["softmax/forward", "value/forward"],
        "context/left error": ["value/forward", "output/error"],
        "context/right error": ["softmax/forward", "output/error"],
        "softmax/error": ["softmax/forward", "context/left error"],
        "scores/left error": ["key/forward", "softmax/error"],
        "scores/right error": ["query/forward", "softmax/error"],
    }
    for operator, read in expected.items():
        assert reads("bert-base", f"{name}.{operator}") == [f"{name}.{each}" for each in read]
    for projection, error in (
        ("query", "scores/left error"),
        ("key", "scores/right error"),
        ("value", "context/right error"),
    ):
        assert reads("bert-base", f"{name}.{projection}/weight") == ["block.2.norm.1/forward", f"{name}.{error}"]
    step = STEPS["bert-base"]
    assert step[named(step, f"{name}.softmax/forward")].numbers == 12 * 128 * 128
    assert reads("bert-base", "block.3.norm.0/error")[0] == "block.3.norm.0.add/forward"
    assert reads("bert-base", "block.3.feed.gelu/error") == ["block.3.feed.0/forward", "block.3.feed.1/error"]
    assert len(reads("transformer-base", "encoder.5.norm.1/error sum")) == 12
    parts = [f"block.0.attention.scores/{side} error" for side in ("left", "right")]
    joined = reads("gpt2", "block.0.attention.parts/error")
    assert sorted(joined) == sorted([*parts, "block.0.attention.context/right error"])


def test_shared_weights_have_one_gradient_of_summands():
    step = STEPS["transformer-base"]
    added = step[named(step, "embedding.source/weight sum")]
    summands = [step[read] for read in added.reads]
    assert [each.name for each in summands] == ["words/weight", "embedding.target/weight", "embedding.source/weight"]
    assert {each.partial for each in summands} == {added.gradient} == {37000 * 512}
    assert not any(each.gradient or each.numbers for each in summands)
    assert summands[0].output_bytes(5, replicas=3) == 3 * 4 * 37000 * 512


def test_times_are_the_roofline_of_what_is_read_and_written():
    step, workload = STEPS["vgg16"], network("vgg16", 1)
    for layer in workload.layers:
        if layer.parameters:
            assert operator_time_s(step, named(step, f"{layer.name}/forward"), A100, 9) == A100.forward_s(layer, 9)
    machine = Accelerator("m", flops_per_s=1e9, convolution_flops_per_s=1e6, memory_bytes_per_s=1e6)
    # 3 samples through 4 x 5 numbers: dense.2 reads 4096, writes 1000 and has 4096 x 1000 weights.
    weight_s = operator_time_s(step, named(step, "dense.2/weight"), machine, 3)
    assert weight_s == pytest.approx(4 * (3 * (4096 + 1000) + 4096 * 1000) / 1e6)
    assert operator_time_s(step, named(step, "dense.2/error"), machine, 3) == weight_s
    assert operator_time_s(step, named(step, "dense.2/bias"), machine, 3) == pytest.approx(4 * (3 * 1000 + 1000) / 1e6)
    relu_s = operator_time_s(step, named(step, "dense.1.relu/error"), machine, 3)
    assert relu_s == pytest.approx(4 * 3 * 3 * 4096 / 1e6)
    convolution_s = operator_time_s(step, named(step, "conv.0.1/weight"), machine, 3)
    assert convolution_s == pytest.approx(3 * 2 * 9 * 64 * 64 * 224**2 / 1e6)


def test_resnet50_takes_about_as_long_as_measured():
    # 405 images a second in FP32 on a V100 with TensorFlow 1.12, as published by Lambda Labs.
    step = STEPS["resnet50"]
    step_s = sum(operator_time_s(step, place, V100, 64) for place in range(len(step)))
    assert 64 / step_s == pytest.approx(405, rel=0.2)


def test_one_dense_layer_by_hand():
    tape = Tape()
    images = tape.data("x", 7)
    step = tape.loss(tape.linear(dense("d", 7, 5), images), tape.data("labels", 1))
    told = [(each.name, each.reads, each.numbers, each.flops, each.parameters, each.gradient) for each in step]
    assert told == [
        ("x", (), 7, 0, 0, 0),
        ("d/forward", (0,), 5, 70, 40, 0),
        ("labels", (), 1, 0, 0, 0),
        ("loss", (1, 2), 5, 0, 0, 0),
        ("d/bias", (3,), 0, 5, 5, 5),
        ("d/weight", (0, 3), 0, 70, 35, 35),
    ]


def test_unknown_model():
    with pytest.raises(UnknownNameError, match="there is no model 'alexnet'; there are: vgg16, vgg19, resnet50"):
        training_step("alexnet")


# Instances of sufficient factor broadcasting --------------------------------------------------------------------------


def test_instance_has_the_figures_of_the_step():
    made = generate("sfb-network", model="vgg19", batch=8, workers=4, network_gigabit_per_s=10.0)
    assert made.name == "sfb-vgg19-b8-w4-10g"
    names = [each.name for each in made.operators]
    weight = made.operators[names.index("dense.1/weight")]
    samples = 32
    assert weight.gradient_bytes == 4 * 4096 * 4096
    assert (weight.replicas, weight.bandwidth_bytes_per_s) == (4, 1.25e9)
    rate = 0.67 * 900e9
    assert weight.time_s == float(f"{4 * (samples * 2 * 4096 + 4096 * 4096) / rate:.4g}")
    # It reads the activations and the errors of the 24 samples of others; its output is as large as before.
    assert weight.memory_bytes == 24 * 4 * 2 * 4096
    relu = made.operators[names.index("dense.1.relu/forward")]
    assert (relu.gradient_bytes, relu.memory_bytes) == (0, 24 * 4 * 2 * 4096)
    (tensor,) = (each for each in made.tensors if names[each.producer] == "dense.0.relu/forward")
    assert tensor.size_bytes == samples * 4096 * 4
    readers = {names[each] for each in tensor.consumers}
    assert readers == {"dense.1/forward", "dense.1/weight", "dense.0.relu/error"}
    fixed = {names[place] for place in range(made.size) if not made.eligible[place]}
    assert fixed == {"images", "labels"}
    assert made.sync_s.sum() == pytest.approx(2 * 3 / 4 * 4 * 143_667_240 / 1.25e9)


def test_summands_of_shared_weights_are_one_a_worker():
    made = generate("sfb-network", model="gpt2", batch=2, workers=4)
    names = [each.name for each in made.operators]
    (tensor,) = (each for each in made.tensors if names[each.producer] == "words/weight")
    table_bytes = 4 * 50257 * 768
    assert tensor.size_bytes == 4 * table_bytes
    assert made.operators[names.index("embedding.words/weight sum")].gradient_bytes == table_bytes
    assert made.operators[names.index("embedding.words/weight sum")].memory_bytes == 2 * 3 * table_bytes
    assert made.operators[names.index("words/weight")].memory_bytes == 3 * 2 * 1024 * 4 * (768 + 50257)


def test_batch_normalisation_is_not_duplicated():
    made = generate("sfb-network", model="resnet50")
    fixed = {each.name for each in made.operators if not each.can_duplicate}
    norms = {each.name for each in made.operators if ".norm/" in each.name}
    assert len(norms) == 3 * 53
    assert fixed == norms | {"images", "labels"}
    assert all(
        each.can_duplicate
        for each in generate("sfb-network", model="bert-base").operators
        if each.name.endswith("scale and shift")
    )


@pytest.mark.parametrize(
    ("workers", "cost_model", "pays"), [(2, "per_link", True), (16, "per_link", True), (16, "tag_code", False)]
)
def test_closed_form_of_the_largest_dense_layer(workers, cost_model, pays):
    # VGG-19's first dense layer, n x m = 4096 x 25088, 32 samples a worker: factors of D b (m + n) numbers against a
    # gradient of m n. TAG's code counts elements, and the batch of all workers from each.
    made = generate("sfb-network", model="vgg19", batch=32, workers=workers, cost_model=cost_model)
    names = [each.name for each in made.operators]
    weight = names.index("dense.0/weight")
    with_factors = evaluate(made, SfbSelection(instance=made.name, duplicated=(weight,)))
    without = evaluate(made, SfbSelection(instance=made.name))
    m, n, b, d, bandwidth = 25088, 4096, 32, workers, 25e9 / 8
    factors, gradient, extra = {
        "per_link": (4 * (d - 1) * b * (m + n), 2 * (d - 1) / d * 4 * m * n, (d - 1) / d),
        "tag_code": (d * (d - 1) * d * b * (m + n), 2 * (d - 1) / d * m * n, d - 1),
    }[cost_model]
    expected = factors / bandwidth - gradient / bandwidth + extra * made.operators[weight].time_s + 1e-6
    assert float(with_factors.objective - without.objective) == pytest.approx(expected, rel=1e-6)
    assert (factors < gradient) == pays
    assert (with_factors.objective < without.objective) == pays
