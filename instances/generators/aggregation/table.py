"""Lookup tables for sums of numbers in switches, and tables of random functions: kind ``table``."""

import math
from typing import Any

import numpy as np

from ddlopt.instances.options import at_least, one_of
from ddlopt.models.aggregation.table.instance import TableInstance
from ddlopt.models.errors import OptionError

# A million operands, each with its value.
_MOST_BITS = 20
_TAIL = 2
"""Beyond as many more than the fraction bits, f is less than half of the last of them."""


def table(
    rng: np.random.Generator,
    shape: str = "integers",
    bits: int = 8,
    fraction_bits: int | None = None,
    signed: bool = False,
    entries: str = "ranges",
    entry_bytes: int = 8,
    budget_bytes: int | None = None,
    goal: str = "sum",
    stepped: bool = True,
    tables: int = 3,
) -> TableInstance:
    """The three tables of a sum, or four with a difference; or tables of random functions.

    Parameters
    ----------
    rng : numpy.random.Generator
        For random functions only.
    shape : {"integers", "mantissas", "random"}
        What is added: integers from 1, with powers of two for whole logarithms; or mantissas with a leading 1, where
        exponents are added apart and only fractions of logarithms are looked up. Or random functions.
    bits : int
        Of an integer, or of a mantissa without its leading 1 (bfloat16: 7, half: 10); 2 to the ``bits`` operands of a
        random function.
    fraction_bits : int, optional
        Of logarithms. By default as many as ``bits``, at most 12, and 3 more for mantissas.
    signed : bool
        Whether there is a table for differences, too.
    entries : {"ranges", "prefixes"}
    entry_bytes : int
        By default two keys, or a key and a mask, of 2 bytes each, and 4 bytes of value.
    budget_bytes : int, optional
        By default a quarter of what entries for all operands take.
    goal : {"sum", "max"}
    stepped : bool
        Whether logarithms and f are rounded to their fraction bits, as switches need it; with random functions, whether
        every other one has a step.
    tables : int
        How many random functions.

    Returns
    -------
    TableInstance
        Weights make the goal the relative error of a sum, up to products of errors.
    """
    one_of("shape", shape, ("integers", "mantissas", "random"))
    one_of("entries", entries, ("ranges", "prefixes"))
    one_of("goal", goal, ("sum", "max"))
    at_least("bits", bits, 1)
    at_least("entry_bytes", entry_bytes, 1)
    at_least("tables", tables, 1)
    if bits > _MOST_BITS:
        raise OptionError(f"bits is {bits}; it must be at most {_MOST_BITS}")
    if fraction_bits is None:
        fraction_bits = bits + 3 if shape == "mantissas" else min(bits, 12)
    at_least("fraction_bits", fraction_bits, 0)
    if shape == "random":
        found = [_random(rng, f"function{k}", 2**bits, stepped and k % 2 == 1) for k in range(tables)]
    else:
        found = _sum(shape == "mantissas", bits, fraction_bits, signed, stepped)
    for each in found:
        each |= {"entries": entries} | ({} if shape == "random" else {"entry_bytes": entry_bytes})
    if budget_bytes is None:
        budget_bytes = max(
            sum(each["entry_bytes"] for each in found),
            sum(each["entry_bytes"] * (each["high"] - each.get("low", 0) + 1) for each in found) // 4,
        )
    return TableInstance.from_data(
        {
            "name": f"table-{shape}-b{bits}-{entries}",
            "tables": found,
            "budget_bytes": budget_bytes,
            "goal": goal,
        }
    )


def _sum(mantissas: bool, bits: int, fraction_bits: int, signed: bool, stepped: bool) -> list[dict[str, Any]]:
    one = 2**fraction_bits
    step = 2.0**-fraction_bits if stepped else None
    logarithm = {"low": 2**bits, "high": 2 ** (bits + 1) - 1, "fraction_bits": bits}
    if not mantissas:
        logarithm = {"low": 1, "high": 2**bits - 1}
    farthest = (fraction_bits + _TAIL if mantissas else min(bits, fraction_bits + _TAIL)) * one
    change = {"high": farthest, "fraction_bits": fraction_bits, "weight": math.log(2), "step": step}
    found: list[dict[str, Any]] = [
        {"name": "logarithm", "function": "log2", **logarithm, "weight": math.log(2), "step": step},
        {"name": "sum", "function": "log2-sum", "low": 0, **change},
    ]
    if signed:
        found.append({"name": "difference", "function": "log2-difference", "low": 1, **change})
    high = one - 1 if mantissas else (bits + 1) * one
    power = {"low": 0, "high": high, "fraction_bits": fraction_bits, "error": "relative"}
    return [*found, {"name": "power", "function": "exp2", **power}]


def _random(rng: np.random.Generator, name: str, operands: int, stepped: bool) -> dict[str, Any]:
    """A walk that climbs in most places, with jumps; its values are above 0 where relative errors count."""
    steps = rng.exponential(size=operands) * rng.choice([1.0, 1.0, 1.0, 8.0, -0.5], size=operands)
    values = np.cumsum(steps)
    relative = bool(rng.random() < 0.5)
    if relative:
        values += 1 - values.min()
    return {
        "name": name,
        "function": "samples",
        "low": 0,
        "high": operands - 1,
        "samples": [float(f"{value:.5g}") for value in values],
        "error": "relative" if relative else "absolute",
        "weight": float(f"{rng.uniform(0.5, 2):.3g}"),
        "entry_bytes": int(rng.integers(1, 5)),
        "step": 0.25 if stepped else None,
    }
