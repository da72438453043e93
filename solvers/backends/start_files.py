"""Solutions of ours as starts that other solvers read, beside the model that they are for."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.contracts import Formulation, Solution
from ddlopt.models.errors import OptionError, SolutionError
from ddlopt.models.files import write_whole
from ddlopt.solvers.backends.files import CONSTANT, Kind, kind_of, refuse, written
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.backends.starts import completed
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model


class Column(NamedTuple):
    """A column of the model: its name in the file, the value it starts from, and whether that is whole."""

    name: str
    value: float
    integer: bool


Writer = Callable[[list[Column], float], Iterator[str]]
"""Lines of a file, given the columns and the objective."""


def _highs(columns: list[Column], objective: float) -> Iterator[str]:
    yield from ("Model status", "Unknown", "", "# Primal solution values", "Feasible", f"Objective {objective!r}")
    yield f"# Columns {len(columns)}"
    yield from (f"{each.name} {each.value!r}" for each in columns)
    yield "# Rows 0"


def _scip(columns: list[Column], objective: float) -> Iterator[str]:
    yield f"objective value: {objective!r}"
    yield from (f"{each.name} {each.value!r}" for each in columns if each.value)


def _gurobi(columns: list[Column], _: float) -> Iterator[str]:
    yield "# MIP start"
    yield from (f"{each.name} {each.value!r}" for each in columns)


def _cbc(columns: list[Column], objective: float) -> Iterator[str]:
    """What CBC itself writes; it wants whole-numbered columns, and takes those left out for zero."""
    yield f"Stopped on iterations - objective value {objective!r}"
    chosen = (each for each in columns if each.integer and each.value)
    yield from (f"{place} {each.name} {each.value!r} 0" for place, each in enumerate(chosen))


_WRITERS: Mapping[str, tuple[str, Writer]] = {
    "cbc": ("cbc.sol", _cbc),
    "gurobi": ("gurobi.mst", _gurobi),
    "highs": ("highs.sol", _highs),
    "scip": ("scip.sol", _scip),
}
"""How the name of the file ends, and its lines."""
START_SOLVERS = tuple(_WRITERS)
"""Solvers that read a start from a file."""


def write_start(
    formulation: Formulation,
    instance: Any,
    solution: Solution,
    path: str | Path,
    kind: Kind | None = None,
    solvers: Sequence[str] = START_SOLVERS,
) -> tuple[Path, ...]:
    """Write a solution as a start for the model that :func:`~ddlopt.solvers.backends.files.write_model` writes.

    Parameters
    ----------
    formulation : Formulation
    instance : Instance
    solution : Solution
        What it leaves open in the model is filled in as well as possible.
    path : path
        Of the model; ``model.mps`` has the starts ``model.highs.sol``, ``model.scip.sol``, ``model.cbc.sol`` and
        ``model.gurobi.mst`` beside it.
    kind : {"mps", "lp", "nl", "json"}, optional
        Format of the model, on which names depend; by default what the ending says.
    solvers : sequence of str
        Of :data:`START_SOLVERS`.

    Returns
    -------
    tuple of Path
        The files written.

    Raises
    ------
    OptionError
        If a solver reads no start from a file (GLPK takes none at all), or the folder cannot be written to.
    SolutionError
        If nothing completes the solution to one of the model, or it is of another instance.
    NotApplicableError
        If the formulation does not cover the instance.
    """
    path = Path(path)
    kind = kind_of(path, kind)
    must_read_starts(solvers)
    refuse(formulation, instance)
    solution.belongs_to(instance)
    columns, objective = _columns(formulation, instance, solution, kind)
    files = []
    for solver in solvers:
        ending, lines = _WRITERS[solver]
        files.append(path.with_suffix(f".{ending}"))
        write_whole(files[-1], "\n".join([*lines(columns, objective), ""]))
    return tuple(files)


def must_read_starts(solvers: Sequence[str]) -> None:
    """Raise OptionError if one of the solvers reads no start from a file."""
    for solver in solvers:
        if solver not in _WRITERS:
            why = "takes no start" if solver == "glpk" else "reads no start from a file"
            raise OptionError(f"'{solver}' {why}; these do: {', '.join(_WRITERS)}")


def _columns(formulation: Formulation, instance: Any, solution: Solution, kind: Kind) -> tuple[list[Column], float]:
    """Columns in the order of the model, and the objective in the file."""
    model = build_model(instance.family, formulation, instance)
    formulation.start(model.component(instance.family), instance, solution)
    linear = linear_model(model)
    values = completed(linear, Limits())
    if values is None:
        name = type(formulation).__name__
        raise SolutionError(f"nothing completes the solution to one of {name} for '{instance.name}'; take another one")
    values = np.where(linear.integer, np.round(values), values)
    objective = float(linear.cost @ values + linear.offset)
    names, with_constant = _names(model, kind)
    columns = [
        Column(names[id(column)], value, integer)
        for column, value, integer in zip(linear.columns, values.tolist(), linear.integer.tolist(), strict=True)
        if id(column) in names
    ]
    if with_constant:
        columns.append(Column(CONSTANT, 1.0, False))
    return columns, -objective if kind == "mps" and linear.maximise else objective


def _names(model: pyo.ConcreteModel, kind: Kind) -> tuple[dict[int, str], bool]:
    """Name in the file by identity of the variable, and whether the file has a column for the objective's constant."""
    if kind in ("nl", "json"):
        return {id(each): each.name for each in model.component_data_objects(pyo.Var, active=True)}, False
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"model.{kind}"
        symbols = written(model, file)
        with_constant = CONSTANT in file.read_text(encoding="utf-8").split()
    named = {id(component): symbol for symbol, component in symbols.bySymbol.items() if component.ctype is pyo.Var}
    return named, with_constant
