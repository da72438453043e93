"""Lookup tables for sums in switches: errors against memory, what is certified, and how the work grows.

Integers of 16 bits with 12 fraction bits of logarithms, 8 bytes an entry, unless stated. Errors are relative errors of
sums of two positive numbers, the largest ones unless stated.
"""

import math

from benchmarks.harness import Benchmark, Option, solved
from ddlopt.analysis.lookup_sums import largest_error, sum_chain
from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import TableInstance
from ddlopt.models.aggregation.table.bounds import table_bound
from ddlopt.models.aggregation.table.formulations.table_path import TablePath
from ddlopt.solvers.aggregation.table.exact import OptimalTables
from ddlopt.solvers.aggregation.table.heuristics import (
    EvenTables,
    LogarithmicTables,
    SplitTables,
    UniformTables,
    VariationTables,
)
from ddlopt.solvers.contracts import Limits, Result
from ddlopt.solvers.exact import Exact, lp_relaxation

KB = 1024
HEURISTICS = (EvenTables(), VariationTables(), SplitTables(), LogarithmicTables(), UniformTables())
ENTRIES = ("ranges", "prefixes")
SHAPES = {"integers": (16, 12), "mantissas": (10, 13)}
"""Bits, and fraction bits of logarithms, with which the least memory is sought."""
PUBLISHED_ERROR = 6e-4
"""Of the published accuracy, 99.94 % on average."""
PUBLISHED = (
    ("integers", 16, 448, 8, 12, 1),
    ("integers", 16, 448, 8, 13, 1),
    ("integers", 16, 448, 4, 14, 1),
    ("mantissas", 7, 8, 8, 10, 14),
    ("mantissas", 10, 8, 8, 12, 17),
    ("mantissas", 10, 64, 8, 13, 17),
    ("mantissas", 10, 448, 8, 15, 17),
)
"""Shape, bits, kB, bytes an entry, fraction bits, gaps between exponents that are tried."""


def made(**options: object) -> TableInstance:
    return generate("table", 0, **options)


def optimum(instance: TableInstance) -> Result:
    return OptimalTables().solve(instance, Limits(time_s=120))


def memory(asked):
    """Errors against memory: the optimum, its bound without a table, and heuristics over the optimum."""
    for entries in ENTRIES:
        for size in asked.kilobytes:
            instance = made(bits=16, entries=entries, budget_bytes=size * KB)
            best = optimum(instance)
            row = {"kB": size, "entries": entries, "optimum": f"{best.objective:.4e}", "s": f"{best.runtime_s:.2f}"}
            row["bound"] = f"{table_bound(instance):.4e}"
            for method in HEURISTICS:
                found = solved(method, instance, Limits(time_s=120))
                row[method.name[6:]] = None if found is None else f"{found.objective / best.objective:.2f}"
            yield row


def bits(asked):
    """How many fraction bits logarithms should have: the optimum at 112 kB and at 448 kB."""
    for fraction_bits in asked.fraction_bits:
        row = {"fraction bits": fraction_bits}
        for size in (112, 448):
            for entries in ENTRIES:
                instance = made(bits=16, fraction_bits=fraction_bits, entries=entries, budget_bytes=size * KB)
                row[f"{size} kB, {entries}"] = f"{optimum(instance).objective:.4e}"
        yield row


def published(asked):
    """What is certified, and what pairs of numbers show: largest, mean error, and accuracies in per cent."""
    for shape, width, size, entry, fraction_bits, gaps in [row for row in PUBLISHED if row[0] in asked.shapes]:
        for entries in ENTRIES:
            options = {"shape": shape, "bits": width, "fraction_bits": fraction_bits, "entry_bytes": entry}
            instance = made(**options, entries=entries, budget_bytes=size * KB)
            chain = sum_chain(instance, optimum(instance).solution)
            worst, mean = largest_error(chain, gaps, every=64 if width == 16 else 1)
            yield {
                "numbers": f"{shape} {width}", "entries": entries, "kB": size, "bytes an entry": entry,
                "fraction bits": fraction_bits, "certified": f"{chain.bound:.4e}", "largest": f"{worst:.4e}",
                "mean": f"{mean:.4e}", "certified %": f"{100 * (1 - chain.bound):.4f}",
                "mean %": f"{100 * (1 - mean):.4f}",
            }  # fmt: skip


def enough(asked):
    """The least memory, of 8 bytes an entry, with which every sum of positive numbers is right to 99.94 %."""
    for shape in asked.shapes:
        width, fraction_bits = SHAPES[shape]
        for entries in ENTRIES:
            low, high = 1, 448
            while high - low > 1:
                middle = (low + high) // 2
                options = {"shape": shape, "bits": width, "fraction_bits": fraction_bits, "entries": entries}
                instance = made(**options, budget_bytes=middle * KB)
                certified = sum_chain(instance, optimum(instance).solution).bound
                low, high = (low, middle) if certified <= PUBLISHED_ERROR else (middle, high)
            yield {"numbers": f"{shape} {width}", "entries": entries, "kB": high}


def growth(asked):
    """Seconds against operands, with memory for an entry in four, gap 0: for the sum and for the largest error."""
    for width in asked.sizes:
        for stepped in (True, False):
            row, steps = {"bits": width, "thresholds": "rounded" if stepped else "any", "operands": 0}, []
            for entries in ENTRIES:
                for goal in ("sum", "max"):
                    instance = made(bits=width, entries=entries, goal=goal, stepped=stepped)
                    result = OptimalTables().solve(instance, Limits(time_s=120, gap=0))
                    proven = "" if result.status == "optimal" else ">"
                    row[f"{entries}, {goal} s"] = f"{proven}{result.runtime_s:.2f}"
                    steps.append(f"{result.details.get('steps', result.details['rounds']):.0f}")
            yield row | {"operands": instance.size, "steps": " ".join(steps)}


def program(asked):
    """The integer program over paths beside the staircases."""
    cases = ((3, "ranges"), (4, "ranges"), (5, "prefixes"), (7, "prefixes"), (9, "prefixes"))
    for width, entries in cases[: asked.programs]:
        for goal in ("sum", "max"):
            fraction_bits = max(1, width - 2)
            instance = made(bits=width, fraction_bits=fraction_bits, entries=entries, goal=goal, stepped=False)
            best = OptimalTables().solve(instance, Limits(gap=0))
            other = Exact("program", "aggregation", TablePath()).solve(instance, Limits(time_s=60))
            relaxation = lp_relaxation(TablePath(), instance).objective
            assert other.objective is None or math.isclose(other.objective, best.objective, rel_tol=1e-3) or other.gap
            yield {
                "operands": instance.size, "entries": entries, "goal": goal, "optimum": f"{best.objective:.6e}",
                "staircases s": f"{best.runtime_s:.3f}", "program s": f"{other.runtime_s:.2f}",
                "its bound": f"{other.bound or 0:.6e}", "relaxation / optimum": f"{relaxation / best.objective:.3f}",
            }  # fmt: skip


BENCH = Benchmark(
    memory, bits, published, enough, growth, program,
    kilobytes=Option([28, 56, 112, 224, 448, 896], "sizes of the first table", quick=[28, 112]),
    fraction_bits=Option(list(range(8, 16)), "of the second table", quick=[8]),
    shapes=Option(list(SHAPES), "numbers of the third and fourth table", quick=["mantissas"], choices=SHAPES),
    sizes=Option(list(range(8, 19, 2)), "bits of the fifth table", quick=[8]),
    programs=Option(5, "how many sizes of the last table", quick=2),
)  # fmt: skip
