"""Solutions that other solvers wrote for a model of ours."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ddlopt.models.errors import SolutionError
from ddlopt.models.reading import UnreadableError, read_text

Pairs = Iterator[tuple[str, float]]
Columns = Callable[[str], Sequence[str]]
"""Names of the model's columns in the order in which its file in a format, ``lp`` or ``mps``, has them."""

_NUMBER = r"([-+]?[0-9.]+(?:e[-+]?[0-9]+)?)"


class BrokenLineError(ValueError):
    """A line that is not what the solver writes, and why."""


class Lines(Iterator[str]):
    """The lines of a file, one after the other, and how many have been read."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.count = 0

    def __next__(self) -> str:
        if self.count == len(self._lines):
            raise StopIteration
        self.count += 1
        return self._lines[self.count - 1]

    def must(self, what: str) -> str:
        """The next line.

        Raises
        ------
        BrokenLineError
            If there is none.
        """
        for line in self:
            return line
        raise BrokenLineError(f"the file ends before {what}")


class Dialect(NamedTuple):
    """How one solver writes a solution.

    ``sign`` tells its files from others near the beginning; ``objective`` finds what it says its objective is, there
    or near the end; ``pairs`` yields (name, value), and raises ValueError or IndexError at a line that the solver does
    not write.
    """

    solver: str
    sign: re.Pattern[str]
    objective: re.Pattern[str]
    pairs: Callable[[Lines, Columns], Pairs]


class Answer(NamedTuple):
    """What a solution file says: values by name of column (what is left out is zero), and the objective if it does."""

    solver: str
    values: dict[str, float]
    objective: float | None


def read_values(path: str | Path, columns: Columns) -> Answer:
    """Solver, values by name and objective of a solution file.

    Parameters
    ----------
    path : str or Path
        As written by HiGHS (in style 0, which is its own choice, or 1), CBC, SCIP, Gurobi, or GLPK (``-o``, or ``-w``,
        which numbers the columns).
    columns : callable
        Gives the names of the model's columns in the order of its file in LP or MPS.

    Raises
    ------
    SolutionError
        If the file cannot be read, is of none of these solvers, says that there is no solution, or is broken.
    """
    path = Path(path)
    lines = _lines(path)
    head = "\n".join(lines[:12])
    dialect = next((each for each in DIALECTS if each.sign.search(head)), None)
    if dialect is None:
        known = ", ".join(dict.fromkeys(each.solver for each in DIALECTS))
        raise SolutionError(f"{path} is no solution that {known} writes")
    values: dict[str, float] = {}
    reader = Lines(lines)
    try:
        for name, value in dialect.pairs(reader, columns):
            if not math.isfinite(value):
                raise BrokenLineError(f"the value of {name} is not finite")
            if name in values:
                raise BrokenLineError(f"a second value of {name}")
            values[name] = value
    except (ValueError, IndexError) as problem:
        reason = f": {problem}" if isinstance(problem, BrokenLineError) else ""
        raise SolutionError(f"{path}, line {reader.count}: not what {dialect.solver} writes{reason}") from None
    if not values:
        raise SolutionError(f"{path} holds no values: {dialect.solver} found no solution")
    told = dialect.objective.search("\n".join([head, *lines[-12:]]))
    try:
        objective = None if told is None else float(told.group(1))
    except ValueError:
        objective = None
    return Answer(dialect.solver, values, objective)


def _lines(path: Path) -> list[str]:
    try:
        # Only line feeds end a line: splitlines() would take other control characters for ends too.
        return read_text(path).rstrip("\n").split("\n")
    except UnreadableError as problem:
        raise SolutionError(f"{path} cannot be read: {problem}") from None


def _highs(lines: Lines, _: Columns) -> Pairs:
    """``# Columns n`` and then n lines ``name value``."""
    for line in lines:
        if line.startswith("# Columns"):
            count = int(line.split()[2])
            for place in range(count):
                name, value = lines.must(f"column {place + 1} of {count}").split()
                yield name, float(value)
            return
        if line == "None":
            return
    raise BrokenLineError("the file ends before its columns")


