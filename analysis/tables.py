"""Results as tables: for the terminal, Markdown, CSV and JSON."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ddlopt.analysis import texts
from ddlopt.analysis.fitted import FittedTable
from ddlopt.analysis.texts import NONE, gap_text, json_text, objective_text, time_text
from ddlopt.analysis.views import sizes
from ddlopt.instances.index import PROVEN
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import plain
from ddlopt.solvers.contracts import Result, Status

__all__ = [
    "NONE", "cells", "csv_text", "gap_text", "json_text", "lost", "markdown", "notes", "objective_text", "status_text",
    "table", "time_text",
]  # fmt: skip

_LEFT = {"instance", "method", "solver", "status", "checked"}
_COLOURS = {Status.OPTIMAL: "green", Status.REFERENCE: "dim", Status.ERROR: "red", Status.NO_SOLUTION: "red"}


def status_text(result: Result) -> str:
    """The status in words, with what kind of proof there is and what is known within the method's scope."""
    if result.status is not Status.FEASIBLE or result.scope is None:
        return texts.status_text(str(result.status), result.evidence)
    if result.scope_gap is None:
        return f"feasible ({result.scope})"
    if result.scope_gap <= PROVEN:
        return f"best {result.scope} (proven)"
    return f"feasible ({result.scope}: gap {gap_text(result.scope_gap)})"


def cells(result: Result, instance: Instance | None = None) -> dict[str, str]:
    """One row for people, by column header; the instance gives its sizes."""
    checked = "yes" if result.checked else NONE
    return {
        "instance": result.instance,
        **{header: str(size) for header, size in (sizes(instance) if instance else {}).items()},
        "method": result.method,
        "status": status_text(result),
        "objective": objective_text(result.objective, result.unit),
        "bound": objective_text(result.bound, result.unit, like=result.objective),
        "gap": gap_text(result.gap),
        "time": f"{result.runtime_s:.2f} s",
        "checked": checked,
    }


def _rows(results: Iterable[Result], instances: Iterable[Instance]) -> tuple[list[str], list[dict[str, str]]]:
    known = {instance.digest: instance for instance in instances}
    results = list(results)
    rows = [cells(result, known.get(result.instance_digest)) for result in results]
    solvers = [str(result.provenance.get("solver", NONE)) for result in results]
    if len(set(solvers) - {NONE}) > 1:
        rows = [_with(row, "solver", solver, "method") for row, solver in zip(rows, solvers, strict=True)]
    errors = [_lost(result) for result in results]
    if any(errors):
        told = [NONE if error is None else f"{error:.3g}" for error in errors]
        rows = [_with(row, "error", text, "objective") for row, text in zip(rows, told, strict=True)]
    widest: dict[str, None] = max((dict.fromkeys(row) for row in rows), key=len, default={})
    return list(widest), rows


def _with(row: dict[str, str], header: str, text: str, behind: str) -> dict[str, str]:
    """The row with another column behind one that it has."""
    place = list(row).index(behind) + 1
    items = list(row.items())
    return dict([*items[:place], (header, text), *items[place:]])


def lost(family: str, unit: str, details: Mapping[str, Any]) -> float | None:
    """What a plan of compression loses of the gradients; None where there is none, or where it is the objective."""
    return details.get("error") if family == "compression" and unit == "s" else None


def _lost(result: Result) -> float | None:
    return lost(result.family, result.unit, result.details)


def table(results: Sequence[Result], instances: Iterable[Instance] = (), title: str | None = None) -> FittedTable:
    """A table for the terminal; a line between instances, which stand above their rows where it is narrow."""
    headers, rows = _rows(results, instances)
    colours = {(place, "status"): _COLOURS.get(result.status, "") for place, result in enumerate(results)}
    return FittedTable(
        [{header: row.get(header, NONE) for header in headers} for row in rows],
        left=frozenset(_LEFT),
        head=headers[: headers.index("method")] if "method" in headers else (),
        drop=("checked", "time", "bound"),
        fold=("status", "method"),
        styles=colours,
        title=title,
    )


def markdown(results: Sequence[Result], instances: Iterable[Instance] = ()) -> str:
    """A table in Markdown."""
    headers, rows = _rows(results, instances)
    lines = [headers, ["---" if header in _LEFT else "---:" for header in headers]]
    lines += [[markdown_text(row.get(header, NONE)) for header in headers] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def markdown_text(text: str) -> str:
    """The text as it stands in a cell of a table in Markdown."""
    return plain(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def csv_text(results: Sequence[Result], instances: Iterable[Instance] = ()) -> str:
    """Comma-separated values in SI units with all digits; empty where there is no figure, or no unit.

    ``error`` is what a plan of compression loses whose objective is the time.
    """
    known = {instance.digest: instance for instance in instances}
    figures = (
        "status",
        "objective",
        "error",
        "bound",
        "evidence",
        "found_by",
        "proved_by",
        "gap",
        "scope",
        "scope_bound",
        "scope_gap",
        "runtime_s",
        "compile_s",
        "checked",
        "message",
        "sense",
        "unit",
    )
    extra = {digest: sizes(instance) for digest, instance in known.items()}
    columns = list(dict.fromkeys(header for size in extra.values() for header in size))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(texts.csv_cell, ["family", "instance", *columns, "method", *figures, "seed"]))
    for result in results:
        data = result.to_data() | {"error": _lost(result)}
        size = extra.get(result.instance_digest, {})
        row = [result.family, result.instance, *(size.get(column, "") for column in columns), result.method]
        row += ["" if data[figure] is None else data[figure] for figure in figures]
        row.append(result.provenance.get("seed", ""))
        writer.writerow([texts.csv_cell(plain(value)) if isinstance(value, str) else value for value in row])
    return text.getvalue()


def notes(results: Iterable[Result]) -> list[str]:
    """One line for every result without an answer, and for every other that has something to say."""
    results = list(results)
    several = len({str(result.provenance["solver"]) for result in results if "solver" in result.provenance}) > 1

    def who(result: Result) -> str:
        by = f" by {result.provenance['solver']}" if several and "solver" in result.provenance else ""
        return f"{result.instance}, {result.method}{by}"

    return [f"{who(result)}: {result.message}" for result in results if result.message]
