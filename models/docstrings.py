"""What docstrings say of parameters, for people who do not read code."""

import re
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any


def parameters_of(thing: Any) -> Iterator[tuple[str, str, str]]:
    """Name, type and meaning of each parameter that numpydoc docstrings list.

    Parameters
    ----------
    thing : type or function
        Of a class, what the classes say that it is made of comes first, so that its own words are the last.
    """
    for each in reversed(getattr(thing, "__mro__", (thing,))):
        _, _, section = cleandoc(each.__doc__ or "").partition("\nParameters\n----------\n")
        section = re.split(r"\n\n[^\n]+\n-+\n", section)[0]
        for entry in re.split(r"\n(?=\S)", section.strip()):
            head, _, meaning = entry.partition("\n")
            names, _, said = head.partition(" : ")
            yield from ((name.strip(), said, without_markup(meaning)) for name in names.split(","))


def without_markup(text: str) -> str:
    """A docstring's text on one line, without roles and literals."""
    return re.sub(r"(?::\w+:)?`+~?([^`]*)`+", r"\1", " ".join(text.split()))
