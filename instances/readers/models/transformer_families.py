"""What distinguishes families of transformers, by the ``model_type`` of their configurations."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

_USUAL = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "keys": "num_key_value_heads",
    "head": "head_dim",
    "vocabulary": "vocab_size",
    "width": "intermediate_size",
    "context": "max_position_embeddings",
    "experts": "num_local_experts",
    "chosen": "num_experts_per_tok",
    "expert_width": "moe_intermediate_size",
}
_GPT2 = _USUAL | {
    "layers": "n_layer",
    "hidden": "n_embd",
    "heads": "n_head",
    "width": "n_inner",
    "context": "n_positions",
}
_QWEN = _USUAL | {"experts": "num_experts"}
_DEEPSEEK = _USUAL | {"experts": "n_routed_experts"}
_BLOOM = _USUAL | {"layers": "n_layer", "heads": "n_head", "context": "seq_length"}
_MPT = _USUAL | {"layers": "n_layers", "hidden": "d_model", "heads": "n_heads", "context": "max_seq_len"}


@dataclass(frozen=True)
class Family:
    """A family of transformers.

    Parameters
    ----------
    options : dict
        Fields of :class:`~ddlopt.instances.workloads.networks.transformers.Transformer`.
    names : dict of str to str
        What its configurations call sizes.
    positions : int or None
        Rows of the table of positions besides the context; None: positions are not trained.
    attention_bias : tuple of str
        Which biases a field ``attention_bias`` tells of.
    flags : dict of str to (str, bool)
        Options that other fields tell, with what they are if these are not given.
    multiple : int
        The width of a feed-forward layer in hidden sizes, where no field tells it; 0: one has to.
    experts : {"none", "usual", "deepseek", "qwen", "llama4"}
        How experts are told of.
    mixed : str
        What makes blocks unlike, if anything does; see ``transformer_config``.
    """

    options: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=lambda: _USUAL)
    positions: int | None = None
    attention_bias: tuple[str, ...] = ()
    flags: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    multiple: int = 0
    experts: str = "none"
    mixed: str = ""


_LLAMA_OPTIONS = {
    "norm_shift": False,
    "gated": True,
    "qkv_bias": False,
    "output_bias": False,
    "feed_bias": False,
    "head_layer": "words",
}
_BERT_OPTIONS = {"norm_first": False, "head_layer": "pooler"}
_TIED = {"head_layer": "tied"}
_ALL = ("qkv_bias", "output_bias")
_PLAIN = Family(_LLAMA_OPTIONS)
_LLAMA = Family(_LLAMA_OPTIONS, attention_bias=_ALL, flags={"feed_bias": ("mlp_bias", False)})
_GEMMA_OPTIONS = _LLAMA_OPTIONS | _TIED
_MLP_BIAS = {"feed_bias": ("mlp_bias", False)}
_COHERE = Family(
    _LLAMA_OPTIONS | {"parallel": 1} | _TIED, attention_bias=_ALL, flags={"joint_norms": ("use_qk_norm", False)}
)
_GLM = Family(_LLAMA_OPTIONS, attention_bias=("qkv_bias",), flags=_MLP_BIAS)
# They normalise behind and not before, which costs the same.
_OLMO2 = Family(_LLAMA_OPTIONS | {"joint_norms": True}, attention_bias=_ALL)
_QWEN3 = Family(_LLAMA_OPTIONS | {"head_norms": True}, attention_bias=_ALL)
_DEEPSEEK_FAMILY = Family(_LLAMA_OPTIONS, _DEEPSEEK, experts="deepseek")
_GATED_OPTIONS = _LLAMA_OPTIONS | {"head_norms": True, "output_gate": True}
_GATED_MOE = _GATED_OPTIONS | {"shared_gate": True}
_GPTJ_OPTIONS = {"qkv_bias": False, "output_bias": False, "parallel": 1, "words_bias": True}
FAMILIES: Mapping[str, Family] = {
    "gpt2": Family({"fused": True} | _TIED, _GPT2, positions=0, multiple=4),
    "llama": _LLAMA,
    "mistral": _PLAIN,
    "ministral3": _PLAIN,
    "mixtral": Family(_LLAMA_OPTIONS, experts="usual"),
    "qwen2": Family(_LLAMA_OPTIONS | {"qkv_bias": True}),
    "qwen2_moe": Family(_LLAMA_OPTIONS | {"qkv_bias": True, "shared_gate": True}, _QWEN, experts="qwen"),
    "qwen3": _QWEN3,
    "qwen3_vl_text": _QWEN3,
    "qwen3_vl_moe_text": Family(_LLAMA_OPTIONS | {"head_norms": True}, _QWEN, attention_bias=_ALL, experts="qwen"),
    "qwen3_moe": Family(_LLAMA_OPTIONS | {"head_norms": True}, _QWEN, attention_bias=_ALL, experts="qwen"),
    "gemma": Family(_GEMMA_OPTIONS, attention_bias=_ALL),
    "gemma2": Family(_GEMMA_OPTIONS | {"norms_behind": True}, attention_bias=_ALL),
    "gemma3_text": Family(_GEMMA_OPTIONS | {"norms_behind": True, "head_norms": True}, attention_bias=_ALL),
    "phi": Family({"parallel": 1, "words_bias": True}),
    "phi3": _PLAIN,
    "stablelm": Family(_LLAMA_OPTIONS | {"norm_shift": True}, flags={"qkv_bias": ("use_qkv_bias", False)}),
    "glm4": Family(_LLAMA_OPTIONS | {"norms_behind": True}, attention_bias=("qkv_bias",)),
    "gpt_oss": Family(
        _LLAMA_OPTIONS | {"feed_bias": True, "router_bias": True, "sinks": True}, attention_bias=_ALL, experts="usual"
    ),
    "deepseek_v2": _DEEPSEEK_FAMILY,
    "deepseek_v3": _DEEPSEEK_FAMILY,
    "deepseek_v32": replace(_DEEPSEEK_FAMILY, mixed="chosen tokens"),
    "glm_moe_dsa": replace(_DEEPSEEK_FAMILY, mixed="chosen tokens"),
    "nemotron_h": Family(
        _LLAMA_OPTIONS | {"gated": False}, flags={"feed_bias": ("mlp_bias", False)}, mixed="state space"
    ),
    "bamba": Family(_LLAMA_OPTIONS, attention_bias=_ALL, flags=_MLP_BIAS, mixed="mamba"),
    "granitemoehybrid": Family(_LLAMA_OPTIONS, attention_bias=_ALL, mixed="mamba"),
    "qwen3_5_text": Family(_GATED_OPTIONS, attention_bias=_ALL, mixed="delta rule"),
    "qwen3_5_moe_text": Family(_GATED_MOE, _QWEN, attention_bias=_ALL, experts="qwen", mixed="delta rule"),
    "qwen3_next": Family(_GATED_MOE, _QWEN, attention_bias=_ALL, experts="qwen", mixed="delta rule"),
    "minimax": Family(_LLAMA_OPTIONS, experts="usual", mixed="lightning"),
    "gemma4_text": Family(
        _GEMMA_OPTIONS | {"norms_behind": True, "head_norms": True}, attention_bias=_ALL, mixed="two kinds of heads"
    ),
    "llama4_text": Family(_LLAMA_OPTIONS, attention_bias=_ALL, experts="llama4"),
    "gpt_neox": Family({"parallel": 2}, attention_bias=_ALL),
    "gptj": Family(_GPTJ_OPTIONS, _GPT2, multiple=4),
    "gpt_neo": Family(
        {"qkv_bias": False} | _TIED, _USUAL | {"layers": "num_layers", "heads": "num_heads"}, positions=0, multiple=4
    ),
    "gpt_bigcode": Family({"fused": True} | _TIED, _GPT2, positions=0, multiple=4),
    "starcoder2": Family(
        {"gated": False} | _TIED, flags=dict.fromkeys(("qkv_bias", "output_bias", "feed_bias"), ("use_bias", True))
    ),
    "cohere": _COHERE,
    "cohere2": _COHERE,
    "nemotron": Family(_LLAMA_OPTIONS | {"norm_shift": True, "gated": False}, attention_bias=_ALL, flags=_MLP_BIAS),
    "arcee": Family(_LLAMA_OPTIONS | {"gated": False}, attention_bias=_ALL, flags=_MLP_BIAS),
    "granite": _LLAMA,
    "granitemoe": Family(_LLAMA_OPTIONS, attention_bias=_ALL, experts="usual"),
    "helium": _GLM,
    "glm": _GLM,
    "ernie4_5": Family(
        _LLAMA_OPTIONS | _TIED, flags=dict.fromkeys(("qkv_bias", "output_bias", "feed_bias"), ("use_bias", False))
    ),
    "smollm3": Family(_LLAMA_OPTIONS | _TIED, attention_bias=_ALL, flags=_MLP_BIAS),
    "seed_oss": Family(
        _LLAMA_OPTIONS | {"qkv_bias": True},
        attention_bias=("qkv_bias",),
        flags=_MLP_BIAS | {"output_bias": ("attention_out_bias", False)},
    ),
    "exaone4": Family(_LLAMA_OPTIONS | {"head_norms": True}),
    "hunyuan_v1_dense": _QWEN3,
    "olmo2": _OLMO2,
    "olmo3": _OLMO2,
    "olmoe": Family(_LLAMA_OPTIONS | {"joint_norms": True}, _QWEN, attention_bias=_ALL, experts="usual"),
    "minimax_m2": Family(_LLAMA_OPTIONS | {"joint_norms": True}, experts="usual"),
    "phimoe": Family(
        _LLAMA_OPTIONS | {"norm_shift": True},
        attention_bias=_ALL,
        flags={"words_bias": ("lm_head_bias", False)},
        experts="usual",
    ),
    "glm4_moe": Family(
        _LLAMA_OPTIONS,
        _DEEPSEEK,
        attention_bias=("qkv_bias",),
        flags={"head_norms": ("use_qk_norm", False)},
        experts="deepseek",
    ),
    "dots1": Family(_LLAMA_OPTIONS | {"head_norms": True}, _DEEPSEEK, attention_bias=_ALL, experts="deepseek"),
    "opt": Family(_TIED, _USUAL | {"width": "ffn_dim"}, positions=2),
    "bloom": Family({"fused": True, "embedding_norm": True} | _TIED, _BLOOM, multiple=4),
    "mpt": Family(_LLAMA_OPTIONS | {"gated": False} | _TIED, _MPT, multiple=4),
    "falcon": Family({"fused": True, "parallel": 1} | _TIED, multiple=4),
    "bert": Family(_BERT_OPTIONS, positions=0),
    "roberta": Family(_BERT_OPTIONS, positions=0),
    "xlm-roberta": Family(_BERT_OPTIONS, positions=0),
    "camembert": Family(_BERT_OPTIONS, positions=0),
}
ENCODERS = ("bert", "roberta", "xlm-roberta", "camembert")
"""Families that read all tokens at once, and have segments."""
NESTED: Mapping[str, str] = {
    "gemma3": "gemma3_text",
    "mistral3": "ministral3",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "llama4": "llama4_text",
    "gemma4": "gemma4_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
}
"""Families whose configuration has that of a text model inside, ``text_config``, with the usual type of that one."""
OTHER_WISE: Mapping[str, str] = {
    "hc_mult": "hyper-connections",
    "compress_ratios": "keys and values of several tokens together",
    "is_encoder_decoder": "an encoder besides the decoder",
    "hybrid_override_pattern": "blocks of several kinds",
    "layers_block_type": "blocks of several kinds",
    "linear_attn_config": "linear attention",
    "ssm_cfg": "state-space layers",
    "mamba_num_heads": "state-space layers",
    "mamba_d_state": "state-space layers",
    "mamba_expand": "state-space layers",
    "state_size": "state-space layers",
    "linear_num_key_heads": "linear attention",
    "index_topk": "attention to chosen tokens",
    "global_head_dim": "heads of two sizes",
    "kv_lora_rank": "latent attention",
}
"""Fields of what has other parts than attention and feed-forward layers, with the part: read for known types alone."""
