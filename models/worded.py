"""Options that are words: a misspelt one is refused where the object is made, not taken for another."""

import dataclasses
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from ddlopt.models.errors import OptionError

FOR_HOSTS = {"for_hosts": True}
"""Metadata of a field that only a host of the formulation sets: with it, the model asks another question than the
instance, so that it is no option of a method."""


class Worded:
    """Base of frozen dataclasses of options; one with a ``__post_init__`` of its own calls this one first."""

    def __post_init__(self) -> None:
        for option in dataclasses.fields(self):  # type: ignore[arg-type]
            refuse_odd_word(type(self).__name__, option.name, getattr(self, option.name), option.type)


def refuse_odd_word(owner: str, option: str, value: Any, wanted: Any) -> None:
    """Raise :class:`OptionError` if an option is no word of its ``Literal``, and what else it may be is no word."""
    kinds = get_args(wanted) if get_origin(wanted) in (Union, UnionType) else (wanted,)
    words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    others = [kind for kind in kinds if get_origin(kind) is not Literal]
    if not words or value in words or str in others or (others and not isinstance(value, str)):
        return
    raise OptionError(f"{owner}: {option} is {value!r}; use one of: {', '.join(map(str, words))}")
