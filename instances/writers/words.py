"""Texts that somebody else wrote, as single words of Bash, Python and YAML, and names of hosts."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ddlopt.models.errors import OptionError, SolutionError

_SAFE = re.compile(r"[A-Za-z0-9_.,:/@%+=-]+")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
# What is neither control, nor quote, nor backslash.
_ORDINARY = set(map(chr, range(0x20, 0x7F))) - set("'\"\\")


def bash_word(text: str) -> str:
    r"""One word of Bash, in ASCII and on one line: ``$'…'`` with bytes of UTF-8 where it needs to be.

    Raises
    ------
    SolutionError
        If it holds a NUL, which no argument of a program can.
    """
    if "\0" in text:
        raise SolutionError(f"the name {json.dumps(text)} holds a NUL, which no argument of a program can")
    if _SAFE.fullmatch(text):
        return text
    if set(text) <= _ORDINARY:
        return f"'{text}'"
    escaped = (each if each in _ORDINARY else "".join(f"\\x{byte:02x}" for byte in each.encode()) for each in text)
    return "$'" + "".join(escaped) + "'"


def yaml_text(text: str) -> str:
    r"""A scalar of YAML in double quotes, in ASCII and on one line."""
    escaped = (each if each in _ORDINARY or each == "'" else f"\\U{ord(each):08x}" for each in text)
    return '"' + "".join(escaped) + '"'


def yaml_lines(data: Any, indent: int = 0) -> Iterator[str]:
    """Mappings, sequences, texts, whole numbers and truth values in YAML's block style; keys are plain words."""
    space = " " * indent
    if isinstance(data, Mapping):
        for key, value in data.items():
            if isinstance(value, Mapping | list) and value:
                yield f"{space}{key}:"
                yield from yaml_lines(value, indent + 2)
            else:
                yield f"{space}{key}: {_scalar(value)}"
    else:
        for value in data:
            first, *rest = yaml_lines(value, indent + 2) if isinstance(value, Mapping | list) else [_scalar(value)]
            yield f"{space}- {first.lstrip()}"
            yield from rest


def _scalar(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return "{}" if isinstance(value, Mapping) else "[]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else yaml_text(str(value))


def host_names(hosts: str | Sequence[str] | None, count: int) -> tuple[str, ...]:
    """Names of servers: as given, with commas or as a list, or ``node0``, ``node1`` and so on.

    Raises
    ------
    OptionError
        If there are not as many as servers, or one is no name of a host, or is given twice.
    """
    if hosts is None:
        return tuple(f"node{server}" for server in range(count))
    names = hosts.split(",") if isinstance(hosts, str) else hosts
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        raise OptionError(f"hosts is {hosts!r}; give the names of the servers with commas, or a list of them")
    names = tuple(each.strip() for each in names)
    if len(names) != count:
        raise OptionError(f"hosts names {len(names)} servers, but there are {count}; give one name for each, in order")
    seen: set[str] = set()
    for name in names:
        if not _HOST.fullmatch(name):
            raise OptionError(f"hosts names {name!r}; a name of a host has letters, digits, '-' and '.' only")
        if name in seen:
            raise OptionError(f"hosts names '{name}' twice")
        seen.add(name)
    return names
