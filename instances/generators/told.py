"""What the options of a kind of generated instance mean, from the docstrings of the code that takes them."""

import inspect
from importlib import import_module
from typing import Any, NamedTuple

from ddlopt.instances.generators import by_kind, kinds, options_of
from ddlopt.models.catalogue import family as family_of
from ddlopt.models.catalogue import problems
from ddlopt.models.docstrings import parameters_of

_TABLES = ("_KINDS", "_ROOMS")
"""Where the generators of a family have what makes each kind."""


class Told(NamedTuple):
    """An option: what it is by default (None for needed or left out), and what it means."""

    name: str
    default: Any
    meaning: str


def told(family: str, kind: str) -> list[Told]:
    """The options of a kind.

    What a kind does not say of an option, something else of the family does, as they share names: another kind, what
    kinds share, or the class of the instances.

    Raises
    ------
    UnknownNameError
        If there is no such family or kind.
    """
    options = options_of(family, kind)
    others = (_maker(family, other) for other in kinds(family))
    meanings: dict[str, str] = {}
    for thing in (*_instances(family), *_shared(family), *others, _maker(family, kind)):
        meanings |= {name: meaning.rstrip(".") for name, _, meaning in parameters_of(thing) if meaning}
    return [Told(name, default, meanings.get(name, "")) for name, default in options.items()]


def _instances(family: str) -> list[Any]:
    """The classes of instances of a family."""
    return [problem.instance for path, problem in problems().items() if path.split("/")[0] == family]


def _shared(family: str) -> list[Any]:
    """Classes and functions of the modules in which the kinds of a family are made."""
    modules = {inspect.getmodule(_maker(family, kind)) for kind in kinds(family)}
    own = f"ddlopt.instances.generators.{family}"
    return [
        thing
        for module in sorted(modules - {None}, key=str)
        for thing in vars(module).values()
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__module__.startswith(own)
    ]


def _maker(family: str, kind: str) -> Any:
    """The function or the class that makes a kind."""
    module = import_module(f"ddlopt.instances.generators.{family_of(family).name}")
    for table in _TABLES:
        maker = getattr(module, table, {}).get(kind)
        if isinstance(maker, str):
            return by_kind.maker({kind: maker}, kind)
        if maker is not None:
            return getattr(maker, "func", maker)
    return None
