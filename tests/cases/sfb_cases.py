"""Small cases of sufficient factor broadcasting: graphs drawn at random, one dense layer, and all optima."""

import numpy as np
from sfb_brute_force import selections

from ddlopt.models.compression import Operator, SfbInstance, Tensor, evaluate


def drawn(seed, operators=9, **fields):
    """Operators that read up to three of those before, half of them with a gradient, in numbers of one magnitude."""
    rng = np.random.default_rng(seed)
    parts = [
        Operator(
            name=f"operator {node}",
            time_s=rng.uniform(0, 2),
            replicas=int(rng.integers(2, 5)),
            bandwidth_bytes_per_s=rng.uniform(1, 3),
            gradient_bytes=rng.uniform(1, 9) * (rng.random() < 0.5),
            memory_bytes=rng.uniform(1, 4) * (rng.random() < 0.8),
            can_duplicate=bool(rng.random() < 0.9),
        )
        for node in range(operators)
    ]
    tensors = []
    for producer in range(operators - 1):
        later = np.arange(producer + 1, min(operators, producer + 5))
        consumers = rng.choice(later, int(rng.integers(1, min(4, len(later) + 1))), replace=False)
        tensors.append(Tensor(producer=producer, consumers=tuple(map(int, consumers)), size_bytes=rng.uniform(0, 3)))
    return SfbInstance(name=f"drawn {seed}", operators=tuple(parts), tensors=tuple(tensors), **fields)


def dense(cost_model="per_link", batch=32, workers=4, time_s=1e-3, m=25088, n=4096, **fields):
    """One dense layer: activations, output gradients, and the gradient of the m x n weights, at 10 Gb/s."""
    common = {"replicas": workers, "bandwidth_bytes_per_s": 1.25e9}
    operators = (
        Operator(name="activations", time_s=1.0, can_duplicate=False, **common),
        Operator(name="output gradients", time_s=1.0, can_duplicate=False, **common),
        Operator(name="weights", time_s=time_s, gradient_bytes=4.0 * m * n, **common),
    )
    sizes = (4.0 * batch * workers * each for each in (m, n))
    tensors = tuple(Tensor(producer=node, consumers=(2,), size_bytes=size) for node, size in enumerate(sizes))
    return SfbInstance(name="dense", operators=operators, tensors=tensors, cost_model=cost_model, **fields)


def changed(instance, **fields):
    """The instance with other fields, and nothing kept of what was calculated before."""
    return SfbInstance.model_validate(instance.model_dump() | fields)


def optima(instance):
    """The least cost within the budgets, and all selections that have it up to rounding, by brute force."""
    results = [(each, evaluate(instance, each)) for each in selections(instance)]
    costs = [(set(each.duplicated), result.objective) for each, result in results if result.feasible]
    least = min(cost for _, cost in costs)
    return least, [chosen for chosen, cost in costs if cost <= least * (1 + 1e-12)]
