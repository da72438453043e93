"""Options of methods, in one syntax everywhere: ``link-exchange:effort=0.1,…``."""

import contextlib
import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, ClassVar, Literal, NamedTuple, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError

from ddlopt.models.docstrings import parameters_of
from ddlopt.models.errors import OptionError
from ddlopt.solvers.certified import told_anew
from ddlopt.solvers.contracts import Limits, Method, ProgressCallback, Result
from ddlopt.solvers.names import settings_in, split, written
from ddlopt.solvers.wrappers.by_instance import ByInstance

_NOT_OPTIONS = ("name", "family", "backend", "formulation")
_KEYWORDS = {"true": True, "false": False, "none": None, "True": True, "False": False, "None": None}


@dataclass(frozen=True)
class Variant(ByInstance):
    """A method with options of its own, under the name by which it was asked for.

    Parameters
    ----------
    name : str
        With the options.
    chosen : Method
        With the options set.
    """

    options_in: ClassVar[str] = "chosen"

    name: str
    chosen: Method

    @property
    def family(self) -> str:
        """Of the method."""
        return self.chosen.family

    def method(self, instance: Any) -> Method:
        """The method, whatever the instance."""
        return self.chosen

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`."""
        return told_anew(self.chosen.solve(instance, limits, seed, progress, start), method=self.name)


def with_options(method: Method, asked: str) -> Method:
    """The method with the options of ``NAME:OPTION=VALUE,…``.

    Parameters
    ----------
    method : Method
        That of the name.
    asked : str

    Raises
    ------
    OptionError
        If the method has no such option, or the value is not of its type or out of its range.
    """
    name, settings = split(asked)
    if not settings:
        if asked.endswith(":"):
            raise OptionError(f"'{asked}' ends with a colon; write {name}:OPTION=VALUE, or {name} alone")
        return method
    own, hints = settable(method), _hints(type(described(method)))
    given: dict[str, Any] = {}
    for setting in settings_in(settings):
        option, equals, text = setting.partition("=")
        if not equals or option not in own:
            known = ", ".join(own) or "none"
            raise OptionError(f"method '{name}' has no option '{setting}'; write NAME=VALUE, it has: {known}")
        if option in given:
            raise OptionError(f"method '{name}': {option} is given twice")
        given[option] = _value(f"method '{name}': {option}", text, hints.get(option, Any))
    return Variant(asked, _with(method, given))


def options_of(method: Method) -> dict[str, Any]:
    """All options of a method that is a dataclass, or of its formulation, as plain data."""
    of = described(method)
    if not dataclasses.is_dataclass(of):
        return {}
    values = {field.name: getattr(of, field.name) for field in dataclasses.fields(of) if field.init}
    return {name: _plain(value) for name, value in values.items() if name not in _NOT_OPTIONS and not callable(value)}


def settable(method: Method) -> tuple[str, ...]:
    """The options of a method that a person can write: those whose values are numbers, words or lists of them.

    What only a host of the formulation sets (:data:`~ddlopt.models.worded.FOR_HOSTS`) is none of them.
    """
    of = described(method)
    if not getattr(of, "has_options", True) or not dataclasses.is_dataclass(of):
        return ()
    hints = _hints(type(of))
    for_hosts = {field.name for field in dataclasses.fields(of) if field.metadata.get("for_hosts")}
    given = ((name, value) for name, value in options_of(method).items() if name not in for_hosts)
    plain = (name for name, value in given if not isinstance(value, dict))
    return tuple(name for name in plain if _adapter(hints.get(name, Any)) is not None)


class Option(NamedTuple):
    """An option of a method, for people: what may be written, what it is as the method stands, and what it means."""

    name: str
    values: str
    default: str
    meaning: str


def told(method: Method) -> tuple[Option, ...]:
    """The options of :func:`settable`; what they mean is in the docstring of their class."""
    of = described(method)
    hints, values = _hints(type(of)), options_of(method)
    said = {name: (kind, _first_sentence(meaning)) for name, kind, meaning in parameters_of(type(of))}
    return tuple(
        Option(name, _choices(hints.get(name, Any), kind), written(values[name]), meaning)
        for name in settable(method)
        for kind, meaning in [said.get(name, ("", ""))]
    )


_WORDS = {bool: "true, false", int: "whole number", float: "number", str: "word", NoneType: "none"}


def _choices(hint: Any, said: str) -> str:
    """What may be written, by the type of an option, and for words by what is said of it: ``{"paper", "released"}``."""
    if get_origin(hint) is Literal:
        return ", ".join(map(str, get_args(hint)))
    if hint is str and said.startswith("{"):
        return ", ".join(re.findall(r'"([^"]+)"', said))
    if hint in _WORDS:
        return _WORDS[hint]
    parts = [part for part in get_args(hint) if part is not ...]
    if get_origin(hint) in (tuple, list):
        return f"[{_choices(parts[0], '')}, …]"
    return ", ".join(_choices(part, said) for part in parts) or "text"


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.;]) ", text)[0].rstrip(".;")


def described(method: Method) -> Any:
    """The object whose fields are the options: the method, or what it is made of."""
    inner = getattr(method, "options_in", None)
    return method if inner is None else described(getattr(method, inner))


def _with(method: Method, given: Mapping[str, Any]) -> Method:
    try:
        changed = dataclasses.replace(described(method), **given)
    except (TypeError, ValueError) as problem:
        raise OptionError(f"method '{method.name}': {problem}") from None
    inner = getattr(method, "options_in", None)
    return changed if inner is None else dataclasses.replace(method, **{inner: changed})  # type: ignore[type-var]


def _value(what: str, text: str, hint: Any) -> Any:
    """What a text stands for, of the type that the option has.

    Raises
    ------
    OptionError
        If it stands for nothing of that type.
    """
    try:
        found = _KEYWORDS[text] if text in _KEYWORDS else json.loads(text)
    except (ValueError, RecursionError):
        found = text
    adapter = _adapter(hint)
    assert adapter is not None, what  # or it would not be settable
    try:
        return adapter.validate_json(json.dumps(found))  # of which lists are tuples, too
    except ValidationError as problem:
        # A word may look like something else: none, true, 5.
        with contextlib.suppress(ValidationError):
            return adapter.validate_python(text)
        expected = problem.errors(include_url=False)[0]["msg"]
        raise OptionError(f"{what} is {text!r}: {expected[:1].lower()}{expected[1:]}") from None


def _adapter(hint: Any) -> TypeAdapter[Any] | None:
    """What checks values of a type; None for types that no text stands for."""
    try:
        return TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False))
    except PydanticSchemaGenerationError:
        return None


def _hints(kind: type[Any]) -> dict[str, Any]:
    """Types of the fields of a class."""
    try:
        return get_type_hints(kind)
    except Exception:  # annotations of somebody else's that name what is not there
        return {}


def _plain(value: Any) -> Any:
    """The value as JSON has it; of a method or formulation inside another one its own options."""
    if dataclasses.is_dataclass(value):
        return options_of(value)  # type: ignore[arg-type]
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    # What else there is may show an address in memory, and keys must be the same in every process.
    return value if isinstance(value, int | float | str | None) else type(value).__qualname__
