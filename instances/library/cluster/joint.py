"""The bundled instances of jobs with plans: TopoOpt's networks on a small cluster, tiny ones, and large models."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ddlopt.instances.generators.cluster import generate
from ddlopt.instances.readers.models.transformer_pipeline import read_transformer_pipeline
from ddlopt.instances.workloads.racks import in_racks
from ddlopt.models.cluster import ClusterProblem
from ddlopt.models.cluster.joint.instance import JointInstance

_DRAWN: dict[str, tuple[int, dict[str, Any]]] = {
    "joint-tiny-j4-k8": (1, {}),
    "joint-completion-j5-k8": (2, {"jobs": 5, "objective": "weighted_completion"}),
    "joint-tardiness-j4-k6": (3, {"servers": 6, "objective": "weighted_tardiness", "slack": 0.7}),
    "joint-topoopt-j5-k8": (4, {"jobs": 5, "workloads": ("vgg16", "bert"), "widths": (2, 4)}),
}
"""Seed and options by name."""
_ITERATIONS: dict[str, tuple[int, ...]] = {
    "joint-tiny-j4-k8": (22145143, 1912, 16044877, 1495),
    "joint-tardiness-j4-k6": (19892259, 896, 10085265, 856),
    "joint-topoopt-j5-k8": (119780, 70780, 54730, 113235, 75499),
}
"""Of jobs with co-designs, as the generator had them from the bound of its time: a better one changes no instance."""
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
        made = generate("joint", seed, name=name, **options)
        assert isinstance(made, JointInstance)
        told = _ITERATIONS.get(name, [job.iterations for job in made.jobs])
        jobs = [job.model_dump() | {"iterations": count} for job, count in zip(made.jobs, told, strict=True)]
        yield made.changed(jobs=jobs)
    yield large_models()
    tiny = generate("joint", 2, name="joint-racks-j4-k8", workloads=("tiny-step",), widths=(3, 4))
    assert isinstance(tiny, JointInstance)
    yield in_racks(tiny, 2, 50e9)
    # Racks of eight servers with 400 Gb/s each, four times what their uplinks carry.
    yield in_racks(models_of_a_leaf_spine(), 8, 8 * 400e9 / 8 / 4)


def models_of_a_leaf_spine() -> JointInstance:
    """20 jobs on 128 servers of eight H100 with 400 Gb/s: three of Llama 3's 8B for one of its 70B."""
    rng = np.random.default_rng(1)
    problems: list[Any] = []
    menus = []
    for name, least in (("llama-8b", 4), ("llama-70b", 16)):
        made = read_transformer_pipeline(
            _LLAMA | {"num_key_value_heads": 8} | _SIZES[name], servers=128, gpus_per_server=8, accelerator="h100",
            network_gigabit_per_s=400, sequence=8192, global_batch=256, name=name,
        )  # fmt: skip
        widths = [w for w in (4, 8, 16, 32, 64) if w >= least]
        choices = [{"servers": w, "problem": len(problems), "devices": 8 * w} for w in widths]
        menus.append({"name": name, "choices": choices})
        problems.append(made)
    jobs = []
    for place in range(20):
        large = int(place % 4 == 3)
        jobs.append(
            {
                "name": f"{menus[large]['name']}-{place}",
                "workload": large,
                "iterations": int(rng.integers(1000, 4000)) // (1, 4)[large],
                "arrival_s": float(int(rng.uniform(0, 3000))),
                "weight": int(rng.integers(1, 5)),
            }
        )
    return JointInstance.from_data(
        {
            "name": "joint-racks-j20-k128",
            "source": "Llama 3 in its published sizes on 16 racks of eight servers, 4:1; iterations and arrivals drawn",
            "servers": 128,
            "problems": problems,
            "workloads": menus,
            "jobs": jobs,
            "objective": "makespan",
        }
    )


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
