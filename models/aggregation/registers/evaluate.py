"""The independent check of a placement in register arrays, from the problem statement."""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from ddlopt.models.aggregation.registers.instance import Batches, Placement, RegisterInstance
from ddlopt.models.contracts import Evaluation, Number, Violation


def evaluate_registers(instance: RegisterInstance, solution: Placement, exact: bool = False) -> Evaluation:
    """Packets or collisions, and what the placement violates.

    Details are ``packets`` and ``collisions``, weighted, whatever the goal; ``floor_packets``, what the batches take
    where nothing collides; ``held_out_packets``, ``held_out_floor_packets`` and ``held_out_collisions``, of the
    batches that count for no objective; and ``fullest_array``, the most parameters in an array.
    """
    broken = _malformed(instance, solution)
    if broken:
        return Evaluation(None, tuple(broken))
    held = Counter(solution.arrays)
    violations = [
        Violation("array has room for its parameters", f"array {array}", held[array], capacity)
        for array, capacity in enumerate(instance.capacities)
        if held[array] > capacity
    ]
    weights = [Fraction(weight) if exact else weight for weight in instance.batch_weights]
    ones = [1] * len(instance.held_out)
    details: dict[str, Number] = {
        "packets": _sum(weights, _packets(instance, instance.batches, solution), exact),
        "collisions": _sum(weights, _collisions(instance.batches, solution), exact),
        "floor_packets": _sum(weights, _floors(instance, instance.batches), exact),
        "held_out_packets": _sum(ones, _packets(instance, instance.held_out, solution), exact),
        "held_out_collisions": _sum(ones, _collisions(instance.held_out, solution), exact),
        "held_out_floor_packets": _sum(ones, _floors(instance, instance.held_out), exact),
        "fullest_array": max(held.values()),
    }
    return Evaluation(details[instance.goal], tuple(violations), details)


def _malformed(instance: RegisterInstance, solution: Placement) -> list[Violation]:
    if len(solution.arrays) != instance.parameters:
        return [Violation("every parameter has an array", "arrays", len(solution.arrays), instance.parameters)]
    return [
        Violation("array exists", f"arrays[{place}]", array, instance.arrays - 1)
        for place, array in enumerate(solution.arrays)
        if not 0 <= array < instance.arrays
    ]


def _sum(weights: Iterable[Number], counts: Iterable[int], exact: bool) -> Number:
    products = [weight * count for weight, count in zip(weights, counts, strict=True)]
    return sum(products, Fraction(0)) if exact else math.fsum(products)


def _floors(instance: RegisterInstance, batches: Batches) -> list[int]:
    return [-(-len(batch) // instance.entries) for batch in batches]


def _packets(instance: RegisterInstance, batches: Batches, solution: Placement) -> list[int]:
    """Of each batch: at least its floor, and one for each of its parameters in one array."""
    fullest = [max(Counter(solution.arrays[i] for i in batch).values(), default=0) for batch in batches]
    return [max(pair) for pair in zip(_floors(instance, batches), fullest, strict=True)]


def _collisions(batches: Batches, solution: Placement) -> list[int]:
    """Of each batch: pairs of its parameters in one array."""
    counts = [Counter(solution.arrays[i] for i in batch).values() for batch in batches]
    return [sum(count * (count - 1) // 2 for count in each) for each in counts]
