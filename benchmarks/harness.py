"""What all benchmarks share: arguments, clocks, pairs, processes of their own, tables, rows that are kept.

A script is a claim. Its docstring says what is claimed; its functions are the tables that show it: each takes the
arguments (:class:`Asked`) and yields rows, dictionaries from heading to cell, which are printed as they come. ``BENCH``
names the tables, and the options with their defaults and what they are with ``--quick``::

    def growth(asked):
        \"\"\"Seconds by the number of servers.\"\"\"
        for n in asked.sizes:
            result, spent = clocked("link-exchange", made(n), asked.limits)
            yield {"n": n, "s": spent.processor_s, "gap": gap_text(result.gap)}

    BENCH = Benchmark(growth, sizes=Option([8, 16, 32], quick=[8]), time_limit=Option(60.0, quick=1.0))

``python benchmarks FAMILY/NAME [TABLE …] [--sizes 8 64] [--quick] [--write FOLDER]`` runs it.
"""

import argparse
import datetime
import functools
import json
import math
import multiprocessing
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

import ddlopt
from ddlopt.analysis.texts import NONE
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import DdloptError
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Limits, Method, Result, compiled

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = Path(os.environ.get("DDLOPT_SHARED_DATA", ROOT.parent / "shared" / "data"))
"""Where public data are that are not part of the project."""
DDLOPT = (sys.executable, "-I", "-c", "import sys; from ddlopt.cli import run; sys.exit(run(sys.argv[1:]))")
"""The command ``ddlopt``, to be followed by its arguments."""
HELP = {
    "instances": "names of instances",
    "time_limit": "seconds for each solve",
    "gap": "relative gap at which a solve may end",
    "threads": "threads of a solve",
    "seeds": "how many seeds",
    "seed": "of what is drawn",
    "repeat": "runs of each, in alternating order",
    "sizes": "sizes to go through",
    "keep": "file for rows; the same command goes on where it was interrupted",
}
"""Of options that mean the same everywhere."""
SHORT_S = 30.0
"""A run of less time shows what a method finds in that time; what the method can do takes longer."""
SHORT = "The table says what is found in so much time, not what a method can do."
_SAME = object()
_LONGEST_DEFAULT = 60
"""Characters of a default that ``--help`` tells."""

Row = Mapping[str, Any]
Table = Callable[["Asked"], Iterable[Row | str]]


class Skipped(Exception):  # noqa: N818 - it is no error that data or a program are not here
    """Something that the benchmark needs is not on this machine."""


@dataclass(frozen=True)
class Option:
    """An option: its default, what ``--quick`` makes of it, and what argparse wants to know."""

    default: Any = None
    help: str = ""
    quick: Any = _SAME
    type: Callable[[str], Any] | None = None
    choices: Iterable[str] | None = None
    positional: bool = False

    def add(self, parser: argparse.ArgumentParser, name: str) -> None:
        sample = self.default[0] if isinstance(self.default, list | tuple) and self.default else self.default
        kind = self.type or (str if sample is None else type(sample))
        told = self.help or HELP.get(name, name.replace("_", " "))
        flag = name if self.positional else f"--{name.replace('_', '-')}"
        if self.default is False:
            parser.add_argument(flag, action="store_true", help=told)
            return
        many = isinstance(self.default, list | tuple)
        words = {"nargs": "*"} if many else {"nargs": "?"} if self.positional else {}
        default = " ".join(map(str, self.default)) if many else str(self.default)
        if 0 < len(default) <= _LONGEST_DEFAULT and self.default is not None:
            told += f" (default: {default})"
        choices = None if self.choices is None else list(self.choices)
        # argparse holds the default of "*" against the choices, so that those are checked by us.
        shown = {"choices": choices} if choices and not many else {}
        if many and choices:
            told += f": {', '.join(choices)}"
        parser.add_argument(flag, type=kind, default=self.default, help=told.replace("%", "%%"), **words, **shown)

    def check(self, parser: argparse.ArgumentParser, name: str, value: Any) -> None:
        if self.choices is not None and isinstance(value, list) and (unknown := set(value) - set(self.choices)):
            parser.error(f"{name}: there is no {', '.join(sorted(unknown))}; there are {', '.join(self.choices)}")


class Asked(argparse.Namespace):
    """The arguments of a run, and what depends on them."""

    @property
    def limits(self) -> Limits:
        return Limits(self.time_limit, getattr(self, "gap", 1e-4), getattr(self, "threads", 1))

    def save(self, figure: Callable[[], Any], name: str) -> None:
        """Draw and save a picture, if there is a folder to write to."""
        if self.write is not None:
            from ddlopt.analysis import plots

            plots.save(figure(), self.write / name)


