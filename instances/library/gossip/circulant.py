"""Bundled instances of the problem ``circulant``."""

from collections.abc import Iterator

from ddlopt.instances.generators.gossip import generate
from ddlopt.models.gossip import GossipProblem

_SIZES = {
    "gap": ((9, 4), (16, 4), (16, 5), (32, 4), (64, 3), (64, 4), (64, 8), (64, 12), (256, 6), (512, 6)),
    "averaging": ((9, 4), (16, 4), (32, 4), (64, 4), (64, 6), (128, 4)),
}


def instances() -> Iterator[GossipProblem]:
    """All bundled instances of the problem ``circulant``."""
    for goal, sizes in _SIZES.items():
        for nodes, degree in sizes:
            name = f"circulant-n{nodes}-d{degree}-{goal}"
            yield generate("circulant", nodes=nodes, degree=degree, goal=goal, name=name)
