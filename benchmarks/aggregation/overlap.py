"""Jobs that send buckets while the backward pass goes on: what it changes in optima, gaps and the order of rules."""

from benchmarks.aggregation.late import changed
from benchmarks.harness import Benchmark, Option

LEVELS: dict[str, dict[str, float]] = {
    "after the pass": {},
    "100 MB": {"bucket_mb": 100.0},
    "25 MB": {"bucket_mb": 25.0},
    "5 MB": {"bucket_mb": 5.0},
    "25 MB, packets late and lost": {"bucket_mb": 25.0, "slow_chance": 0.01, "slow_us": 100.0, "loss": 1e-3},
}


def changes(asked):
    """The same jobs with buckets of other sizes: optima, and ratios of plans to them, means over seeds."""
    yield from changed(asked, "buckets", LEVELS)


BENCH = Benchmark(
    changes,
    pages=False,
    time_limit=Option(20.0, quick=2.0),
    gap=Option(1e-3),
    seeds=Option(10, quick=1),
)  # fmt: skip
