"""Networks as lists of gradients and as operator graphs: against published lists, totals and figures, and by hand."""

import json
import math

import pytest
from shared_data import shared_data

from ddlopt.instances.workloads import A100, PASSES, V100, backward_gradients, networks

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


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
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