class Benchmark:
    """Tables that show a claim.

    Parameters
    ----------
    *tables : callable
        Of :class:`Asked`; each yields rows, and text between them.
    page, head : str
        Name and beginning of the page that ``--write FOLDER`` writes; the name is that of the script by default.
    pages : bool
        Whether there is such a page; if not, the script makes its own files in ``asked.write``.
    in_all : bool
        Whether ``python benchmarks all`` runs it.
    **options : Option
        By name; a default that is a list takes many values, False is a switch.
    """

    def __init__(
        self, *tables: Table, page: str = "", head: str = "", pages: bool = True, in_all: bool = True, **options: Option
    ) -> None:
        self.tables = {table.__name__: table for table in tables}
        self.page, self.head, self.pages, self.in_all, self.options = page, head, pages, in_all, options

    def parser(self, name: str, doc: str) -> argparse.ArgumentParser:
        shape = argparse.RawDescriptionHelpFormatter
        told = {table: (work.__doc__ or "").partition("\n")[0] for table, work in self.tables.items()}
        tables = "".join(f"\n  {table:12} {line}" for table, line in told.items() if len(told) > 1)
        pages = "".join(f"\n  {page}" for page in quoted_in(name))
        epilog = (tables and f"tables:{tables}\n\n") + (pages and f"quoted in:{pages}")
        parser = argparse.ArgumentParser(f"python benchmarks {name}", None, doc, epilog, formatter_class=shape)
        if tables:
            parser.add_argument("tables", nargs="*", metavar="TABLE", help="some of them; all by default")
        for option, of in self.options.items():
            of.add(parser, option)
        parser.add_argument("--quick", action="store_true", help="small sizes and short limits, to see that it runs")
        parser.add_argument("--write", type=Path, metavar="FOLDER", help="folder for tables and pictures")
        return parser

    def asked(self, words: Sequence[str], name: str = "", doc: str = "") -> Asked:
        """The arguments, of which ``--quick`` changes the defaults."""
        parser = self.parser(name, doc)
        if "--quick" in words:
            parser.set_defaults(**{name: of.quick for name, of in self.options.items() if of.quick is not _SAME})
        asked = parser.parse_args(words, Asked())
        for option, of in self.options.items():
            of.check(parser, option, getattr(asked, option))
        if unknown := set(getattr(asked, "tables", ())) - set(self.tables):
            parser.error(f"there is no table {', '.join(sorted(unknown))}, only {', '.join(self.tables)}")
        return asked

    def run(self, words: Sequence[str], name: str, doc: str) -> None:
        """Print the tables that are asked for, and write them where there is a folder to write to."""
        asked = self.asked(words, name, doc)
        printed = Printed()
        if asked.write is not None:
            asked.write.mkdir(parents=True, exist_ok=True)
        for table in getattr(asked, "tables", None) or self.tables:
            if len(self.tables) > 1:
                printed.text(f"## {table}: {(self.tables[table].__doc__ or '').partition(chr(10))[0]}")
            for each in self.tables[table](asked):
                printed.text(each) if isinstance(each, str) else printed.row(each)
        if asked.write is not None and self.pages:
            file = asked.write / f"{self.page or name.replace('/', '-')}.md"
            told = f"{made_by(name, words, asked)}\n\n" if self.head else ""
            file.write_text(self.head + told + "".join(printed.lines).lstrip(), encoding="utf-8")


def made_by(name: str, words: Sequence[str], asked: Asked) -> str:
    """How a page was made: command, day, version, limits; where time was short, what such a table says."""
    given = list(words)
    if "--write" in given:
        del given[given.index("--write") : given.index("--write") + 2]
    today = datetime.datetime.now(datetime.UTC).date()
    parts = [f"`{' '.join(['python benchmarks', name, *given])}`", str(today), f"ddlopt {version('ddlopt')}"]
    limit_s = getattr(asked, "time_limit", None)
    parts += [] if limit_s is None else [f"time limit {limit_s:g} s"]
    threads = getattr(asked, "threads", 1)
    told = f"{', '.join(parts)}, {threads} thread{'s' if threads > 1 else ''} a solve."
    return f"{told} {SHORT}" if limit_s is not None and limit_s < SHORT_S else told


def quoted_in(name: str) -> list[str]:
    """Pages that name a benchmark's command."""
    command_of = re.compile(rf"benchmarks {name}\b")
    return [page for page, text in _pages().items() if command_of.search(text)]


@functools.cache
def _pages() -> dict[str, str]:
    """Texts of all pages, by name."""
    pages = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
    return {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in pages}


@dataclass
class Printed:
    """What was printed: text, and rows of Markdown tables, which begin anew where the headings change."""

    lines: list[str] = field(default_factory=list)
    headings: tuple[str, ...] = ()

    def text(self, text: str) -> None:
        self._say(f"\n{text}\n\n" if self.headings else f"{text}\n\n")
        self.headings = ()

    def row(self, row: Row) -> None:
        if tuple(row) != self.headings:
            if self.headings:
                self._say("\n")
            self.headings = tuple(row)
            self._say(f"| {' | '.join(row)} |\n|---{'|---:' * (len(row) - 1)}|\n")
        self._say(f"| {' | '.join(map(cell, row.values()))} |\n")

    def _say(self, text: str) -> None:
        print(text, end="", flush=True)
        self.lines.append(text)


