"""Training steps of transformers: parameters of all parts, activations as published, times and messages by hand."""

import json
from dataclasses import replace

import pytest
from refusals import one_line

import ddlopt
from ddlopt.instances import generate
from ddlopt.instances.readers import convert
from ddlopt.instances.readers.models.transformer_config import read_sizes
from ddlopt.instances.workloads.accelerators import ACCELERATORS
from ddlopt.instances.workloads.networks.rates import Rates, Work
from ddlopt.instances.workloads.networks.step_costs import BlockCosts, Setting
from ddlopt.instances.workloads.networks.transformer_costs import activation_bytes
from ddlopt.instances.workloads.networks.transformers import Transformer
from ddlopt.instances.workloads.precision import BF16
from ddlopt.models.errors import DdloptError, InstanceError, OptionError

SMALL = {"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
SMALL |= {"intermediate_size": 96, "vocab_size": 200, "max_position_embeddings": 32, "model_type": "llama"}
SMALL |= {"torch_dtype": "bfloat16"}
EXPERTS = {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
LATENT = {"q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8}
DEEPSEEK = SMALL | LATENT | {
    "model_type": "deepseek_v3", "moe_intermediate_size": 16, "n_routed_experts": 8, "n_shared_experts": 1,
    "num_experts_per_tok": 2, "first_k_dense_replace": 1, "num_key_value_heads": 4,
}  # fmt: skip
T5 = {"model_type": "t5", "d_model": 64, "d_ff": 96, "d_kv": 16, "num_heads": 4, "num_layers": 2, "vocab_size": 200}
CONFIGS = {
    "llama": SMALL,
    "tied": SMALL | {"model_type": "gemma", "head_dim": 16, "tie_word_embeddings": True},
    "gpt2": {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 32, "vocab_size": 200},
    "mixtral": SMALL | EXPERTS,
    "deepseek_v3": DEEPSEEK,
    "t5": T5 | {"n_positions": 32},
}


def written(tmp_path, config):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def read(tmp_path, config=SMALL, **options):
    settings = {"servers": 2, "gpus_per_server": 4, "global_batch": 8, "accelerator": "h100", "sequence": 32}
    return convert(written(tmp_path, config), "transformer-pipeline", **settings | options)


def way(block, **degrees):
    return next(each for each in block.ways if all(getattr(each, name) == value for name, value in degrees.items()))


def test_precision_is_bf16_where_nothing_is_said_and_there_is_such(tmp_path):
    silent = {name: value for name, value in SMALL.items() if name != "torch_dtype"}
    assumed, said = read(tmp_path, silent), read(tmp_path)
    assert "bf16 is assumed" in assumed.source
    assert "assumed" not in said.source
    assert assumed.blocks == said.blocks
    single = read(tmp_path, silent, precision="fp32")
    assert single.blocks == read(tmp_path, SMALL | {"torch_dtype": "float32"}).blocks != said.blocks
    old = replace(ACCELERATORS["h100"], rates=(("fp8", 1e15),))
    assert read(tmp_path, silent, accelerator=old).blocks == read(tmp_path, precision="fp32", accelerator=old).blocks


def test_a_configuration_may_stand_beside_its_source(tmp_path):
    assert read(tmp_path, {"config": SMALL, "source": "somewhere"}) == read(tmp_path)


@pytest.mark.parametrize("family", CONFIGS)
def test_every_parameter_is_somewhere(family, tmp_path):
    instance = read(tmp_path, CONFIGS[family])
    sizes = read_sizes(CONFIGS[family], 32)[0]
    single = {"tensor": 1, "expert": 1, "micro_batch": 1}
    found = [(way(block, **single), block.count) for block in (instance.embedding, *instance.blocks)]
    found += [] if instance.tied else [(way(instance.head, **single), 1)]
    assert sum((own.parameters + own.expert_parameters) * count for own, count in found) == sizes.workload(1).parameters
    assert instance.size == len(sizes.blocks()) + (len(sizes.encoder.blocks()) if sizes.encoder else 0)
    assert ddlopt.solve(instance).status == "optimal"


def test_devices_share_what_products_have(tmp_path):
    instance = read(tmp_path, tensor=[1, 2, 4])
    parameters = {t: way(instance.blocks[0], tensor=t, micro_batch=1).parameters for t in (1, 2, 4)}
    whole, shared, keys = 2 * 64, 64 * (64 + 64) + 3 * 64 * 96, 2 * 64 * 32
    # Two heads of keys are on both of two pairs.
    assert parameters == {t: whole + shared / t + keys / min(t, 2) for t in (1, 2, 4)}
    experts = read(tmp_path, SMALL | EXPERTS)
    one, four = (way(experts.blocks[0], tensor=1, expert=e, micro_batch=2) for e in (1, 4))
    assert one.expert_parameters == 4 * four.expert_parameters == 4 * 3 * 64 * 96
    # To two experts and back, forward and backward, what 64 tokens are in 16 bits.
    assert four.options[0].expert_bytes == 4 * 2 * 2 * 64 * 64
    assert one.options[0].expert_bytes == 0


FORMULAS = {
    (False, True, "none"): lambda s, b, h, a, t: s * b * h * (10 + 24 / t + 5 * a * s / (h * t)),
    (True, True, "none"): lambda s, b, h, a, t: s * b * h / t * (34 + 5 * a * s / h),
    (False, True, "selective"): lambda s, b, h, a, t: s * b * h * (10 + 24 / t),
    (True, True, "selective"): lambda s, b, h, a, t: 34 * s * b * h / t,
    (True, True, "full"): lambda s, b, h, a, t: 2 * s * b * h / t,
    (False, True, "full"): lambda s, b, h, a, t: 2 * s * b * h,
}


@pytest.mark.parametrize(("h", "a", "s", "b", "t"), [(256, 4, 128, 2, 1), (512, 8, 64, 3, 2), (512, 16, 256, 1, 4)])
@pytest.mark.parametrize("case", FORMULAS)
def test_activations_are_those_of_the_paper_to_the_byte(case, h, a, s, b, t):
    shared, dropout, name = case
    sizes = Transformer("gpt", 1, h, a, 100, 4 * h, s, a, h // a)
    costs = BlockCosts(sizes, Setting(t, 1, 1, b, shared, False, dropout), RATES, BF16)
    option = next(each for each in costs.way("block.0")["options"] if each["name"] == name)
    # What softmax makes is told by the sums that fused attention would keep, which these formulas have not.
    slack = 4 * a * s * b / t if name == "selective" else 0
    assert option["kept_bytes"] - slack == pytest.approx(FORMULAS[case](s, b, h, a, t), rel=1e-12)


RATES = Rates(1e12, 1e11, 1e12, ((8.0, 1.0), (0.0, 0.5)), ((0.0, 1.0),), ((0.0, 1.0),))


def test_rates_depend_on_sizes():
    assert RATES.time_s(Work(10, 0, 0)) == pytest.approx(10 / 1e12)
    assert RATES.time_s(Work(4, 0, 0)) == pytest.approx(4 / 0.5e12)
    assert RATES.time_s(Work(10, 2, 6)) == pytest.approx(10 / 1e12 + 2 / 1e11 + 6 / 1e12)


def test_a_block_s_operations_are_those_of_its_layers():
    sizes = read_sizes(SMALL, 32)[0]
    counted = Rates(1.0, 1e30, 1e30, ((0.0, 1.0),), ((0.0, 1.0),), ((0.0, 1.0),))
    layers = [layer for layer in sizes.workload(1).layers if layer.name.startswith("block.0.")]
    scores = sizes.products("block.0").flops
    products = sum(layer.flops for layer in layers if "norm" not in layer.name)
    for tensor in (1, 2):
        option = BlockCosts(sizes, Setting(tensor=tensor, micro_batch=3), counted, BF16).way("block.0")["options"][0]
        # Half of the scores are masked; twice of all else backward, of these five fourths of twice.
        keys = 2 * 2 * 32 * 64 * 32 if tensor == 4 else 0
        assert option["forward_s"] == pytest.approx(3 * (products - scores / 2 + keys) / tensor)
        assert option["backward_s"] == pytest.approx(3 * (2 * (products - scores) + 1.25 * scores) / tensor)
    assert activation_bytes(sizes, "block.0", 1, 1, BF16) > 0


def test_messages_of_a_group(tmp_path):
    instance = read(tmp_path, tensor=[1, 2])
    two = way(instance.blocks[0], tensor=2, micro_batch=4)
    none, full = (next(each for each in two.options if each.name == name) for name in ("none", "full"))
    # Four gathers and four scatters of half of what 128 tokens are in 16 bits; two of each more if made again.
    assert none.tensor_bytes == 8 * 2 * 128 * 64 / 2
    assert full.tensor_bytes == 12 * 2 * 128 * 64 / 2
    assert full.backward_s == pytest.approx(none.backward_s + none.forward_s)
    assert (two.sequence_parallel, none.context_bytes) == (True, 0)
    longer = read(tmp_path, context=[1, 2], tensor=[1])
    # Keys and values of the other half once forward and twice backward: 16 tokens of two heads.
    assert way(longer.blocks[0], context=2, micro_batch=1).options[0].context_bytes == 3 * 2 * 16 * 2 * 2 * 16


def test_tiers_of_a_cluster(tmp_path):
    tiers = read(tmp_path, servers=8, unit_servers=2, spine_gigabit_per_s=800, latency_us=4).tiers
    assert [(tier.name, tier.size) for tier in tiers] == [("server", 4), ("rail", 8), ("spine", 32)]
    assert [tier.bandwidth_bytes_per_s for tier in tiers] == [0.8 * 450e9, 0.9 * 100e9, 0.9 * 25e9]
    assert [tier.latency_s for tier in tiers] == [1e-5, 4e-6, 8e-6]
    assert [tier.size for tier in read(tmp_path, servers=1).tiers] == [4]
    found = convert(written(tmp_path, SMALL), "transformer-pipeline", cluster="dgx-h100", servers=64)
    assert [(tier.name, tier.size) for tier in found.tiers] == [("server", 8), ("rail", 256), ("spine", 512)]
    for name in ("aws-p5", "gb200-nvl72", "tpu-v5p-slice", "aws-p4d"):
        assert convert(written(tmp_path, SMALL), "transformer-pipeline", cluster=name).devices > 8


BAD = {
    "a field missing": ({key: SMALL[key] for key in SMALL if key != "hidden_size"}, {}, InstanceError, "hidden_size"),
    "no heads to share": (SMALL, {"tensor": [3]}, OptionError, "tensor degree 3 does not divide 4 heads"),
    "a part of a micro-batch": (SMALL, {"micro_batch": 3}, OptionError, "does not divide global_batch 8"),
    "slower inside": (SMALL, {"intra_gigabytes_per_s": 20}, OptionError, "if it is meant so, set slower_inside=true"),
    "slower on rails": (
        SMALL,
        {"servers": 8, "unit_servers": 2, "spine_gigabit_per_s": 6400},
        OptionError,
        "a device has 100 GB/s inside its unit of servers and 200 GB/s outside",
    ),
    "a spine of no units": (SMALL, {"spine_gigabit_per_s": 800}, OptionError, "unit_servers"),
    "a spine of nothing": (
        SMALL,
        {"unit_servers": 2, "spine_gigabit_per_s": 0},
        OptionError,
        "spine_gigabit_per_s is 0",
    ),
    "no heads to share in a stage": (
        SMALL,
        {"objective": "throughput", "tensor": [3]},
        OptionError,
        "tensor degree 3 does not divide 4 heads within a server; these do: 1, 2, 4",
    ),
    "sharding of stages": (SMALL, {"objective": "throughput", "sharding": [1]}, OptionError, "have no sharding"),
    "no memory": (SMALL, {"memory_gigabytes": 0}, OptionError, "memory_gigabytes"),
    "no figure of memory": (SMALL, {"accelerator": "1080ti"}, OptionError, "intra_gigabytes_per_s of"),
    "0 layers": (SMALL | {"num_hidden_layers": 0}, {}, DdloptError, "num_hidden_layers"),
    "no devices": (SMALL, {"servers": 0}, OptionError, "servers is 0"),
    "a context that is no part": (SMALL, {"context": [3]}, OptionError, "context degree 3 does not divide 32 tokens"),
    "no such objective": (SMALL, {"objective": "latency"}, OptionError, "objective"),
    "no list": (SMALL, {"tensor": 2}, OptionError, "tensor is 2; it must be a list such as [1, 2]"),
    "a word in a list": (SMALL, {"sharding": ["1"]}, OptionError, "sharding is ['1']; it must be a list"),
    "an empty list": (SMALL, {"context": []}, OptionError, "context is []; list at least one, or leave it out"),
    "an empty list for stages": (SMALL, {"objective": "throughput", "tensor": []}, OptionError, "list at least one"),
    "no degree": (SMALL, {"tensor": [0]}, OptionError, "degrees are at least 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_a_line(case, tmp_path):
    config, options, error, told = BAD[case]
    with one_line(error, told):
        read(tmp_path, config, **options)
    if case == "slower inside":
        assert read(tmp_path, config, **options, slower_inside=True).tiers[0].bandwidth_bytes_per_s == 16e9
    if case == "slower on rails":
        assert read(tmp_path, config, **options, slower_inside=True).slower_inside


def test_equal_data_sheets_are_not_asked_about(tmp_path):
    found = read(tmp_path, SMALL, intra_gigabytes_per_s=100)
    assert found.slower_inside  # four fifths of it are sustained inside, nine tenths outside


def test_a_cluster_that_is_slower_inside_is_asked_once(tmp_path):
    slow = '[[servers]]\ncount = 2\naccelerators = 4\naccelerator = "h100"\nintra_gigabytes_per_s = 20\n'
    slow += "[network]\ngigabit_per_s = 3200\n"
    path = tmp_path / "slow.toml"
    path.write_text(f'name = "slow"\n{slow}', encoding="utf-8")
    with one_line(InstanceError, "an accelerator has 20 GB/s inside its server and 100 outside"):
        read(tmp_path, SMALL, cluster=path)
    path.write_text(f'name = "slow"\nconfirm = ["servers[0].intra_gigabytes_per_s"]\n{slow}', encoding="utf-8")
    found = convert(written(tmp_path, SMALL), "transformer-pipeline", cluster=path)
    assert [tier.bandwidth_bytes_per_s for tier in found.tiers] == [16e9, 90e9]
    made = generate("deployment", "step", cluster=path, layers=2, heads=4)
    assert (made.slower_inside, made.devices) == (True, 8)
