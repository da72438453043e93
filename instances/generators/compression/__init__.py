"""Compression instances of any size: what each kind takes and where its figures come from stands with its function."""

from typing import Any

from ddlopt.instances.generators import by_kind
from ddlopt.models.compression import CompressionProblem

_KINDS = {
    "sfb-network": "compression.sfb.network",
    "sfb-random": "compression.sfb_random.random_graph",
    "network": "compression.timeline.network",
    "random": "compression.random.random_timeline",
    "levels-network": "compression.levels.network",
    "levels-random": "compression.levels.random_levels",
    "levels-measured": "compression.measured.levels",
    "measured": "compression.measured.timeline",
    "forward-network": "compression.forward.network",
    "forward-random": "compression.forward.random_forward",
}
"""Module in this folder and function of every kind: ``function(rng, **options) -> CompressionProblem``."""

KINDS = tuple(_KINDS)
"""What :func:`generate` can make."""


def generate(kind: str, seed: int = 0, **options: Any) -> CompressionProblem:
    """Make a compression instance; see :func:`ddlopt.instances.generators.generate`.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`. ``sfb-…``: sufficient factor broadcasting. ``network``, ``random``, ``measured``: which
        compressor for which gradient. ``levels-…``: how much to compress. ``forward-…``: in which order to send. Of
        them ``…network`` takes a neural network's shapes, ``…measured`` the gradients of one that is trained.
    seed : int
    **options
        What the kind takes (:func:`options_of`), and ``name``.
    """
    instance: CompressionProblem = by_kind.made(_KINDS, kind, seed, options)
    return instance


def options_of(kind: str) -> dict[str, Any]:
    """What a kind takes, with defaults."""
    return by_kind.options_of(_KINDS, kind)
