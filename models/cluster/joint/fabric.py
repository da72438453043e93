"""A network that jobs share: servers in groups within groups, each with an uplink."""

import math
from functools import cached_property
from typing import NamedTuple, Self

from pydantic import Field, model_validator

from ddlopt.models.contracts import Part

_MOST_GROUPS = 10_000
"""What is more is a slip of the pen."""


class Group(Part):
    """A rack with hosts, or a block with racks or blocks inside.

    Parameters
    ----------
    name : str
    uplink_bytes_per_s : float
        What all links out of the group carry together, in each direction.
    inside : int, optional
        Place of the group around it, which comes before it; None: nothing is around it but the core.
    hosts : int
        Of a rack.
    """

    name: str = Field(min_length=1)
    uplink_bytes_per_s: float = Field(gt=0)
    inside: int | None = Field(default=None, ge=0)
    hosts: int = Field(default=0, ge=0)


class Load(NamedTuple):
    """What jobs send over all uplinks of a cut together.

    Parameters
    ----------
    groups : tuple of int
        Of the cut.
    rate : float
        Bytes per second of all their uplinks.
    least : dict of int to int
        Groups that a job on this number of servers is in at least; those that fit into one group cross nothing, and are
        0.
    """

    groups: tuple[int, ...]
    rate: float
    least: dict[int, int]


class Fabric(Part):
    """A fat-tree or leaf-spine, in which traffic between two hosts takes the uplinks of the groups that part them.

    Traffic is taken to be spread evenly over the links out of a group, so that these count as one; the core has room
    for all that uplinks bring.

    Parameters
    ----------
    groups : tuple of Group
        From the outside in.
    """

    groups: tuple[Group, ...] = Field(min_length=1, max_length=_MOST_GROUPS)

    @model_validator(mode="after")
    def _check(self) -> Self:
        seen: dict[str, int] = {}
        around = {group.inside for group in self.groups}
        for place, group in enumerate(self.groups):
            where = f"groups[{place}] ('{group.name}')"
            if seen.setdefault(group.name, place) != place:
                raise ValueError(f"{where} is named like groups[{seen[group.name]}]; names must differ")
            if group.inside is not None and group.inside >= place:
                raise ValueError(
                    f"{where} does not nest: inside is {group.inside}, and a group comes after that around it"
                )
            if place in around and group.hosts:
                raise ValueError(f"{where} has {group.hosts} hosts and groups inside; hosts are in racks")
            if place not in around and not group.hosts:
                raise ValueError(f"{where} has neither hosts nor groups inside")
        return self

    @cached_property
    def racks(self) -> tuple[int, ...]:
        """Places of the groups with hosts."""
        return tuple(place for place, group in enumerate(self.groups) if group.hosts)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Hosts of each group, with those of the groups inside."""
        return self.totals({place: self.groups[place].hosts for place in self.racks})

    @property
    def hosts(self) -> int:
        """Of all racks."""
        return sum(group.hosts for group in self.groups)

    def totals(self, places: dict[int, int]) -> tuple[int, ...]:
        """Of hosts by rack, how many are in each group."""
        found = [places.get(place, 0) for place in range(len(self.groups))]
        for place in range(len(self.groups) - 1, -1, -1):
            above = self.groups[place].inside
            if above is not None:
                found[above] += found[place]
        return tuple(found)

    @cached_property
    def cuts(self) -> tuple[tuple[int, ...], ...]:
        """Groups that have each host in one of them: those of a depth, with racks that are less deep."""
        depth: list[int] = []
        for group in self.groups:
            depth.append(0 if group.inside is None else depth[group.inside] + 1)
        racks = set(self.racks)
        return tuple(
            tuple(place for place, own in enumerate(depth) if own == level or (own < level and place in racks))
            for level in range(max(depth) + 1)
        )

    def least_groups(self, cut: tuple[int, ...], servers: int) -> int:
        """Of a cut, in how many groups a job is that has servers in several; 0 where one suffices."""
        left, taken = servers, 0
        for size in sorted((self.sizes[place] for place in cut), reverse=True):
            if left <= 0:
                break
            left, taken = left - size, taken + 1
        return 0 if taken < 2 else taken

    def widest(self, servers: int) -> float:
        """The most bytes per second that a job alone can have over all uplinks that it crosses; infinite for none.

        In each cut in which no group holds the job it is in groups that hold it together, and crosses all of these.
        """
        found = math.inf
        for cut in self.cuts:
            if max(self.sizes[place] for place in cut) >= servers:
                continue
            left = servers
            for place in sorted(cut, key=lambda place: -self.groups[place].uplink_bytes_per_s):
                left -= self.sizes[place]
                if left <= 0:
                    found = min(found, self.groups[place].uplink_bytes_per_s)
                    break
        return found

    def loads(self, widths: tuple[int, ...]) -> tuple[Load, ...]:
        """Of each cut, for jobs on this number of servers."""
        found = []
        for cut in self.cuts:
            least = {width: self.least_groups(cut, width) for width in widths}
            if any(least.values()):
                found.append(Load(cut, math.fsum(self.groups[place].uplink_bytes_per_s for place in cut), least))
        return tuple(found)
