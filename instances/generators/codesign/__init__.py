"""Co-design instances of any size: what each kind takes and where its figures come from stands with its function."""

from typing import Any

from ddlopt.instances.generators import by_kind
from ddlopt.models.codesign import CodesignInstance

_KINDS = {
    "job": "codesign.jobs.job",
    "random": "codesign.random.random_job",
}
"""Module in this folder and function of every kind: ``function(rng, **options) -> CodesignInstance``."""

KINDS = tuple(_KINDS)
"""What :func:`generate` can make."""


def generate(kind: str, seed: int = 0, **options: Any) -> CodesignInstance:
    """Make a co-design instance; see :func:`ddlopt.instances.generators.generate`.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`. ``job``: a training job of TopoOpt's evaluation. ``random``: a small job without one.
    seed : int
    **options
        What the kind takes (:func:`options_of`), and ``name``.
    """
    instance: CodesignInstance = by_kind.made(_KINDS, kind, seed, options, untold=("measures",))
    return instance


def options_of(kind: str) -> dict[str, Any]:
    """What a kind takes, with defaults."""
    return by_kind.options_of(_KINDS, kind)
