"""Blocks of several kinds: state-space layers, linear attention, heads of two sizes, chosen tokens."""

from typing import Any

from ddlopt.instances.readers.models.config_fields import Fields
from ddlopt.instances.workloads.networks.transformer_parts import (
    Heads,
    Indexer,
    Mixer,
    delta_rule,
    lightning,
    selective_scan,
    state_space,
)
from ddlopt.models.errors import InstanceError

_KINDS = {
    "linear_attention": "mixer",
    "full_attention": "attention",
    "sliding_attention": "attention",
    "attention": "attention",
    "mamba": "mixer",
}
_LETTERS = {"M": "mixer", "*": "attention", "-": "feed", "E": "experts"}
_WORDS = {"mamba": "mixer", "attention": "attention", "mlp": "feed", "moe": "experts"}


def with_chosen_tokens(fields: Fields, layers: int) -> dict[str, Any]:
    """Sparse attention (GLM-5, DeepSeek-V3.2): every block has an indexer of its own."""
    own = {"full": "own", "shared": "shared", "F": "own", "S": "shared"}
    for name in ("indexer_types", "index_topk_pattern"):
        if fields.data.get(name) is not None and "shared" in fields.kinds(name, layers, own):
            raise InstanceError(f"{fields.path}: {name} shares indexers among blocks; every block must have its own")
    fields.refuse_unread({"index_topk_freq": 1})
    sizes = (fields.number(name) for name in ("index_n_heads", "index_head_dim", "index_topk"))
    return {"indexer": Indexer(*sizes)}


def with_delta_rule(fields: Fields, layers: int) -> dict[str, Any]:
    """Gated DeltaNet in most blocks, gated attention in the others (Qwen 3-Next, 3.5)."""
    mixer = delta_rule(
        fields.number("linear_num_key_heads"),
        fields.number("linear_num_value_heads"),
        fields.number("linear_key_head_dim"),
        fields.number("linear_value_head_dim"),
        fields.number("linear_conv_kernel_dim", 4),
    )
    every = fields.number("full_attention_interval", 4)
    usual = ["attention" if (place + 1) % every == 0 else "mixer" for place in range(layers)]
    return {"mixer": mixer, **_alternating(fields, layers, usual)}


