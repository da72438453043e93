"""What was the best known of each bundled instance at which time: ``library/history.json``.

Writing the index of the library keeps it up to date: whenever objective or bound of a record are others than in the
last entry of an instance, there is one more.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ddlopt import instances
from ddlopt.instances import library
from ddlopt.instances.library.records import Record
from ddlopt.instances.library.records import read as read_records
from ddlopt.models.catalogue import FAMILY_NAMES
from ddlopt.models.files import write_whole
from ddlopt.models.reading import parsed, read_text
from ddlopt.models.tolerances import IMPROVEMENT_TOL


class Entry(NamedTuple):
    """The best known objective and bound from a day on, and the methods that they are of."""

    date: str | None
    objective: float | None
    found_by: str | None
    bound: float | None
    bound_by: str | None


History = Mapping[str, Sequence[Entry]]
"""By name of the instance, oldest first."""


def file() -> Path:
    """Where it is."""
    return library.library_folder(FAMILY_NAMES[0]).parent / "history.json"


def read() -> History:
    """All that is known."""
    if not file().exists():
        return {}
    return {name: [Entry(*each) for each in entries] for name, entries in parsed(read_text(file())).items()}


def write() -> bool:
    """Add what is new in the records; whether there was anything."""
    known = read()
    records = {family: read_records(family) for family in FAMILY_NAMES if instances.names(family)}
    found = {}
    for name in instances.names():
        family, _, stem = name.partition("/")
        found[name] = extended(known.get(name, ()), records[family].get(stem))
    if found == known:
        return False
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(entries)}" for name, entries in found.items() if entries)
    write_whole(file(), f"{{\n{lines}\n}}\n")
    return True


def extended(entries: Sequence[Entry], record: Record | None) -> list[Entry]:
    """The entries of an instance, with one for its record where that says something else.

    What changes twice on a day has one entry of that day.
    """
    if record is None:
        return list(entries)
    entry = _of(record)
    if entries and all(map(_same, entries[-1][1::2], entry[1::2])):
        return list(entries)
    same_day = bool(entries) and entries[-1].date == entry.date
    return [*(entries[:-1] if same_day else entries), entry]


def _same(figure: float | None, other: float | None) -> bool:
    """Whether figures differ by no more than what a record takes for better."""
    if figure is None or other is None:
        return figure is other
    return math.isclose(figure, other, rel_tol=IMPROVEMENT_TOL)


def _of(record: Record) -> Entry:
    found, bound = record.found, record.bound
    days = [str(each.date) for each in (found, bound) if each is not None and each.date is not None]
    return Entry(
        max(days, default=None),
        None if found is None else found.objective,
        None if found is None else found.by,
        None if bound is None else bound.value,
        None if bound is None else bound.by,
    )
