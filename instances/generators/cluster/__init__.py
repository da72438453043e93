"""Clusters of any size: what each kind takes and where its figures come from stands with its function."""

from typing import Any

from ddlopt.instances.generators import by_kind
from ddlopt.models.cluster import ClusterProblem

_KINDS = {
    "placement": "cluster.placement.placement",
    "jobs": "cluster.jobs.jobs",
    "joint": "cluster.joint.joint",
}
"""Module in this folder and function of every kind: ``function(rng, **options) -> ClusterProblem``."""

KINDS = tuple(_KINDS)
"""What :func:`generate` can make."""


def generate(kind: str, seed: int = 0, **options: Any) -> ClusterProblem:
    """Make an instance; see :func:`ddlopt.instances.generators.generate`.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`. ``placement``: gangs that need hosts in racks and blocks. ``jobs``: jobs that
        share servers over time. ``joint``: jobs whose plans are decided, too.
    seed : int
    **options
        What the kind takes (:func:`options_of`), and ``name``.
    """
    instance: ClusterProblem = by_kind.made(_KINDS, kind, seed, options)
    return instance


def options_of(kind: str) -> dict[str, Any]:
    """What a kind takes, with defaults."""
    return by_kind.options_of(_KINDS, kind)
