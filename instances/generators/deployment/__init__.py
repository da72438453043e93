"""Deployment instances of any size: what each kind takes and where its figures come from stands with its function."""

from typing import Any

from ddlopt.instances.generators import by_kind
from ddlopt.models.deployment import DeploymentProblem

_KINDS = {
    "network": "deployment.network.network",
    "random": "deployment.random.random_plan",
    "layered": "deployment.partition.layered",
    "microbatches": "deployment.microbatches.pipeline",
    "pipeline": "deployment.pipeline.blocks",
    "step": "deployment.step.training",
    "strategies": "deployment.strategies.training",
    "strategies-tree": "deployment.strategies.tree",
}
"""Module in this folder and function of every kind: ``function(rng, **options) -> DeploymentProblem``."""

KINDS = tuple(_KINDS)
"""What :func:`generate` can make."""


def generate(kind: str, seed: int = 0, **options: Any) -> DeploymentProblem:
    """Make a deployment instance; see :func:`ddlopt.instances.generators.generate`.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`. ``network``, ``random``: where operators of a training step run; ``network`` takes a
        neural network's shapes. ``layered``: layers over accelerators and processors. ``microbatches``: passes
        of micro-batches in a pipeline. ``pipeline``: blocks of a large model.
        ``step``: a transformer's training step.
        ``strategies…``: strategies of operators, for a training graph or a tree.
    seed : int
    **options
        What the kind takes (:func:`options_of`), and ``name``.
    """
    instance: DeploymentProblem = by_kind.made(_KINDS, kind, seed, options)
    return instance


def options_of(kind: str) -> dict[str, Any]:
    """What a kind takes, with defaults."""
    return by_kind.options_of(_KINDS, kind)
