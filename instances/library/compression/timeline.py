"""The bundled instances of which compressor for which gradient: our networks on clusters of many kinds.

``-budget``: part of the energy of all gradients may be lost; ``-fusion``: gradients may be sent together; ``-error``:
the error is minimised; ``-lanes``: processors and links are resources of their own. ``espresso-``: costs of Espresso's
planner, ``hipress-`` those of HiPress's.
"""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.compression import generate
from ddlopt.instances.library.compression import measured
from ddlopt.models.compression import CompressionProblem

_NVLINK, _PCIE = {"intra": "nvlink"}, {"intra": "pcie"}
_SINGLE = {"gpus_per_node": 1}
_ENTRYWISE = ("fp16", "dgc:0.01", "dgc:0.001", "random_k:0.01", "sign", "onebit", "qsgd:7", "qsgd:127")
"""Compressors that know no matrices."""
_ON_CPUS = ("fp16", "dgc:0.01", "dgc:0.01/cpu", "sign", "sign/cpu")

_NETWORKS: dict[str, dict[str, Any]] = {
    "vgg16-n8x8-nvlink-25g": {},
    "vgg16-n8x8-nvlink-25g-budget": {"error_budget_part": 0.02},
    "vgg16-n2x8-nvlink-100g": {"nodes": 2, "network_gigabit_per_s": 100},
    "vgg16-n16-10g-budget": {
        "nodes": 16, **_SINGLE, "network_gigabit_per_s": 10, "compressors": _ENTRYWISE, "error_budget_part": 0.1,
    },
    "vgg16-n2x8-pcie-25g-lanes": {"nodes": 2, **_PCIE, "compressors": ("fp16", "dgc:0.01/cpu"), "lanes": True},
    "vgg16-n8x8-pcie-25g-lanes-budget": {
        **_PCIE, "compressors": _ON_CPUS, "lanes": True, "error_budget_part": 0.1,
    },
    "vgg19-n4x8-pcie-10g-budget": {
        "nodes": 4, **_PCIE, "network_gigabit_per_s": 10, "compressors": _ENTRYWISE, "error_budget_part": 0.1,
    },
    "resnet50-n8x8-nvlink-25g": {},
    "resnet50-n8x8-pcie-25g-budget": {**_PCIE, "error_budget_part": 0.3},
    "resnet50-n8-10g-fusion": {"nodes": 8, **_SINGLE, "network_gigabit_per_s": 10, "fusion": True},
    "resnet50-n64-10g-budget": {"nodes": 64, **_SINGLE, "network_gigabit_per_s": 10, "error_budget_part": 0.2},
    "resnet101-n8x8-nvlink-100g": {"network_gigabit_per_s": 100},
    "resnet101-n8x8-pcie-10g": {**_PCIE, "network_gigabit_per_s": 10},
    "resnet101-n8x8-pcie-25g-budget": {**_PCIE, "error_budget_part": 0.4},
    "resnet101-n4x4-pcie-10g-budget-fusion": {
        "nodes": 4, "gpus_per_node": 4, **_PCIE, "network_gigabit_per_s": 10, "error_budget_part": 0.1,
        "fusion": True, "largest_bucket_bytes": 25e6,
    },
    "bert-base-n8x8-nvlink-100g": {"network_gigabit_per_s": 100},
    "bert-base-n4x8-pcie-25g-budget": {"nodes": 4, **_PCIE, "error_budget_part": 0.15},
    "bert-base-n8-10g-budget-fusion": {
        "nodes": 8, **_SINGLE, "network_gigabit_per_s": 10, "error_budget_part": 0.2, "fusion": True,
    },
    "bert-base-n8x8-nvlink-25g-error": {"goal": "error", "time_budget_s": 0.15},
    "bert-large-n8x8-nvlink-25g": {},
    "bert-large-n8x8-nvlink-25g-budget": {"error_budget_part": 0.3},
    "bert-large-n8x8-pcie-100g-budget": {**_PCIE, "network_gigabit_per_s": 100, "error_budget_part": 0.2},
    "bert-large-n2x8-nvlink-25g-fusion": {"nodes": 2, "fusion": True, "largest_bucket_bytes": 25e6},
    "gpt2-n2-25g": {"nodes": 2, **_SINGLE},
    "gpt2-n8x8-nvlink-25g-budget": {"error_budget_part": 0.1},
    "gpt2-n4x8-pcie-10g-budget": {"nodes": 4, **_PCIE, "network_gigabit_per_s": 10, "error_budget_part": 0.3},
    "transformer-n8x8-nvlink-25g": {},
    "transformer-n8x8-nvlink-25g-budget": {"error_budget_part": 0.3},
    "transformer-n8-10g-error": {
        "nodes": 8, **_SINGLE, "network_gigabit_per_s": 10, "goal": "error", "time_budget_s": 0.1,
    },
}  # fmt: skip
"""Options by name, which begins with the network's."""

_PLANNERS: dict[str, dict[str, Any]] = {
    "espresso-resnet101-dgc-pcie": {"model": "resnet101", **_PCIE},
    "espresso-bert-base-dgc-pcie": {"model": "bert-base", **_PCIE},
    "espresso-gpt2-sign-pcie": {"model": "gpt2", **_PCIE, "compressors": ("sign",)},
    "espresso-vgg16-random-k-nvlink": {"model": "vgg16", **_NVLINK, "compressors": ("random_k:0.01",)},
    "espresso-bert-base-random-k-pcie-lanes": {
        "model": "bert-base",
        **_PCIE,
        "compressors": ("random_k:0.01/inter/cpu",),
        "lanes": True,
    },
    "espresso-bert-base-dgc-pcie-budget": {"model": "bert-base", **_PCIE, "error_budget_part": 0.5},
}
_HIPRESS: dict[str, dict[str, Any]] = {
    "hipress-resnet50-n16": {"model": "resnet50"},
    "hipress-vgg19-n16-budget": {"model": "vgg19", "error_budget_part": 0.5},
}


def instances() -> Iterator[CompressionProblem]:
    """One for each name."""
    for name, options in _NETWORKS.items():
        yield generate("network", name=name, model=name.partition("-n")[0], **options)
    for name, options in _PLANNERS.items():
        yield generate("network", name=name, cost_model="espresso", **options)
    for name, options in _HIPRESS.items():
        yield generate("network", name=name, cost_model="hipress", nodes=16, **_SINGLE, **options)
    yield from measured.instances("measured")