def with_lightning(fields: Fields, layers: int) -> dict[str, Any]:
    """Lightning attention in most blocks (MiniMax-01)."""
    heads = fields.number("num_attention_heads")
    head = fields.number("head_dim", fields.number("hidden_size") // heads)
    usual = ["mixer" if place % 2 else "attention" for place in range(layers)]
    return {"mixer": lightning(heads, head), **_alternating(fields, layers, usual)}


def _alternating(fields: Fields, layers: int, usual: list[str]) -> dict[str, Any]:
    """Blocks with one or the other, and a feed-forward layer."""
    listed = fields.data.get("layer_types") is not None
    kinds = fields.kinds("layer_types", layers, _KINDS) if listed else tuple(usual)
    return {"pattern": tuple((kind, "feed") for kind in kinds)}


def with_state_space(fields: Fields, layers: int) -> dict[str, Any]:
    """Blocks of one part each: Mamba-2, attention, a feed-forward layer or experts (Nemotron-H)."""
    name = fields.first("layers_block_type", "hybrid_override_pattern")
    kinds = fields.kinds(name, layers, _WORDS if name == "layers_block_type" else _LETTERS)
    mixer = state_space(
        fields.number("mamba_num_heads"),
        fields.number("mamba_head_dim"),
        fields.number("n_groups"),
        fields.number("ssm_state_size"),
        fields.number("conv_kernel", 4),
        fields.flag("use_bias", False),
        fields.flag("use_conv_bias", True),
    )
    plain = frozenset(place for place, kind in enumerate(kinds) if kind != "experts")
    pattern = tuple(("feed",) if kind == "experts" else (kind,) for kind in kinds)
    found: dict[str, Any] = {"mixer": mixer, "pattern": pattern}
    if len(plain) == layers:
        return found
    fields.refuse_unread({"mlp_bias": False})
    experts, chosen = fields.number("n_routed_experts"), fields.number("num_experts_per_tok")
    fields.refuse_many("experts", "n_routed_experts", experts)
    if chosen > experts:
        raise InstanceError(f"{fields.path}: num_experts_per_tok is {chosen}, but there are {experts} experts")
    return found | {
        "plain": plain,
        "experts": experts,
        "chosen": chosen,
        "expert_width": fields.number("moe_intermediate_size"),
        "shared_width": fields.number("moe_shared_expert_intermediate_size"),
        "latent_experts": fields.number("moe_latent_size") if fields.data.get("moe_latent_size") else 0,
    }


def with_mamba(fields: Fields, layers: int) -> dict[str, Any]:
    """Mamba-2 in most blocks, each with a feed-forward layer (Bamba, Granite 4), which may have experts (Granite 4)."""
    heads = fields.number("mamba_n_heads", 128)
    inner = fields.number("mamba_expand", 2) * fields.number("hidden_size")
    told = fields.data.get("mamba_d_head", "auto")
    mixer = state_space(
        heads,
        inner // heads if told in ("auto", None) else fields.number("mamba_d_head"),
        fields.number("mamba_n_groups", 1),
        fields.number("mamba_d_state", 256),
        fields.number("mamba_d_conv", 4),
        fields.flag("mamba_proj_bias", False),
        fields.flag("mamba_conv_bias", True),
    )
    listed = fields.data.get("attn_layer_indices") or ()
    found: dict[str, Any] = {"mixer": mixer}
    found |= _alternating(fields, layers, ["attention" if place in listed else "mixer" for place in range(layers)])
    if fields.name != "granitemoehybrid":
        return found
    shared = fields.number("shared_intermediate_size", 1024)
    if fields.data.get("num_local_experts") == 0:
        return found | {"width": shared}
    experts, chosen = fields.number("num_local_experts", 8), fields.number("num_experts_per_tok", 2)
    fields.refuse_many("experts", "num_local_experts", experts)
    if chosen > experts:
        raise InstanceError(f"{fields.path}: num_experts_per_tok is {chosen}, but there are {experts} experts")
    return found | {"experts": experts, "chosen": chosen, "shared_width": shared}


def mamba_mixer(fields: Fields, hidden: int) -> Mixer:
    """The mixer of a model that has no attention."""
    state, kernel = fields.number("state_size"), fields.number("conv_kernel", 4)
    biases = {"bias": fields.flag("use_bias", False), "convolution_bias": fields.flag("use_conv_bias", True)}
    if fields.name == "mamba2":
        heads, head = fields.number("num_heads"), fields.number("head_dim")
        return state_space(heads, head, fields.number("n_groups", 8), state, kernel, **biases)
    rank = fields.data.get("time_step_rank", "auto")
    made = -(-hidden // 16) if rank == "auto" else fields.number("time_step_rank")
    inner = fields.number("intermediate_size", fields.number("expand", 2) * hidden)
    return selective_scan(inner, state, made, kernel, **biases)


_UNREAD_GEMMA4 = {
    "enable_moe_block": False,
    "num_kv_shared_layers": 0,
    "use_double_wide_mlp": False,
}


def with_two_kinds_of_heads(fields: Fields, layers: int) -> dict[str, Any]:
    """Wider heads, fewer of keys, in blocks that see all tokens (Gemma 4)."""
    fields.refuse_unread(_UNREAD_GEMMA4)
    if fields.data.get("hidden_size_per_layer_input", 256):
        raise InstanceError(
            f"{fields.path}: hidden_size_per_layer_input is not 0; a {fields.name} is read without inputs of layers"
        )
    same = fields.flag("attention_k_eq_v", False)
    keys = fields.first("num_global_key_value_heads", "num_key_value_heads") if same else "num_key_value_heads"
    kinds = {"full_attention": "full", "sliding_attention": "sliding"}
    listed = [*fields.kinds("layer_types", layers, kinds)] if fields.data.get("layer_types") else []
    listed = listed or ["sliding" if (place + 1) % 6 else "full" for place in range(layers)]
    return {
        # The last block is one of these, whatever is said.
        "full": frozenset(place for place, kind in enumerate(listed) if kind == "full" or place == layers - 1),
        "full_heads": Heads(fields.number("global_head_dim", 512), fields.number(keys), values=not same),
    }
