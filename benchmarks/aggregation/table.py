"""Lookup tables for sums in switches: errors against memory, what is certified, and how the work grows.

    python benchmarks/aggregation_table.py [memory] [bits] [published] [enough] [growth] [program]

Without a name: all tables. Integers of 16 bits with 12 fraction bits of logarithms, 8 bytes an entry, unless stated.
Errors are relative errors of sums of two positive numbers, the largest ones unless stated.
"""

import argparse
import math

from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import LookupTables, TableInstance
from ddlopt.models.aggregation.bounds_table import table_bound
from ddlopt.models.aggregation.table_chain import largest_error, sum_chain
from ddlopt.models.aggregation.table_path import TablePath
from ddlopt.solvers.aggregation.table_exact import OptimalTables
from ddlopt.solvers.aggregation.table_heuristics import (
    EvenTables,
    LogarithmicTables,
    SplitTables,
    UniformTables,
    VariationTables,
)
from ddlopt.solvers.contracts import Limits, Method, Result
from ddlopt.solvers.exact import Exact, lp_relaxation

KB = 1024
HEURISTICS: tuple[Method, ...] = (
    EvenTables(),
    VariationTables(),
    SplitTables(),
    LogarithmicTables(),
    UniformTables(),
)
LIMITS = Limits(time_s=120)
_PUBLISHED = 6e-4
"""Of the published accuracy, 99.94 % on average."""


def made(**options: object) -> TableInstance:
    """An instance of kind ``table``."""
    instance = generate("table", 0, **options)
    assert isinstance(instance, TableInstance)
    return instance


def solved(instance: TableInstance, method: Method | None = None) -> Result:
    """The optimum, or what a method finds."""
    return (method or OptimalTables()).solve(instance, LIMITS)


def certified(instance: TableInstance, result: Result) -> float:
    """The bound on the relative error of every sum."""
    assert isinstance(result.solution, LookupTables)
    return sum_chain(instance, result.solution).bound


def memory() -> None:
    """Errors against memory, optimal and by heuristics."""
    print("\nmemory: kB, entries | optimum, s, its bound without a table | heuristics over the optimum")
    print(f"{'':34} {' '.join(f'{each.name[6:]:>11}' for each in HEURISTICS)}")
    for entries in ("ranges", "prefixes"):
        for size in (28, 56, 112, 224, 448, 896):
            instance = made(bits=16, entries=entries, budget_bytes=size * KB)
            best = solved(instance)
            assert best.objective is not None
            row = [f"{size:4} {entries:8} {best.objective:.4e} {best.runtime_s:5.2f} {table_bound(instance):.4e}"]
            for method in HEURISTICS:
                if method.refuses(instance) is not None:
                    row.append(f"{'–':>11}")
                    continue
                found = solved(instance, method)
                assert found.objective is not None
                row.append(f"{found.objective / best.objective:11.2f}")
            print(" ".join(row), flush=True)


def bits() -> None:
    """How many fraction bits logarithms should have."""
    print("\nbits: fraction bits of logarithms | optimum at 112 kB and at 448 kB, ranges and prefixes")
    for fraction_bits in range(8, 16):
        row = []
        for size in (112, 448):
            for entries in ("ranges", "prefixes"):
                instance = made(bits=16, fraction_bits=fraction_bits, entries=entries, budget_bytes=size * KB)
                row.append(f"{solved(instance).objective:.4e}")
        print(f"{fraction_bits:2} | {' '.join(row)}", flush=True)


