"""Small models that move, and the least staleness of all ways to send."""

from itertools import combinations

import numpy as np

from ddlopt.models.gossip import ExchangeInstance, ExchangeTimes, evaluate


def instance(points, **more):
    return ExchangeInstance(name="x", points=np.array(points, dtype=float), **(more or {"sends": 1}))


def answer(*times):
    return ExchangeTimes(instance="x", times=times)


def walk(seed, steps, width=2, drift=0.5):
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.standard_normal((steps, width)) + drift, axis=0)


def least(given):
    steps = given.size
    budgets = range((steps - 1 if given.sends is None else given.sends) + 1)
    answers = (answer(*times) for m in budgets for times in combinations(range(1, steps), m))
    return min(float(evaluate(given, each).objective) for each in answers)
