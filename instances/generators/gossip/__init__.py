"""Gossip instances of any size: what each kind takes and where its figures come from stands with its function."""

from typing import Any

from ddlopt.instances.generators import by_kind
from ddlopt.models.gossip import GossipProblem

_KINDS = {
    "matchings": "gossip.matchings.matchings",
    "weights": "gossip.weights.weights",
    "period": "gossip.period.period",
    "circulant": "gossip.circulant.circulant",
    "exchange-digits": "gossip.exchange.digits",
    "exchange-drift": "gossip.exchange.drift",
}
"""Module in this folder and function of every kind: ``function(rng, **options) -> GossipProblem``."""

KINDS = tuple(_KINDS)
"""What :func:`generate` can make."""


def generate(kind: str, seed: int = 0, **options: Any) -> GossipProblem:
    """Make a gossip instance; see :func:`ddlopt.instances.generators.generate`.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`. ``matchings``: which matchings are active how often.
        ``weights``: the best weights of a graph's edges. ``period``: how often to communicate.
        ``circulant``: which circulant network.
        ``exchange-digits``: when to send, along recorded training (needs scikit-learn). ``exchange-drift``: along a
        walk that is drawn.
    seed : int
    **options
        What the kind takes (:func:`options_of`), and ``name``.
    """
    instance: GossipProblem = by_kind.made(_KINDS, kind, seed, options)
    return instance


def options_of(kind: str) -> dict[str, Any]:
    """What a kind takes, with defaults."""
    return by_kind.options_of(_KINDS, kind)
