"""Transformers from ``config.json``: published parameter totals, networks built from papers, one line for bad input."""

import json
import math
from dataclasses import replace

import pytest
from refusals import one_line
from shared_data import shared_data
from volume import slow

import ddlopt
from ddlopt.instances.readers import convert
from ddlopt.instances.readers.models.transformer_config import read_transformer, transformer_network
from ddlopt.instances.readers.models.transformer_families import FAMILIES, NESTED
from ddlopt.instances.readers.models.transformer_pairs import PAIRS
from ddlopt.instances.workloads.codesign.graphs import graph_of
from ddlopt.instances.workloads.codesign.transformer_graphs import transformer_graph
from ddlopt.instances.workloads.networks import published
from ddlopt.instances.workloads.networks.network_graphs import training_step
from ddlopt.instances.workloads.networks.transformer_step import transformer_step
from ddlopt.models.errors import InstanceError, OptionError

GPT2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}
BERT = {
    "model_type": "bert",
    "num_hidden_layers": 12,
    "hidden_size": 768,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "vocab_size": 30522,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}
LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
}
MISTRAL = LLAMA | {"model_type": "mistral", "intermediate_size": 14336, "num_key_value_heads": 8}
MIXTRAL = MISTRAL | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
SMALL = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
SMALL |= {"intermediate_size": 96, "vocab_size": 200, "max_position_embeddings": 32}


DEEPSEEK = SMALL | {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 3,
    "num_key_value_heads": 4,
    "moe_intermediate_size": 24,
    "n_routed_experts": 4,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "q_lora_rank": 20,
    "kv_lora_rank": 12,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 10,
}


