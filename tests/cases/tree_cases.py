"""Small random trees, and their optimum by enumeration."""

import itertools
import math

import numpy as np

from ddlopt.models.aggregation import AggregatingSwitches, TreeInstance, TreeJob, evaluate


def random_tree(seed, nodes=6, jobs=1, goal=None, shape=None, shared=True):
    """A tree with any goal, rates, loads, memory and budgets; shapes: path, star, caterpillar, complete or any."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, nodes + 1))
    parents = {
        "path": lambda v: v - 1,
        "star": lambda v: 0,
        "caterpillar": lambda v: v - 1 if v <= n // 2 else v - n // 2 - 1,
        "complete": lambda v: (v - 1) // 2,
        None: lambda v: int(rng.integers(max(0, v - 1 - int(rng.integers(0, n))), v)),
    }[shape]
    place = rng.permutation(n)
    above = [None] * n
    for v in range(1, n):
        above[place[v]] = int(place[parents(v)])
    described = []
    for job in range(jobs):
        loads = rng.integers(0, 6, n)
        loads[rng.integers(n)] += 1
        own = None if rng.random() < 0.6 else int(rng.integers(0, n + 1))
        size, memory = (1.0, 1) if jobs == 1 else (float(rng.choice([0.5, 1, 2.5])), int(rng.integers(1, 3)))
        described.append(TreeJob(name=f"j{job}", loads=loads.tolist(), message_size=size, memory=memory, budget=own))
    return TreeInstance(
        name="random",
        parents=above,
        seconds_per_message=rng.uniform(0.1, 3, n).tolist(),
        jobs=described,
        memory=rng.integers(0, 4, n).tolist() if shared else None,
        budget=None if rng.random() < 0.3 else int(rng.integers(0, jobs * n + 1)),
        goal=goal or str(rng.choice(["utilization", "congestion"])),
    )


def answer(instance, *switches):
    return AggregatingSwitches(instance=instance.name, switches=switches)


def optimum(instance):
    """Least objective of all sets of pairs of job and switch."""
    every = [each for r in range(instance.size + 1) for each in itertools.combinations(range(instance.size), r)]
    found = [
        evaluate(instance, answer(instance, *each)) for each in itertools.product(every, repeat=len(instance.jobs))
    ]
    return min((float(each.objective) for each in found if each.feasible), default=math.inf)


def optima(instance):
    """Of one job without budgets: the same with at most 0, 1, … switches."""
    least, found = math.inf, []
    for count in range(instance.size + 1):
        sets = itertools.combinations(range(instance.size), count)
        every = [evaluate(instance, answer(instance, each)) for each in sets]
        least = min([least, *(float(each.objective) for each in every if each.feasible)])
        found.append(least)
    return found
