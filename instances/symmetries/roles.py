"""What lines of the tables mean: the role of each field, units, and which lines an instance has."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ddlopt.instances.symmetries.answers import ANSWERS
from ddlopt.instances.symmetries.shapes import INSTANCES, OBJECTIVES

Unit = tuple[tuple[str, int], ...]
"""Exponents by dimension: (("B", 1), ("s", -1)) for bytes per second."""
SUFFIXES = {
    "_flops_per_s": "F/s",
    "flops_per_s": "F/s",
    "bytes_per_s": "B/s",
    "s_per_byte": "s/B",
    "_bytes": "B",
    "bytes": "B",
    "_s": "s",
    "_s_per_sample": "s",
    "_s_per_worker": "s",
    "_s_per_level": "s",
    "flops": "F",
}
"""Units by how the name of a field ends, the longest end first."""


@dataclass(frozen=True)
class Role:
    """A line: what is meant (``list``, ``count``, ``number``, …), of which entity, class or unit."""

    kind: str
    of: str = ""

    @property
    def unit(self) -> Unit:
        """Of a figure or a moment; nothing else has one."""
        return unit(self.of) if self.kind in ("figure", "moment") else ()

    def entity(self, at: tuple[int, ...]) -> str:
        """Of a list or a number within lists, with its places ``at`` in these."""
        return re.sub(r"\{(\d)\}", lambda match: str(at[int(match[1])]), self.of)


_ROLES = (
    (r"\[(.+)\]", "list"),
    (r"#(.+)", "count"),
    (r"(\{\})", "shuffled"),
    (r"(\{<\})", "ascending"),
    (r"(<>)", "ends"),
    (r"(~)", "inner"),
    (r"'(.+)", "text"),
    (r"keys (.+)", "keys"),
    (r"= (.+)", "figure"),
    (r"@ (.+)", "moment"),
    (r"as (.+)", "document"),
    (r"(.+)", "number"),
)


@cache
def roles_in(lines: str) -> dict[str, Role]:
    """The role of each path that is named."""
    found = {}
    for line in filter(None, map(str.strip, lines.splitlines())):
        path, _, told = line.partition(" ")
        pattern, kind = next((p, k) for p, k in _ROLES if re.fullmatch(p, told))
        match = re.fullmatch(pattern, told)
        assert match is not None
        found[path] = Role(kind, match[1])
    return found


@cache
def role(lines: str, path: str) -> Role | None:
    """The role of a path: as named, or as its last field's name tells."""
    named = roles_in(lines).get(path)
    if named is not None:
        return named
    last = path.rpartition(".")[2]
    if last == "name":
        return Role("text", path)
    return next((Role("figure", SUFFIXES[end]) for end in sorted(SUFFIXES, key=len)[::-1] if last.endswith(end)), None)


@cache
def unit(text: str) -> Unit:
    """Exponents of ``"B/s"``, ``"W*s"``, ``"1"``; a dimension that begins with N grows by whole numbers only."""
    exponents: dict[str, int] = {}
    for sign, name in re.findall(r"(^|[*/])([A-Za-z]+|1)", text):
        exponents[name] = exponents.get(name, 0) + (-1 if sign == "/" else 1)
    exponents.pop("1", None)
    return tuple(sorted(exponents.items()))


def lines_of(path: str, data: Mapping[str, Any], answer: bool = False) -> str:
    """The lines of an instance's data, or of answers to it; where a word of it decides, those of that word."""
    table, words = ANSWERS if answer else INSTANCES, {data.get("norm"), data.get("mode"), data.get("optics")}
    return next((table[f"{path} {word}"] for word in words if f"{path} {word}" in table), table[path])


def objective_unit(path: str, data: Mapping[str, Any]) -> Unit:
    """The unit of the objective of an instance's data."""
    told = OBJECTIVES.get(path, "s")
    if isinstance(told, str):
        return unit(told)
    field, by_word = told
    return unit(by_word.get(data[field], "s"))
