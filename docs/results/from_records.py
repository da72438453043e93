"""Writes what pages say of results, from the library's records and kept runs: ``python docs/results/from_records.py``.

Three marks, which a reader of the page does not see:

* ``<!-- from records: gaps FAMILY -->`` … ``<!-- end -->``: what stands between is written anew, the family's tables
  and how their runs were made; after ``gaps FAMILY METHOD,… INSTANCE …`` a table of these alone; after
  ``open PATTERN …`` the instances that are not proven, after ``once-open PATTERN …`` those that once were, after
  ``problems PATTERN …`` a line for each problem, after ``losses FAMILY/METHOD …`` one for each of these methods;
* ``27.08 ms<!-- = best('codesign/ncf-n128-d4') -->``: the figure in front is the value of the expression, in the unit
  and with the decimals that it has there;
* ``<!-- holds: max(losses('joint', 'codesign/*')) < 0.4 -->``: what the sentence in front says in words is true.

Expressions are Python, with the functions of ``figures.py``. Where the data have changed the command writes new figures
and names the sentences that do not hold any more. A test holds that it has nothing to write.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
sys.path[:0] = [str(FOLDER), str(ROOT)]

from figures import FIGURES, FigureError, loss_table, once_open, open_instances, problem_table  # noqa: E402

from benchmarks.suite import gaps  # noqa: E402
from ddlopt.solvers.names import listed  # noqa: E402

BLOCK = re.compile(
    r"(<!-- from records: (gaps|open|once-open|problems|losses) (\S+)([^\n]*) -->\n).*?(<!-- end -->)", re.DOTALL
)
FIGURE = re.compile(
    r"(?P<figure>[-−]?\d+(?:\.\d+)?)(?P<unit> ?(?:%|ms|µs|s)|)(?P<mark><!-- = (?P<expression>[\s\S]+?) -->)"
)
CLAIM = re.compile(r"<!-- holds: (.+?) -->", re.DOTALL)
MARK = re.compile(r"<!-- (?:= |holds: |from records: )")
UNITS = {"%": 1e2, "ms": 1e3, "µs": 1e6, "s": 1.0, "": 1.0}
"""What a value is multiplied with, to be told in a unit."""


def pages() -> list[Path]:
    """Every page that may quote a result."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def value(expression: str) -> Any:
    """What an expression comes to.

    Raises
    ------
    FigureError
        If it cannot be read, or there are no data for it.
    """
    try:
        return eval(" ".join(expression.split()), dict(FIGURES))
    except FigureError:
        raise
    except Exception as problem:
        raise FigureError(f"{expression}: {problem}") from None


def written(text: str) -> str:
    """The page with the figures that the data have now."""

    def figure(found: re.Match[str]) -> str:
        decimals = len(found["figure"].partition(".")[2])
        told = value(found["expression"]) * UNITS[found["unit"].strip()]
        sign = "−" if found["figure"][0] == "−" and told < 0 else ""
        number = f"{abs(told) if sign else told:.{decimals}f}"
        return f"{sign}{number}{found['unit']}{found['mark']}"

    def block(found: re.Match[str]) -> str:
        family, words = found[3], found[4].split()
        tables = {"open": open_instances, "once-open": once_open, "problems": problem_table, "losses": loss_table}
        if found[2] in tables:
            body = tables[found[2]](family, *words)
        else:
            body = gaps.selection(family, listed(words[0]), words[1:]) if words else gaps.text_of(family)
        return f"{found[1]}\n{body}\n\n{found[5]}"

    return FIGURE.sub(figure, BLOCK.sub(block, text))


def untrue(text: str) -> Iterator[str]:
    """What a page says that does not hold, and marks that cannot be read."""
    for claim in CLAIM.findall(text):
        if not value(claim):
            yield f"does not hold: {' '.join(claim.split())}"
    known = sum(len(pattern.findall(text)) for pattern in (BLOCK, FIGURE, CLAIM))
    if known != len(MARK.findall(text)):
        yield "a mark is not understood: a figure must stand right in front of its mark, a block must end"


def main() -> int:
    """Exit code 1 if a sentence does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", action="store_true", help="draw the pictures beside the tables too")
    options = parser.parse_args()
    wrong = 0
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if not MARK.search(text):
            continue
        try:
            new = written(text)
            problems = list(untrue(new))
        except FigureError as problem:
            new, problems = text, [str(problem)]
        if new != text:
            path.write_text(new, encoding="utf-8")
            print(f"written: {path.relative_to(ROOT)}")
        for problem in problems:
            print(f"{path.relative_to(ROOT)}: {problem}", file=sys.stderr)
        wrong += len(problems)
    if options.pictures:
        for family in gaps.PICTURED:
            gaps.picture(family, FOLDER / f"{family}_gap.png")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
