"""How many processor seconds this machine takes for work that the machine of the budget did in one.

The budget of the default tests is in processor seconds of one machine, and others take up to three times as long for
the same tests. So the same small pieces of work (objects of Python, and a function that Numba compiles) are done here,
and their seconds compared. With ``--spent`` it says what so many seconds of this machine would have been on that one.
"""

import time
from fractions import Fraction
from statistics import geometric_mean

import numpy as np
from numba import njit

from benchmarks.harness import Benchmark, Option

TAKEN = {"Python": 0.27, "Numba": 0.2}
"""Processor seconds of the machine of the budget: of another one, divided by the 2.65 of the default tests."""


def objects():
    """Sums of fractions, kept by name."""
    kept = {}
    for i in range(1, 200_000):
        name = f"server {i % 997}"
        kept[name] = kept.get(name, Fraction(0)) + Fraction(i % 7, 1 + i % 5)
    return sorted(kept.items(), key=lambda item: (item[1], item[0]))


def compilation():
    """A function of arrays, compiled anew each time, and never run."""

    def longest(heads, weights, out):
        for node in range(len(weights)):
            reached = heads[:, node]
            out[node] = weights[node] + np.max(np.where(reached >= 0, weights, 0.0))
        order = np.argsort(out)
        return out[order], order

    njit("(i8[:, ::1], f8[::1], f8[::1])")(longest)


WORK = {"Python": objects, "Numba": compilation}


def slowness(repeat):
    """By kind of work, seconds here for one of the machine of the budget."""
    found = {}
    for name, work in WORK.items():
        runs = []
        for _ in range(repeat):
            began = time.process_time()
            work()
            runs.append(time.process_time() - began)
        found[name] = min(runs) / TAKEN[name]
    return found


def there(spent, repeat=5):
    """What so many processor seconds of this machine are on the machine of the budget."""
    return spent / geometric_mean(slowness(repeat).values())


def speed(asked):
    """Seconds here for one there: by kind of work, and on the whole."""
    found = slowness(asked.repeat)
    mean = geometric_mean(found.values())
    row = {name: f"{value:.2f}" for name, value in found.items()} | {"on the whole": f"{mean:.2f}"}
    yield row | ({"seconds here": f"{asked.spent:.0f}", "there": f"{asked.spent / mean:.0f}"} if asked.spent else {})


BENCH = Benchmark(speed, repeat=Option(5, quick=1), spent=Option(0.0, help="processor seconds of this machine"))
