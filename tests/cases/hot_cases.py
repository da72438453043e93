"""Small hot sets at random, and the best of one by enumeration."""

import itertools
from fractions import Fraction

import numpy as np

from ddlopt.models.aggregation import HotInstance, HotSet, evaluate


def drawn(seed: int, jobs: int = 2, switches: int = 1, most: int = 6, widest: int = 4) -> HotInstance:
    """Jobs with up to ``most`` parameters, some measured; switches that some or all workers pass."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(jobs):
        count, workers = int(rng.integers(1, most + 1)), int(rng.integers(1, 7))
        job = {
            "name": f"job{number}",
            "workers": workers,
            "frequencies": np.round(rng.random(count) ** 2, 3).tolist(),
            "registers": rng.integers(1, widest + 1, count).tolist() if rng.random() < 0.7 else 2,
            "iterations_per_s": round(float(rng.uniform(0.5, 2)), 2),
        }
        if rng.random() < 0.2:
            job["saved_messages"] = np.round(rng.random(count) * (workers - 1), 3).tolist()
        made.append(job)
    placed = []
    for number in range(switches):
        passing = [
            int(rng.choice([0, job["workers"]]) if "saved_messages" in job else rng.integers(0, job["workers"] + 1))
            for job in made
        ]
        registers = int(rng.integers(0, 1 + most * jobs))
        placed.append({"name": f"s{number}", "registers": registers, "workers": passing if rng.random() < 0.6 else []})
    return HotInstance.from_data({"name": f"drawn{seed}", "jobs": made, "switches": placed})


def best_by_enumeration(instance: HotInstance) -> Fraction:
    """The most that any hot set saves, from the problem statement, in rational numbers."""
    parameters = [(j, i) for j, job in enumerate(instance.jobs) for i in range(len(job.frequencies))]
    values = {(s, j, i): _value(instance, s, j, i) for s in range(len(instance.switches)) for j, i in parameters}
    best = Fraction(0)
    for places in itertools.product(range(-1, len(instance.switches)), repeat=len(parameters)):
        left = [switch.registers for switch in instance.switches]
        for s, (j, i) in zip(places, parameters, strict=True):
            if s >= 0:
                left[s] -= int(instance.jobs[j].widths[i])
        if min(left) >= 0:
            total = sum(values[s, j, i] for s, (j, i) in zip(places, parameters, strict=True) if s >= 0)
            best = max(best, Fraction(total))
    return best


def _value(instance: HotInstance, s: int, j: int, i: int) -> Fraction:
    """By the expectation itself: a worker's messages, over how many of them send one."""
    job, passing = instance.jobs[j], instance.passing[s][j]
    if job.saved_messages is not None:
        saved = Fraction(float(job.saved_messages[i])) if passing else Fraction(0)
    else:
        p = Fraction(float(job.frequencies[i]))
        saved = Fraction(0)
        chance = [Fraction(1)]
        for _ in range(passing):
            chance = [
                (chance[k] if k < len(chance) else 0) * (1 - p) + (chance[k - 1] if k else 0) * p
                for k in range(len(chance) + 1)
            ]
        for senders, probability in enumerate(chance):
            saved += probability * max(0, senders - 1)
    return Fraction(job.iterations_per_s) * int(job.widths[i]) * saved


def all_of(instance: HotInstance, **placed: object) -> HotSet:
    """A hot set from plain lists."""
    return HotSet.from_data({"family": "aggregation", "instance": instance.name, "problem": "hot", **placed})


def exact_value(instance: HotInstance, solution: HotSet) -> float:
    """Objective in rational numbers, of a feasible set."""
    check = evaluate(instance, solution, exact=True)
    assert check.feasible, check.violations
    assert isinstance(check.objective, Fraction)
    return float(check.objective)
