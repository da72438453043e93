"""The text, or the object in JSON, of a file of somebody else's, or one line on why there is none."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ddlopt.models.contracts import read_text
from ddlopt.models.errors import DdloptError, InstanceError


def text_of(path: str | Path, error: type[DdloptError] = InstanceError) -> str:
    """Text of a file, unpacked where its name ends in ``.gz``.

    Raises
    ------
    DdloptError
        Of the class ``error``, if the file cannot be read.
    """
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError, EOFError, zlib.error) as problem:
        raise error(f"{path}: cannot be read: {getattr(problem, 'strerror', None) or problem}") from None


def object_of(path: Path, expected: str, error: type[DdloptError] = InstanceError) -> Mapping[str, Any]:
    """The object in a file in JSON; ``expected`` is what the message says that it should be.

    Raises
    ------
    DdloptError
        Of the class ``error``, if the file cannot be read or holds something else.
    """
    text = text_of(path, error)
    try:
        data = json.loads(text)
    except (RecursionError, ValueError) as problem:
        raise error(f"{path}: cannot be read: {problem}") from None
    if not isinstance(data, Mapping):
        raise error(f"{path}: expected {expected}")
    return data
