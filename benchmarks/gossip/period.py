"""Times to the target: the best period, the geometric program, AdaComm's formula, communication in each step.

Each cell: seconds to the target (period).
"""

import ddlopt
from benchmarks.harness import Benchmark, Option, solved
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.gossip.period.convex import GeometricProgram

METHODS = {
    "best-period": "best-period",
    "geometric-program": GeometricProgram(),
    "adacomm": "adacomm",
    "synchronous": "synchronous",
}


def times(asked):
    """All bundled instances."""
    for name in [each for each in ddlopt.names("gossip") if each.startswith("gossip/period-")][: asked.most]:
        results = {label: solved(method, name, Limits()) for label, method in METHODS.items()}
        first = next(result for result in results.values() if result is not None)
        yield {
            "instance": name.removeprefix("gossip/"),
            "ρ": first.details["mixing"],
            "C": first.details["communication_s"],
            **{each: found and f"{found.objective:.2f} ({found.solution.period:.4g})"
               for each, found in results.items()},
            "proven within": f"{first.gap:.0e}",
        }  # fmt: skip


BENCH = Benchmark(times, most=Option(1000, "how many instances", quick=3))
