"""Models as files that other solvers read."""

import json
import math
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.contracts import Formulation, Solution
from ddlopt.models.errors import NotApplicableError, OptionError, SolutionError
from ddlopt.solvers.backends.matrix import linear_model, load_values
from ddlopt.solvers.backends.quiet import quiet
from ddlopt.solvers.backends.solution_files import Answer, read_values
from ddlopt.solvers.backends.solution_fit import misfit
from ddlopt.solvers.exact import build_model

Kind = Literal["mps", "lp", "nl", "json"]
KINDS: tuple[Kind, ...] = ("mps", "lp", "nl", "json")

CONSTANT = "ONE_VAR_CONSTANT"
"""A column of the writers' own, for the constant of the objective."""
_NOT_OURS = (CONSTANT, "objconstant")
"""Columns for it in solution files; the second one is what SCIP makes of the constant in NL."""
_MINIMISE = "OBJSENSE\n MIN\n"
"""A section that CBC overlooks and GLPK does not accept; without it a file in MPS is to be minimised."""


def write_model(
    formulation: Formulation, instance: Any, path: str | Path, kind: Kind | None = None
) -> tuple[Path, ...]:
    """Write the model of ``instance``, and beside it which name in the file is which component of the model.

    The same formulation and instance give the same bytes every time.

    Parameters
    ----------
    formulation : Formulation
    instance : Instance
    path : path
        Where to; its ending says which format unless ``kind`` does.
    kind : {"mps", "lp", "nl", "json"}, optional
        Free MPS (always minimised: a maximised objective has its sign changed, as solvers disagree about the section
        that tells), CPLEX LP, AMPL's NL (with ``.row`` and ``.col``), or the matrix by compressed rows as JSON, where
        names are those of the model and None is infinite.

    Returns
    -------
    tuple of Path
        The files written: the model first, then ``<path>.names.json`` with ``variables`` and ``constraints``, name in
        the file to name in the model, then what else the format brings.

    Raises
    ------
    OptionError
        If the format is none of these, or the folder cannot be written to.
    NotApplicableError
        If the formulation does not cover the instance.
    """
    path = Path(path)
    kind = kind_of(path, kind)
    refuse(formulation, instance)
    model = build_model(instance.family, formulation, instance)
    try:
        return _write(model, path, kind)
    except OSError as problem:
        raise OptionError(f"{path} cannot be written: {problem.strerror}") from None


def read_solution(formulation: Formulation, instance: Any, path: str | Path) -> Solution:
    """The solution that another solver's file describes, of the model that :func:`write_model` writes.

    Raises
    ------
    SolutionError
        If the file is no solution, names what the model does not have, gives a whole number a fraction, or its values
        break the model or do not have the objective that it says.
    SolverError
        If the values describe no solution of the instance.
    NotApplicableError
        If the formulation does not cover the instance.
    """
    refuse(formulation, instance)
    model = build_model(instance.family, formulation, instance)
    linear = linear_model(model)
    answer, component_of = _answer(model, path)
    unknown = [name for name in answer.values if name not in component_of and name not in _NOT_OURS]
    if unknown:
        raise SolutionError(
            f"{path} names '{unknown[0]}', which {type(formulation).__name__} for '{instance.name}' does not have"
            + (f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else "")
            + "; export the model again with this version and solve that"
        )
    by_name = {component_of[name]: value for name, value in answer.values.items() if name in component_of}
    values = np.array([by_name.get(column.name, 0.0) for column in linear.columns])
    # What occurs nowhere in the model, or is fixed, is in no file: any value within its bounds will do.
    written = set(component_of.values())
    absent = np.array([column.fixed or column.name not in written for column in linear.columns], dtype=bool)
    values[absent] = np.clip(0.0, linear.lower[absent], linear.upper[absent])
    problem = misfit(linear, values, answer)
    if problem is not None:
        raise SolutionError(f"{path}: {problem}")
    load_values(linear, values)
    solution: Solution = formulation.read(model.component(instance.family), instance)
    return solution


