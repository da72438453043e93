"""Partition of a graph of operators over accelerators and processors, for throughput or for latency."""

from typing import Literal

from ddlopt.models.deployment.problem import DeploymentAnswer, DeploymentProblem


class PartitionInstance(DeploymentProblem):
    """Not written yet."""

    problem: Literal["partition"] = "partition"


class Partition(DeploymentAnswer):
    """Not written yet."""

    problem: Literal["partition"] = "partition"
