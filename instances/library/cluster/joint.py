"""The bundled instances of jobs with plans: TopoOpt's networks on a small cluster, tiny ones, and large models."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ddlopt.instances.generators.cluster import generate
from ddlopt.instances.readers.models.transformer_pipeline import read_transformer_pipeline
from ddlopt.models.cluster import ClusterProblem
from ddlopt.models.cluster.joint.instance import JointInstance

_DRAWN: dict[str, tuple[int, dict[str, Any]]] = {
    "joint-tiny-j4-k8": (1, {}),
    "joint-completion-j5-k8": (2, {"jobs": 5, "objective": "weighted_completion"}),
    "joint-tardiness-j4-k6": (3, {"servers": 6, "objective": "weighted_tardiness", "slack": 0.7}),
    "joint-topoopt-j5-k8": (4, {"jobs": 5, "workloads": ("vgg16", "bert"), "widths": (2, 4)}),
}
"""Seed and options by name."""
_LLAMA = {"model_type": "llama", "vocab_size": 128256, "max_position_embeddings": 8192, "torch_dtype": "bfloat16"}
_SIZES = {
    "llama-8b": {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 14336},
    "llama-70b": {"num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "intermediate_size": 28672},
    "llama-405b": {
        "num_hidden_layers": 126,
        "hidden_size": 16384,
        "num_attention_heads": 128,
        "intermediate_size": 53248,
    },
}
"""Published sizes of Llama 3; all have eight heads of keys and values."""


def instances() -> Iterator[ClusterProblem]:
    """All of them."""
    for name, (seed, options) in _DRAWN.items():
        yield generate("joint", seed, name=name, **options)
    yield large_models()


def large_models() -> JointInstance:
    """12 large models on 1 024 H100, 128 servers of eight: Llama 3 in three sizes, on 8 to 128 servers.

    Iterations, arrivals within some hours and weights are drawn; larger models have fewer iterations.
    """
    rng = np.random.default_rng(0)
    problems: list[Any] = []
    menus = []
    for name, sizes in _SIZES.items():
        config = _LLAMA | {"num_key_value_heads": 8} | sizes
        made = read_transformer_pipeline(
            config, servers=128, gpus_per_server=8, accelerator="h100", network_gigabit_per_s=3200, sequence=8192,
            global_batch=512, name=name,
        )  # fmt: skip
        widths = [w for w in (8, 16, 32, 64, 128) if name != "llama-405b" or w >= 32]
        menus.append(
            {
                "name": name,
                "choices": [{"servers": w, "problem": len(problems), "devices": 8 * w} for w in widths],
            }
        )
        problems.append(made)
    jobs = [
        {
            "name": f"{list(_SIZES)[place % 3]}-{place}",
            "workload": place % 3,
            "iterations": int(rng.integers(1000, 4000)) // (1, 4, 16)[place % 3],
            "arrival_s": float(int(rng.uniform(0, 20000))),
            "weight": int(rng.integers(1, 5)),
        }
        for place in range(12)
    ]
    return JointInstance.from_data(
        {
            "name": "joint-llama-j12-k128",
            "source": "Llama 3 in its published sizes on 128 servers of eight H100; iterations and arrivals drawn",
            "servers": 128,
            "problems": problems,
            "workloads": menus,
            "jobs": jobs,
            "objective": "makespan",
        }
    )
