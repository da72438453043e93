"""Small placements in register arrays, and the best of all by looking at each."""

from itertools import product

import numpy as np

from ddlopt.models.aggregation import Placement, RegisterInstance, evaluate
from ddlopt.models.aggregation.registers.instance import Goal


def small(seed: int, goal: Goal = "packets", parameters: int = 6) -> RegisterInstance:
    """Random batches with repetitions, twins, odd weights on odd seeds, uneven arrays on every third."""
    rng = np.random.default_rng(seed)
    arrays = int(rng.integers(2, 4))
    batches = [sorted(rng.permutation(parameters)[: rng.integers(1, parameters + 1)].tolist()) for _ in range(6)]
    batches.append(batches[0])
    capacity: int | tuple[int, ...] = parameters // arrays + 1
    if seed % 3 == 0:
        capacity = (parameters - 1, *(2 for _ in range(arrays - 1)))
    return RegisterInstance(
        name=f"small-{seed}",
        parameters=parameters,
        arrays=arrays,
        capacity=capacity,
        entries=int(rng.integers(1, arrays + 1)),
        batches=tuple(map(tuple, batches)),
        weights=tuple(rng.uniform(0.5, 2.0, 7).round(3).tolist()) if seed % 2 else (),
        held_out=((0, 1), (2, 3)),
        goal=goal,
    )


def full(parameters: int, arrays: int, batches: int) -> RegisterInstance:
    """Batches of as many random parameters as there are arrays, which one packet carries if no two collide."""
    rng = np.random.default_rng(0)
    drawn = tuple(tuple(sorted(rng.permutation(parameters)[:arrays].tolist())) for _ in range(batches))
    return RegisterInstance(
        name="full", parameters=parameters, arrays=arrays, capacity=parameters, entries=arrays, batches=drawn
    )


def optimum(instance: RegisterInstance) -> float:
    """The least objective of all placements that the check lets pass."""
    found = []
    for arrays in product(range(instance.arrays), repeat=instance.parameters):
        if all(arrays.count(r) <= capacity for r, capacity in enumerate(instance.capacities)):
            evaluation = evaluate(instance, Placement(instance=instance.name, arrays=arrays))
            assert evaluation.feasible
            assert evaluation.objective is not None
            found.append(float(evaluation.objective))
    return min(found)
