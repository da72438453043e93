"""When a record was last challenged, and whether that was by the present code.

The version of ddlopt changes rarely, what answers a problem often: a challenge notes a digest of the problem's code.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from ddlopt import instances
from ddlopt.analysis.index import gap_of
from ddlopt.instances.library.records import Challenge, Record
from ddlopt.models.catalogue import FAMILY_NAMES, problem_of
from ddlopt.models.contracts import Instance
from ddlopt.models.tolerances import IMPROVEMENT_TOL

_DIGITS = 16
"""Of a digest, as many as tell two states of the code apart."""


def _folder(storey: str) -> Path:
    """Where a storey is installed; nothing of it is loaded, as not all may be."""
    found = find_spec(f"ddlopt.{storey}")
    assert found is not None
    assert found.submodule_search_locations is not None
    return Path(found.submodule_search_locations[0])


_STOREYS = ("models", "certificates", "solvers", "frontier")
_PACKAGES = {storey: _folder(storey) for storey in _STOREYS}
_ROOT = _PACKAGES["models"].parent
_MODULE = re.compile(rf"\bddlopt\.({'|'.join(_STOREYS)})((?:\.[a-z_0-9]+)+)")


@cache
def code_of(problem: str) -> str:
    """Digest of the code that answers a problem.

    That is its rooms in ``models``, ``certificates``, ``solvers`` and ``frontier``, and all that these import there,
    also by name. Comments, docstrings and blank lines make no difference; what lists the methods of a whole family is
    left out.

    Parameters
    ----------
    problem : str
        Its path, ``"aggregation/tree"``.
    """
    open_ = [file for folder in _PACKAGES.values() for file in sorted((folder / problem).rglob("*.py"))]
    met: dict[str, str] = {}
    while open_:
        file = open_.pop()
        name = file.relative_to(_ROOT).as_posix()
        if name not in met and not _hands_on(file):
            met[name], named = _read(file)
            open_ += named
    text = "".join(f"{name}:{met[name]}\n" for name in sorted(met))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _hands_on(file: Path) -> bool:
    """Whether it is the front of a family or of a part of one, which names what others have."""
    return file.name == "__init__.py" and file.relative_to(_ROOT).parts[1] in FAMILY_NAMES


@cache
def _read(file: Path) -> tuple[str, tuple[Path, ...]]:
    """Digest of a file's code, and the files of these storeys that it names."""
    text = file.read_text(encoding="utf-8")
    told = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = [line for place, line in enumerate(text.split("\n"), 1) if place not in told]
    code = "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    named = (_file(package, path) for package, path in _MODULE.findall(code))
    return hashlib.sha256(code.encode()).hexdigest(), tuple(dict.fromkeys(file for file in named if file is not None))


def _file(package: str, path: str) -> Path | None:
    """The file of a module, or of a package's front."""
    place = _PACKAGES[package].joinpath(*path.strip(".").split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


def challenge_of(instance: Instance, methods: Iterable[str], seconds: float) -> Challenge:
    """That these methods were tried today, by the present code."""
    code = code_of(problem_of(instance).path)
    today = datetime.now(UTC).date()
    return Challenge(methods=tuple(methods), seconds=seconds, version=version("ddlopt"), code=code, date=today)


def is_settled(known: Record | None, instance: Instance) -> bool:
    """Whether the best known solution is known to meet the best bound, and what found and what proved it."""
    gap = gap_of(known, instance)
    return gap is not None and gap <= IMPROVEMENT_TOL and known is not None and not is_vague(known)


def is_vague(known: Record) -> bool:
    """Whether it does not say what found the best known solution, or what proved the bound."""
    return any(run is None or run.is_vague for run in (known.found, known.bound))


def is_fresh(known: Record | None, instance: Instance, seconds: float = 0.0) -> bool:
    """Whether the present code was tried for this number of seconds, or there is nothing to be had."""
    if known is None or known.challenged is None:
        return is_settled(known, instance)
    tried = known.challenged
    same = tried.code == code_of(problem_of(instance).path) and tried.seconds >= seconds
    return same or is_settled(known, instance)


def stale(names: Iterable[str]) -> Iterator[str]:
    """A line for every record that was not challenged by the present code."""
    for name in names:
        instance, known = instances.load(name), instances.record(name)
        if is_fresh(known, instance):
            continue
        tried = None if known is None else known.challenged
        if tried is None:
            yield f"{name}: never challenged"
        else:
            by = f"{', '.join(tried.methods)} of ddlopt {tried.version}"
            yield f"{name}: last challenged {tried.date} by {by}, {tried.seconds:g} s, other code than now"
