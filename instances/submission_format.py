"""How a file that is handed in is told from a solution, without what judges it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ddlopt.models.reading import UnreadableError, parsed, read_text

FORMAT: Final = "ddlopt submission"


def is_one(path: str | Path) -> bool:
    """Whether a file says that it is a submission."""
    try:
        text = read_text(path)
        data = parsed(text) if FORMAT in text else None  # plain solutions may be large
    except (ValueError, RecursionError, UnreadableError):
        return False
    return isinstance(data, Mapping) and data.get("format") == FORMAT
