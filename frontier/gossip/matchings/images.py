"""Nodes of a tree that automorphisms of the graph take into each other: one of them is enough."""

from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.gossip.network import Network
from ddlopt.models.gossip.spectral.laplacians import Ints
from ddlopt.models.gossip.weights.automorphisms import automorphisms

_MOST = 1_000
"""Automorphisms that are gone through for each node; of larger groups none."""


class Form(NamedTuple):
    """What all images of the levels of edges share, and the automorphism that leads there."""

    levels: bytes
    by: int


class Images:
    """Levels of edges as automorphisms move them.

    Parameters
    ----------
    network : Network
    """

    def __init__(self, network: Network) -> None:
        group = automorphisms(network).group
        listed = [each.array_form for each in islice(group.generate(method="dimino"), _MOST + 1)]
        every = [list(range(network.nodes))]
        self.permutations: Ints = np.array(listed if 1 < len(listed) <= _MOST else every)
        place = {ends: edge for edge, ends in enumerate(network.edges)} | {
            (j, i): edge for edge, (i, j) in enumerate(network.edges)
        }
        moved = self.permutations[:, network.ends]
        self.edges: Ints = np.array([[place[int(i), int(j)] for i, j in each] for each in moved])

    def form(self, level: Ints, decided: npt.NDArray[np.bool_]) -> Form:
        """The least image of levels, (m,) each, as text is ordered."""
        moved = np.empty(self.edges.shape, dtype=np.uint8)
        np.put_along_axis(moved, self.edges, np.broadcast_to((2 * level + decided).astype(np.uint8), moved.shape), 1)
        return Form(*min((each.tobytes(), by) for by, each in enumerate(moved)))

    def between(self, one: Form, other: Form) -> list[int]:
        """(n,) image of each node: an automorphism that takes levels of a form into others that have the same."""
        back = np.argsort(self.permutations[other.by])
        found: list[int] = back[self.permutations[one.by]].tolist()
        return found
