"""What the options of the formats that are read mean, from the docstrings of the code that takes them."""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ddlopt.instances import readers
from ddlopt.instances.generators.told import Told
from ddlopt.models.docstrings import parameters_of, without_markup

_ELSEWHERE = re.compile(r"^(Likewise|(See|As in) |Fields? of the instance)")
"""What a docstring says of options that another one tells of: that of the class or function that it names."""
_NAMED = re.compile(r"(?:See|As in) :(?:class|func):`~?([\w.]+)`")
_SAME = {
    "name": "Of the instance; by default from the file and the options",
    "seed": "Of what the file leaves open",
    "servers": "Servers",
    "degree": "Interfaces of each server",
    "gpus_per_server": "GPUs of a server",
    "nodes": "Machines",
    "gpus_per_node": "GPUs of a machine",
    "fusion": "Whether gradients may be fused",
    "busy_quantile": "Part of the time for which the number of GPUs suffices, where it follows from the jobs",
}
"""Of options that many formats share."""


def told(source_format: str) -> list[Told]:
    """The options of a format; those that are needed have the default None, and say so.

    What a reader does not say of an option, the classes and functions do that its docstring refers to, or the class of
    the instances that it makes.

    Raises
    ------
    UnknownNameError
        If there is no such format.
    """
    options, meanings, words = readers.options_of(source_format), dict(_SAME), dict[str, list[str]]()
    for thing in _documented(readers.reader_of(source_format)):
        for name, kind, meaning in parameters_of(thing):
            if meaning and not _ELSEWHERE.match(meaning):
                meanings[name] = meaning.rstrip(".")
            if kind.startswith("{"):
                words[name] = re.findall(r'"([^"]+)"', kind)
    return [_of_option(name, default, meanings.get(name, ""), words.get(name, [])) for name, default in options.items()]


def title(source_format: str) -> str:
    """What the files of a format are, in a line."""
    first = inspect.getdoc(readers.reader_of(source_format)) or ""
    return without_markup(first.partition("\n\n")[0])


def _of_option(name: str, default: Any, meaning: str, words: list[str]) -> Told:
    if not all(word in meaning for word in words):
        meaning += f" (one of {', '.join(words)})"
    if default is inspect.Parameter.empty:
        return Told(name, None, f"{meaning}; needed")
    return Told(name, default, meaning)


def _documented(reader: Any) -> Iterator[Any]:
    """What tells of options; the last one that does counts."""
    made = inspect.signature(reader, eval_str=True).return_annotation
    if inspect.isclass(made):
        yield made
    own = getattr(reader, "made_of", (reader,))
    for each in own:
        for path in _NAMED.findall(inspect.getdoc(each) or ""):
            module, _, name = path.rpartition(".")
            yield getattr(import_module(module or each.__module__), name)
    yield from own
