"""Writes ``methods.md`` beside it from the catalogue: ``python docs/reference/methods.py``.

A test holds that the page says what the catalogue says.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import ddlopt
from ddlopt.instances.library import library_folder
from ddlopt.models.catalogue import family as family_of
from ddlopt.models.contracts import Instance
from ddlopt.solvers.catalogue import entries
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.options import described, told

PAGE = Path(__file__).with_suffix(".md")
ASKED, LARGEST_BYTES = 24, 60_000
"""A method is asked about the 24 smallest instances of a problem, of files up to this size."""

HEAD = """# Methods

Every method by family and problem, made from the catalogue by `python docs/reference/methods.py`.

* **Kind.** *Exact* methods prove what they find, unless time runs out. *Heuristics* come with a bound, too.
  *References* are figures of a different network.
* **Options** are set wherever a method is named, as `METHOD:OPTION=VALUE,…`, e.g.
  `link-exchange:effort=2`; here they stand with what they are by default and what they may be. What they mean is told
  by `ddlopt show METHOD`, and in the [reference](api/index.md) of the class.
* **Source** is what the class cites first. The reference says what is taken from there, and of the other methods what
  is folklore and what is ours.

Models run on HiGHS; `--solver` names any other solver that Pyomo drives (`scip`, `cbc`, `glpk`, `gurobi`, …), and
[models as files](../howto/solvers.md) go to solvers of their own.
"""


def smallest(family: str) -> dict[str, list[Instance]]:
    """The smallest bundled instances of each problem of a family; the one problem of a family is called like it."""
    files = (path for path in library_folder(family).glob("*.json") if not path.name.endswith(".best.json"))
    by_size = sorted(files, key=lambda path: (path.stat().st_size, path.name))
    found: dict[str, list[Instance]] = {}
    for path in by_size:
        if path.name == "records.json" or path.stat().st_size > LARGEST_BYTES:
            continue
        instance = ddlopt.load(path)
        found.setdefault(getattr(instance, "problem", family), []).append(instance)
    return {problem: found[problem][:ASKED] for problem in sorted(found)}


def options(method: Method) -> Iterator[str]:
    """``name=default`` of every option that can be written, and what may be written."""
    yield from (f"`{each.name}={each.default}` ({each.values})" for each in told(method))


def source(method: Method) -> str:
    """Authors, venue and year of the first work that the class cites, without the title."""
    found = re.search(r"\n *References\n *-+\n(.*)", type(described(method)).__doc__ or "", re.DOTALL)
    cited = " ".join(found[1].split()) if found else ""
    first = re.match(r".*?\b\d{4}\b", cited)
    if first is None:
        return ""
    who, _, rest = first[0].partition('"')
    authors = who.rstrip(", ").split(", ")
    where = re.sub(r"^\([^)]*\),? *", "", rest.partition('"')[2].lstrip(", "))
    short = ", ".join(authors) if len(authors) < 3 or not rest else f"{authors[0]} et al."
    return f"{short}, {where}" if where else short


def row(entry: Entry) -> str:
    """The line of a method."""
    method = entry.make("highs")
    summary = re.sub(r"^(\w+): ", "", entry.summary)
    cells = (f"`{entry.name}`", entry.kind, summary, ", ".join(options(method)), source(method))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    for family in ddlopt.families():
        problems = smallest(family)
        lines += [f"## {family}", "", f"{family_of(family).title[0].upper()}{family_of(family).title[1:]}.", ""]
        made = {entry: entry.make("highs") for entry in entries(family)}
        for problem, asked in problems.items():
            if len(problems) > 1:
                lines += [f"### {family}: {problem}", ""]
            lines += ["| method | kind | what it does | options | source |", "|---|---|---|---|---|"]
            fitting = [
                entry
                for entry, method in made.items()
                if len(problems) == 1 or any(method.refuses(each) is None for each in asked)
            ]
            lines += [*map(row, fitting), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
