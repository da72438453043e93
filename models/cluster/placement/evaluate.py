"""The independent check of places, from the statement of the problem."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from ddlopt.models.cluster.placement.instance import ANYWHERE, GangPlaces, PlacementInstance
from ddlopt.models.contracts import Evaluation, Number, Violation


def evaluate_placement(instance: PlacementInstance, solution: GangPlaces, exact: bool = False) -> Evaluation:
    """Pairs, crossings or gangs that are placed, and what the places violate.

    Everything is counted in whole numbers; ``exact`` only makes fractions of them.

    Details are ``pairs`` and ``crossings`` (of the innermost level, each gang once), ``placed`` (gangs), ``free_hosts``
    and ``free_leaves`` (that nobody uses), and ``largest_free`` (hosts of a leaf that are left).
    """
    number = Fraction if exact else float
    wrong = list(_form(instance, solution))
    if wrong:
        return Evaluation(None, tuple(wrong))
    wrong = [*_sizes(instance, solution), *_room(instance, solution), *_levels(instance, solution)]
    placed = [place for place, runs in enumerate(solution.places) if runs]
    if instance.sense == "minimize":
        for place, gang in enumerate(instance.gangs):
            if not solution.places[place]:
                wrong.append(Violation("every gang is placed", f"gang '{gang.name}'", 0, gang.hosts))
    last = len(instance.levels) - 1
    free = [leaf.hosts - used for leaf, used in zip(instance.leaves, _used(instance, solution), strict=True)]
    details: dict[str, Number] = {
        "pairs": sum(_pairs(instance, solution, place, last) for place in placed),
        "crossings": sum(_crossings(instance, solution, place, last) for place in placed),
        "placed": len(placed),
        "free_hosts": sum(free),
        "free_leaves": sum(left == leaf.hosts for left, leaf in zip(free, instance.leaves, strict=True)),
        "largest_free": max(free),
    }
    return Evaluation(number(_objective(instance, solution, placed)), tuple(wrong), details)


def _objective(instance: PlacementInstance, solution: GangPlaces, placed: list[int]) -> int:
    if instance.objective == "fits":
        return int(len(placed) == len(instance.gangs))
    if instance.objective == "max_gangs":
        return sum(instance.gangs[place].weight for place in placed)
    count = _pairs if instance.objective == "pairs" else _crossings
    return sum(
        instance.gangs[place].weight * price * count(instance, solution, place, level)
        for place in placed
        for level, price in enumerate(instance.level_prices)
        if price
    )


def _name(instance: PlacementInstance, leaf: int, level: int) -> str:
    own = instance.leaves[leaf]
    return (*own.inside, own.name)[level]


def _pairs(instance: PlacementInstance, solution: GangPlaces, place: int, level: int) -> int:
    """Domains of a level in which a gang is."""
    return len({_name(instance, leaf, level) for leaf, _ in solution.places[place]})


def _crossings(instance: PlacementInstance, solution: GangPlaces, place: int, level: int) -> int:
    """Neighbours in a gang's ring that are in different domains of a level."""
    ring = [_name(instance, leaf, level) for leaf, _ in solution.places[place]]
    return sum(own != after for own, after in zip(ring, ring[1:] + ring[:1], strict=True))


def _form(instance: PlacementInstance, solution: GangPlaces) -> Iterator[Violation]:
    if len(solution.places) != len(instance.gangs):
        yield Violation("every gang has an entry", "places", len(solution.places), len(instance.gangs))
        return
    for place, runs in enumerate(solution.places):
        for number, (leaf, count) in enumerate(runs):
            where = f"places[{place}][{number}]"
            if leaf >= len(instance.leaves):
                yield Violation("leaves are known", where, leaf, len(instance.leaves) - 1)
            if count < 1:
                yield Violation("runs have ranks", where, count, 1)


def _sizes(instance: PlacementInstance, solution: GangPlaces) -> Iterator[Violation]:
    for gang, runs in zip(instance.gangs, solution.places, strict=True):
        got = sum(count for _, count in runs)
        if runs and got != gang.hosts:
            yield Violation("a gang has all its hosts", f"gang '{gang.name}'", got, gang.hosts)


def _used(instance: PlacementInstance, solution: GangPlaces) -> list[int]:
    used = Counter[int]()
    for runs in solution.places:
        for leaf, count in runs:
            used[leaf] += count
    return [used[leaf] for leaf in range(len(instance.leaves))]


def _room(instance: PlacementInstance, solution: GangPlaces) -> Iterator[Violation]:
    for leaf, used in zip(instance.leaves, _used(instance, solution), strict=True):
        if used > leaf.hosts:
            yield Violation("hosts are free", f"leaf '{leaf.name}'", used, leaf.hosts)


def _levels(instance: PlacementInstance, solution: GangPlaces) -> Iterator[Violation]:
    for place, gang in enumerate(instance.gangs):
        if gang.within != ANYWHERE:
            among = _pairs(instance, solution, place, instance.levels.index(gang.within))
            if among > 1:
                yield Violation("a gang is within its level", f"gang '{gang.name}', {gang.within}", among, 1)
