"""Names of the files of a report."""

import re


def slug(text: str) -> str:
    """A name for files and addresses."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "x"


def family_file(family: str) -> str:
    """The page of a family."""
    return f"family-{slug(family)}.html"
