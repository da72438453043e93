"""Transformers whose blocks are not all attention and a feed-forward layer, and those with an encoder."""

import json

import pytest
from refusals import one_line

import ddlopt
from ddlopt.instances.readers import convert
from ddlopt.instances.readers.models.transformer_config import read_transformer, transformer_network
from ddlopt.instances.workloads.codesign.transformer_graphs import transformer_graph
from ddlopt.instances.workloads.networks.transformer_costs import activation_bytes
from ddlopt.instances.workloads.networks.transformer_step import transformer_step
from ddlopt.instances.workloads.precision import BF16
from ddlopt.models.errors import InstanceError, OptionError

SIZES = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
SIZES |= {"intermediate_size": 96, "vocab_size": 200, "max_position_embeddings": 32}
DELTA = SIZES | {"num_hidden_layers": 4, "head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
DELTA |= {"linear_key_head_dim": 8, "linear_value_head_dim": 12, "linear_conv_kernel_dim": 4}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
EXPERTS |= {"shared_expert_intermediate_size": 40}
HYBRID = SIZES | {
    "model_type": "nemotron_h",
    "num_hidden_layers": 4,
    "hybrid_override_pattern": "ME*-",
    "mamba_num_heads": 4,
    "mamba_head_dim": 8,
    "n_groups": 2,
    "ssm_state_size": 6,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "moe_shared_expert_intermediate_size": 40,
    "head_dim": 16,
}
SPARSE = SIZES | {
    "model_type": "glm_moe_dsa",
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
    "index_n_heads": 2,
    "index_head_dim": 14,
    "index_topk": 8,
}
WIDE = SIZES | {"model_type": "gemma4_text", "head_dim": 16, "global_head_dim": 24, "hidden_size_per_layer_input": 0}
MAMBA = SIZES | {"num_hidden_layers": 3, "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_n_groups": 2}
MAMBA |= {"mamba_d_state": 6, "mamba_d_conv": 4, "mamba_expand": 2}
GRANITE = MAMBA | {"model_type": "granitemoehybrid", "num_experts_per_tok": 2, "shared_intermediate_size": 40}
GRANITE |= {"layer_types": ["mamba", "attention", "mamba"]}
T5 = {"model_type": "t5", "d_model": 64, "d_kv": 12, "d_ff": 96, "num_layers": 2, "num_decoder_layers": 3}
T5 |= {"num_heads": 4, "vocab_size": 200, "relative_attention_num_buckets": 8, "is_encoder_decoder": True}
BART = {"model_type": "bart", "d_model": 64, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4}
BART |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 96, "decoder_ffn_dim": 80, "vocab_size": 200}
BART |= {"max_position_embeddings": 32, "is_encoder_decoder": True}
WHISPER = BART | {"model_type": "whisper", "num_mel_bins": 10, "max_source_positions": 16, "max_target_positions": 12}
VIT = {"model_type": "vit", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
VIT |= {"num_attention_heads": 4, "image_size": 32, "patch_size": 8}
STATE = {"model_type": "mamba2", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 200, "state_size": 6}
STATE |= {"num_heads": 8, "head_dim": 16, "n_groups": 2}


def of(config, architecture, **more):
    return config | {"architectures": [architecture]} | more


BUILT = {
    "nemotron_h": (of(HYBRID, "NemotronHForCausalLM"), 76_420),
    "qwen3_5_text": (of(DELTA, "Qwen3_5ForCausalLM", model_type="qwen3_5_text"), 152_668),
    "qwen3_5_moe_text": (of(DELTA | EXPERTS, "Qwen3_5MoeForCausalLM", model_type="qwen3_5_moe_text"), 184_668),
    "qwen3_next": (of(DELTA | EXPERTS, "Qwen3NextForCausalLM", model_type="qwen3_next", mlp_only_layers=[1]), 176_668),
    "minimax": (
        of(SIZES, "MiniMaxForCausalLM", model_type="minimax", num_hidden_layers=3, head_dim=20)
        | {"num_local_experts": 4, "num_experts_per_tok": 2},
        304_400,
    ),
    "gemma4_text": (
        of(WIDE, "Gemma4ForCausalLM", attention_k_eq_v=True, num_global_key_value_heads=1)
        | {"layer_types": ["sliding_attention", "full_attention"]},
        76_432,
    ),
    "gemma4_text with own values": (of(WIDE, "Gemma4ForCausalLM", num_hidden_layers=7), 242_240),
    "glm_moe_dsa": (of(SPARSE, "GlmMoeDsaForCausalLM"), 130_084),
    "deepseek_v32": (of(SPARSE, "DeepseekV32ForCausalLM", model_type="deepseek_v32"), 130_084),
    "bamba": (of(MAMBA, "BambaForCausalLM", model_type="bamba", attn_layer_indices=[1]), 148_704),
    "bamba with biases": (
        of(MAMBA, "BambaForCausalLM", model_type="bamba", attn_layer_indices=[1], mlp_bias=True, attention_bias=True)
        | {"mamba_proj_bias": True, "mamba_conv_bias": False},
        150_064,
    ),
    "granitemoehybrid": (of(GRANITE, "GraniteMoeHybridForCausalLM", num_local_experts=4), 338_400),
    "granitemoehybrid without experts": (
        of(GRANITE, "GraniteMoeHybridForCausalLM", num_local_experts=0, tie_word_embeddings=True),
        103_648,
    ),
    "t5": (of(T5, "T5ForConditionalGeneration"), 173_568),
    "bare t5": (of(T5, "T5Model"), 173_568),
    "bart": (of(BART, "BartForConditionalGeneration"), 208_240),
    "mbart": (of(BART, "MBartForConditionalGeneration", model_type="mbart"), 208_496),
    "pegasus": (of(BART, "PegasusForConditionalGeneration", model_type="pegasus"), 207_984),
    "whisper": (of(WHISPER, "WhisperForConditionalGeneration"), 219_504),
    "vit": (of(VIT, "ViTForImageClassification", num_labels=5, qkv_bias=False), 72_261),
    "bare vit": (of(VIT, "ViTModel"), 76_480),
    "mamba": (of(STATE, "MambaForCausalLM", model_type="mamba"), 70_592),
    "mamba2": (of(STATE, "Mamba2ForCausalLM"), 80_864),
}
"""Configurations, and how many parameters ``transformers`` 5.24 builds of them."""


def written(tmp_path, config):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


CHOSEN = SIZES | {"num_experts_per_tok": 2}
SHARED = CHOSEN | {"num_hidden_layers": 3, "n_routed_experts": 4, "n_shared_experts": 2, "moe_intermediate_size": 24}
SHARED |= {"first_k_dense_replace": 1, "head_dim": 16}
OF_GPT = {"n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 32, "vocab_size": 200}
NEO = {"hidden_size": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 200, "max_position_embeddings": 32}
BIASES = {"attention_bias": True, "mlp_bias": True}
ALIKE = {
    "gpt_neo": (of(NEO, "GPTNeoForCausalLM"), 114_560),
    "gpt_bigcode": (of(OF_GPT, "GPTBigCodeForCausalLM"), 102_464),
    "gpt_bigcode with all keys": (of(OF_GPT, "GPTBigCodeForCausalLM", multi_query=False), 114_944),
    "starcoder2": (of(SIZES, "Starcoder2ForCausalLM"), 63_296),
    "starcoder2 plain": (of(SIZES, "Starcoder2ForCausalLM", use_bias=False, tie_word_embeddings=False), 75_392),
    "cohere": (of(SIZES, "CohereForCausalLM"), 74_432),
    "cohere normalised": (of(SIZES, "CohereForCausalLM", use_qk_norm=True), 74_624),
    "cohere2": (of(SIZES, "Cohere2ForCausalLM"), 74_432),
    "nemotron": (of(SIZES, "NemotronForCausalLM"), 75_392),
    "nemotron with biases": (of(SIZES, "NemotronForCausalLM", **BIASES), 76_096),
    "arcee": (of(SIZES, "ArceeForCausalLM", mlp_bias=True), 75_392),
    "granite": (of(SIZES, "GraniteForCausalLM", **BIASES), 88_256),
    "granitemoe": (of(CHOSEN, "GraniteMoeForCausalLM", num_local_experts=4, attention_bias=True), 198_848),
    "helium": (of(SIZES, "HeliumForCausalLM", head_dim=16, **BIASES), 88_128),
    "glm": (of(SIZES, "GlmForCausalLM", head_dim=16, attention_bias=True), 87_616),
    "ernie4_5": (of(SIZES, "Ernie4_5ForCausalLM", head_dim=16), 74_560),
    "smollm3": (of(SIZES, "SmolLM3ForCausalLM", **BIASES), 75_456),
    "seed_oss": (of(SIZES, "SeedOssForCausalLM", head_dim=16), 87_616),
    "seed_oss with others": (
        of(SIZES, "SeedOssForCausalLM", head_dim=16, attention_bias=False, attention_out_bias=True, mlp_bias=True),
        88_000,
    ),
    "exaone4": (of(SIZES, "Exaone4ForCausalLM"), 87_424),
    "hunyuan_v1_dense": (of(SIZES, "HunYuanDenseV1ForCausalLM", head_dim=16, attention_bias=True), 87_808),
    "olmo2": (of(SIZES, "Olmo2ForCausalLM"), 87_552),
    "olmo3": (of(SIZES, "Olmo3ForCausalLM", attention_bias=True), 87_936),
    "olmoe": (of(CHOSEN, "OlmoeForCausalLM", num_experts=4, attention_bias=True), 199_040),
    "minimax_m2": (of(CHOSEN, "MiniMaxM2ForCausalLM", num_local_experts=4, head_dim=20), 204_848),
    "phimoe": (of(CHOSEN, "PhimoeForCausalLM", num_local_experts=4), 198_784),
    "phimoe with biases": (
        of(CHOSEN, "PhimoeForCausalLM", num_local_experts=4, attention_bias=True, lm_head_bias=True),
        199_368,
    ),
    "glm4_moe": (of(SHARED, "Glm4MoeForCausalLM"), 137_152),
    "glm4_moe normalised": (of(SHARED, "Glm4MoeForCausalLM", attention_bias=True, use_qk_norm=True), 137_632),
    "dots1": (of(SHARED, "Dots1ForCausalLM", attention_bias=True), 137_824),
    "qwen3_vl_moe_text": (
        of(CHOSEN, "Qwen3VLMoeTextModel", num_experts=4, moe_intermediate_size=24, head_dim=16),
        75_136,
    ),
    "xlm-roberta": (of(SIZES, "XLMRobertaForMaskedLM", type_vocab_size=1), 78_216),
    "camembert": (of(SIZES, "CamembertModel", type_vocab_size=1), 77_888),
    "falcon_mamba": (of(STATE, "FalconMambaForCausalLM"), 70_592),
}
"""The same of blocks that are all alike; the type is the first word."""


@pytest.mark.parametrize("case", ALIKE)
def test_parameters_of_plain_ones_are_those_of_the_class(case, tmp_path):
    config, total = ALIKE[case]
    told = transformer_network(written(tmp_path, config | {"model_type": case.partition(" ")[0]}), sequence=8).told
    sizes = read_transformer(written(tmp_path, config | {"model_type": case.partition(" ")[0]}), 8)
    assert sizes.workload(1).parameters == total
    assert "is not known" not in told


def read(tmp_path, case):
    config = BUILT[case][0] if case in BUILT else ALIKE[case][0] | {"model_type": case}
    return read_transformer(written(tmp_path, config))


@pytest.mark.parametrize("case", BUILT)
def test_parameters_are_those_of_the_class(case, tmp_path):
    assert read(tmp_path, case).workload(1).parameters == BUILT[case][1]


@pytest.mark.parametrize("case", [*BUILT, "olmo2", "cohere", "gpt_bigcode"])
def test_every_layer_is_in_a_piece_and_every_gradient_in_the_step(case, tmp_path):
    sizes = read(tmp_path, case)
    workload, pieces, step = sizes.workload(1), transformer_graph(sizes).pieces, transformer_step(sizes)
    inside = [layer for piece in pieces for layer in (*piece.split, *piece.after)]
    assert sorted(inside, key=str) == sorted(workload.layers, key=str)
    known = set()
    for piece in pieces:
        assert known.issuperset(piece.reads)
        known.add(piece.name)
    assert len(known) == len(pieces)
    assert sum(operator.gradient for operator in step) == workload.parameters
    forward = sum(layer.flops for layer in workload.layers)
    assert sum(each.flops for each in step if each.name.endswith("/forward")) == pytest.approx(forward, rel=0.05)


def test_what_a_token_does_not_meet(tmp_path):
    expert = 64 * 24
    assert read(tmp_path, "nemotron_h").active_parameters() == 76_420 - 2 * 2 * expert
    assert read(tmp_path, "qwen3_next").active_parameters() == 176_668 - 3 * 2 * 3 * expert
    assert read(tmp_path, "t5").active_parameters() == 173_568


def test_a_smaller_vector_goes_to_experts_where_there_is_one(tmp_path):
    plain, shorter = HYBRID, HYBRID | {"moe_latent_size": 20}
    counts = [read_transformer(written(tmp_path, each)).workload(1).parameters for each in (plain, shorter)]
    assert counts[1] - counts[0] == 2 * 64 * 20 - 4 * 2 * (64 - 20) * 24
    kept = [
        activation_bytes(read_transformer(written(tmp_path, each)), "block.1", 1, 1, BF16) for each in (plain, shorter)
    ]
    assert kept[0] - kept[1] == 2 * 32 * 2 * (64 - 20)


def test_t5_1_1_has_gates_and_a_last_layer_of_its_own(tmp_path):
    """As its makers say; five feed-forward layers have another 64 × 96, the last layer 200 × 64."""
    gated = of(T5, "T5ForConditionalGeneration", feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    assert read_transformer(written(tmp_path, gated)).workload(1).parameters == 173_568 + 5 * 64 * 96 + 200 * 64
    mt5 = of(T5, "MT5ForConditionalGeneration", model_type="mt5")
    assert read_transformer(written(tmp_path, mt5)).workload(1).parameters == 173_568 + 5 * 64 * 96 + 200 * 64


def test_queries_see_the_chosen_tokens_alone(tmp_path):
    """Of 32 tokens 8 are seen; the indexer looks at all."""
    sizes = read(tmp_path, "glm_moe_dsa")
    assert sizes.products("block.0").flops == 2 * 32 * 8 * 4 * (24 + 10)
    assert sizes.index("block.0")["products"].flops == 2 * 32 * 32 * 2 * 14


def test_a_table_of_words_is_sent_once(tmp_path):
    """Encoder, decoder and last layer share it."""
    tables = [layer for layer in read(tmp_path, "t5").workload(1).layers if layer.parameters == 200 * 64]
    assert [layer.name for layer in tables] == ["encoder.embedding.words"]
    sums = [operator.name for operator in transformer_step(read(tmp_path, "t5")) if operator.gradient == 200 * 64]
    assert sums == ["encoder.embedding.words/weight sum"]


def test_a_decoder_hands_on_what_the_encoder_gave(tmp_path):
    path = written(tmp_path, BUILT["whisper"][0])
    pipeline = convert(
        path,
        "transformer-pipeline",
        objective="throughput",
        servers=1,
        gpus_per_server=4,
        global_batch=8,
        precision="bf16",
    )
    names = [layer.name for layer in pipeline.layers]
    sent = dict(zip(names, (edge.size_bytes for edge in pipeline.edges), strict=False))
    sound, words = 2 * 16 * 64, 2 * 12 * 64
    assert sent["encoder.block.0"] == sent["encoder.head"] == sound
    assert sent["embedding"] == sent["block.2"] == sound + words
    assert [menu.tensor for menu in pipeline.layers[0].menus] == [1, 2]  # two heads in the decoder
    assert sum(layer.menus[0].options[0].weight_bytes for layer in pipeline.layers) == 4 * 219_504 / 2
    assert ddlopt.solve(pipeline).checked


def test_state_space_layers_are_cut_by_groups(tmp_path):
    path = written(tmp_path, BUILT["nemotron_h"][0])
    pipeline = convert(
        path, "transformer-pipeline", objective="throughput", servers=1, gpus_per_server=4, global_batch=8
    )
    assert {menu.tensor for layer in pipeline.layers for menu in layer.menus} == {1, 2}
    pieces = {piece.name: piece for piece in transformer_graph(read(tmp_path, "nemotron_h")).pieces}
    assert pieces["block.0.mixer.heads"].columns == 2


@pytest.mark.parametrize("case", ["nemotron_h", "t5", "vit"])
def test_all_problems_have_answers(case, tmp_path):
    path = written(tmp_path, BUILT[case][0])
    servers = {"servers": 4, "degree": 2, "gpus_per_server": 1}
    for problem, method, options in (
        ("transformer", "espresso", {"nodes": 2}),
        ("transformer-topology", "topology-finder", servers),
        ("transformer-codesign", "alternating", servers),
        ("transformer-deployment", "data-parallel", {"groups": 4}),
    ):
        assert ddlopt.solve(convert(path, problem, batch=2, **options), method).checked, problem


def test_what_is_fixed_and_counted_is_said(tmp_path):
    assert "fixed positions of the encoder are counted" in convert(written(tmp_path, WHISPER), "transformer").source


BAD = {
    "two towers": (
        of({"model_type": "clip", "text_config": {}, "vision_config": {}}, "CLIPModel"),
        "it has two towers",
    ),
    "hyper-connections": (SPARSE | {"model_type": "deepseek_v4", "hc_mult": 4}, "(it has hc_mult, hyper-connections)"),
    "kinds missing": ({**HYBRID, "hybrid_override_pattern": None}, "layers_block_type is None; it must have a kind"),
    "too few kinds": (HYBRID | {"hybrid_override_pattern": "M*"}, "'M*'; it must have a kind for each of 4"),
    "another kind": (
        HYBRID | {"hybrid_override_pattern": "MEX-"},
        "_pattern[2] is 'X'; what is read: M, *",
    ),
    "more chosen": (HYBRID | {"num_experts_per_tok": 5}, "num_experts_per_tok is 5, but there are 4 experts"),
    "biased experts": (HYBRID | {"mlp_bias": True}, "mlp_bias is True; a nemotron_h is read where it is False"),
    "shared indexers": (SPARSE | {"indexer_types": ["full", "shared", "full"]}, "indexer_types shares indexers"),
    "inputs of layers": ({**WIDE, "hidden_size_per_layer_input": 8}, "read without inputs of layers"),
    "shared keys": (
        WIDE | {"num_kv_shared_layers": 1},
        "num_kv_shared_layers is 1; a gemma4_text is read where",
    ),
    "heads": (BART | {"encoder_attention_heads": 5}, "encoder_attention_heads is 5, which does not divide d_model 64"),
    "patches": (VIT | {"patch_size": 7}, "patch_size is 7, which does not divide image_size 32"),
    "heads of images": (
        VIT | {"num_attention_heads": 5},
        "heads is 5, which does not divide hidden_size 64",
    ),
    "projection": (T5 | {"feed_forward_proj": 3}, "feed_forward_proj is 3; it must be a word"),
    "layers": (T5 | {"num_decoder_layers": 10**6}, "num_decoder_layers is 1000000; at most 10000"),
    "class": (of(BART, "BartForQuestionAnswering"), "is 'BartForQuestionAnswering'; what is read ends with ForCond"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_a_line(case, tmp_path):
    config, told = BAD[case]
    with one_line(InstanceError, told):
        convert(written(tmp_path, config), "transformer")


def test_samples_are_as_long_as_they_can_be(tmp_path):
    with one_line(OptionError, "an image has 17 tokens, so leave it out"):
        convert(written(tmp_path, VIT), "transformer", sequence=16)
    with one_line(OptionError, "has a context of 12, so use 1..12"):
        convert(written(tmp_path, WHISPER), "transformer", sequence=13)
    assert read_transformer(written(tmp_path, T5), 5000).sequence == 5000
