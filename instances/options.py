"""Options of generators and readers: refused in one line where they are of the wrong type or out of range."""

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from ddlopt.models.errors import OptionError

_WORDS = {
    int: "a whole number",
    float: "a finite number",
    bool: "true or false",
    str: "a word",
    Path: "a path",
    NoneType: "left out",
    dict: "an object",
}

P = ParamSpec("P")
T = TypeVar("T")


def refuse_odd_value(option: str, value: Any, wanted: Any) -> None:
    """Raise OptionError unless a value is of the type that an option is declared with.

    Types are those of :data:`_WORDS`, ``tuple[such, ...]`` and ``list[such]`` (either will do), words in a
    ``Literal``, and unions.
    """
    if not _fits(value, wanted):
        raise OptionError(f"{option} is {value!r}; it must be {_described(wanted)}")


def refuse_unknown(what: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Raise OptionError at the first option that ``what``, such as ``"format 'onnx'"``, does not take."""
    takes = list(known)
    for option in options:
        if option not in takes:
            listed = f"it takes: {', '.join(takes)}" if takes else "it takes none"
            raise OptionError(f"{what} takes no option '{option}'; {listed}")


def _fits(value: Any, wanted: Any) -> bool:
    if get_origin(wanted) in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(wanted))
    if get_origin(wanted) in (tuple, list):
        return isinstance(value, list | tuple) and all(_fits(each, get_args(wanted)[0]) for each in value)
    if get_origin(wanted) is Literal:
        return isinstance(value, str) and value in get_args(wanted)
    if wanted is bool or isinstance(value, bool):
        return wanted is bool and isinstance(value, bool)
    if wanted is float:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, wanted if get_origin(wanted) is None else get_origin(wanted))


def _described(wanted: Any) -> str:
    if get_origin(wanted) in (Union, UnionType):
        every = [_described(each) for each in get_args(wanted)]
        return (", or " if any("," in each for each in every) else " or ").join(every)
    if get_origin(wanted) in (tuple, list):
        return f"a list{_example(get_args(wanted)[0])}, each {_described(get_args(wanted)[0])}"
    if get_origin(wanted) is Literal:
        return " or ".join(f"'{each}'" for each in get_args(wanted))
    plain = wanted if get_origin(wanted) is None else get_origin(wanted)
    return _WORDS.get(plain) or f"an object of {plain.__name__}"


def _example(wanted: Any) -> str:
    """How a list is written on the command line, where its entries are plain."""
    plain = wanted if get_origin(wanted) is None else get_origin(wanted)
    return {int: " such as [1, 2]", float: " such as [0.5, 2]", str: ' such as ["a", "b"]'}.get(plain, "")


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which refuses keyword options of other types than it declares."""
    types = {name: each.annotation for name, each in inspect.signature(function, eval_str=True).parameters.items()}

    @functools.wraps(function)
    def checking(*args: P.args, **options: P.kwargs) -> T:
        for option, value in options.items():
            if option in types:
                refuse_odd_value(option, value, types[option])
        return function(*args, **options)

    return checking


def one_of(option: str, value: object, known: tuple[str, ...]) -> None:
    """Raise OptionError unless a word is among those known."""
    if value not in known:
        raise OptionError(f"{option} is {value!r}; use one of: {', '.join(known)}")


def at_least(option: str, value: float, least: float) -> None:
    """Raise OptionError unless a number is large enough and finite."""
    if not least <= value < math.inf:
        finite = "" if math.isfinite(value) else " and finite"
        raise OptionError(f"{option} is {value}; it must be at least {least}{finite}")


def positive(option: str, value: float) -> None:
    """Raise OptionError unless a number is positive and finite."""
    if not 0 < value < math.inf:
        raise OptionError(f"{option} is {value}; it must be positive and finite")


def part(option: str, value: float) -> None:
    """Raise OptionError unless a number is within 0..1."""
    if not 0 <= value <= 1:
        raise OptionError(f"{option} is {value}; it must be within 0..1")
