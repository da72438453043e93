"""Topology instances that are the traffic of plans for a training step: a mixture of experts on 16 servers of eight."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.readers.models.transformer_pipeline import read_transformer_pipeline
from ddlopt.instances.workloads.step_traffic import traffic
from ddlopt.models.deployment.step.instance import StepInstance, StepPlan
from ddlopt.models.topology import TopologyInstance

_QWEN3_235B: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 94,
    "hidden_size": 4096,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "torch_dtype": "bfloat16",
}
"""What the configuration of Qwen3-235B-A22B says of its sizes."""
_OPTIONS: dict[str, Any] = {"servers": 16, "global_batch": 1024, "sequence": 4096, "tensor": [1, 2], "context": [1]}
PLANS: dict[int, dict[str, Any]] = {
    8: {"data": 8, "pipeline": 8, "sharding": 1, "option": "selective"},
    32: {"data": 32, "pipeline": 2, "interleaving": 6, "sharding": 3},
    128: {"data": 64, "sharding": 3},
}
"""The fastest plans with an expert degree of 8 (the devices of a server), 32 and 128, without what all have."""


def step_instance() -> StepInstance:
    """Qwen3-235B-A22B on 16 servers of eight H100, eight cards of 400 Gb/s each, 1024 sequences of 4096 tokens."""
    made = read_transformer_pipeline(_QWEN3_235B, name="qwen3-235b-k128", **_OPTIONS)
    assert isinstance(made, StepInstance)
    return made


def plan(expert: int) -> StepPlan:
    """The plan of :data:`PLANS` with an expert degree."""
    instance = step_instance().name
    return StepPlan(instance=instance, expert=expert, tensor=2, micro_batch=1, sequence_parallel=True, **PLANS[expert])


def instances() -> Iterator[TopologyInstance]:
    """All of them."""
    whole = step_instance()
    for expert in PLANS:
        yield traffic(whole, plan(expert)).changed(name=f"experts-n16-d8-e{expert}")
