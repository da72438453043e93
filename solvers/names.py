"""How methods are written: ``link-exchange:effort=0.1,…``, and several of them with commas between."""

import dataclasses
import json
import re
from typing import Any

AUTO = "auto"
"""The name that stands for the family's choice where a method is asked for."""
ALL = {"all-heuristics": "heuristic", "all-exact": "exact"}
"""Names that stand for all methods of a kind where several methods may be asked for."""

_COMMA = re.compile(r",(?![^\[]*\])")
"""One that is not within a list, as in ``widths=[100,300]``."""


def can_be_asked(name: str) -> bool:
    """Whether a list of methods on the command line can have a method of that name."""
    return not re.search(r"[\s,:=/]", name) and name not in (AUTO, *ALL)


def split(asked: str) -> tuple[str, str]:
    """Name of a method, and the text of its options."""
    name, _, settings = asked.partition(":")
    return name, settings


def listed(text: str) -> list[str]:
    """The names of a list with commas; ``name:a=1,b=2`` is one of them."""
    found: list[str] = []
    for piece in _COMMA.split(text):
        if "=" in piece and ":" not in piece and found and ":" in found[-1]:
            found[-1] += f",{piece}"
        elif piece.strip():
            found.append(piece.strip())
    return found


def settings_in(text: str) -> list[str]:
    """The settings of ``a=1,b=[2,3]``."""
    return _COMMA.split(text)


def written(value: Any) -> str:
    """The text that stands for a value of an option."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":")).replace("null", "none")


def spelled(name: str, method: Any, *options: str) -> str:
    """The name with those of the options, fields of a dataclass, that are not at their defaults."""
    defaults = {field.name: field.default for field in dataclasses.fields(method)}
    values = {option: getattr(method, option) for option in options}
    given = {option: value for option, value in values.items() if value != defaults[option]}
    text = (f"{option}={written(value)}" for option, value in given.items())
    return f"{name}:{','.join(text)}" if given else name
