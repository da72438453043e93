"""What is known of every bundled instance, from one small file beside the library: ``library/index.json``.

To list four hundred instances, or to complete their names, nothing else need be read and nothing heavy imported. The
file is written by :mod:`ddlopt.analysis.listing` together with ``INDEX.md``; the instances and their records are the
truth, and a test holds that it says the same.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

FILE = Path(__file__).parent / "library" / "index.json"

PROVEN = 1e-4
"""Relative gap up to which a solution is called proven."""


@dataclass(frozen=True)
class ListedProblem:
    """What is known of a problem, from its record (:class:`ddlopt.models.problem.Problem`).

    Parameters
    ----------
    path : str
        ``"topology"``, or ``"aggregation/hot"`` in a family of several problems.
    title, counts, limited_by : str
        For people.
    """

    path: str
    title: str
    counts: str
    limited_by: str


@dataclass(frozen=True)
class Listed:
    """What is known of a bundled instance.

    Parameters
    ----------
    name : str
        As :func:`ddlopt.instances.load` takes it.
    problem : str
        Path of a :class:`ListedProblem`.
    size : int
        How many of what the problem counts.
    sizes : mapping
        Sizes by column header, for tables.
    sense, unit : str
        Of the objective.
    objective, bound, gap : float or None
        Of the best known solution, and the best bound on every one.
    found_by, bound_by : str or None
        Methods.
    source, licence : str
        Where the figures come from, and the SPDX identifier of their licence.
    digest : str
        Of the instance that all this was said of.
    methods : tuple of str
        Those of ddlopt that cover it.
    default_method : str
    """

    name: str
    problem: str
    size: int
    sizes: Mapping[str, int | str]
    sense: Literal["minimize", "maximize"]
    unit: str
    objective: float | None
    bound: float | None
    gap: float | None
    found_by: str | None
    bound_by: str | None
    source: str
    licence: str
    digest: str
    methods: tuple[str, ...]
    default_method: str

    @property
    def family(self) -> str:
        """Of the problem."""
        return self.problem.partition("/")[0]

    @property
    def proven(self) -> bool:
        """Whether the best known solution is optimal up to :data:`PROVEN`."""
        return self.gap is not None and self.gap <= PROVEN


@dataclass(frozen=True)
class Index:
    """All problems and all bundled instances, by name, in the order in which they are listed."""

    problems: Mapping[str, ListedProblem]
    instances: Mapping[str, Listed]


@cache
def read(file: Path = FILE) -> Index:
    """The index; an empty one where there is no file."""
    data = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"problems": {}, "instances": {}}
    problems = {path: ListedProblem(path, **fields) for path, fields in data["problems"].items()}
    listed = {
        name: Listed(name, **{**fields, "methods": tuple(fields["methods"])})
        for name, fields in data["instances"].items()
    }
    return Index(problems, listed)