def published() -> None:
    """What is certified, and what pairs of numbers show, at 448 kB and 16 bits."""
    print("\npublished: numbers, entries, kB, bytes an entry, fraction bits | certified | largest, mean | accuracies %")
    rows: list[tuple[str, int, int, int, int, int]] = [
        ("integers", 16, 448, 8, 12, 1),
        ("integers", 16, 448, 8, 13, 1),
        ("integers", 16, 448, 4, 14, 1),
        ("mantissas", 7, 8, 8, 10, 14),
        ("mantissas", 10, 8, 8, 12, 17),
        ("mantissas", 10, 64, 8, 13, 17),
        ("mantissas", 10, 448, 8, 15, 17),
    ]
    for shape, width, size, entry, fraction_bits, gaps in rows:
        for entries in ("ranges", "prefixes"):
            instance = made(
                shape=shape,
                bits=width,
                fraction_bits=fraction_bits,
                entries=entries,
                budget_bytes=size * KB,
                entry_bytes=entry,
            )
            result = solved(instance)
            assert isinstance(result.solution, LookupTables)
            chain = sum_chain(instance, result.solution)
            worst, mean = largest_error(chain, gaps, every=64 if width == 16 else 1)
            print(
                f"{shape:9} {width:2} {entries:8} {size:4} {entry} {fraction_bits:3} | {chain.bound:.4e} | "
                f"{worst:.4e} {mean:.4e} | {100 * (1 - chain.bound):.4f} {100 * (1 - mean):.4f}",
                flush=True,
            )


def enough() -> None:
    """The least memory with which every sum of positive numbers is right to 99.94 %."""
    print(f"\nenough: kB with which a relative error of {_PUBLISHED:g} is certified, of 8 bytes an entry")
    for shape, width, fraction_bits in (("integers", 16, 12), ("mantissas", 10, 13)):
        for entries in ("ranges", "prefixes"):
            low, high = 1, 448
            while high - low > 1:
                middle = (low + high) // 2
                options = {"shape": shape, "bits": width, "fraction_bits": fraction_bits, "entries": entries}
                instance = made(**options, budget_bytes=middle * KB)
                low, high = (low, middle) if certified(instance, solved(instance)) <= _PUBLISHED else (middle, high)
            print(f"{shape:9} {width:2} {entries:8} {high:4} kB", flush=True)


def growth() -> None:
    """Seconds against operands, with memory for an entry in four."""
    print(
        "\ngrowth: bits, operands | seconds for the sum and for the largest error, ranges and prefixes | steps, gap 0"
    )
    for width in range(8, 19, 2):
        for stepped in (True, False):
            row, steps = [], []
            for entries in ("ranges", "prefixes"):
                for goal in ("sum", "max"):
                    instance = made(bits=width, entries=entries, goal=goal, stepped=stepped)
                    result = OptimalTables().solve(instance, Limits(time_s=120, gap=0))
                    row.append(f"{result.runtime_s:6.2f}{' ' if result.status == 'optimal' else '>'}")
                    steps.append(f"{result.details.get('steps', result.details['rounds']):.0f}")
            name = "rounded" if stepped else "any"
            print(f"{width:2} {name:7} {instance.size:7} | {' '.join(row)} | {' '.join(steps)}", flush=True)


def program() -> None:
    """The integer program over paths beside the staircases."""
    print("\nprogram: operands, entries, goal | optimum | staircases s | program s, its bound, relaxation / optimum")
    for width, entries in ((3, "ranges"), (4, "ranges"), (5, "prefixes"), (7, "prefixes"), (9, "prefixes")):
        for goal in ("sum", "max"):
            fraction_bits = max(1, width - 2)
            instance = made(bits=width, fraction_bits=fraction_bits, entries=entries, goal=goal, stepped=False)
            best = OptimalTables().solve(instance, Limits(gap=0))
            other = Exact("program", "aggregation", TablePath()).solve(instance, Limits(time_s=60))
            assert best.objective is not None
            relaxation = lp_relaxation(TablePath(), instance).objective
            assert other.objective is None or math.isclose(other.objective, best.objective, rel_tol=1e-3) or other.gap
            print(
                f"{instance.size:5} {entries:8} {goal:3} | {best.objective:.6e} | {best.runtime_s:6.3f} | "
                f"{other.runtime_s:6.2f} {other.bound or 0:.6e} {relaxation / best.objective:.3f}",
                flush=True,
            )


TABLES = {
    "memory": memory,
    "bits": bits,
    "published": published,
    "enough": enough,
    "growth": growth,
    "program": program,
}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    for name in parser.parse_args().tables or TABLES:
        TABLES[name]()


if __name__ == "__main__":
    main()
