"""The combinatorial bound of a placement in registers in rational numbers."""

from fractions import Fraction
from itertools import combinations

from ddlopt.models.aggregation.registers.bounds import disjoint_cliques
from ddlopt.models.aggregation.registers.instance import RegisterInstance


def exact_registers_bound(instance: RegisterInstance) -> Fraction:
    """Floors of all batches, and what parameters add of which any two are in one batch.

    Where such parameters are is looked up with :func:`~ddlopt.models.aggregation.registers.bounds.disjoint_cliques`,
    and that they are what they are said to be is checked here.
    """
    weights = exact_weights(instance)
    room = sorted(capacity for capacity in instance.capacities if capacity)
    floors = {batch: _floor(len(batch), room, instance) for batch in weights}
    found = sum((weight * floors[batch] for batch, weight in weights.items()), Fraction(0))
    if instance.goal != "packets":
        return found
    used: set[tuple[int, ...]] = set()
    for clique, batches in disjoint_cliques(instance):
        fresh = set(batches)
        pairs = {pair for batch in fresh for pair in combinations(sorted(set(batch) & set(clique)), 2)}
        proven = (
            len(set(clique)) > len(room)
            and not fresh & used
            and all(floors.get(batch) == 1 for batch in fresh)
            and set(combinations(sorted(clique), 2)) <= pairs
        )
        if proven:
            found += min(weights[batch] for batch in fresh)
            used |= fresh
    return found


def exact_weights(instance: RegisterInstance) -> dict[tuple[int, ...], Fraction]:
    """The weight of each distinct batch, its parameters in ascending order."""
    weights: dict[tuple[int, ...], Fraction] = {}
    for batch, weight in zip(instance.batches, instance.batch_weights, strict=True):
        key = tuple(sorted(batch))
        weights[key] = weights.get(key, Fraction(0)) + Fraction(weight)
    return weights


def _floor(count: int, room: list[int], instance: RegisterInstance) -> int:
    """Packets, or pairs in one array, of a batch by itself: spread as evenly as capacities allow."""
    held, left = [], count
    for place, capacity in enumerate(room):
        held.append(min(capacity, left // (len(room) - place)))
        left -= held[-1]
    if instance.goal == "collisions":
        return sum(each * (each - 1) // 2 for each in held)
    return max(-(-count // instance.entries), *held)