def cell(value: Any) -> str:
    """What a table shows: four digits of a figure, and a dash where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def shown(value: float | None, form: str = ".4g") -> str | None:
    """A figure so formatted, if there is one."""
    return None if value is None else format(value, form)


class Spent(NamedTuple):
    """Seconds by the clock on the wall, of this process's processors, and the peak of its memory if known."""

    wall_s: float
    processor_s: float
    peak_bytes: float = math.nan


def timed(work: Callable[..., Any], *arguments: Any, **more: Any) -> tuple[Any, Spent]:
    """What the work gives, and what it took; what is compiled on the way counts, see :func:`clocked`."""
    wall, processor = time.perf_counter(), time.process_time()
    found = work(*arguments, **more)
    return found, Spent(time.perf_counter() - wall, time.process_time() - processor)


def paired(repeat: int, ways: Mapping[str, Callable[[], Any]]) -> dict[str, list[tuple[Any, Spent]]]:
    """Every way ``repeat`` times, forwards and backwards in turn, so that other work slows all of them."""
    runs: dict[str, list[tuple[Any, Spent]]] = {name: [] for name in ways}
    for turn in range(repeat):
        for name in list(ways)[:: -1 if turn % 2 else 1]:
            runs[name].append(timed(ways[name]))
    return runs


def least(runs: Iterable[tuple[Any, Spent]]) -> float:
    """The least processor seconds, which other work on the machine disturbs least."""
    return min(spent.processor_s for _, spent in runs)


def ratio(slow: Iterable[float], fast: Iterable[float]) -> float:
    """How many times as long, the geometric mean over pairs."""
    return geometric_mean(one / other for one, other in zip(slow, fast, strict=True))


def made(method: str | Method, instance: Instance) -> Method:
    """A method by the name that the catalogue has, or as it is."""
    return catalogue.method(method, instance.family) if isinstance(method, str) else method


def clocked(
    method: str | Method, instance: str | Instance, limits: Limits, seed: int = 0, start: Any = None
) -> tuple[Result | None, Spent]:
    """A solve, kernels compiled before, and what it took; no result where the method refuses or finds nothing."""
    instance = ddlopt.load(instance) if isinstance(instance, str) else instance
    method = made(method, instance)
    if method.refuses(instance) is not None:
        return None, Spent(math.nan, math.nan)
    compiled(method, instance)
    try:
        return timed(method.solve, instance, limits, seed, None, start)
    except DdloptError:
        return None, Spent(math.nan, math.nan)


def solved(
    method: str | Method, instance: str | Instance, limits: Limits, seed: int = 0, start: Any = None
) -> Result | None:
    """The result of :func:`clocked`."""
    return clocked(method, instance, limits, seed, start)[0]


def apart(work: Callable[..., Any], *arguments: Any) -> tuple[Any, Spent]:
    """The same as :func:`timed` in a process of its own, whose peak of memory is known; ``work`` must be importable."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(_here, work, *arguments).result()


def _here(work: Callable[..., Any], *arguments: Any) -> tuple[Any, Spent]:
    found, spent = timed(work, *arguments)
    return found, spent._replace(peak_bytes=peak_bytes())


def peak_bytes() -> float:
    """The peak of this process's memory so far; Linux counts in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def command(words: Iterable[str | Path], quiet: bool = True) -> Spent:
    """What a command took, from its start to its end, of its children too; what it says is shown if it fails.

    Raises
    ------
    SystemExit
        If it fails.
    """
    words, began = list(map(str, words)), time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        sinks = {"stdout": said, "stderr": said} if quiet else {}
        child = subprocess.Popen(words, **sinks)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            raise SystemExit(f"{said.read()}{' '.join(words)} failed, exit code {child.returncode}")
    return Spent(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024.0)


class Kept:
    """Rows of JSON by a key, written to a file as they come, and read from it when the command is given again."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self.rows: dict[str, dict[str, Any]] = dict(map(json.loads, lines))

    def row(self, key: str, measure: Callable[[], dict[str, Any]], again: bool = False) -> dict[str, Any]:
        """The row of a key, measured if it is not there, or ``again``."""
        if again or key not in self.rows:
            self.rows[key] = measure()
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, self.rows[key]]) + "\n")
        return self.rows[key]


def data(name: str) -> Path:
    """A public file or folder that is not part of the project.

    Raises
    ------
    Skipped
        If it is not there.
    """
    path = SHARED_DATA / name
    if not path.exists():
        raise Skipped(f"there is no {path}; set DDLOPT_SHARED_DATA to the folder that holds {name}")
    return path
