"""Gavel's makespan policy, by bisection as its repository has it, against one exact linear program.

Both get the same jobs: throughputs on three types drawn at random, n/4 accelerators of each type, widths 1, 2, 4, 8.
The bisection is re-implemented from its definition: T in [100, 1e6] seconds, halved until 1.05 times the lower end
passes the upper one, each test a feasibility problem in CVXPY. Ratios compare within one run.
"""

import cvxpy as cp
import numpy as np

from benchmarks.harness import Benchmark, Option, paired, ratio
from ddlopt.solvers.scheduling.online.time_shares import makespan_shares


def jobs(count, seed):
    """Throughputs (steps/s), widths, accelerators of each type, steps."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.5, 20.0, count)
    speedup = np.column_stack([np.ones(count), rng.uniform(1.5, 4.0, count), rng.uniform(3.0, 9.0, count)])
    widths = rng.choice([1.0, 2.0, 4.0, 8.0], count, p=[0.7, 0.1, 0.15, 0.05])
    hours = 10 ** rng.uniform(0.0, 2.0, count)
    throughputs = base[:, None] * speedup
    return throughputs, widths, np.full(3, count / 4), throughputs[:, 2] * hours * 3600


def bisection(throughputs, widths, accelerators, steps, solver):
    """The makespan that the bisection ends with, and how many problems it solves."""
    low, high, known, best, tests = 100.0, 1e6, 1e6, None, 0
    while best is None:
        while 1.05 * low < high:
            middle = (low + high) / 2
            shares = cp.Variable(throughputs.shape)
            problem = cp.Problem(
                cp.Maximize(1),
                [
                    shares >= 0,
                    cp.sum(cp.multiply(widths[:, None], shares), axis=0) <= accelerators,
                    cp.sum(shares, axis=1) <= 1,
                    cp.sum(cp.multiply(throughputs, shares), axis=1) >= steps / middle,
                ],
            )
            problem.solve(solver=solver)
            tests += 1
            if problem.status == "optimal":
                best = high = middle
            else:
                low = middle
        low, high, known = known, 10 * known, 10 * known
    return best, tests


def makespans(asked):
    """A row for each number of jobs."""
    for count in asked.jobs:
        data = jobs(count, asked.seed)
        runs = paired(asked.repeat, {
            "bisection": lambda data=data: bisection(*data, asked.solver),
            "one LP": lambda data=data: makespan_shares(*data).level,
        })  # fmt: skip
        (found, tests), exact = runs["bisection"][0][0], runs["one LP"][0][0]
        slow, fast = ([spent.processor_s for _, spent in own] for own in runs.values())
        yield {
            "jobs": count, "bisection": f"{found:.0f} s", "tests": tests, "one LP": f"{exact:.0f} s",
            "bisection / LP: makespan": f"{found / exact:.4f}", "time": f"{ratio(slow, fast):.1f}",
        }  # fmt: skip


BENCH = Benchmark(
    makespans,
    jobs=Option([64, 256, 1024, 2048], "how many", quick=[16]),
    seed=Option(2),
    solver=Option("CLARABEL", "CVXPY's solver of the bisection"),
    repeat=Option(1),
)
