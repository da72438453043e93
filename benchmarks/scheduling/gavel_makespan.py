"""Gavel's makespan policy, by bisection as its repository has it, against one exact linear program.

Both get the same jobs: throughputs on three types drawn at random, n/4 accelerators of each type, widths 1, 2, 4, 8.
The bisection is re-implemented from its definition: T in [100, 1e6] seconds, halved until 1.05 times the lower end
passes the upper one, each test a feasibility problem in CVXPY. Ratios compare within one run.

    python benchmarks/gavel_makespan.py [--jobs 64 256 1024 2048] [--seed 2]
"""

import argparse
import time

import cvxpy as cp
import numpy as np

from ddlopt.solvers.scheduling.time_shares import makespan_shares


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, nargs="+", default=[64, 256, 1024, 2048])
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--solver", default="CLARABEL", help="CVXPY solver of the bisection")
    options = parser.parse_args()
    print("| jobs | bisection | tests | one LP | bisection / LP: makespan | time |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for count in options.jobs:
        data = jobs(count, options.seed)
        started = time.perf_counter()
        exact = makespan_shares(*data).level
        middle = time.perf_counter()
        found, tests = bisection(*data, options.solver)
        ended = time.perf_counter()
        print(
            f"| {count} | {found:.0f} s | {tests} | {exact:.0f} s | {found / exact:.4f} | "
            f"{(ended - middle) / (middle - started):.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