def _answer(model: pyo.ConcreteModel, path: str | Path) -> tuple[Answer, dict[str, str]]:
    """What the file says, and which name in files is which component; the model's objective may change its sign."""
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "model.lp"
        variables = _names(model, written(model, draft))["variables"]

        def columns(kind: str) -> list[str]:
            other = draft.with_suffix(f".{kind}")
            if not other.exists():
                written(model, other)
            return _in_order(other.read_text(encoding="utf-8"), variables)

        answer = read_values(path, columns)
    # In NL and JSON names are those of the model.
    return answer, variables | {component: component for component in variables.values()}


def kind_of(path: Path, kind: str | None) -> Kind:
    """The format asked for, or else that which the ending of the file says.

    Raises
    ------
    OptionError
        If it is none that models are written in.
    """
    asked = kind or path.suffix.removeprefix(".")
    for known in KINDS:
        if asked == known:
            return known
    raise OptionError(f"a model is written as {', '.join(KINDS)}, not as '{asked}' ({path.name})")


def refuse(formulation: Formulation, instance: Any) -> None:
    """Raise NotApplicableError if the formulation does not cover the instance."""
    reason = formulation.refuses(instance)
    if reason is not None:
        raise NotApplicableError(f"{type(formulation).__name__} does not cover '{instance.name}': {reason}")


def _in_order(text: str, names: Iterable[str]) -> list[str]:
    """Names in the order of their first appearance in a model file, which is how solvers number columns."""
    known = {*names, CONSTANT}
    return list(dict.fromkeys(word for word in text.split() if word in known))


def written(model: pyo.ConcreteModel, path: Path) -> Any:
    """Write the model with names of its own; which symbol is which component."""
    if path.suffix == ".mps" and model.objective.sense == pyo.maximize:
        model.objective.set_value(-model.objective.expr)
        model.objective.sense = pyo.minimize
    with quiet():
        _, symbols = model.write(str(path), io_options={"symbolic_solver_labels": True})
    if path.suffix == ".mps":
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(_MINIMISE, "", 1), encoding="utf-8")
    return model.solutions.symbol_map[symbols]


def _write(model: pyo.ConcreteModel, path: Path, kind: Kind) -> tuple[Path, ...]:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        draft = Path(folder) / f"model.{kind}"
        if kind == "json":
            draft.write_text(json.dumps(_matrix_form(model)) + "\n", encoding="utf-8")
            draft.replace(path)
            return (path,)
        names = _names(model, written(model, draft))
        (Path(folder) / "model.names").write_text(json.dumps(names, indent=1) + "\n", encoding="utf-8")
        ends = {draft: path, draft.with_suffix(".names"): path.with_name(path.name + ".names.json")}
        ends |= {other: path.with_suffix(other.suffix) for other in sorted(Path(folder).iterdir()) if other not in ends}
        for source, target in ends.items():
            source.replace(target)
    return tuple(ends.values())


def _matrix_form(model: pyo.ConcreteModel) -> dict[str, Any]:
    """Optimise cost · x + offset, row_lower <= A x <= row_upper, lower <= x <= upper, A by compressed rows."""
    linear = linear_model(model)

    def plain(values: Any) -> list[float | None]:
        return [value if math.isfinite(value) else None for value in values.tolist()]

    return {
        "name": model.name,
        "sense": "maximize" if linear.maximise else "minimize",
        "offset": linear.offset,
        "cost": linear.cost.tolist(),
        "columns": [column.name for column in linear.columns],
        "lower": plain(linear.lower),
        "upper": plain(linear.upper),
        "integer": linear.integer.tolist(),
        "rows": [row.name for row in linear.rows],
        "row_lower": plain(linear.row_lower),
        "row_upper": plain(linear.row_upper),
        "matrix": {
            "indptr": linear.matrix.indptr.tolist(),
            "indices": linear.matrix.indices.tolist(),
            "data": linear.matrix.data.tolist(),
        },
    }


def _names(model: pyo.ConcreteModel, symbols: Any) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {"variables": {}, "constraints": {}}
    sections = {pyo.Var: "variables", pyo.Constraint: "constraints"}
    for symbol, component in symbols.bySymbol.items():
        section = sections.get(getattr(component, "ctype", None))
        if section is not None and component.model() is model:  # writers add a variable of their own
            found[section][symbol] = component.name
    return found
