"""Pipelines of transformers: activations as published and counted, times and memory by hand, options in one line."""

import json

import pytest
from refusals import one_line

import ddlopt
from ddlopt.instances.readers import convert
from ddlopt.instances.readers.models.transformer_config import read_transformer
from ddlopt.instances.workloads.networks.transformer_costs import activation_bytes
from ddlopt.instances.workloads.precision import BF16
from ddlopt.models.errors import OptionError

SMALL = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
SMALL |= {"intermediate_size": 96, "vocab_size": 200, "max_position_embeddings": 32, "model_type": "llama"}
SMALL |= {"torch_dtype": "bfloat16"}


def written(tmp_path, config):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def llama(hidden, heads, keys, width):
    sizes = {"hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": keys}
    return SMALL | sizes | {"intermediate_size": width, "max_position_embeddings": 8192}


@pytest.mark.parametrize(
    ("config", "tensor", "counted"),
    [(llama(4096, 32, 8, 14336), 1, 1_141_899_264), (llama(8192, 64, 8, 28672), 4, 562_561_024)],
)
def test_activations_of_llama_are_those_counted_elsewhere(config, tensor, counted, tmp_path):
    sizes = read_transformer(written(tmp_path, config), 8192)
    assert activation_bytes(sizes, "block.0", 1, tensor, BF16) == counted


def test_activations_of_a_plain_layer_are_those_of_the_paper_without_masks(tmp_path):
    # 34 s b h with all shared, less two masks of a byte each; and the scores' sums.
    gpt = {"model_type": "gpt2", "n_layer": 1, "n_embd": 64, "n_head": 4, "n_positions": 32, "vocab_size": 200}
    sizes = read_transformer(written(tmp_path, gpt))
    assert activation_bytes(sizes, "block.0", 3, 2, BF16) == 32 * 3 * (64 * (34 - 2) + 4 * 4) / 2


def read(tmp_path, config=SMALL, **options):
    settings = {"servers": 2, "gpus_per_server": 2, "global_batch": 8, "micro_batch": 2, "accelerator": "h100"}
    settings |= {"objective": "throughput"}
    return convert(written(tmp_path, config), "transformer-pipeline", **settings | options)


def test_layers_by_hand(tmp_path):
    found = read(tmp_path)
    assert [layer.name for layer in found.layers] == ["embedding", "block.0", "block.1", "head"]
    assert (found.devices, found.memory_bytes, found.micro_batches) == (4, 80e9, 4)
    assert found.bandwidth_bytes_per_s == 3200e9 / 8 / 2
    assert {edge.size_bytes for edge in found.edges} == {2 * 2 * 32 * 64}
    block = found.layers[1]
    assert [menu.tensor for menu in block.menus] == [1, 2]
    parameters = 2 * 64 + 64 * (64 + 32 + 32 + 64) + 3 * 64 * 96
    one, two = ({option.name: option for option in menu.options} for menu in block.menus)
    assert one["kept"].fixed_bytes == 18 * parameters
    assert two["kept"].fixed_bytes == 9 * parameters
    assert one["recomputed"].kept_bytes == 2 * 2 * 32 * 64
    assert two["recomputed"].kept_bytes == 2 * 32 * 64
    assert one["recomputed"].time_s == pytest.approx(4 / 3 * one["kept"].time_s)
    # Over two devices half of the work, and 4 all-reduces that send each device's half twice.
    exchanged = 2 * 2 * 32 * 64 / 450e9
    assert two["kept"].time_s == pytest.approx(one["kept"].time_s / 2 + 4 * exchanged)
    assert two["recomputed"].time_s == pytest.approx(one["recomputed"].time_s / 2 + 6 * exchanged)
    # Four times this is what a ring sends of gradients in 32 bits, but for (d - 1)/d.
    assert 4 * one["kept"].weight_bytes == 2 * 4 * parameters
    every = sum(layer.menus[0].options[0].fixed_bytes for layer in found.layers)
    assert every == 18 * read_transformer(written(tmp_path, SMALL)).workload(1).parameters
    assert ddlopt.solve(found).status == "optimal"


def test_experts_and_latent_vectors_are_counted(tmp_path):
    experts = {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
    mixtral = read_transformer(written(tmp_path, SMALL | experts))
    plain = read_transformer(written(tmp_path, SMALL))
    more = activation_bytes(mixtral, "block.0", 1, 1, BF16) - activation_bytes(plain, "block.0", 1, 1, BF16)
    # Of one expert more: its input, and three vectors of its width.
    assert more == 32 * 2 * (64 + 3 * 96)


def test_options_are_refused_in_a_line(tmp_path):
    with one_line(OptionError, "micro_batch is 3, which does not divide global_batch 8"):
        read(tmp_path, micro_batch=3)
    with one_line(OptionError, "intra_gigabytes_per_s of 'P100-PCIe"):
        read(tmp_path, accelerator="p100")
    with one_line(OptionError, "servers is 0"):
        read(tmp_path, servers=0)
