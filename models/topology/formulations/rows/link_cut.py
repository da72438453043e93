"""An inequality between links and congestion, which a formulation takes as a row."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Arc = tuple[int, int]
Kind = Literal["rounded", "split", "neighbourhood"]


@dataclass(frozen=True)
class LinkCut:
    r"""The inequality :math:`c z \ge b + \sum_{ij} w_{ij} n_{ij}`, with c either 1 or 0.

    Parameters
    ----------
    kind : {"rounded", "split", "neighbourhood"}
    bounds_congestion : bool
        Whether c is 1.
    least : float
        b, in bytes if c is 1.
    weights : tuple of ((i, j), float)
        The w that are not 0, in bytes for each link if c is 1. With duplex optics a link counts in both directions.
    """

    kind: Kind
    bounds_congestion: bool
    least: float
    weights: tuple[tuple[Arc, float], ...]

    def violation(self, congestion_bytes: float, counts: Mapping[Arc, float]) -> float:
        """By how much a congestion and numbers of links, by ordered pair, break the inequality; at most 0 if not."""
        right = self.least + sum(weight * counts.get(arc, 0) for arc, weight in self.weights)
        return right - (congestion_bytes if self.bounds_congestion else 0.0)
