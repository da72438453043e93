"""The bundled training steps: a small one, and four models on three clusters."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.clusters.options import applied, with_cluster
from ddlopt.instances.generators.deployment import generate
from ddlopt.instances.readers import options_of
from ddlopt.instances.readers.models.transformer_pipeline import read_transformer_pipeline
from ddlopt.models.deployment import DeploymentProblem

_LLAMA = {"model_type": "llama", "vocab_size": 128256, "num_key_value_heads": 8, "max_position_embeddings": 8192}
_BF16 = {"torch_dtype": "bfloat16"}
_MODELS: dict[str, dict[str, Any]] = {
    "llama3-8b": _LLAMA
    | {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 14336},
    "llama3-70b": _LLAMA
    | {"num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "intermediate_size": 28672},
    "mixtral-8x7b": {
        "model_type": "mixtral",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "vocab_size": 32000,
        "max_position_embeddings": 32768,
    },
    "deepseek-v3": {
        "model_type": "deepseek_v3",
        "num_hidden_layers": 61,
        "hidden_size": 7168,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "vocab_size": 129280,
        "max_position_embeddings": 163840,
    },
}
"""What the models' configurations say of their sizes."""
_SERVERS = {
    "dgx-h100": {"llama3-8b": 8, "llama3-70b": 64, "mixtral-8x7b": 16, "deepseek-v3": 256},
    "aws-p4d": {"llama3-8b": 8, "llama3-70b": 64, "mixtral-8x7b": 32, "deepseek-v3": 256},
    "gb200-nvl72": {"llama3-8b": 1, "llama3-70b": 4, "mixtral-8x7b": 2, "deepseek-v3": 8},
}
_BATCH = {"llama3-8b": 576, "llama3-70b": 1152, "mixtral-8x7b": 1152, "deepseek-v3": 4608}
"""Divisible by what the clusters have: 72 devices in a domain of one, 8 in a server of the others."""
_SEQUENCE = 4096
"""Tokens of a sample."""


def instances() -> Iterator[DeploymentProblem]:
    """All of them."""
    yield generate("step", 1, name="step-tiny-l8-k8")
    yield generate("step", 1, name="step-tiny-l4-k4", layers=4, servers=2, gpus_per_server=2, global_batch=8)
    for cluster, counts in _SERVERS.items():
        for model, servers in counts.items():
            batch = _BATCH[model] if cluster == "gb200-nvl72" else _BATCH[model] // 9 * 8
            given = {"cluster": cluster, "servers": servers, "global_batch": batch, "sequence": _SEQUENCE}
            options = applied(given, options_of("transformer-pipeline"), "transformer-pipeline")
            made = read_transformer_pipeline(_MODELS[model] | _BF16, name=f"step-{model}-{cluster}", **options)
            yield with_cluster(made, cluster)  # type: ignore[misc]
