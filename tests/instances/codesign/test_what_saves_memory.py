"""Precision, micro-batches, recomputation and sharded state of a small transformer by hand, and what makes it fit."""

import json

import pytest
from refusals import one_line

from ddlopt.instances.readers import convert
from ddlopt.instances.workloads.accelerators import ACCELERATORS, V100
from ddlopt.instances.workloads.precision import BF16, FP8, FP32
from ddlopt.models.codesign.bounds import fits, least_memory_bytes, refuse_too_large
from ddlopt.models.errors import InfeasibleError, OptionError

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 200,
    "max_position_embeddings": 32,
}
SERVERS, GPUS, BATCH = 4, 2, 4
SAMPLES = GPUS * BATCH
NUMBERS = 32 * 64
"""What a residual connection hands on, for a sample."""


@pytest.fixture
def job(tmp_path):
    def read(model=LLAMA, **options):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(model), encoding="utf-8")
        settings = {"servers": SERVERS, "degree": 2, "gpus_per_server": GPUS, "batch": BATCH}
        return convert(path, "transformer-codesign", **settings | options)

    return read


def strategies(instance, layer):
    found = next(each for each in instance.layers if each.name == layer)
    return {strategy.name: strategy for strategy in found.strategies}


def data(instance, layer):
    return strategies(instance, layer)["data"]


DOWN = 96 * 64
"""Parameters of what narrows."""


@pytest.mark.parametrize(
    ("sharded", "parameter_bytes", "reduced_bytes"),
    [
        ("none", 18, 4),
        ("optimizer", 2 + 4 + 12 / 8, 3),
        ("gradients", 2 + 16 / 8, 3),
        ("parameters", 18 / 8, 2 + 2),
    ],
)
def test_state_of_data_parallelism_is_shared_out_over_all_accelerators(job, sharded, parameter_bytes, reduced_bytes):
    found = data(job(precision="bf16", sharded=sharded), "block.0.feed.down")
    kept_bytes = 2 * SAMPLES * 32 * 64
    assert found.memory_bytes == pytest.approx(GPUS * DOWN * parameter_bytes + kept_bytes)
    (reduction,) = found.reductions
    assert reduction.bytes == pytest.approx(reduced_bytes * DOWN)


def test_a_cut_has_fewer_replicas(job):
    found = strategies(job(precision="bf16", sharded="parameters"), "block.0.feed.down")["row-4"]
    kept_bytes = 2 * SAMPLES * 32 * 64
    # A quarter of the weights on each server, shared by its two accelerators.
    assert found.memory_bytes == pytest.approx(DOWN / 4 * 18 + kept_bytes)


def test_weights_that_are_sharded_are_gathered_for_every_micro_batch(job):
    (reduction,) = data(job(precision="bf16", sharded="parameters", micro_batches=4), "block.0.feed.down").reductions
    assert reduction.bytes == pytest.approx(4 * (2 + 4 / 2) * DOWN)


def test_micro_batches_share_the_room_for_activations_and_read_weights_again(job):
    one, four = (data(job(micro_batches=c), "block.0.feed.down") for c in (1, 4))
    weights_bytes, kept_bytes = GPUS * DOWN * 8, 4 * SAMPLES * 32 * 64
    assert one.memory_bytes == weights_bytes + kept_bytes
    assert four.memory_bytes == weights_bytes + kept_bytes / 4
    assert four.moved_bytes - one.moved_bytes == 3 * 4 * GPUS * (4 - 1) * DOWN
    assert four.flops == one.flops
    with one_line(OptionError, "micro_batches is 3, which does not divide the 4 samples of a GPU"):
        job(micro_batches=3)


def test_recomputed_blocks_keep_what_they_hand_on(job):
    plain, again = job(), job(recompute=True)
    inside = data(again, "block.0.feed.down")
    assert inside.memory_bytes == GPUS * DOWN * 8
    assert inside.flops == pytest.approx(4 / 3 * data(plain, "block.0.feed.down").flops)
    for kept in ("embedding", "block.0.add.1", "block.1.add.1", "norm", "words"):
        assert data(again, kept) == data(plain, kept)
    assert data(again, "block.1.add.0").memory_bytes == 0
    assert data(again, "block.1.add.1").memory_bytes == 4 * SAMPLES * NUMBERS
    # What a cut sends forward is sent once more: 3 of what were 2.
    row, row_again = (strategies(each, "block.0.feed.down")["row-4"].reductions for each in (plain, again))
    assert row_again[0].bytes == pytest.approx(1.5 * row[0].bytes)
    assert row_again[1:] == row[1:]


