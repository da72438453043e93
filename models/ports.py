"""What of a formulation a host model may couple to, as its class says under the heading *Ports*.

An entry of that section reads, in the manner of numpydoc, ``name[index, …]``, … : where it is there, and is followed by
an indented line or more of what it means. Without a colon the port is always there. A host may rely on these names, on
their indices, and on ``block.objective``; whatever else is in the block may change.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ddlopt.models.errors import OptionError

_SECTION = re.compile(r"^Ports\n-----\n(.*?)(?=^\S[^\n]*\n---|\Z)", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^(``[^`]+``(?:, ``[^`]+``)*)(?: : (.+))?$")
_NAME = re.compile(r"``(\w+)(?:\[([^\]]+)\])?``")


@dataclass(frozen=True)
class Port:
    """A component that a host model may couple to.

    Parameters
    ----------
    name : str
        Attribute of the block; of a convex program the name of a variable, or ``constraints``.
    indices : tuple of str
        Symbols of its indices, as the mathematics of the class has them; empty for a single one.
    where : str
        For which options or instances it is there; empty if it always is.
    meaning : str
        One paragraph, in the markup of the docstring.
    """

    name: str
    indices: tuple[str, ...]
    where: str
    meaning: str

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(self.indices)}]" if self.indices else self.name


def ports_of(formulation: type) -> tuple[Port, ...]:
    """The ports of a formulation, in the order of its docstring.

    Raises
    ------
    OptionError
        If the docstring has no such section, or a line in it is no entry.
    """
    section = _SECTION.search(inspect.getdoc(formulation) or "")
    if section is None:
        raise OptionError(f"{formulation.__name__} documents no ports")
    return tuple(_ports(formulation.__name__, section[1]))


def _ports(owner: str, section: str) -> Iterator[Port]:
    for entry in re.split(r"\n(?=\S)", section.strip()):
        head, *rest = entry.split("\n")
        match = _ENTRY.match(head)
        names = list(_NAME.finditer(match[1])) if match else []
        if match is None or len(names) != match[1].count("``") // 2 or not rest:
            raise OptionError(f"the ports of {owner} have an entry that is none: {head}")
        meaning = " ".join(line.strip() for line in rest)
        for name in names:
            indices = tuple(name[2].split(", ")) if name[2] else ()
            yield Port(name[1], indices, match[2] or "", meaning)
