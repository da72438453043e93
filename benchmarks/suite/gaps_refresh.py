"""Brings the tables of gaps (``docs/results/*_gap.md``) in line with the library's records, without solving anything.

A better best known solution makes every method of its row lose more: the percentages are recomputed from it. What the
runs said of parts of the gap (``of topology``, ``of strategies``) does not hold for another solution and is left out.
``suite/gaps`` makes the tables anew from a store.
"""

import re

import ddlopt
from benchmarks.harness import ROOT, Benchmark, Option
from ddlopt.analysis import tables
from ddlopt.instances import record
from ddlopt.solvers.contracts import best_bound, best_objective, relative_gap

SAME = 1e-5
"""Relative difference up to which a figure of six digits is the record's."""
PARTS = ("of topology", "of strategies")
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}


def refresh(asked):
    """Pages with new rows."""
    for path in sorted((ROOT / "docs/results").glob("*_gap.md")):
        text = path.read_text(encoding="utf-8")
        new = refreshed(text, path.stem.removesuffix("_gap"))
        changed = sum(old != line for old, line in zip(text.splitlines(), new.splitlines(), strict=True))
        yield {"page": path.name, "rows that are new": changed}
        if changed and not asked.look:
            path.write_text(new, encoding="utf-8")


def refreshed(text: str, family: str) -> str:
    """A page with its tables in line with the records."""
    lines, header = text.splitlines(), []
    for place, line in enumerate(lines):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "instance":
            header = cells
        elif not line.startswith("|"):
            header = []
        elif header and not cells[0].startswith("-"):
            row = dict(zip(header, cells, strict=True))
            lines[place] = f"| {' | '.join(refreshed_row(row, f'{family}/{cells[0]}').values())} |"
    return "\n".join(lines) + "\n"


def refreshed_row(row: dict[str, str], name: str) -> dict[str, str]:
    """A row with the record's solution and the better bound of the two, if they are better than what it says."""
    known, instance = record(name), ddlopt.load(name)
    sense, unit = instance.sense, instance.objective_unit
    found = float(known.found.objective) if known and known.found else None
    bound = float(known.bound.value) if known and known.bound else None
    shown, shown_bound = number(row["best known"]), number(row["bound"])
    if same(best_objective([each for each in (shown, found) if each is not None], sense), shown):
        found = shown
    if same(best_bound([shown_bound, bound], sense), shown_bound):
        bound = shown_bound
    if found == shown and bound == shown_bound:
        return row
    gap = tables.gap_text(relative_gap(found, bound, sense))
    row |= {
        "best known": tables.objective_text(found, unit),
        "bound": tables.objective_text(bound, unit, like=found),
        "gap left": gap,
    }
    for column in list(row)[list(row).index("gap left") + 1 :]:
        if column in PARTS:
            row[column] = tables.NONE
        elif found != shown:
            row[column] = loss(row[column], shown, found, sense)
    return row


def same(one: float | None, other: float | None) -> bool:
    """Whether two figures are the same to six digits."""
    return one == other or (None not in (one, other) and abs(one - other) <= SAME * max(abs(one), abs(other)))


def number(text: str) -> float | None:
    """A figure of a table in SI units."""
    if text == tables.NONE:
        return None
    value, _, unit = text.partition(" ")
    return float(value) * UNITS.get(unit, 1.0)


def loss(text: str, before: float, now: float, sense: str) -> str:
    """What a method loses against the solution that is best now."""
    percent = re.fullmatch(r"<?([\d.]+) %", text)
    if percent is None:
        return text
    part = float(percent[1]) / 100
    objective = before * (1 + part if sense == "minimize" else 1 - part)
    return tables.gap_text(abs(objective / now - 1))


BENCH = Benchmark(refresh, in_all=False, look=Option(False, "change nothing", quick=True))
