"""Hot parameters on switches: methods, growth, memory, and how many batches must be sampled.

    python benchmarks/aggregation_hot.py                      # all tables
    python benchmarks/aggregation_hot.py sampling --log FILE  # also for a click log in the format of libffm

Tables: ``methods`` (bundled instances: how far each method is from the optimum), ``growth`` (seconds for 10^4, 10^5 and
10^6 parameters), ``memory`` (what the switch saves, by its registers), ``sampling`` (what is captured after sampling
some batches, and what the bounds promise).
"""

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ddlopt.instances.generators import generate
from ddlopt.instances.library import load, names
from ddlopt.instances.readers.libffm import rows_of
from ddlopt.instances.workloads.sparse_batches import CRITEO_SAMPLE, zipf_frequencies
from ddlopt.models.aggregation import HotInstance, evaluate
from ddlopt.models.aggregation.sampling import Bound, expected_share, samples_for_set, samples_for_share
from ddlopt.solvers.aggregation.hot_knapsack import HotKnapsack
from ddlopt.solvers.aggregation.hot_methods import ENTRIES
from ddlopt.solvers.contracts import Limits, Result

DELTA = 0.05
"""Probability with which a promise may be broken."""
SEEDS = 30
METHODS = {entry.name: entry.make("highs") for entry in ENTRIES}

Reals = npt.NDArray[np.float64]


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> None:
    """Print rows as they come."""
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)
    print()


def solved(name: str, instance: HotInstance, time_s: float = 60) -> Result | None:
    """What a method finds; None where it refuses."""
    method = METHODS[name]
    return None if method.refuses(instance) else method.solve(instance, Limits(time_s=time_s, gap=1e-6))


def methods() -> None:
    """How far from the optimum every method is, in per cent, on the bundled instances."""
    found = [name for name in names("aggregation") if name.startswith("aggregation/hot-")]

    def rows() -> Iterator[tuple[str, ...]]:
        for name in found:
            instance = load(name)
            best = solved("hot-parameters", instance)
            cells = []
            for method in METHODS:
                result = best if method == "hot-parameters" else solved(method, instance)
                if result is None or result.objective is None:
                    cells.append("–")
                else:
                    cells.append(f"{100 * (1 - result.objective / best.objective):.3g} ({result.runtime_s:.2f})")
            yield name.removeprefix("aggregation/"), f"{best.objective:.6g}", f"{100 * best.gap:.2g}", *cells

    table(("instance", "optimum", "gap %", *METHODS), rows())


def growth() -> None:
    """Seconds, by the number of parameters."""

    widths = (1, 2, 4, 8)

    def rows() -> Iterator[tuple[str, ...]]:
        HotKnapsack().solve(load("aggregation/hot-tiny-p12-s1"), Limits())  # compiles
        for size in (10_000, 100_000, 1_000_000):
            one, made_s = timed(lambda n=size: generate("aggregation", "hot-zipf", 1, parameters=n, widths=widths))
            _, bound_s = timed(lambda one=one: one.priced)
            result = solved("hot-knapsack", one)
            _, check_s = timed(lambda one=one, result=result: evaluate(one, result.solution))
            options = {"jobs": 4, "parameters": size // 4, "switches": 4, "racks": True, "widths": widths}
            racks = generate("aggregation", "hot-zipf", 2, **options)
            several = solved("hot-parameters", racks, 120)
            yield (
                f"{size:,}", f"{made_s:.2f}", f"{bound_s:.2f}", f"{result.runtime_s:.2f}",
                f"{result.details['core_parameters']:.0f}", f"{check_s:.3f}",
                f"{several.runtime_s:.2f}", f"{100 * several.gap:.1g}",
            )  # fmt: skip

    head = ("parameters", "generate s", "bound s", "hot-knapsack s", "left to the table", "check s")
    table((*head, "4 jobs, 4 racks: hot-parameters s", "gap %"), rows())


def timed(call: Callable[[], object]) -> tuple[object, float]:
    """What a call gives, and its seconds."""
    began = time.perf_counter()
    return call(), time.perf_counter() - began


def memory() -> None:
    """What the switch saves of all that servers receive, in per cent, by its registers."""
    parts = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)

    def rows() -> Iterator[tuple[str, ...]]:
        for size in (1_000, 100_000):
            for workers in (2, 8, 32):
                cells = []
                for part in parts:
                    instance = generate("aggregation", "hot-zipf", 1, parameters=size, workers=workers, memory=part)
                    cells.append(f"{100 * solved('hot-knapsack', instance).details['ingress_share']:.1f}")
                yield f"{size:,}", str(workers), *cells

    table(("parameters", "workers", *(f"{100 * part:g} %" for part in parts)), rows())


