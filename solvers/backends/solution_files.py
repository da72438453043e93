"""Solutions that other solvers wrote for a model of ours."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ddlopt.models.errors import SolutionError

Pairs = Iterator[tuple[str, float]]

_LARGEST_FILE = 1 << 30


class Dialect(NamedTuple):
    """How one solver writes a solution.

    ``sign`` tells its files from others; ``pairs`` yields (name, value), given the names of the columns in the order in
    which a model file has them.
    """

    solver: str
    sign: re.Pattern[str]
    pairs: Callable[[Sequence[str], Sequence[str]], Pairs]


def read_values(path: str | Path, columns: Sequence[str]) -> tuple[str, dict[str, float]]:
    """Solver and values by name of a solution file; what a solver leaves out is zero.

    Parameters
    ----------
    path : str or Path
        As written by HiGHS (``write_solution_to_file``, either style), CBC, SCIP, Gurobi, or GLPK (``-o``, or ``-w``
        for a model in LP format, whose columns it numbers).
    columns : sequence of str
        Names of the model's columns in the order of the file that the solver read.

    Raises
    ------
    SolutionError
        If the file cannot be read, is of none of these solvers, says that there is no solution, or is broken.
    """
    path = Path(path)
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise SolutionError(f"{path} is larger than any solution ({_LARGEST_FILE} bytes)")
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise SolutionError(f"{path} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None
    head = "\n".join(lines[:12])
    dialect = next((each for each in DIALECTS if each.sign.search(head)), None)
    if dialect is None:
        known = ", ".join(dict.fromkeys(each.solver for each in DIALECTS))
        raise SolutionError(f"{path} is no solution that {known} writes")
    values: dict[str, float] = {}
    try:
        for name, value in dialect.pairs(lines, columns):
            values[name] = value
    except (ValueError, IndexError):
        raise SolutionError(
            f"{path}, line {_broken(lines, dialect, columns)}: not what {dialect.solver} writes"
        ) from None
    if not values:
        raise SolutionError(f"{path} holds no values: {dialect.solver} found no solution")
    return dialect.solver, values


def _broken(lines: Sequence[str], dialect: Dialect, columns: Sequence[str]) -> int:
    """Number of the first line without which the rest cannot be read."""
    for count in range(1, len(lines) + 1):
        try:
            list(dialect.pairs(lines[:count], columns))
        except (ValueError, IndexError):
            return count
    return len(lines)


def _highs(lines: Sequence[str], _: Sequence[str]) -> Pairs:
    """``# Columns n`` and then n lines ``name value``."""
    start = next((place for place, line in enumerate(lines) if line.startswith("# Columns")), None)
    if start is None:
        return
    for line in lines[start + 1 : start + 1 + int(lines[start].split()[2])]:
        name, value = line.split()
        yield name, float(value)


def _highs_table(lines: Sequence[str], _: Sequence[str]) -> Pairs:
    """A table whose columns are found by their headers, as bounds and duals may be left out."""
    header = lines[1]
    primal = header.index("Primal") + len("Primal")
    for line in lines[2:]:
        if not line[:1].isspace():
            return
        yield line.split()[-1], float(line[:primal].split()[-1])


def _cbc(lines: Sequence[str], _: Sequence[str]) -> Pairs:
    """``index name value reduced-cost``, ``**`` in front where a bound is broken."""
    if "infeasible" in lines[0].lower() and "objective" not in lines[0].lower():
        return
    for line in lines[1:]:
        _, name, value, _ = line.removeprefix("**").split()
        yield name, float(value)


def _named(lines: Sequence[str], _: Sequence[str]) -> Pairs:
    """``name value`` and possibly more; SCIP and Gurobi."""
    for line in lines:
        if line.strip() and not line.startswith(("#", "solution status:", "objective value:", "no solution")):
            name, value, *_ = line.split()
            yield name, float(value)


def _glpk_raw(lines: Sequence[str], columns: Sequence[str]) -> Pairs:
    """``j number value`` by the number of the column; a linear program has its status before the value."""
    for line in lines:
        if line.startswith("j "):
            fields = line.split()
            yield columns[int(fields[1]) - 1], float(fields[2] if len(fields) == 3 else fields[3])


def _glpk_table(lines: Sequence[str], _: Sequence[str]) -> Pairs:
    """The printed table, six digits; a long name has its figures on the next line."""
    start = next(place for place, line in enumerate(lines) if "Column name" in line) + 2
    rows = iter(lines[start:])
    for line in rows:
        if not line.strip():
            return
        name, *figures = line.split()[1:]
        figures = figures or next(rows).split()
        yield name, float(next(figure for figure in figures if figure not in ("*", "B", "NL", "NU", "NF", "NS")))


DIALECTS = (
    Dialect("HiGHS", re.compile(r"\AModel status"), _highs),
    Dialect("HiGHS", re.compile(r"\AColumns\n +Index Status"), _highs_table),
    Dialect("SCIP", re.compile(r"^(solution status:|objective value:|no solution available)", re.M), _named),
    Dialect("Gurobi", re.compile(r"\A# (Solution for model|Objective value)"), _named),
    Dialect("CBC", re.compile(r"\A(Optimal|Infeasible|Integer infeasible|Unbounded|Stopped)\b.*"), _cbc),
    Dialect("GLPK", re.compile(r"^c Problem:", re.M), _glpk_raw),
    Dialect("GLPK", re.compile(r"\AProblem:.*\nRows:"), _glpk_table),
)