def llama(model_type, layers, hidden, heads, keys, width, words, **more):
    sizes = {"num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads}
    sizes |= {"num_key_value_heads": keys, "intermediate_size": width, "vocab_size": words}
    return LLAMA | {"model_type": model_type} | sizes | more


ROBERTA = BERT | {"model_type": "roberta", "vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1}
TOTALS = {
    "gpt2": (GPT2, 124_439_808),
    "gpt2-medium": (GPT2 | {"n_layer": 24, "n_embd": 1024, "n_head": 16}, 354_823_168),
    "gpt2-xl": (GPT2 | {"n_layer": 48, "n_embd": 1600, "n_head": 25}, 1_557_611_200),
    "bert-base": (BERT, 109_482_240),
    "roberta-base": (ROBERTA, 124_645_632),
    "llama-2-7b": (LLAMA, 6_738_415_616),
    "llama-3-8b": (llama("llama", 32, 4096, 32, 8, 14336, 128256), 8_030_261_248),
    "mistral-7b": (MISTRAL, 7_241_732_096),
    "mixtral-8x7b": (MIXTRAL, 46_702_792_704),
    "qwen2-7b": (llama("qwen2", 28, 3584, 28, 4, 18944, 152064), 7_615_616_512),
    "gemma-2b": (llama("gemma", 18, 2048, 8, 1, 16384, 256000, head_dim=256), 2_506_172_416),
}
"""Configurations and the totals that their makers publish."""
BY_CLASS = {
    "bert for masked words": (BERT, "BertForMaskedLM", {}, 109_514_298),
    "bert's classifier": (BERT, "BertForSequenceClassification", {"num_labels": 3}, 109_482_240 + 3 * 769),
    "bert's answers": (BERT, "BertForQuestionAnswering", {}, 109_482_240 - 768 * 769 + 2 * 769),
    "roberta's classifier": (ROBERTA, "RobertaForSequenceClassification", {}, 124_645_632 + 2 * 769),
    "gpt2": (GPT2, "GPT2LMHeadModel", {}, 124_439_808),
    "bare gpt2": (GPT2, "GPT2Model", {}, 124_439_808),
    "gpt2's tokens": (GPT2, "GPT2ForTokenClassification", {"id2label": {"0": "a", "1": "b", "2": "c"}}, 124_442_115),
    "a reward": (TOTALS["llama-3-8b"][0], "LlamaForSequenceClassification", {"num_labels": 1}, 7_504_928_768),
    "bare mistral": (MISTRAL, "MistralModel", {}, 7_110_660_096),
    "biases": (
        llama("llama", 32, 2560, 32, 32, 10240, 49152),
        "LlamaForCausalLM",
        {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
        3_482_503_680,
    ),
    "biases that mistral has not": (MISTRAL, "MistralForCausalLM", {"attention_bias": True}, 7_241_732_096),
}
"""Classes of models, what their configurations say besides, and what ``transformers`` builds of it."""


def written(tmp_path, config):
    path = tmp_path / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", TOTALS)
def test_parameters_are_those_published(name, tmp_path):
    config, total = TOTALS[name]
    assert read_transformer(written(tmp_path, config)).workload(1).parameters == total


@pytest.mark.parametrize("case", BY_CLASS)
def test_parameters_are_those_of_the_class(case, tmp_path):
    config, architecture, more, total = BY_CLASS[case]
    path = written(tmp_path, config | {"architectures": [architecture]} | more)
    assert read_transformer(path, 64).workload(1).parameters == total


def test_biases_are_told_apart(tmp_path):
    plain = read_transformer(written(tmp_path, small("llama"))).workload(1).parameters
    attention = {"attention_bias": True}
    assert read_transformer(written(tmp_path, small("llama") | attention)).workload(1).parameters == plain + 2 * 192
    # Attention 64 + 32 + 32 + 64 a layer, feed-forward 96 + 96 + 64.
    feed = {"mlp_bias": True}
    assert read_transformer(written(tmp_path, small("llama") | feed)).workload(1).parameters == plain + 2 * 256
    gemma = read_transformer(written(tmp_path, small("gemma"))).workload(1).parameters
    assert read_transformer(written(tmp_path, small("gemma") | attention)).workload(1).parameters == gemma + 2 * 192


def test_without_a_context_the_length_of_samples_is_asked_for(tmp_path):
    config = {key: value for key, value in LLAMA.items() if key != "max_position_embeddings"}
    path = written(tmp_path, config)
    assert read_transformer(path, 64).sequence == 64
    with one_line(InstanceError, "max_position_embeddings is missing; say how long samples are"):
        read_transformer(path)
    assert read_transformer(written(tmp_path, config | {"max_sequence_length": 128})).sequence == 128
    with one_line(InstanceError, "n_positions is missing, which a gpt2 needs"):
        read_transformer(written(tmp_path, {key: value for key, value in GPT2.items() if key != "n_positions"}), 64)


def test_what_is_not_about_sizes_is_passed_over_and_a_mark_before_the_text_too(tmp_path):
    text = json.dumps(LLAMA | {"time_step_limit": [0.0, float("inf")]})
    assert "Infinity" in text
    path = written(tmp_path, "\ufeff" + text)
    assert read_transformer(path).workload(1).parameters == 6_738_415_616
    with one_line(InstanceError, "hidden_size is inf; it must be a whole number"):
        read_transformer(written(tmp_path, LLAMA | {"hidden_size": float("inf")}))


HEADS = {
    "llama": ("LlamaForCausalLM", {"model.embed_tokens.weight": (200, 64), "lm_head.weight": (200, 64)}),
    "bare llama": ("LlamaModel", {"embed_tokens.weight": (200, 64), "layers.1.mlp.down_proj.weight": (64, 96)}),
    "mixtral": ("MixtralForCausalLM", {"model.layers.1.block_sparse_moe.experts.3.w2.weight": (64, 96)}),
    "gpt2": ("GPT2LMHeadModel", {"transformer.h.1.attn.c_attn.weight": (64, 192), "transformer.wpe.weight": (32, 64)}),
    "bert": ("BertForMaskedLM", {"cls.predictions.bias": (200,), "bert.embeddings.LayerNorm.weight": (64,)}),
    "roberta": ("RobertaForSequenceClassification", {"classifier.dense.weight": (64, 64)}),
    "qwen2": (
        "Qwen2ForQuestionAnswering",
        {"qa_outputs.weight": (2, 64), "model.layers.0.self_attn.k_proj.bias": (32,)},
    ),
}
"""Names and shapes as ``named_parameters`` of the class has them."""


@pytest.mark.parametrize("case", HEADS)
def test_gradients_have_the_names_of_the_model(case, tmp_path):
    architecture, expected = HEADS[case]
    family = case.removeprefix("bare ")
    path = written(tmp_path, small(family) | {"architectures": [architecture]})
    layers = transformer_network(path).workload(1).layers
    named = {f"{layer.name}.{tensor}": shape for layer in layers for tensor, shape in layer.tensors}
    assert expected.items() <= named.items()
    assert {name.rpartition(".")[2] for name in named} <= {"weight", "bias"}
    assert not any(name.startswith(("block.", "embedding.", "words.", "classes.")) for name in named)
    assert sum(math.prod(shape) for shape in named.values()) == read_transformer(path).workload(1).parameters
    assert all(each.name in named for each in convert(path, "transformer").gradients)


@pytest.mark.parametrize(
    ("family", "architecture"),
    [
        ("llama", "LlamaModel"),
        ("llama", "LlamaForSequenceClassification"),
        ("bert", "BertForMaskedLM"),
        ("bert", "BertForSequenceClassification"),
        ("gpt2", "GPT2ForQuestionAnswering"),
    ],
)
def test_every_end_is_in_the_pieces_and_in_the_step(family, architecture, tmp_path):
    sizes = read_transformer(written(tmp_path, small(family) | {"architectures": [architecture]}))
    workload = sizes.workload(1)
    inside = [layer for piece in transformer_graph(sizes).pieces for layer in (*piece.split, *piece.after)]
    assert sorted(inside, key=str) == sorted(workload.layers, key=str)
    assert sum(operator.gradient for operator in transformer_step(sizes)) == workload.parameters


SMALL_TOTAL = 2e10
"""Parameters of models that have few experts: others have tens of thousands of layers."""


@pytest.mark.parametrize("which", ["a small one of each type", slow("all")])
def test_models_that_are_built_elsewhere_have_as_many_parameters(which, tmp_path):
    models = json.loads(shared_data("large_models/params.json").read_text(encoding="utf-8"))["models"]
    read = [each for each in models.values() if each["model_type"] in (*FAMILIES, *NESTED, *PAIRS)]
    assert len(read) >= 57
    if which != "all":
        read = sorted((each for each in read if each["total"] < SMALL_TOTAL), key=lambda each: -each["total"])
        read = {each["model_type"]: each for each in read}.values()
    for each in read:
        config = json.loads(shared_data(f"large_models/{each['config']}").read_text(encoding="utf-8"))["config"]
        length = None if each["model_type"] == "vit" else 64
        sizes, seen = read_transformer(written(tmp_path, config), length), each["vision_part"] or 0
        assert sizes.workload(1).parameters == each["total"] - seen, each["name"]
        assert sizes.active_parameters() == each["active"] - seen, each["name"]


def test_gpt2_and_bert_are_those_from_their_papers(tmp_path):
    gpt2 = read_transformer(written(tmp_path, GPT2))
    assert gpt2.workload(4) == published.gpt2(4)
    assert transformer_step(gpt2) == training_step("gpt2")
    bert = read_transformer(written(tmp_path, BERT), 128)
    assert bert.workload(4) == published.bert(12, 768, 128, 4)
    assert transformer_step(bert) == training_step("bert-base")
    assert transformer_graph(bert) == graph_of(published.bert(12, 768, 128, 4))


@pytest.mark.parametrize("family", ["llama", "mixtral", "gemma", "gpt2", "roberta"])
def test_every_layer_is_in_a_piece_and_every_gradient_in_the_step(family, tmp_path):
    sizes = read_transformer(written(tmp_path, small(family)))
    workload = sizes.workload(1)
    inside = [layer for piece in transformer_graph(sizes).pieces for layer in (*piece.split, *piece.after)]
    assert sorted(inside, key=str) == sorted(workload.layers, key=str)
    assert sum(operator.gradient for operator in transformer_step(sizes)) == workload.parameters
    forward = sum(layer.flops for layer in workload.layers)
    products = sum(each.flops for each in transformer_step(sizes) if each.name.endswith("/forward"))
    assert products == pytest.approx(forward, rel=0.05)


def small(family):
    config = SMALL | {"model_type": family, "num_local_experts": 4, "num_experts_per_tok": 2, "type_vocab_size": 1}
    return config | {"n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 32} if family == "gpt2" else config


SMALL_ONES = {
    "deepseek_v2": DEEPSEEK | {"model_type": "deepseek_v2", "q_lora_rank": None},
    "deepseek_v3": DEEPSEEK,
    "falcon": SMALL | {"model_type": "falcon", "new_decoder_architecture": True, "num_kv_heads": 2},
    "gemma2": SMALL | {"model_type": "gemma2", "head_dim": 24},
    "gemma3": {"model_type": "gemma3", "text_config": SMALL | {"model_type": "gemma3_text"}, "vision_config": {}},
    "gpt_neox": SMALL | {"model_type": "gpt_neox", "num_key_value_heads": 4},
    "gpt_oss": SMALL | {"model_type": "gpt_oss", "num_local_experts": 4, "attention_bias": True},
    "gptj": {"model_type": "gptj", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 32, "vocab_size": 200},
    "bloom": {"model_type": "bloom", "n_layer": 2, "hidden_size": 64, "n_head": 4, "seq_length": 32, "vocab_size": 200},
    "mpt": {"model_type": "mpt", "n_layers": 2, "d_model": 64, "n_heads": 4, "max_seq_len": 32, "vocab_size": 200},
    "opt": SMALL | {"model_type": "opt", "ffn_dim": 96},
    "phi": SMALL | {"model_type": "phi"},
    "qwen2_moe": SMALL
    | {"model_type": "qwen2_moe", "num_experts": 4, "moe_intermediate_size": 24, "shared_expert_intermediate_size": 40},
    "qwen3_moe": SMALL
    | {"model_type": "qwen3_moe", "num_experts": 4, "moe_intermediate_size": 24, "mlp_only_layers": [0]},
    "llama4": {
        "model_type": "llama4",
        "architectures": ["Llama4ForConditionalGeneration"],
        "text_config": SMALL
        | {"num_experts_per_tok": 1, "num_local_experts": 4}
        | {"intermediate_size_mlp": 80, "interleave_moe_layer_step": 2},
    },
    "new": SMALL | {"model_type": "new"},
}
EXPERTS = 3 * 64
"""Parameters of an expert for each number of its width."""
ATTENTION = 64 * (64 + 32 + 32 + 64)
"""Queries, keys and values of two heads of 16, and what follows."""
BY_HAND = {
    # Words twice and the last scale; a block has two scales.
    "new": (2 * 200 * 64 + 64 + 2 * (2 * 64 + ATTENTION + EXPERTS * 96), 0),
    # Scales and shifts, all biases; two normalisations before both; the last layer is not tied.
    "gpt_neox": (2 * 200 * 64 + 128 + 2 * (256 + 4 * (64 * 64 + 64) + 2 * 64 * 96 + 96 + 64), 0),
    # One normalisation, and a bias of the last layer; no bias in attention.
    "gptj": (2 * 200 * 64 + 200 + 128 + 2 * (128 + 4 * 64 * 64 + 2 * 64 * 256 + 256 + 64), 0),
    # Four scales; heads of 24; tied.
    "gemma2": (200 * 64 + 64 + 2 * (4 * 64 + 64 * 24 * (4 + 2 + 2 + 4) + EXPERTS * 96), 0),
    # A scale for the numbers of queries, and one for those of keys.
    "gemma3": (200 * 64 + 64 + 2 * (4 * 64 + 2 * 16 + ATTENTION + EXPERTS * 96), 0),
    # Short vectors of 20 and 12 + 8 with scales, queries of 4 x 24, keys and values of 4 x (16 + 10), output of 4 x 10.
    "deepseek_v3": (
        2 * 200 * 64
        + 64
        + 3 * (128 + 64 * 20 + 20 + 20 * 96 + 64 * 20 + 12 + 12 * 104 + 40 * 64)
        + EXPERTS * 96
        + 2 * (64 * 4 + EXPERTS * 24 * (4 + 2)),
        2 * 2 * EXPERTS * 24,
    ),
    # A sink for each head, biases of experts (96 twice, and 64) and router.
    "gpt_oss": (
        2 * 200 * 64 + 64 + 2 * (128 + ATTENTION + 192 + 4 + 64 * 4 + 4 + 4 * (EXPERTS * 96 + 2 * 96 + 64)),
        2 * 2 * (EXPERTS * 96 + 2 * 96 + 64),
    ),
    # The shared one has a gate of 64.
    "qwen2_moe": (
        2 * 200 * 64 + 64 + 2 * (128 + ATTENTION + 128 + 64 * 4 + EXPERTS * (4 * 24 + 40) + 64),
        2 * 2 * EXPERTS * 24,
    ),
    # Every second block has experts.
    "llama4": (
        2 * 200 * 64 + 64 + 2 * (128 + ATTENTION) + EXPERTS * 80 + 64 * 4 + EXPERTS * 96 * (4 + 1),
        3 * EXPERTS * 96,
    ),
}
"""All parameters, and those that a token does not meet."""


def small_one(family):
    return {"num_experts_per_tok": 2, **SMALL_ONES[family]}


@pytest.mark.parametrize("family", BY_HAND)
def test_parameters_by_hand(family, tmp_path):
    sizes = read_transformer(written(tmp_path, small_one(family)))
    total, unused = BY_HAND[family]
    assert sizes.workload(1).parameters == total
    assert sizes.active_parameters() == total - unused


@pytest.mark.parametrize("family", SMALL_ONES)
def test_pieces_and_steps_of_all_families_have_all_layers(family, tmp_path):
    sizes = read_transformer(written(tmp_path, small_one(family)))
    workload, pieces = sizes.workload(1), transformer_graph(sizes).pieces
    inside = [layer for piece in pieces for layer in (*piece.split, *piece.after)]
    assert sorted(inside, key=str) == sorted(workload.layers, key=str)
    known = set()
    for piece in pieces:
        assert known.issuperset(piece.reads)
        known.add(piece.name)
    assert sum(operator.gradient for operator in transformer_step(sizes)) == workload.parameters
    forward = sum(layer.flops for layer in workload.layers)
    products = sum(each.flops for each in transformer_step(sizes) if each.name.endswith("/forward"))
    assert products == pytest.approx(forward, rel=0.05)


@pytest.mark.parametrize("family", ["deepseek_v3", "gpt_neox"])
def test_co_design_takes_every_kind_of_block(family, tmp_path):
    servers = {"servers": 4, "degree": 2, "gpus_per_server": 1, "batch": 2}
    read = convert(written(tmp_path, small_one(family)), "transformer-codesign", **servers)
    assert ddlopt.solve(read, "alternating").checked


def test_what_is_assumed_is_said(tmp_path):
    new = convert(written(tmp_path, small_one("new")), "transformer")
    assert "'new' is not known and taken to be built as Llama is" in new.source
    nested = convert(written(tmp_path, small_one("gemma3")), "transformer")
    assert "its text model alone, without what vision_config tells of" in nested.source


def test_attention_is_cut_by_heads_of_keys_and_values(tmp_path):
    pieces = {
        piece.name: piece for piece in transformer_graph(read_transformer(written(tmp_path, small("llama")))).pieces
    }
    assert pieces["block.0.attention.heads"].columns == 2
    assert (pieces["block.0.feed.wide"].columns, pieces["block.0.feed.wide"].rows) == (96, 64)
    assert (pieces["words"].columns, pieces["words"].rows) == (200, 64)


def test_experts_are_on_all_servers_or_shared_out(tmp_path):
    options = {"servers": 4, "degree": 2, "gpus_per_server": 1, "batch": 3}
    read = convert(written(tmp_path, small("mixtral")), "transformer-codesign", **options)
    layer = next(each for each in read.layers if each.name == "block.0.experts")
    by_name = {strategy.name: strategy for strategy in layer.strategies}
    assert list(by_name) == ["data", "data-2", "data-1", "expert-2", "expert-4"]
    four = by_name["expert-4"]
    # 3 samples of 32 tokens, each to 2 of 4 experts; of the 2 copies half a one goes to each server, forward and back.
    assert {amount for _, _, amount in four.traffic} == {4 * 3 * 32 * 0.5 * 64 * 4}
    assert len(four.traffic) == 12
    assert four.flops == by_name["data"].flops
    router = 4 * 64 * 4
    assert [reduction.bytes for reduction in four.reductions] == [router]
    assert sum(reduction.bytes for reduction in by_name["data"].reductions) == 4 * (4 * 3 * 64 * 96) + router


def test_experts_get_as_many_tokens_each(tmp_path):
    sizes = read_transformer(written(tmp_path, MIXTRAL))
    one = replace(sizes, experts=1, chosen=1)
    flops = {each.name: each.flops for each in sizes.workload(1).layers}
    of_one = {each.name: each.flops for each in one.workload(1).layers}
    assert sum(flops[f"block.0.experts.{e}.up"] for e in range(8)) == 2 * of_one["block.0.experts.0.up"]


@pytest.mark.parametrize("family", ["llama", "mixtral", "gpt2", "roberta"])
def test_all_problems_have_answers(family, tmp_path):
    path = written(tmp_path, small(family))
    servers = {"servers": 4, "degree": 2, "gpus_per_server": 1}
    for problem, method, options in (
        ("transformer", "espresso", {"nodes": 2}),
        ("transformer-topology", "topology-finder", servers),
        ("transformer-codesign", "alternating", servers),
        ("transformer-deployment", "data-parallel", {"groups": 4}),
    ):
        found = ddlopt.solve(convert(path, problem, batch=2, **options), method)
        assert found.checked, problem


BAD = {
    "no JSON": ("{", "not valid JSON"),
    "a list": ([], "no configuration of a transformer"),
    "no type": ({}, "model_type is None; what is read: gpt2, llama"),
    "encoder and decoder": (
        LLAMA | {"model_type": "new", "is_encoder_decoder": True},
        "is_encoder_decoder, an encoder",
    ),
    "linear attention": (LLAMA | {"model_type": "new", "linear_attn_config": {"a": 1}}, "linear_attn_config, linear"),
    "unknown": (
        {"model_type": "new"},
        "is 'new', which cannot be read by its fields (hidden_size is missing)",
    ),
    "unknown layers": (
        LLAMA | {"model_type": "new", "layer_types": ["linear_attention"]},
        "layer_types, linear",
    ),
    "unknown, with images": (LLAMA | {"model_type": "new", "architectures": ["NewModel"]}, "no language model"),
    "experts of deepseek": (DEEPSEEK | {"num_experts_per_tok": 9}, "num_experts_per_tok is 9, but there are 4 experts"),
    "too many dense": (DEEPSEEK | {"first_k_dense_replace": 9}, "first_k_dense_replace is 9; use 0..3, the layers"),
    "no rank": ({**DEEPSEEK, "v_head_dim": None}, "v_head_dim is missing, which a deepseek_v3 needs"),
    "missing": ({"model_type": "llama"}, "hidden_size is missing, which a llama needs"),
    "negative": (LLAMA | {"hidden_size": -1}, "hidden_size is -1; it must be a whole number"),
    "a word": (LLAMA | {"vocab_size": "many"}, "vocab_size is 'many'"),
    "not a number": (LLAMA | {"vocab_size": True}, "vocab_size is True"),
    "heads": (LLAMA | {"num_attention_heads": 30}, "num_attention_heads is 30, which does not divide hidden_size 4096"),
    "keys": (LLAMA | {"num_key_value_heads": 5}, "num_key_value_heads is 5, which does not divide"),
    "layers": (LLAMA | {"num_hidden_layers": 10**6}, "num_hidden_layers is 1000000; at most 10000"),
    "experts": (MIXTRAL | {"num_experts_per_tok": 9}, "num_experts_per_tok is 9, but there are 8 experts"),
    "class": (LLAMA | {"architectures": ["LlamaForTheWin"]}, "architectures[0] is 'LlamaForTheWin'; what is read ends"),
    "classes": (LLAMA | {"architectures": 3}, "architectures[0] is 3; what is read ends with ForCausalLM"),
    "labels": (
        BERT | {"architectures": ["BertForTokenClassification"], "num_labels": 0},
        "num_labels is 0; it must be",
    ),
    "masked": (BERT | {"architectures": ["BertForMaskedLM"], "tie_word_embeddings": False}, "is read where it is true"),
    "tied": (LLAMA | {"tie_word_embeddings": "no"}, "tie_word_embeddings is 'no'; it must be true or false"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_a_line(case, tmp_path):
    config, told = BAD[case]
    with one_line(InstanceError, told):
        convert(written(tmp_path, config), "transformer")


def test_samples_are_no_longer_than_the_context(tmp_path):
    with one_line(OptionError, "has a context of 1024, so use 1..1024"):
        convert(written(tmp_path, GPT2), "transformer", sequence=2000)
    with one_line(InstanceError, "cannot be read"):
        convert(tmp_path / "none.json", "transformer")
