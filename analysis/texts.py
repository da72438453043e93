"""Figures in words, and data as JSON: what every table and page writes; nothing heavy is imported for it."""

import json
import math
from collections.abc import Mapping
from typing import Any

NONE = "–"
"""What a table shows where there is no figure."""

_PROOFS = ("optimal", "infeasible", "unbounded")
_EXACT = ("combinatorial", "certificate")

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""With which a spreadsheet begins a formula."""
# Units of time by what one of them is in seconds.
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def time_text(seconds: float | None, like: float | None = None, digits: int = 6) -> str:
    """Seconds in the unit that suits ``like`` (by default themselves), to a number of significant digits."""
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
        # Rounding in a quotient of two objectives.
        return "<0.01 %" if gap > 1e-9 else "0 %"
    return f"{100 * gap:.2f} %" if gap else "0 %"


def status_text(status: str, evidence: str | None) -> str:
    """A status in words, and whether a proof is one in floating point: the word of a solver or of a search."""
    told = status.replace("_", " ")
    return f"{told} (floating point)" if status in _PROOFS and evidence not in _EXACT else told


def csv_cell(value: Any) -> Any:
    """A cell of a CSV file that no spreadsheet takes for a formula: such words get an apostrophe, as they do there.

    Numbers stay numbers, those below 0 and those that are written as words, too.
    """
    if not isinstance(value, str) or not value.startswith(_FORMULAS) or _is_number(value):
        return value
    return f"'{value}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def json_text(data: Any) -> str:
    """JSON text of plain data; a figure that is not finite becomes null."""
    return printable_json(json.dumps(_finite(data), indent=1, ensure_ascii=False, allow_nan=False, default=str))


def printable_json(text: str) -> str:
    """The same JSON, with what could steer a terminal, or is no character, as JSON writes it in ASCII."""
    return "\n".join(line if line.isprintable() else _in_ascii(line) for line in text.split("\n"))


def _in_ascii(line: str) -> str:
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    if isinstance(data, float):
        return float(data) if math.isfinite(data) else None
    return _finite(data.tolist()) if hasattr(data, "tolist") else data
