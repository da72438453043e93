"""Names of the files of a report."""

import re

_LONGEST = 80
"""Characters of a name; files have at most 255."""


def slug(text: str) -> str:
    """A name for files and addresses."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:_LONGEST].strip("-.") or "x"


def family_file(family: str) -> str:
    """The page of a family."""
    return f"family-{slug(family)}.html"