def _highs_table(lines: Lines, _: Columns) -> Pairs:
    """A table whose columns are found by their headers, as bounds and duals may be left out."""
    lines.must("its columns")
    header = lines.must("its columns")
    primal = header.index("Primal") + len("Primal")
    for line in lines:
        if not line[:1].isspace():
            return
        int(line.split()[0])
        yield line.split()[-1], float(line[:primal].split()[-1])
    raise BrokenLineError("the file ends before its rows")


def _cbc(lines: Lines, _: Columns) -> Pairs:
    """``index name value reduced-cost``, ``**`` in front where a bound is broken."""
    if re.search(r"infeasible|unbounded", lines.must("its status"), re.I):
        return
    for line in lines:
        index, name, value, cost = line.removeprefix("**").split()
        int(index), float(cost)
        yield name, float(value)


def _named(lines: Lines, _: Columns) -> Pairs:
    """``name value`` and possibly more; SCIP and Gurobi."""
    for line in lines:
        if line.strip() and not line.startswith(("#", "solution status:", "objective value:", "no solution")):
            name, value = line.split()[:2]
            yield name, float(value)


def _glpk_raw(lines: Lines, columns: Columns) -> Pairs:
    """``j number value`` by the number of the column; a linear program has its status before the value.

    A problem has a name if it comes from a file in MPS.
    """
    names: Sequence[str] = ()
    for line in lines:
        match line.split():
            case ["c", "Problem:", *name]:
                names = columns("mps" if name else "lp")
            case ["e", "o", "f"]:
                return
            case ["s", "bas", _, _, primal, *_] | ["s", "mip" | "ipt", _, _, primal, *_] if primal not in ("f", "o"):
                return
            case ["c", "Columns:", count] if int(count) != len(names):
                raise BrokenLineError(f"{count} columns, but the model has {len(names)}")
            case ["j", number, value] | ["j", number, _, value, _]:
                if int(number) < 1:
                    raise BrokenLineError("columns are numbered from 1")
                yield names[int(number) - 1], float(value)
            case ["j", *_]:
                raise BrokenLineError("a column has a number and a value")
    raise BrokenLineError("the file ends before 'e o f'")


def _glpk_table(lines: Lines, _: Columns) -> Pairs:
    """The printed table, six digits; a long name has its figures on the next line."""
    count = 0
    for line in lines:
        if line.startswith("Status:") and re.search(r"UNDEFINED|EMPTY|INFEASIBLE|UNBOUNDED", line):
            return
        if line.startswith("Columns:"):
            count = int(line.split()[1])
        if "Column name" in line:
            break
    lines.must("its columns")
    for place in range(count):
        name, *figures = lines.must(f"column {place + 1} of {count}").split()[1:]
        figures = figures or lines.must(f"the value of {name}").split()
        yield name, float(next((each for each in figures if each not in ("*", "B", "NL", "NU", "NF", "NS")), ""))


def _sign(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.M)


DIALECTS = (
    Dialect("HiGHS", re.compile(r"\AModel status"), _sign(rf"^Objective {_NUMBER}$"), _highs),
    Dialect("HiGHS", re.compile(r"\AColumns\n +Index Status"), _sign(rf"^Objective value: {_NUMBER}$"), _highs_table),
    Dialect(
        "SCIP",
        _sign(r"^(solution status:|objective value:|no solution available)"),
        _sign(rf"^objective value: +{_NUMBER}$"),
        _named,
    ),
    Dialect(
        "Gurobi",
        re.compile(r"\A# (Solution for model|Objective value)"),
        _sign(rf"^# Objective value = {_NUMBER}$"),
        _named,
    ),
    Dialect(
        "CBC",
        re.compile(r"\A(Optimal|Infeasible|Integer infeasible|Unbounded|Stopped)\b.*"),
        re.compile(rf"\A.*objective value +{_NUMBER}"),
        _cbc,
    ),
    Dialect("GLPK", _sign(r"^c Problem:"), _sign(rf"^c Objective: +\S+ = {_NUMBER} "), _glpk_raw),
    Dialect("GLPK", re.compile(r"\AProblem:.*\nRows:"), _sign(rf"^Objective: +\S+ = {_NUMBER} "), _glpk_table),
)