def test_experts_are_sent_to_once_more_where_blocks_are_recomputed(job):
    mixtral = LLAMA | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
    sent = [
        strategies(job(mixtral, **options), "block.0.experts")["expert-4"].traffic[0][2]
        for options in ({}, {"recompute": True}, {"precision": "bf16"})
    ]
    assert sent[1:] == pytest.approx([1.5 * sent[0], 0.5 * sent[0]])


def test_numbers_of_16_bits_are_half_as_large_and_products_faster(job):
    single, half = job(accelerator="h100"), job(accelerator="h100", precision="bf16")
    assert half.device.flops_per_s == pytest.approx(GPUS * 0.6 * 989.4e12)
    assert single.device.flops_per_s == pytest.approx(GPUS * 0.85 * 67e12)
    assert [2 * layer.output_bytes for layer in half.layers] == [layer.output_bytes for layer in single.layers]
    for layer in ("block.0.feed.down", "block.0.add.0", "words"):
        assert 2 * data(half, layer).moved_bytes == data(single, layer).moved_bytes
    assert "bf16, 18 bytes a parameter" in half.source
    assert "fp32, 8 bytes a parameter" in single.source


def test_a_configuration_says_its_precision(job):
    assert "bf16, 18 bytes" in job(LLAMA | {"torch_dtype": "bfloat16"}).source
    assert "bf16, 18 bytes" in job(LLAMA | {"dtype": "float16"}).source
    assert "fp32, 8 bytes" in job(LLAMA | {"torch_dtype": "bfloat16"}, precision="fp32").source


def test_accelerators_without_a_precision_say_so(job):
    with one_line(OptionError, match="precision is 'fp8', which A100.*use one of: fp32, bf16"):
        job(precision="fp8")
    with one_line(OptionError, "precision is 'int4'; use one of: fp32, bf16, fp8"):
        job(precision="int4")
    rates = {name: each.at(BF16).flops_per_s for name, each in ACCELERATORS.items() if each.rates}
    assert rates["h100"] < rates["b200"]
    assert ACCELERATORS["h100"].at(FP8).flops_per_s == pytest.approx(2 * rates["h100"], rel=1e-3)
    assert V100.at(FP32) is V100


def test_what_does_not_fit_says_what_would(job):
    tight = {"memory_gigabytes": 2.5e-4, "precision": "bf16"}
    together = "with micro_batches=4 recompute=true sharded=parameters: [0-9e+.]* bytes, fits"
    with one_line(InfeasibleError, match=f"with micro_batches=4: .*, too much;.*{together}"):
        refuse_too_large(job(**tight))
    leanest = job(**tight, micro_batches=4, recompute=True, sharded="parameters")
    assert fits(leanest)
    assert f"{least_memory_bytes(leanest):.6g} bytes, fits" in job(**tight).remedies[-1]
    assert not job(precision="bf16").remedies
    assert "remedies" not in job(precision="bf16").to_json()


def test_the_other_problems_take_a_precision(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA | {"torch_dtype": "bfloat16"}), encoding="utf-8")
    topology = {kind: convert(path, "transformer-topology", batch=2, precision=kind) for kind in ("fp32", "bf16")}
    assert topology["bf16"].compute_s < topology["fp32"].compute_s
    gradients = {kind: each.allreduce_groups[0].gradient_bytes for kind, each in topology.items()}
    assert gradients["bf16"] == gradients["fp32"]
    assert ", bf16; times of the backward pass" in convert(path, "transformer", batch=2).source
    plans = {kind: convert(path, "transformer-deployment", batch=8, groups=99, precision=kind) for kind in topology}
    for half, single in (("gradient_bytes", 1), ("resident_bytes", 14 / 12)):
        own, other = (sum(getattr(each, half) for each in plans[kind].operators) for kind in ("bf16", "fp32"))
        assert own == pytest.approx(single * other)
    assert sum(each.size_bytes for each in plans["bf16"].tensors) < sum(
        each.size_bytes for each in plans["fp32"].tensors
    )
