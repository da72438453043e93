"""Results as tables: for the terminal, Markdown, CSV and JSON."""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from ddlopt.analysis.views import sizes
from ddlopt.models.contracts import Instance
from ddlopt.solvers.contracts import Result, Status

NONE = "–"
"""What a table shows where there is no figure."""

PROVEN = 1e-4
"""Relative gap up to which a table calls something proven."""

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_LEFT = {"instance", "method", "solver", "status", "checked"}
_COLOURS = {Status.OPTIMAL: "green", Status.REFERENCE: "dim", Status.ERROR: "red", Status.NO_SOLUTION: "red"}


def time_text(seconds: float | None, like: float | None = None, digits: int = 6) -> str:
    """Seconds in the unit that suits ``like`` (by default themselves), to so many significant digits."""
    if seconds is None:
        return NONE
    size = abs(seconds if like is None else like)
    factor, unit = next((pair for pair in _UNITS if size >= pair[0]), _UNITS[0] if size == 0 else _UNITS[-1])
    return f"{seconds / factor:.{digits}g} {unit}"


def objective_text(value: float | None, unit: str, like: float | None = None, digits: int = 6) -> str:
    """An objective or bound in its unit; seconds as :func:`time_text` writes them."""
    if value is None or unit == "s":
        return time_text(value, like, digits)
    return f"{value:.{digits}g} {unit}".rstrip()


def gap_text(gap: float | None) -> str:
    """A relative gap in percent; never 0 where it is not."""
    if gap is None:
        return NONE
    if gap > 0 and gap < 5e-5:
        return "<0.01 %" if gap > 1e-9 else "0 %"
    return f"{100 * gap:.2f} %" if gap else "0 %"


def status_text(result: Result) -> str:
    """The status in words, with what is known within the method's scope."""
    if result.status is not Status.FEASIBLE or result.scope is None:
        return str(result.status).replace("_", " ")
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
        rows = [_with_solver(row, solver) for row, solver in zip(rows, solvers, strict=True)]
    widest: dict[str, None] = max((dict.fromkeys(row) for row in rows), key=len, default={})
    return list(widest), rows


def _with_solver(row: dict[str, str], solver: str) -> dict[str, str]:
    """The row with the solver after the method."""
    place = list(row).index("method") + 1
    items = list(row.items())
    return dict([*items[:place], ("solver", solver), *items[place:]])


def table(results: Sequence[Result], instances: Iterable[Instance] = (), title: str | None = None) -> Table:
    """A table for the terminal; a line between instances."""
    headers, rows = _rows(results, instances)
    drawn = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for header in headers:
        text = header in _LEFT
        drawn.add_column(header, justify="left" if text else "right", no_wrap=not text, overflow="fold")
    for place, (result, row) in enumerate(zip(results, rows, strict=True)):
        last = place + 1 == len(results) or results[place + 1].instance != result.instance
        style = _COLOURS.get(result.status, "")
        drawn.add_row(
            *(Text(row.get(header, NONE), style=style if header == "status" else "") for header in headers),
            end_section=last,
        )
    return drawn


def markdown(results: Sequence[Result], instances: Iterable[Instance] = ()) -> str:
    """A table in Markdown."""
    headers, rows = _rows(results, instances)
    lines = [headers, ["---" if header in _LEFT else "---:" for header in headers]]
    lines += [[row.get(header, NONE).replace("|", "\\|") for header in headers] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def csv_text(results: Sequence[Result], instances: Iterable[Instance] = ()) -> str:
    """Comma-separated values in SI units with all digits; empty where there is no figure, or no unit."""
    known = {instance.digest: instance for instance in instances}
    figures = (
        "status",
        "objective",
        "bound",
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
    writer.writerow(["family", "instance", *columns, "method", *figures, "seed"])
    for result in results:
        data = result.to_data()
        size = extra.get(result.instance_digest, {})
        writer.writerow(
            [result.family, result.instance, *(size.get(column, "") for column in columns), result.method]
            + ["" if data[figure] is None else data[figure] for figure in figures]
            + [result.provenance.get("seed", "")]
        )
    return text.getvalue()


def json_text(data: Any) -> str:
    """JSON text of plain data; a figure that is not finite becomes null."""
    return json.dumps(_finite(data), indent=1, ensure_ascii=False, allow_nan=False, default=str)


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    if isinstance(data, float):
        return float(data) if math.isfinite(data) else None
    return _finite(data.tolist()) if hasattr(data, "tolist") else data


def notes(results: Iterable[Result]) -> list[str]:
    """One line for every result without an answer, and for every other that has something to say."""
    results = list(results)
    several = len({str(result.provenance["solver"]) for result in results if "solver" in result.provenance}) > 1

    def who(result: Result) -> str:
        by = f" by {result.provenance['solver']}" if several and "solver" in result.provenance else ""
        return f"{result.instance}, {result.method}{by}"

    return [f"{who(result)}: {result.message}" for result in results if result.message]
