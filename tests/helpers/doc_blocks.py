"""The code blocks of the README, the contribution guide and the documentation, and what is to be done with them.

What a reader does not see stands in an HTML comment right above a block:

* ``<!-- not run: REASON -->``: it takes something that the tests do not have;
* ``<!-- slow: REASON -->``: it is run by the slow tests only;
* ``<!-- output varies: REASON -->``: it is run, and what it prints is not compared;
* ``<!-- time limit N: REASON -->``: the same with another time limit;
* ``<!-- file: NAME -->``: it is the contents of that file, for the blocks below it.

A block without language below one with commands or Python is what that prints.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
)
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*|\{[\w-]+\}.*) *$")
_NOTE = re.compile(r"^ *<!-- (?P<kind>not run|slow|output varies|time limit \d+|file): (?P<text>\S.*) -->$")


@dataclass
class Block:
    """A fenced block: where it begins, its language, its lines, its notes, and what it prints if that is shown."""

    page: str
    line: int
    language: str
    lines: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    output: list[str] | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def time_limit(self) -> str | None:
        return next((kind.split()[-1] for kind in self.notes if kind.startswith("time limit")), None)

    @property
    def compared(self) -> bool:
        return "output varies" not in self.notes and self.time_limit is None

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Each command of a console block with the lines that it prints."""
        found: list[tuple[str, list[str]]] = []
        for line in self.lines:
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and found[-1][0].endswith("\\"):
                found[-1] = (found[-1][0][:-1] + line.strip(), found[-1][1])
            else:
                assert found, f"{self.page}:{self.line}: a console block begins with a command, `$ …`"
                found[-1][1].append(line)
        if self.output and found:
            found[-1][1].extend(self.output)
        yield from found


def blocks(page: str) -> list[Block]:
    """The blocks of a page, those that are the output of another one with that one."""
    found: list[Block] = []
    notes: dict[str, str] = {}
    inside, quiet = False, False
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        fence, note = _FENCE.match(line), _NOTE.match(line)
        if inside and line.strip() == "```":
            inside, quiet, notes = False, True, {}
        elif inside:
            found[-1].lines.append(line)
        elif fence and fence["language"] == "" and quiet and found and found[-1].output is None and not notes:
            found[-1].output = []
            found.append(Block(page, number, "output", found[-1].output))
            inside = True
        elif fence:
            found.append(Block(page, number, fence["language"], notes=notes))
            inside = True
        elif note:
            assert note["kind"] not in notes, f"{page}:{number}: said twice"
            notes[note["kind"]] = note["text"]
        elif line.strip():
            assert not notes, f"{page}:{number}: a note stands right above its block"
            quiet = False
    assert not inside, f"{page}: a block has no end"
    return [block for block in found if block.language != "output" and not block.language.startswith("{")]


def all_blocks() -> list[Block]:
    """The blocks of all pages."""
    return [block for page in PAGES for block in blocks(page)]
