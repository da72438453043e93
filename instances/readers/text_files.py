"""The text, or the object in JSON, of a file of somebody else's, or one line on why there is none."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ddlopt.models.errors import DdloptError, InstanceError
from ddlopt.models.reading import UnreadableError, parsed, read_text


def text_of(path: str | Path, error: type[DdloptError] = InstanceError) -> str:
    """Text of a file, unpacked where its name ends in ``.gz``.

    Raises
    ------
    DdloptError
        Of the class ``error``, if the file cannot be read.
    """
    try:
        return read_text(path)
    except UnreadableError as problem:
        raise error(f"{path}: cannot be read: {problem}") from None


def object_of(
    path: Path, expected: str, error: type[DdloptError] = InstanceError, keys: frozenset[str] | None = None
) -> Mapping[str, Any]:
    """The object in a file in JSON; ``expected`` is what the message says that it should be.

    With ``keys`` it may have no others.

    Raises
    ------
    DdloptError
        Of the class ``error``, if the file cannot be read or holds something else.
    """
    text = text_of(path, error)
    try:
        data = parsed(text)
    except ValueError as problem:
        raise error(f"{path}: cannot be read: {problem}") from None
    if not isinstance(data, Mapping):
        raise error(f"{path}: expected {expected}")
    if keys is not None and (unknown := sorted(data.keys() - keys)):
        raise error(f"{path}: '{unknown[0]}' is unknown; it has: {', '.join(sorted(keys))}")
    return data


def name_of(path: Path) -> str:
    """A name for what is in a file that gives none: the file's, without its endings, in the manner of ours."""
    return path.name.split(".")[0].lower().replace("_", "-")
