"""Models as files that other solvers read."""

import json
import tempfile
from pathlib import Path
from typing import Any, Literal

import pyomo.environ as pyo

from ddlopt.models.contracts import Formulation
from ddlopt.models.errors import NotApplicableError, OptionError
from ddlopt.solvers.exact import build_model

Kind = Literal["mps", "lp", "nl"]
KINDS: tuple[Kind, ...] = ("mps", "lp", "nl")


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
    kind : {"mps", "lp", "nl"}, optional
        Free MPS, CPLEX LP, or AMPL's NL (with ``.row`` and ``.col``).

    Returns
    -------
    tuple of Path
        The files written: the model first, then ``<path>.names.json`` with ``variables`` and ``constraints``, name in
        the file to name in the model, then what else the format brings.

    Raises
    ------
    OptionError
        If the format is none of the three, or the folder cannot be written to.
    NotApplicableError
        If the formulation does not cover the instance.
    """
    path = Path(path)
    kind = kind or path.suffix.removeprefix(".")  # type: ignore[assignment]
    if kind not in KINDS:
        raise OptionError(f"a model is written as {', '.join(KINDS)}, not as '{kind}' ({path.name})")
    reason = formulation.refuses(instance)
    if reason is not None:
        raise NotApplicableError(f"{type(formulation).__name__} does not cover '{instance.name}': {reason}")
    model = build_model(instance.family, formulation, instance)
    try:
        return _write(model, path, kind)
    except OSError as problem:
        raise OptionError(f"{path} cannot be written: {problem.strerror}") from None


def _write(model: pyo.ConcreteModel, path: Path, kind: Kind) -> tuple[Path, ...]:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        draft = Path(folder) / f"model.{kind}"
        _, symbols = model.write(str(draft), io_options={"symbolic_solver_labels": True})
        names = _names(model, model.solutions.symbol_map[symbols])
        (Path(folder) / "model.names").write_text(json.dumps(names, indent=1) + "\n", encoding="utf-8")
        ends = {draft: path, draft.with_suffix(".names"): path.with_name(path.name + ".names.json")}
        ends |= {other: path.with_suffix(other.suffix) for other in sorted(Path(folder).iterdir()) if other not in ends}
        for source, target in ends.items():
            source.replace(target)
    return tuple(ends.values())


def _names(model: pyo.ConcreteModel, symbols: Any) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {"variables": {}, "constraints": {}}
    sections = {pyo.Var: "variables", pyo.Constraint: "constraints"}
    for symbol, component in symbols.bySymbol.items():
        section = sections.get(getattr(component, "ctype", None))
        if section is not None and component.model() is model:  # writers add a variable of their own
            found[section][symbol] = component.name
    return found
