"""Training steps of small transformers of any shape on any cluster."""

from typing import Any

import numpy as np

from ddlopt.instances.options import at_least, positive
from ddlopt.instances.readers.models.transformer_pipeline import read_transformer_pipeline
from ddlopt.instances.workloads.accelerators import Accelerator
from ddlopt.models.deployment.step.instance import StepInstance

_HEAD = 64
"""Numbers of a head."""
_WORDS = 32_000
"""Of the vocabulary, as Llama 2 and Mixtral have."""


def training(
    rng: np.random.Generator,
    *,
    layers: int = 8,
    heads: int = 16,
    experts: int = 0,
    sequence: int = 1024,
    global_batch: int = 64,
    servers: int = 2,
    gpus_per_server: int = 4,
    accelerator: str | Accelerator = "h100",
    memory_gigabytes: float = 4.0,
    intra_gigabytes_per_s: float | None = None,
    network_gigabit_per_s: float = 400.0,
    slower_inside: bool | None = None,
) -> StepInstance:
    """A decoder with gated feed-forward layers, whose width is drawn around three and a half times the hidden size.

    Parameters
    ----------
    layers : int
        Blocks of the transformer.
    heads : int
        Of attention, with 64 numbers each; a quarter as many of keys and values.
    experts : int
        0, or from 2 on, of which a token visits two.
    sequence : int
        Tokens of a sample.
    global_batch : int
        Samples of a step.
    servers : int
        How many.
    gpus_per_server : int
        Accelerators of a server.
    accelerator : str or Accelerator
        Whose figures are taken, such as h100.
    memory_gigabytes : float
        Of an accelerator.
    intra_gigabytes_per_s : float, optional
        Likewise, inside a server; by default that of its data sheet.
    network_gigabit_per_s : float
        Of a server.
    slower_inside : bool, optional
        That servers are slower inside than outside is meant so.
    """
    at_least("layers", layers, 1)
    at_least("heads", heads, 1)
    positive("memory_gigabytes", memory_gigabytes)
    hidden = _HEAD * heads
    config: dict[str, Any] = {
        "model_type": "mixtral" if experts else "llama",
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": max(1, heads // 4) if heads % max(1, heads // 4) == 0 else heads,
        "intermediate_size": 64 * int(rng.integers(3 * hidden, 4 * hidden + 1) // 64),
        "vocab_size": _WORDS,
        "max_position_embeddings": sequence,
        "torch_dtype": "bfloat16",
    }
    if experts:
        config |= {"num_local_experts": experts, "num_experts_per_tok": min(2, experts)}
    made = read_transformer_pipeline(
        config,
        global_batch=global_batch,
        servers=servers,
        gpus_per_server=gpus_per_server,
        accelerator=accelerator,
        memory_gigabytes=memory_gigabytes,
        intra_gigabytes_per_s=intra_gigabytes_per_s,
        network_gigabit_per_s=network_gigabit_per_s,
        slower_inside=bool(slower_inside),
    )
    assert isinstance(made, StepInstance)
    kind = "experts" if experts else "dense"
    return made.changed(name=f"step-{kind}-l{layers}-k{made.devices}")
