"""Tiny strategy instances at random, with everything that they may have, and their optima by enumeration."""

from itertools import product

import numpy as np

from ddlopt.models.deployment.strategies.evaluate import evaluate_strategies
from ddlopt.models.deployment.strategies.instance import StrategyAssignment, StrategyInstance


def random_case(seed: int, nodes: int = 6, memory: bool = True, extras: bool = True) -> StrategyInstance:
    """Parallel edges, forbidden strategies and pairs, memory, pins and aliases, whole costs or not."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, nodes)
    alike = extras and rng.random() < 0.4
    if alike:
        counts[1] = counts[0]
    whole = rng.random() < 0.7

    def number(high: int) -> float:
        return float(rng.integers(0, high)) if whole else float(rng.uniform(0, high))

    def costs(count: int, forbidden: float) -> list[float | None]:
        return [None if rng.random() < forbidden else number(30) for _ in range(count)]

    edges = [sorted(rng.choice(nodes, 2, replace=False).tolist(), reverse=bool(rng.random() < 0.5)) for _ in range(9)]
    usages = [rng.integers(0, 10, count).tolist() for count in counts]
    begins = rng.integers(0, 6, nodes)
    return StrategyInstance.from_data(
        {
            "name": f"case-{seed}",
            "costs": [costs(count, 0.05) for count in counts],
            "usages": usages,
            "intervals": [[int(begin), int(begin + rng.integers(0, 6))] for begin in begins],
            "edges": edges,
            "tables": [costs(int(counts[i] * counts[j]), 0.15) for i, j in edges],
            "table_of": list(range(len(edges))),
            "usage_limit": float(rng.integers(8, 30)) if memory else None,
            "pins": [[2, int(rng.integers(counts[2]))]] if extras and rng.random() < 0.3 else [],
            "aliases": [[0, 1]] if alike else [],
        }
    )


def enumerated(instance: StrategyInstance) -> float | None:
    """The optimum; None where there is no answer."""
    best = None
    for strategies in product(*(range(count) for count in instance.costs.sizes.tolist())):
        found = evaluate_strategies(instance, StrategyAssignment(instance=instance.name, strategies=strategies))
        if found.feasible and (best is None or found.objective < best):
            best = float(found.objective)
    return best
