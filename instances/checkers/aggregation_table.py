"""Checks lookup tables of a switch: python aggregation_table.py INSTANCE SOLUTION.

A table has entries of consecutive operands, each with one value; its error is the largest over all operands. Functions
are calculated with 60 decimal digits, of which 40 are certain; they are monotone, so that the extremes of an entry are
at its ends. Errors of samples are rational numbers.
"""

import decimal
import gzip
import json
import math
import sys
from decimal import Decimal as D
from fractions import Fraction as F
from functools import lru_cache

# A third more digits than are certain.
decimal.getcontext().prec = 60


@lru_cache(maxsize=None)
def function(name, operand, bits):
    """The value at an operand, which stands for operand / 2^bits."""
    argument, ln2 = D(operand) / D(2) ** bits, D(2).ln()
    if name == "exp2":
        return (argument * ln2).exp()
    if name == "log2":
        return argument.ln() / ln2
    with decimal.localcontext() as digits:
        # 2^-u has as many digits behind the point before it has any, which are lost beside 1.
        digits.prec += int(min(argument, D(400)) * D("0.30103"))
        power = (-argument * ln2).exp()
        return (1 + power if name == "log2-sum" else 1 - power).ln() / ln2


def error_of(value, least, most, relative):
    """The largest error of a value over all between two extremes."""
    if relative:
        return max(abs((value - least) / least), abs((value - most) / most))
    return max(abs(value - least), abs(value - most))


def error(table, starts, values):
    """Of a whole table; without values each entry has the best one, of the multiples of the step if there is one."""
    number = F if table["function"] == "samples" else D
    relative, step, low = table.get("error", "absolute") == "relative", table.get("step"), table.get("low", 0)
    worst = number(0)
    for place, start in enumerate(starts):
        end = starts[place + 1] if place + 1 < len(starts) else table["high"] + 1
        if number is F:
            own = [F(sample) for sample in table["samples"][start - low : end - low]]
        else:
            own = [function(table["function"], each, table.get("fraction_bits", 0)) for each in (start, end - 1)]
        least, most = min(own), max(own)
        middle = 2 * least * most / (least + most) if relative else (least + most) / 2
        if values:
            tried = [number(values[place])]
        elif step is None:
            tried = [middle]
        else:
            below = math.floor(middle / number(step))
            tried = [below * number(step), (below + 1) * number(step)]
        worst = max(worst, min(error_of(value, least, most, relative) for value in tried))
    return F(worst)


def malformed(instance, solution):
    """What is broken so that there is no objective."""
    tables, starts, values, broken = instance["tables"], solution["starts"], solution.get("values") or [], []
    if len(starts) != len(tables):
        return [("every table has entries", "starts")]
    if values and len(values) != len(tables):
        return [("every table has values", "values")]
    for place, (table, own) in enumerate(zip(tables, starts)):
        where = f"table {place}"
        if not own:
            broken.append(("every table has entries", where))
            continue
        if own[0] != table.get("low", 0):
            broken.append(("the first entry begins at the first operand", where))
        if any(after <= before for before, after in zip(own, own[1:])):
            broken.append(("entries ascend", where))
        if own[-1] > table["high"]:
            broken.append(("entries begin at operands", where))
        if values and len(values[place]) != len(own):
            broken.append(("every entry has a value", where))
    return broken


def is_prefix(first, last, table):
    """Whether operands are all that there are of an aligned block of 2^k."""
    size = 1
    while first // size != last // size:
        size *= 2
    block = first // size * size
    return first == max(block, table.get("low", 0)) and last == min(block + size - 1, table["high"])


def check(instance, solution):
    """The error of the tables, None where the answer makes no sense, and (rule, where) of what is broken."""
    broken = malformed(instance, solution)
    if broken:
        return None, broken
    used, weighted, values = 0, [], solution.get("values") or [None] * len(instance["tables"])
    for table, starts, own in zip(instance["tables"], solution["starts"], values):
        name, lasts = table["name"], [*(start - 1 for start in starts[1:]), table["high"]]
        prefixes = table.get("entries", "ranges") == "prefixes"
        if prefixes and not all(is_prefix(first, last, table) for first, last in zip(starts, lasts)):
            broken.append(("entries are prefixes", name))
        if table.get("step") is not None and any(F(value) % F(table["step"]) for value in own or ()):
            broken.append(("values are multiples of the step", name))
        used += table.get("entry_bytes", 1) * len(starts)
        weighted.append(F(table.get("weight", 1)) * error(table, starts, own))
    if used > instance["budget_bytes"]:
        broken.append(("memory suffices", "all tables"))
    return sum(weighted) if instance.get("goal", "sum") == "sum" else max(weighted), broken


def main():
    """Print the objective and every rule that is broken; exit code 0 if none is, 1 if one is, 2 for no answer."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: python {sys.argv[0]} INSTANCE SOLUTION, each a .json or .json.gz file")
    documents = []
    for name in sys.argv[1:]:
        with gzip.open(name, "rt", encoding="utf-8") if name.endswith(".gz") else open(name, encoding="utf-8") as file:
            documents.append(json.load(file))
    instance, solution = documents
    if solution.get("format") == "ddlopt submission":
        solution = solution["solution"]
    try:
        objective, broken = check(instance, solution)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError) as problem:
        print(f"this is no answer to the problem: {type(problem).__name__}: {problem}")
        sys.exit(2)
    print("objective:", "none" if objective is None else f"{objective} ({float(objective):.12g})")
    for rule, where in broken:
        print(f"broken: {rule}: {where}")
    feasible = objective is not None and not broken
    print("feasible" if feasible else "not feasible")
    sys.exit(0 if feasible else 1)


if __name__ == "__main__":
    main()
