"""Hosts that are still free, by leaf and domain, and places as numbers of hosts by leaf."""

from collections.abc import Iterable

from ddlopt.models.cluster.placement.instance import Gang, GangPlaces, PlacementInstance
from ddlopt.models.errors import NoSolutionError

Counts = dict[int, int]
"""Hosts of a gang by leaf."""


class Free:
    """Hosts that are still free.

    Parameters
    ----------
    instance : PlacementInstance
    """

    def __init__(self, instance: PlacementInstance) -> None:
        self.instance = instance
        self.left = [leaf.hosts for leaf in instance.leaves]

    def take(self, counts: Counts, sign: int = 1) -> None:
        """Give hosts to a gang, or get them back with a sign of -1."""
        for leaf, count in counts.items():
            self.left[leaf] -= sign * count

    def hosts(self, leaves: Iterable[int]) -> int:
        """Free hosts of some leaves."""
        return sum(self.left[leaf] for leaf in leaves)

    def rooms(self, gang: Gang) -> list[tuple[int, ...]]:
        """Leaves of each domain in which all of a gang has to be; all leaves where it may be anywhere."""
        level = self.instance.level(gang)
        if level < 0:
            return [tuple(range(len(self.left)))]
        return [domain.leaves for domain in self.instance.domains[level]]


def cost(instance: PlacementInstance, gang: Gang, counts: Counts) -> int:
    """What a gang that is placed adds to pairs or crossings, ranks in the best order."""
    found = 0
    for own, price in zip(instance.domain_of, instance.level_prices, strict=True):
        if price:
            domains = len({own[leaf] for leaf in counts})
            found += price * (0 if instance.objective == "crossings" and domains == 1 else domains)
    return gang.weight * found


def answer_of(instance: PlacementInstance, counts: Iterable[Counts | None]) -> GangPlaces:
    """The answer, ranks by block, then rack.

    Raises
    ------
    NoSolutionError
        If a gang that has to be placed is not.
    """
    places = []
    for gang, own in zip(instance.gangs, counts, strict=True):
        if not own and instance.sense == "minimize":
            raise NoSolutionError(f"no place was found for gang '{gang.name}' of {gang.hosts} hosts")
        places.append(in_order(instance, own or {}))
    return GangPlaces(instance=instance.name, places=tuple(places))


def in_order(instance: PlacementInstance, counts: Counts) -> tuple[tuple[int, int], ...]:
    """Runs of ranks by block, then rack."""
    return tuple((leaf, counts[leaf]) for leaf in sorted(counts, key=instance.path))
