"""The answer to a topology-design problem: links, rings and routes."""

from typing import ClassVar, Literal, Self

from pydantic import Field

from ddlopt.models.contracts import Part
from ddlopt.models.topology.family import TopologyAnswer
from ddlopt.models.topology.instance import Fabric

Path = tuple[int, ...]
"""Servers that a message visits, source first and destination last."""


class Ring(Part):
    """One ring of an all-reduce group: ``members`` in ring order, ``paths[h]`` from the h-th member to the next.

    Parameters
    ----------
    group : int
        Place in the instance's ``allreduce_groups``.
    members : tuple of int
        Servers of the group, in the order of the ring.
    share : float
        Part of the group's gradient that the ring carries; the shares of a group must sum to one within 1e-6.
    paths : tuple of tuple of int
        Servers from each member to the next, both included.
    """

    group: int = Field(ge=0)
    members: tuple[int, ...]
    share: float = Field(gt=0)
    paths: tuple[Path, ...]


class Route(Part):
    """The paths of one pair's model-parallel traffic.

    Parameters
    ----------
    source, target : int
        Servers.
    paths : tuple of tuple of int
        Servers from the source to the target, both included.
    fractions : tuple of float
        Parts of the traffic on the paths; they must sum to one within 1e-6.
    """

    source: int
    target: int
    paths: tuple[Path, ...]
    fractions: tuple[float, ...]


class TopologyDesign(TopologyAnswer):
    """Links, rings and routes for a :class:`~ddlopt.models.topology.instance.TopologyInstance`.

    Parameters
    ----------
    links : tuple of (int, int, int)
        (i, j, count): the number of links from server i to server j. With duplex optics i < j, and each link carries
        both directions.
    planes : tuple of tuple of (int, int)
        Duplex: the pairs that each plane joins; together the planes hold exactly ``links``, and each is a matching.
        May be empty for one-way optics, where degrees alone decide (König's theorem).
    rings : tuple of Ring
        Of all-reduce groups, one or more for each.
    routes : tuple of Route
        Of all pairs with model-parallel traffic.
    """

    kind: ClassVar[str] = "topology design"

    family: Literal["topology"] = "topology"
    links: tuple[tuple[int, int, int], ...]
    planes: tuple[tuple[tuple[int, int], ...], ...] = ()
    rings: tuple[Ring, ...] = ()
    routes: tuple[Route, ...] = ()

    def link_counts(self, instance: Fabric) -> dict[tuple[int, int], int]:
        """Number of links by ordered pair; a duplex link counts in both directions."""
        counts: dict[tuple[int, int], int] = {}
        for i, j, count in self.links:
            counts[i, j] = counts.get((i, j), 0) + count
            if instance.optics == "duplex":
                counts[j, i] = counts.get((j, i), 0) + count
        return counts

    def both_ways(self) -> Self:
        """The design with each link in both directions: one with duplex optics as one with one-way optics.

        A server has as many links as before, out of it and into it.
        """
        turned = tuple((j, i, count) for i, j, count in self.links)
        return self.model_copy(update={"links": (*self.links, *turned), "planes": (), "instance_digest": None})
