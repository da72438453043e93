"""How a solution travels in a file that is for somebody else: below what the file is about, in comments.

A file begins with lines of comment on what it is, and ends with the solution as JSON in lines that begin with ``#= ``,
in XML with ``<!--= ``. Whoever reads it back writes it anew from that solution and compares: a file that was edited
above, or below, is refused, so that nothing that people see can differ from what is taken.
"""

import json
import re
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.errors import OptionError, SolutionError, plain
from ddlopt.models.reading import UnreadableError, parsed, read_text

_MARK = "#= "
_XML = "<!-- ", " -->"
_XML_MARK = "<!--= "
# So that a line with its mark is as wide as the house's.
_WIDTH = 117
_TITLE = re.compile(r"^(?:#|<!--) Written by ddlopt (\S+): ")
# Of what a message shows of a line.
_SHOWN = 60


@dataclass(frozen=True)
class Stamp:
    """What the last lines of a file hold: its format and options, and of which instance the solution is."""

    format: str
    options: dict[str, Any]
    instance: str
    instance_digest: str
    solution: dict[str, Any]

    @classmethod
    def of(cls, target_format: str, instance: Instance, solution: Solution, options: dict[str, Any]) -> Self:
        """The stamp of a solution.

        Raises
        ------
        OptionError
            If an option is no JSON.
        """
        try:
            given = json.loads(json.dumps(options, allow_nan=False))
        except (TypeError, ValueError) as problem:
            raise OptionError(f"options of a format are words, numbers and lists of them: {problem}") from None
        return cls(target_format, given, instance.name, instance.digest, solution.model_dump(mode="json"))

    def belongs_to(self, instance: Instance, origin: str) -> None:
        """Raise :class:`SolutionError` unless it is of the instance."""
        if self.instance_digest != instance.digest:
            raise SolutionError(
                f"{origin}: the plan is for instance '{shown(self.instance)}' (digest {self.instance_digest[:12]}…), "
                f"not for '{instance.name}' (digest {instance.digest[:12]}…)"
            )


def written(stamp: Stamp, first_line: str, body: str, xml: bool = False) -> str:
    """The whole file; ``xml`` says that comments are those of XML."""
    opens, closes = _XML if xml else ("# ", "")
    lines = [first_line] if first_line else []
    told = f"Written by ddlopt {version('ddlopt')}: format {stamp.format}, for the instance {shown(stamp.instance)}"
    lines += [
        f"{opens}{_without_dashes(told, '- ') if xml else told}{closes}",
        f"{opens}with digest {stamp.instance_digest}.{closes}",
        f"{opens}To change the plan, change the solution and export it again: `ddlopt import-plan` refuses edited "
        f"files.{closes}",
        "",
        *body.rstrip("\n").split("\n"),
        "",
        f"{opens}What `ddlopt import-plan` reads back:{closes}",
    ]
    # Spaces occur within strings only, where an escape stands for them: no editor strips or folds such lines.
    payload = json.dumps(asdict(stamp), separators=(",", ":"), allow_nan=False).replace(" ", "\\u0020")
    if xml:
        payload = _without_dashes(payload, "\\u002d")
    before, after = (_XML_MARK, _XML[1]) if xml else (_MARK, "")
    lines += [f"{before}{payload[at : at + _WIDTH]}{after}" for at in range(0, len(payload), _WIDTH)]
    return "\n".join(lines) + "\n"


def _without_dashes(text: str, dash: str) -> str:
    """A text for a comment of XML, in which no two dashes may stand side by side."""
    return re.sub("-(?=-)", lambda _: dash, text)


def read(file: str | Path) -> str:
    """Text of a file, with line feeds only.

    Raises
    ------
    SolutionError
        If it cannot be read.
    """
    try:
        return read_text(file).replace("\r\n", "\n")
    except UnreadableError as problem:
        raise SolutionError(f"{file}: cannot be read: {problem}") from None


def stamp_of(text: str, origin: str) -> Stamp:
    """The stamp at the end of a file.

    Raises
    ------
    SolutionError
        If there is none.
    """
    lines = text.rstrip("\n").split("\n")
    if lines[-1].startswith(_XML_MARK):
        lines = [
            _MARK + line.removeprefix(_XML_MARK).removesuffix(_XML[1]) if line.startswith(_XML_MARK) else line
            for line in lines
        ]
    first = len(lines)
    while first and lines[first - 1].startswith(_MARK.rstrip()):
        first -= 1
    if first == len(lines):
        raise SolutionError(
            f"{origin}: this is no file of `ddlopt export-plan`: its last lines should begin with '{_MARK.rstrip()}'"
        )
    payload = "".join(line[len(_MARK) :].strip() for line in lines[first:])
    try:
        data = parsed(payload)
    except ValueError as problem:
        raise SolutionError(f"{origin}: its last lines, from line {first + 1} on, are damaged: {problem}") from None
    return _stamp(data, f"{origin}: its last lines, from line {first + 1} on,")


def _stamp(data: Any, where: str) -> Stamp:
    wanted = {each.name for each in fields(Stamp)}
    if not isinstance(data, dict) or set(data) != wanted:
        raise SolutionError(f"{where} are damaged: expected an object with {', '.join(sorted(wanted))}")
    for name in ("format", "instance", "instance_digest"):
        if not isinstance(data[name], str):
            raise SolutionError(f"{where} are damaged: {name} is no text")
    if not isinstance(data["options"], dict):
        raise SolutionError(f"{where} are damaged: options are no object")
    return Stamp(**data)


def require_same(text: str, again: str, origin: str) -> None:
    """Raise :class:`SolutionError` where a file says something else than its solution does.

    Parameters
    ----------
    text, again : str
        The file, and what would be written today.
    """
    theirs, ours = text.rstrip("\n").split("\n"), again.rstrip("\n").split("\n")
    by = _version(theirs)
    told = f" (it says that ddlopt {shown(by)} wrote it, and this is {version('ddlopt')})"
    note = "" if by in (None, version("ddlopt")) else told
    theirs, ours = [_TITLE.sub("", line) for line in theirs], [_TITLE.sub("", line) for line in ours]
    for number, (line, wanted) in enumerate(zip(theirs, ours, strict=False), start=1):
        if line.rstrip() != wanted.rstrip():
            raise SolutionError(
                f"{origin}: line {number} is '{shown(line)}', but the plan in its last lines says "
                f"'{shown(wanted)}': undo the edit, or change the solution and export it again{note}"
            )
    if len(theirs) != len(ours):
        raise SolutionError(
            f"{origin}: it has {len(theirs)} lines, but the plan in its last lines makes {len(ours)}{note}"
        )


def _version(lines: list[str]) -> str | None:
    return next((found[1] for line in lines[:2] if (found := _TITLE.match(line))), None)


def shown(text: str | None) -> str:
    """Beginning of a text that somebody else wrote, in one line."""
    whole = plain(text or "")
    return whole if len(whole) <= _SHOWN else f"{whole[:_SHOWN]}…"
