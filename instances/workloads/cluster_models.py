"""Networks that the jobs of a cluster train, as iteration times of ring all-reduce.

Bytes and operations follow from the layers (:mod:`ddlopt.instances.workloads.networks.published`); seconds are a
roofline with an assumed accelerator, so they are synthetic. No trace of a public cluster says which network a job
trained: :func:`models_by_gpu_hours` is our own rule for that, which only keeps long jobs and large networks together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from ddlopt.instances.workloads.accelerators import A100, Accelerator
from ddlopt.instances.workloads.networks import published as networks
from ddlopt.instances.workloads.training import PASSES, Workload
from ddlopt.models.errors import UnknownNameError
from ddlopt.models.scheduling import RingTiming

_NETWORKS: dict[str, Callable[[], Workload]] = {
    "bert-tiny": lambda: networks.bert(2, 128, 128, 256),
    "bert-mini": lambda: networks.bert(4, 256, 128, 64),
    "bert-small": lambda: networks.bert(4, 512, 128, 64),
    "bert-medium": lambda: networks.bert(8, 512, 128, 64),
    "resnet50": lambda: networks.resnet50(128),
    "vgg16": lambda: networks.vgg16(64),
    "bert-base": lambda: networks.bert(12, 768, 128, 32),
    "bert-large": lambda: networks.bert(24, 1024, 128, 16),
}
"""BERT in the sizes of Devlin et al. and of Turc et al. (arXiv:1908.08962) on
sequences of 128, ResNet-50 and VGG-16; the last number is the mini-batch of a GPU, our choice."""

CLUSTER_MODELS = tuple(_NETWORKS)
"""Names, from the shortest iteration to the longest."""

GPU_HOURS = (1.0, 10.0, 100.0)
"""Where the classes of jobs by GPU time end; the last one is open."""

_CLASSES = (
    ("bert-tiny", "bert-mini"),
    ("bert-small", "bert-medium"),
    ("resnet50", "vgg16"),
    ("bert-base", "bert-large"),
)

ADDITION_PASSES = 3
"""Adding what arrives reads two numbers and writes one."""


@dataclass(frozen=True)
class ClusterModel:
    """A network as a worker with one GPU trains it.

    Parameters
    ----------
    name : str
    gradient_bytes : int
        What is all-reduced in an iteration, fp32.
    batch_samples : int
        Mini-batch of a worker.
    forward_s_per_sample, backward_s : float
        By the accelerator's roofline; the backward pass is two forward passes. Four significant digits.
    reduction_bytes_per_s : float
        Memory-bound addition.
    """

    name: str
    gradient_bytes: int
    batch_samples: int
    forward_s_per_sample: float
    backward_s: float
    reduction_bytes_per_s: float

    def timing(self, bandwidth_bytes_per_s: float, latency_s: float = 0.0, overhead_s: float = 0.0) -> RingTiming:
        """Iteration time with that bandwidth on every link of the ring."""
        return RingTiming(
            gradient_bytes=self.gradient_bytes,
            bandwidth_bytes_per_s=bandwidth_bytes_per_s,
            reduction_bytes_per_s=self.reduction_bytes_per_s,
            forward_s_per_sample=self.forward_s_per_sample,
            batch_samples=self.batch_samples,
            backward_s=self.backward_s,
            overhead_s=overhead_s,
            latency_s=latency_s,
        )


@cache
def cluster_model(name: str, accelerator: Accelerator = A100) -> ClusterModel:
    """A network of :data:`CLUSTER_MODELS`.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    """
    if name not in _NETWORKS:
        raise UnknownNameError(f"there is no model '{name}'; there are: {', '.join(CLUSTER_MODELS)}")
    workload = _NETWORKS[name]()
    forward_s = sum(accelerator.forward_s(layer, workload.batch_per_gpu) for layer in workload.layers)
    return ClusterModel(
        name,
        workload.gradient_bytes,
        workload.batch_per_gpu,
        float(f"{forward_s / workload.batch_per_gpu:.4g}"),
        float(f"{(PASSES - 1) * forward_s:.4g}"),
        float(f"{accelerator.memory_bytes_per_s / ADDITION_PASSES:.4g}"),
    )


def models_by_gpu_hours(gpu_hours: float) -> tuple[str, ...]:
    """Names that a job with a given GPU time is drawn from, equally likely: two for each class of :data:`GPU_HOURS`."""
    return _CLASSES[sum(gpu_hours > limit for limit in GPU_HOURS)]