def promised(frequencies: Reals, size: int, samples: int, bound: Bound) -> float:
    """The largest share that a bound promises after so many batches."""
    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        enough = samples_for_share(frequencies, size, middle, DELTA, bound) <= samples
        low, high = (middle, high) if enough else (low, middle)
    return low


def captured(frequencies: Reals, size: int, draw: Callable[[np.random.Generator], Reals]) -> Reals:
    """Share of the heat that the set of each sample has."""
    best = np.sort(frequencies)[::-1][:size].sum()
    shares = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        # Of parameters seen equally often, some at random.
        order = np.lexsort((rng.random(len(frequencies)), -draw(rng)))[:size]
        shares.append(frequencies[order].sum() / best)
    return np.array(shares)


def interval(values: Reals) -> str:
    """Mean, with its confidence interval of 95 %."""
    half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.4f} ± {half:.4f}"


def sampling(log: Path | None, batch: int) -> None:
    """Capture by the number of sampled batches."""
    counts = (3, 10, 30, 100, 300, 1000, 3000, 10_000)

    def rows() -> Iterator[tuple[str, ...]]:
        for label, model in (("fitted", CRITEO_SAMPLE), ("100,000 values", CRITEO_SAMPLE.of_size(100_000))):
            frequencies = zipf_frequencies(10, model)
            for size in (32, 256):
                for count in counts:
                    shares = captured(frequencies, size, lambda rng, p=frequencies, n=count: rng.binomial(n, p))
                    promises = [promised(frequencies, size, count, bound) for bound in ("chernoff", "hoeffding")]
                    cells = [f"{share:.3f}" if share > 0.001 else "–" for share in promises]
                    mean = expected_share(frequencies, size, count)
                    yield label, str(size), f"{count:,}", interval(shares), f"{shares.min():.4f}", f"{mean:.3f}", *cells
                whole = [samples_for_set(frequencies, size, DELTA, bound) for bound in ("chernoff", "hoeffding")]
                yield label, str(size), "the whole set", "", "", "", *(f"{each:.3g} batches" for each in whole)

    table(("model", "K", "batches", "captured", "least", "mean is at least", "Chernoff promises", "Hoeffding"), rows())
    if log is not None:
        logged(log, batch)


def logged(log: Path, batch: int) -> None:
    """Capture of parts of a click log, of the heat in all of it."""
    touched = []
    read = rows_of(log)
    while own := list(islice(read, batch)):
        touched.append(sorted(set().union(*own)))
    number = {feature: place for place, feature in enumerate(sorted({each for own in touched for each in own}))}
    batches = [np.array([number[feature] for feature in own], dtype=np.int64) for own in touched]
    frequencies = np.bincount(np.concatenate(batches), minlength=len(number)) / len(batches)

    def rows() -> Iterator[tuple[str, ...]]:
        for size in (32, 128):
            for part in (0.02, 0.04, 0.08, 0.16, 0.32, 0.64):
                count = round(part * len(batches))

                def draw(rng: np.random.Generator, count: int = count) -> Reals:
                    chosen = rng.choice(len(batches), count, replace=False)
                    seen = np.concatenate([batches[place] for place in chosen])
                    return np.bincount(seen, minlength=len(number)).astype(np.float64)

                shares = captured(frequencies, size, draw)
                yield str(size), f"{100 * part:g} % ({count})", interval(shares), f"{shares.min():.4f}"

    print(f"{log.name}: {len(batches)} batches of {batch} rows, {len(number)} parameters\n")
    table(("K", "sampled batches", "captured", "least"), rows())


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="methods, growth, memory, sampling (default: all)")
    parser.add_argument("--log", type=Path, help="a click log in the format of libffm")
    parser.add_argument("--batch", type=int, default=1, help="rows of a batch of the log")
    options = parser.parse_args()
    wanted = options.tables or ["methods", "growth", "memory", "sampling"]
    for name in wanted:
        if name == "sampling":
            sampling(options.log, options.batch)
        else:
            {"methods": methods, "growth": growth, "memory": memory}[name]()


if __name__ == "__main__":
    main()
