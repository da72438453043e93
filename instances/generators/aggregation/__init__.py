"""Aggregation instances of any size: what each kind takes and where its figures come from stands with its function."""

from typing import Any

from ddlopt.instances.generators import by_kind
from ddlopt.models.aggregation import AggregationProblem

_KINDS = {
    "hot-zipf": "aggregation.hot.zipf",
    "registers-zipf": "aggregation.registers.zipf",
    "tree-random": "aggregation.tree.random_tree",
    "tree-complete": "aggregation.tree.complete",
    "fat-tree": "aggregation.graph.fat_tree",
    "leaf-spine": "aggregation.graph.leaf_spine",
    "torus": "aggregation.graph.torus",
    "graph-random": "aggregation.graph.random_graph",
    "slots": "aggregation.slots.shared",
    "table": "aggregation.table.table",
}
"""Module in this folder and function of every kind: ``function(rng, **options) -> AggregationProblem``."""

KINDS = tuple(_KINDS)
"""What :func:`generate` can make."""


def generate(kind: str, seed: int = 0, **options: Any) -> AggregationProblem:
    """Make an aggregation instance; see :func:`ddlopt.instances.generators.generate`.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`. ``hot-…``: which parameters live on switches. ``registers-…``: in which register arrays.
        ``tree-…``: which switches of a tree aggregate. ``fat-tree``, ``leaf-spine``, ``torus``, ``graph-random``: the
        same with routes free. ``slots``: memory shared among jobs. ``table``: tables for floating-point numbers.
    seed : int
    **options
        What the kind takes (:func:`options_of`), and ``name``.
    """
    instance: AggregationProblem = by_kind.made(_KINDS, kind, seed, options)
    return instance


def options_of(kind: str) -> dict[str, Any]:
    """What a kind takes, with defaults."""
    return by_kind.options_of(_KINDS, kind)
