"""Training jobs from the shapes of their layers: every byte and every operation can be followed."""

from ddlopt.instances.workloads.layers import EmbeddingTable, Layer
from ddlopt.instances.workloads.networks import bert, candle, dlrm, ncf, resnet50, vgg16
from ddlopt.instances.workloads.topoopt import JOBS, SETTINGS, Setting, topoopt_job
from ddlopt.instances.workloads.training import A100, Accelerator, Workload, training_job

__all__ = [
    "A100",
    "JOBS",
    "SETTINGS",
    "Accelerator",
    "EmbeddingTable",
    "Layer",
    "Setting",
    "Workload",
    "bert",
    "candle",
    "dlrm",
    "ncf",
    "resnet50",
    "topoopt_job",
    "training_job",
    "vgg16",
]
