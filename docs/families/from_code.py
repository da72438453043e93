"""Writes what the pages of problems say of data, answers, models and methods: ``python docs/families/from_code.py``.

With names of problems (``topology``, ``gossip/weights``) it writes their pages alone.

Between ``<!-- from code: … -->`` and ``<!-- end -->`` a page has what the docstrings and components of the classes say
that are named there. Cells under *symbol* and *unit* are written by hand: they stay, and are empty where something is
new. A test holds that the pages say what the code says.
"""

import inspect
import itertools
import pkgutil
import re
import runpy
import sys
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyomo.environ as pyo

import ddlopt
from ddlopt.models.catalogue import family as family_of
from ddlopt.models.ports import ports_of

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
BUILDS, FIRST = 24, 2
"""The most instances on which a formulation is built: some components are there for some instances only."""
LARGEST_BYTES, LOADED = 26_000, 40
COMMON = ("family", "problem", "schema_version", "name", "source")
WIDTH = 160
WORDS = {
    pyo.Set: "set",
    pyo.RangeSet: "set",
    pyo.Param: "parameter",
    pyo.Var: "variable",
    pyo.Expression: "expression",
    pyo.Block: "block",
    pyo.Constraint: "constraint",
}
"""Kinds of components in the order of a table. Sets that only index something, and have no text, are left out."""
UNITS = {"_bytes_per_s": "bytes/s", "_flops_per_s": "FLOP/s", "_per_s": "1/s", "_bytes": "bytes", "_s": "s", "_w": "W"}
MARK = re.compile(r"(<!-- from code: (\w+) ([^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def problems() -> dict[str, tuple[str, str]]:
    """Pages by the problem they are about: ``{"gossip/weights": ("gossip", "weights"), "topology": …}``."""
    found: dict[str, tuple[str, str]] = {}
    for family in ddlopt.families():
        for path in sorted(problem.path for problem in family_of(family).problems):
            found[path] = (family, path.rpartition("/")[2])
    return found


def pages(problem: str) -> list[Path]:
    """The page of a problem, and those beside it: in the folder of its name, where they are no problem's own."""
    others = {FOLDER / f"{each}.md" for each in problems()}
    beside = (page for page in sorted((FOLDER / problem).glob("*.md")) if page not in others and page.stem != "index")
    return [FOLDER / f"{problem}.md", *beside]


# Docstrings as Markdown -------------------------------------------------------------------------------------------


def sections(text: str) -> dict[str, str]:
    """The parts of a numpydoc docstring; what stands before the first heading has none."""
    parts = _SECTION.split(text)
    return {"": parts[0].strip()} | {
        name: body.strip("\n") for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def inline(text: str) -> str:
    """Roles and literals of a paragraph as Markdown."""
    text = re.sub(r":math:`([^`]+)`", lambda found: f"${' '.join(found[1].split())}$", text)
    text = re.sub(r":\w+:`~?([^`<]+)`", lambda found: f"`{found[1].rpartition('.')[2]}`", text)
    return text.replace("``", "`")


def display(lines: Iterable[str]) -> str:
    """A displayed formula."""
    body = textwrap.dedent("\n".join(line for line in lines if line.strip()))
    aligned = "\\\\" in body or re.search(r"(?<!\\)&", body)
    inner = f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}" if aligned and "\\begin{pmatrix}" not in body else body
    return f"$$\n{inner}\n$$"


def filled(text: str, first: str = "", rest: str = "") -> str:
    """A paragraph in lines of the usual width, formulas and code unbroken."""
    kept = re.sub(
        r"\$[^$]+\$|`[^`]+`", lambda found: found[0].replace(" ", "\0").replace("-", "\1"), " ".join(text.split())
    )
    lines = textwrap.wrap(
        kept, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace("\0", " ").replace("\1", "-")


def markdown(text: str) -> str:
    """A docstring's prose: paragraphs, lists, displayed formulas; tables of symbols are left out."""
    out: list[str] = []
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        line = lines[place]
        if line.startswith(".. math::"):
            body = [line.removeprefix(".. math::").strip()]
            place += 1
            while place < len(lines) and (not lines[place].strip() or lines[place].startswith(" ")):
                body.append(lines[place])
                place += 1
            first = " " * min((len(each) - len(each.lstrip()) for each in body[1:] if each.strip()), default=0)
            out.append(display([first + body[0], *body[1:]] if body[0] else body[1:]))
        elif re.match(r"=+ +=+", line):
            place = next(at for at in range(place + 1, len(lines) + 1) if at == len(lines) or not lines[at].strip())
        elif not line.strip():
            place += 1
        else:
            item = "* " if line.startswith("* ") else ""
            block = [line.removeprefix("* ")]
            place += 1
            while place < len(lines) and lines[place].strip() and not lines[place].startswith((".. ", "* ")):
                block.append(lines[place])
                place += 1
            out.append(filled(inline("\n".join(block)), item, " " * len(item)))
    return re.sub(r"(^|\n)(\* .*)\n\n(?=\* )", r"\1\2\n", "\n\n".join(out))


def entries(section: str) -> Iterator[tuple[str, str, str]]:
    """Names, type and meaning of each line of a section such as *Parameters*."""
    for entry in re.split(r"\n(?=\S)", section.strip()):
        head, _, rest = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        yield names.strip(), kind.strip(), cell(rest)


def cell(text: str) -> str:
    """Text that stands in a table."""
    text = re.sub(r"\.\. math::\s*((?:.|\n)*)", lambda found: f":math:`{' '.join(found[1].split())}`", text)
    plain = inline(" ".join(text.split()))
    return re.sub(r"(?<!\\)\|", r"\\|", re.sub(r"\\\|", r"\\Vert ", plain)) if "|" in plain else plain


# Classes ----------------------------------------------------------------------------------------------------------


@cache
def classes(family: str) -> dict[str, type]:
    """All public classes of a family's models and of its frontier, by name."""
    rooms = [name for name in (f"ddlopt.models.{family}", f"ddlopt.frontier.{family}") if find_spec(name) is not None]
    found: dict[str, type] = {}
    for room in rooms:
        for place in pkgutil.walk_packages(import_module(room).__path__, f"{room}."):
            kinds = inspect.getmembers(import_module(place.name), inspect.isclass)
            found |= {name: kind for name, kind in kinds if not name.startswith("_")}
    return {name: kind for name, kind in found.items() if kind.__module__.startswith(("ddlopt.models.", *rooms))}


@cache
def cases() -> Any:
    """How formulations that need options are made: what the tests of embeddings have."""
    folder = str(ROOT / "tests" / "helpers")
    if folder not in sys.path:
        sys.path.append(folder)
    return import_module("embedding_cases")


def formulations(family: str, problem: str) -> list[type]:
    """The classes that fill a Pyomo block or give a program of CVXPY for instances of a problem."""
    kinds = {kind: None for kind in classes(family).values() if hasattr(kind, "build") or hasattr(kind, "problem")}
    kinds = {kind: None for kind in kinds if "Ports" in sections(inspect.getdoc(kind) or "")}
    return [kind for kind in kinds if next(builds(family, problem, kind), None) is not None]


@cache
def instances(family: str, problem: str) -> tuple[Any, ...]:
    """The smallest instances of a problem, among them those that tests make because no bundled one is like them."""
    folder = ddlopt.instances.library_folder(family)
    paths = sorted(folder.rglob("*.json"), key=lambda path: (path.stat().st_size, path.name))
    paths = [path for path in paths if path.stat().st_size <= LARGEST_BYTES and "best" not in path.suffixes[0]]
    found = (ddlopt.load(path) for path in paths if path.name != "records.json")
    right = (each for each in found if getattr(each, "problem", family) == problem)
    made = cases().further(family)
    further = [each for each in made if getattr(each, "problem", family) == problem]
    return (*itertools.islice(right, FIRST), *further, *itertools.islice(right, LOADED))


def made(kind: type, instance: Any) -> Iterator[Any]:
    """The formulation, and the same with options that change which components there are."""
    yield cases().NEEDING.get(kind, lambda _: kind())(instance)
    for name, make in cases().FURTHER.items():
        if name.partition(",")[0] == kind.__name__:
            yield make(instance)


@cache
def _covered(family: str, problem: str, kind: type) -> tuple[Any, ...]:
    return tuple(
        each
        for each in instances(family, problem)
        if isinstance(each, first_parameter(kind)) and not refused(kind, each)
    )


def first_parameter(kind: type) -> Any:
    """The class of instances that a formulation is for, as its signature has it."""
    method = kind.build if hasattr(kind, "build") else kind.problem  # type: ignore[attr-defined]
    return next(
        value
        for name, value in inspect.get_annotations(inspect.unwrap(method), eval_str=False).items()
        if name == "instance"
    )


def refused(kind: type, instance: Any) -> bool:
    """Whether a formulation does not cover an instance."""
    formulation = cases().NEEDING.get(kind, lambda _: kind())(instance)
    return hasattr(formulation, "refuses") and formulation.refuses(instance) is not None


def builds(family: str, problem: str, kind: type) -> Iterator[Any]:
    """Blocks, or programs of CVXPY, of the smallest instances that a formulation covers."""
    for instance in itertools.islice(_covered(family, problem, kind), BUILDS):
        if hasattr(kind, "problem") and not hasattr(kind, "build"):
            yield cases().program(kind, instance)
            continue
        for formulation in made(kind, instance):
            host = pyo.ConcreteModel()
            host.block = pyo.Block()
            formulation.build(host.block, instance)
            yield host.block


def components(family: str, problem: str, kind: type) -> dict[str, tuple[str, str]]:
    """Kind and meaning of every component, by name with the indices that its port has."""
    ports = {port.name: port for port in ports_of(kind)}
    meant = {str(port): cell(port.meaning.removeprefix("Variable: ")) for port in ports_of(kind)}
    found: dict[str, tuple[str, str]] = {}
    related = sorted({each for its, each in problems().values() if its == family}, key=lambda each: each != problem)
    for made_ in itertools.chain.from_iterable(builds(family, each, kind) for each in related):
        if not isinstance(made_, pyo.Block().__class__) and hasattr(made_, "var_dict"):
            found |= {name: ("variable", "") for name in made_.var_dict if name not in found}
            found |= {str(each): ("constraint", "") for each in ports.values() if each.name == "constraints"}
            continue
        for each in made_.component_objects(descend_into=False):
            name = each.local_name
            word = WORDS.get(each.ctype, "")
            if name not in found and each.ctype in WORDS and (each.doc or word != "set"):
                found[name] = (word, each.doc or "")
    order = list(WORDS.values())
    named: dict[str, tuple[str, str]] = {}
    for name in sorted(found, key=lambda each: order.index(found[each][0])):
        word, doc = found[name]
        port = ports.get(name)
        where = f" ({cell(port.where)})" if port and port.where else ""
        meaning = cell(doc) or meant.get(str(port or name), "") or name.replace("_", " ")
        named[str(port) if port and name != "constraints" else name] = (word, meaning + where)
    return named


# What stands on a page --------------------------------------------------------------------------------------------


def by_hand(old: str) -> dict[str, tuple[str, str]]:
    """Cells under symbol and unit of the tables that are there, by component."""
    rows = re.findall(r"^\| `([\w, ]+)[^`]*` \|([^|]*)\|([^|]*)\|", old, re.MULTILINE)
    return {name: (symbol.strip(), unit.strip()) for name, symbol, unit in rows}


def unit_of(name: str) -> str:
    """The unit that a field's name ends with."""
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "")


def table(rows: Iterable[tuple[str, str, str]], old: str, head: str) -> str:
    """Rows of name, kind and meaning, with the cells that are written by hand."""
    kept = by_hand(old)
    lines = [f"| {head} | symbol | unit | is | meaning |", "|---|---|---|---|---|"]
    for name, kind, meaning in rows:
        symbol, unit = kept.get(re.match(r"[\w, ]+", name)[0], ("", unit_of(name)))  # type: ignore[index]
        lines.append(f"| `{name}` | {symbol} | {unit} | {kind} | {meaning} |".replace("  ", " "))
    return "\n".join(lines)


def data(family: str, names: str, old: str) -> str:
    """The fields of classes, e.g. of an instance and of what it consists of."""
    parts = []
    for name in names.split():
        kind = classes(family)[name]
        said = sections(inspect.getdoc(kind) or "")
        fields = said.get("Parameters") or said.get("Attributes")
        rows = entries(fields) if fields else ((each, "", "") for each in kind.model_fields if each not in COMMON)
        parts += [f"**`{name}`.** {filled(inline(said[''].split(chr(10) * 2)[0]))}"]
        parts += [table(((each, cell(what), text) for each, what, text in rows), old, "field")]
    return "\n\n".join(parts)


def model(family: str, problem: str, name: str, old: str) -> str:
    """The mathematics of a formulation, and its components."""
    kind = classes(family)[name]
    said = sections(inspect.getdoc(kind) or "")
    rows = ((each, *rest) for each, rest in components(family, problem, kind).items())
    sources = [f"*Source:* {markdown(said['References'])}"] if "References" in said else []
    return "\n\n".join([markdown(said[""]), *sources, table(rows, old, "component")])


@cache
def _methods_page() -> dict[str, Any]:
    return runpy.run_path(str(FOLDER.parent / "reference/methods.py"))


@cache
def _smallest(family: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = _methods_page()["smallest"](family)
    return found


def methods(family: str, problem: str) -> str:
    """The methods of a problem, with their sources."""
    page = _methods_page()
    asked = _smallest(family)[problem]
    lines = ["| method | kind | what it does | source |", "|---|---|---|---|"]
    for entry in page["entries"](family):
        method = entry.make("highs")
        if len(_smallest(family)) == 1 or any(method.refuses(each) is None for each in asked):
            summary = re.sub(r"^(\w+): ", "", entry.summary)
            cells = (f"`{entry.name}`", entry.kind, summary, page["source"](method))
            lines.append(f"| {' | '.join(each.replace('|', chr(92) + '|') for each in cells)} |".replace("  ", " "))
    return "\n".join(lines)


def written(page: str, text: str) -> str:
    """The page with what the code says now."""
    family, problem = problems()[page]

    def part(found: re.Match[str]) -> str:
        kind, names, old = found[2], found[3], found[0]
        body = {
            "data": lambda: data(family, names, old),
            "model": lambda: model(family, problem, names, old),
            "methods": lambda: methods(family, problem),
        }[kind]()
        return f"{found[1]}\n{body}\n\n{found[4]}"

    return MARK.sub(part, text)


if __name__ == "__main__":
    if unknown := sorted(set(sys.argv[1:]) - set(problems())):
        sys.exit(f"there is no problem '{unknown[0]}'; there are: {', '.join(problems())}")
    for each in sys.argv[1:] or problems():
        for path in pages(each):
            path.write_text(written(each, path.read_text(encoding="utf-8")), encoding="utf-8")
            print(path.relative_to(ROOT))
