"""Hot parameters on switches: methods, growth, memory, and how many batches must be sampled.

``sampling`` is also for a click log, with ``--log``.
"""

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.harness import Benchmark, Option, solved, timed
from ddlopt.analysis.hot_sampling import Bound, expected_share, samples_for_set, samples_for_share
from ddlopt.instances.generators import generate
from ddlopt.instances.library import load, names
from ddlopt.instances.readers.libffm import rows_of
from ddlopt.instances.workloads.sparse_batches import CRITEO_SAMPLE, zipf_frequencies
from ddlopt.models.aggregation import evaluate
from ddlopt.models.aggregation.hot.prices import best_prices
from ddlopt.solvers.aggregation.hot.methods import ENTRIES
from ddlopt.solvers.contracts import Limits

DELTA = 0.05
"""Probability with which a promise may be broken."""
BOUNDS: dict[str, Bound] = {"Chernoff promises": "chernoff", "Hoeffding": "hoeffding"}
Reals = npt.NDArray[np.float64]


def found_by(name, instance, time_s=60.0):
    return solved(name, instance, Limits(time_s=time_s, gap=1e-6))


def methods(asked):
    """How far from the optimum every method is, in per cent (seconds), on the bundled instances."""
    for name in names("aggregation"):
        if not name.startswith("aggregation/hot-") or asked.part not in name:
            continue
        instance = load(name)
        results = {method: found_by(method, instance) for method in ("milp", *(entry.name for entry in ENTRIES))}
        best = results["milp"]
        row = {"instance": instance.name, "optimum": f"{best.objective:.6g}", "gap %": f"{100 * best.gap:.2g}"}
        for method, result in results.items():
            missing = result is None or result.objective is None
            lost = None if missing else f"{100 * (1 - result.objective / best.objective):.3g} ({result.runtime_s:.2f})"
            row[method] = lost
        yield row


def growth(asked):
    """Seconds, by the number of parameters."""
    widths = (1, 2, 4, 8)
    found_by("hot-knapsack", load("aggregation/hot-tiny-p12-s1"))
    for size in asked.sizes:
        one, drawn = timed(generate, "aggregation", "hot-zipf", 1, parameters=size, widths=widths)
        _, bound = timed(lambda one=one: best_prices(one))
        result = found_by("hot-knapsack", one)
        _, check = timed(evaluate, one, result.solution)
        options = {"jobs": 4, "parameters": size // 4, "switches": 4, "racks": True, "widths": widths}
        several = found_by("milp", generate("aggregation", "hot-zipf", 2, **options), 120.0)
        yield {
            "parameters": f"{size:,}", "generate s": drawn.wall_s, "bound s": bound.wall_s,
            "hot-knapsack s": result.runtime_s, "left to the table": f"{result.details['core_parameters']:.0f}",
            "check s": check.wall_s, "4 jobs, 4 racks: milp s": several.runtime_s,
            "gap %": f"{100 * several.gap:.1g}",
        }  # fmt: skip


def memory(asked):
    """What the switch saves of all that servers receive, in per cent, by its registers."""
    for size in (1_000, 100_000):
        for workers in (2, 8, 32):
            row = {"parameters": f"{size:,}", "workers": workers}
            for part in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2):
                instance = generate("aggregation", "hot-zipf", 1, parameters=size, workers=workers, memory=part)
                share = found_by("hot-knapsack", instance).details["ingress_share"]
                row[f"{100 * part:g} %"] = f"{100 * share:.1f}"
            yield row


def promised(frequencies: Reals, size: int, samples: int, bound: Bound) -> float:
    """The largest share that a bound promises after ``samples`` batches."""
    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        enough = samples_for_share(frequencies, size, middle, DELTA, bound) <= samples
        low, high = (middle, high) if enough else (low, middle)
    return low


def captured(frequencies: Reals, size: int, seeds: int, draw: Callable[[np.random.Generator], Reals]) -> dict[str, str]:
    """Share of the heat that the set of each sample has: mean with its 95 % confidence interval, and the least."""
    best, shares = np.sort(frequencies)[::-1][:size].sum(), np.empty(seeds)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        # Of parameters seen equally often, some at random.
        order = np.lexsort((rng.random(len(frequencies)), -draw(rng)))[:size]
        shares[seed] = frequencies[order].sum() / best
    half = 1.96 * shares.std(ddof=1) / np.sqrt(seeds)
    return {"captured": f"{shares.mean():.4f} ± {half:.4f}", "least": f"{shares.min():.4f}"}


def sampling(asked):
    """What is captured of the heat after sampling some batches, and what the bounds promise."""
    for label, model in {"fitted": CRITEO_SAMPLE, "100,000 values": CRITEO_SAMPLE.of_size(100_000)}.items():
        frequencies = zipf_frequencies(10, model)
        for size in (32, 256):
            row = {"model": label, "K": size}
            for count in asked.batches:
                found = captured(frequencies, size, asked.seeds, lambda rng, p=frequencies, n=count: rng.binomial(n, p))
                shares = {name: promised(frequencies, size, count, bound) for name, bound in BOUNDS.items()}
                mean = f"{expected_share(frequencies, size, count):.3f}"
                told = {name: f"{share:.3f}" if share > 0.001 else None for name, share in shares.items()}
                yield {**row, "batches": f"{count:,}", **found, "mean is at least": mean, **told}
            whole = {name: f"{samples_for_set(frequencies, size, DELTA, bound):.3g} batches"
                     for name, bound in BOUNDS.items()}  # fmt: skip
            yield {**row, "batches": "the whole set", "captured": "", "least": "", "mean is at least": "", **whole}
    if asked.log is not None:
        yield from logged(asked)


def logged(asked):
    """Capture of parts of a click log, of the heat in all of it."""
    touched, read = [], rows_of(asked.log)
    while own := list(islice(read, asked.batch)):
        touched.append(sorted(set().union(*own)))
    number = {feature: place for place, feature in enumerate(sorted({each for own in touched for each in own}))}
    batches = [np.array([number[feature] for feature in own], dtype=np.int64) for own in touched]
    frequencies = np.bincount(np.concatenate(batches), minlength=len(number)) / len(batches)
    yield f"{asked.log.name}: {len(batches)} batches of {asked.batch} rows, {len(number)} parameters"
    for size in (32, 128):
        for part in (0.02, 0.04, 0.08, 0.16, 0.32, 0.64):
            count = round(part * len(batches))

            def draw(rng: np.random.Generator, count: int = count) -> Reals:
                chosen = rng.choice(len(batches), count, replace=False)
                seen = np.concatenate([batches[place] for place in chosen])
                return np.bincount(seen, minlength=len(number)).astype(np.float64)

            sampled = f"{100 * part:g} % ({count})"
            yield {"K": size, "sampled batches": sampled, **captured(frequencies, size, asked.seeds, draw)}


BENCH = Benchmark(
    methods, growth, memory, sampling,
    part=Option("", "of the names of bundled instances", quick="tiny"),
    sizes=Option([10_000, 100_000, 1_000_000], "parameters", quick=[10_000]),
    batches=Option([3, 10, 30, 100, 300, 1000, 3000, 10_000], "how many are sampled", quick=[10, 100]),
    seeds=Option(30, quick=3),
    log=Option(None, "a click log in the format of libffm", type=Path),
    batch=Option(1, "rows of a batch of the log"),
)  # fmt: skip
