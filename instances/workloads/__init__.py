"""Training jobs from the shapes of their layers: every byte and every operation can be followed."""

from ddlopt.instances.workloads.accelerators import A100, V100, Accelerator
from ddlopt.instances.workloads.networks.gradients import BackwardGradient, backward_gradients
from ddlopt.instances.workloads.networks.layers import EmbeddingTable, Layer
from ddlopt.instances.workloads.networks.published import (
    bert,
    candle,
    dlrm,
    gpt2,
    ncf,
    resnet50,
    resnet101,
    transformer,
    vgg16,
    vgg19,
)
from ddlopt.instances.workloads.topoopt import JOBS, SETTINGS, Setting, topoopt_job
from ddlopt.instances.workloads.training import PASSES, Workload, training_job

__all__ = [
    "A100",
    "JOBS",
    "PASSES",
    "SETTINGS",
    "V100",
    "Accelerator",
    "BackwardGradient",
    "EmbeddingTable",
    "Layer",
    "Setting",
    "Workload",
    "backward_gradients",
    "bert",
    "candle",
    "dlrm",
    "gpt2",
    "ncf",
    "resnet50",
    "resnet101",
    "topoopt_job",
    "training_job",
    "transformer",
    "vgg16",
    "vgg19",
]
