"""What every family is made of: instances, solutions, the check of an answer, and formulations.

Nothing here knows a family or a solver.
"""

import functools
import hashlib
import io
import json
import math
import reprlib
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from ddlopt.models.errors import DdloptError, InstanceError, SolutionError, a_or_an, plain
from ddlopt.models.reading import UnreadableError, parsed, read_text
from ddlopt.models.refusals import InOneLine, one_line, taken_for
from ddlopt.models.sizes import refuse_odd_figures

if TYPE_CHECKING:
    import pyomo.environ as pyo

Number = float | Fraction
"""A figure of an evaluation: a float, or a Fraction in exact arithmetic."""


Sense = Literal["minimize", "maximize"]
"""Whether the smaller or the larger objective is the better one."""

LARGEST_MATRIX = 20_000
"""Rows of a matrix beyond which a file is taken for a mistake rather than read into memory."""


def _matrix(value: Any) -> npt.NDArray[np.float64]:
    """Read an (n, n) matrix from rows or from ``{"size": n, "entries": [[i, j, value], …]}``."""
    if isinstance(value, Mapping):
        matrix = _matrix_of_entries(value)
    else:
        if not isinstance(value, np.ndarray):
            _refuse_odd_rows(value)
        try:
            matrix = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("expected rows of numbers, all of one length") from None
        except OverflowError:
            raise ValueError("a number is too large for double precision") from None
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"expected a square matrix, got shape {matrix.shape}")
    matrix.setflags(write=False)
    return matrix


def _refuse_odd_rows(rows: Any) -> None:
    """Raise ValueError unless ``rows`` are as many lists of numbers; NumPy would take strings and truth values too."""
    if not isinstance(rows, list | tuple):
        raise ValueError(f"expected a list of rows, or {{'size': n, 'entries': …}}, got {reprlib.repr(rows)}")
    for i, row in enumerate(rows):
        if not isinstance(row, list | tuple | np.ndarray):
            raise ValueError(f"row {i} is {reprlib.repr(row)}; expected a list of {len(rows)} numbers")
        if len(row) != len(rows):
            raise ValueError(f"row {i} has {len(row)} numbers, but there are {len(rows)} rows; a matrix is square")
        if not isinstance(row, np.ndarray) and not set(map(type, row)) <= {int, float}:
            j, bad = next((j, x) for j, x in enumerate(row) if not isinstance(x, int | float) or isinstance(x, bool))
            raise ValueError(f"row {i}, column {j} is {reprlib.repr(bad)}; expected a number")


def _matrix_of_entries(value: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    match value:
        case {"size": int(size), "entries": [*entries], **rest} if not rest:
            pass
        case _:
            raise ValueError("a sparse matrix is written {'size': n, 'entries': [[i, j, value], …]}")
    if not 1 <= size <= LARGEST_MATRIX:
        raise ValueError(f"size is {size}; expected 1..{LARGEST_MATRIX}")
    matrix = np.zeros((size, size))
    first: dict[tuple[int, int], int] = {}
    for number, entry in enumerate(entries):
        match entry:
            case [int(i), int(j), int() | float()] if 0 <= i < size and 0 <= j < size:
                pass
            case _:
                shown = reprlib.repr(entry)
                raise ValueError(f"entries[{number}] is {shown}; expected [i, j, value] with i, j in 0..{size - 1}")
        if first.setdefault((i, j), number) != number:
            raise ValueError(f"entries[{number}] gives [{i}][{j}] again, after entries[{first[i, j]}]; give each once")
        try:
            matrix[i, j] = entry[2]
        except OverflowError:
            raise ValueError(f"entries[{number}] is too large for double precision") from None
    return matrix


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) and abs(value) < 2**53 else float(value)


def _matrix_as_data(matrix: npt.NDArray[np.float64]) -> Any:
    """Rows where at least half of the matrix is non-zero or it is small; a list of entries otherwise."""
    if len(matrix) <= 16 or 2 * np.count_nonzero(matrix) >= matrix.size:
        return [[_plain(x) if np.isfinite(x) else float(x) for x in row] for row in matrix.tolist()]
    rows, columns = np.nonzero(matrix)
    entries = [[int(i), int(j), _plain(matrix[i, j])] for i, j in zip(rows, columns, strict=True)]
    return {"size": len(matrix), "entries": entries}


Matrix = Annotated[
    npt.NDArray[np.float64],
    BeforeValidator(_matrix),
    PlainSerializer(_matrix_as_data),
    WithJsonSchema(
        {
            "description": "A square matrix: rows of numbers, or its non-zero entries.",
            "anyOf": [
                {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
                {
                    "type": "object",
                    "properties": {
                        "size": {"type": "integer", "minimum": 1},
                        "entries": {"type": "array", "items": {"type": "array", "minItems": 3, "maxItems": 3}},
                    },
                    "required": ["size", "entries"],
                    "additionalProperties": False,
                },
            ],
        }
    ),
]
"""A read-only (n, n) float64 array that travels through JSON as rows or as a list of entries."""


class Part(BaseModel, metaclass=InOneLine):
    """A frozen piece of a document that refuses what it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def without(document: BaseModel, data: dict[str, Any], *fields: str) -> dict[str, Any]:
    """``data`` of a document without those of the ``fields`` that are at their defaults.

    For fields that came later: what does not use them is written, and has its digest, as before.
    """
    unsaid = {name for name, default in _defaults(type(document), fields) if getattr(document, name) == default}
    return {name: value for name, value in data.items() if name not in unsaid}


@functools.cache
def _defaults(kind: type[BaseModel], fields: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    """Of some fields; looking them up a hundred thousand times takes seconds."""
    return tuple((name, kind.model_fields[name].default) for name in fields)


_DIGESTS: "dict[int, tuple[weakref.ref[Any], str]]" = {}
"""By identity: documents are frozen, and a copy is another one."""


class _Document(BaseModel, metaclass=InOneLine):
    """A frozen piece of data that travels through JSON and refuses what it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)

    error: ClassVar[type[DdloptError]] = DdloptError
    kind: ClassVar[str] = "document"
    variants: ClassVar[dict[str, type[Any]]] = {}
    """Subclasses by what their field ``problem`` says, of a base class for a family with several problems."""

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Note the class with the base that has a ``variants`` of its own."""
        base = next((each for each in cls.__mro__[1:] if "variants" in vars(each)), None)
        if base is not None and base is not _Document and "problem" in cls.model_fields:
            vars(base)["variants"][cls.model_fields["problem"].default] = cls

    @model_validator(mode="before")
    @classmethod
    def _figures_are_usual(cls, data: Any) -> Any:
        refuse_odd_figures(data)
        return data

    @classmethod
    def from_data(cls, data: Any, origin: str = "data") -> Self:
        """Validate plain data; ``origin`` names it in error messages."""
        if vars(cls).get("variants"):
            return cls._variant(data, origin).from_data(data, origin)
        try:
            return cls.model_validate(data)
        except ValidationError as problem:
            raise cls.error(one_line(problem, cls.kind, data, origin)) from None

    @classmethod
    def _variant(cls, data: Any, origin: str) -> type[Self]:
        if not isinstance(data, Mapping):
            raise cls.error(f"{origin}: {cls.kind}: expected an object of named fields (got {reprlib.repr(data)})")
        problem = data.get("problem")
        if not isinstance(problem, str) or problem not in cls.variants:
            known = ", ".join(sorted(cls.variants))
            raise cls.error(f"{origin}: {cls.kind}: problem is {reprlib.repr(problem)}; use one of: {known}")
        return cls.variants[problem]

    @classmethod
    def from_json(cls, text: str, origin: str = "JSON text") -> Self:
        """Read from JSON text.

        Raises
        ------
        InstanceError, SolutionError
            With one line that says where the text or the data is wrong.
        """
        if not text.strip():
            raise cls.error(f"{origin}: is empty; expected {a_or_an(cls.kind)} in JSON")
        try:
            data = parsed(text)
        except ValueError as problem:
            raise cls.error(f"{origin}: not valid JSON: {problem}") from None
        other = taken_for(data, "instance" if issubclass(cls, Instance) else "solution")
        if other is not None:
            raise cls.error(f"{origin} {other}")
        return cls.from_data(data, origin)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read from a ``.json`` or ``.json.gz`` file."""
        try:
            text = read_text(path)
        except UnreadableError as problem:
            raise cls.error(f"{path}: cannot be read: {problem}") from None
        return cls.from_json(text, str(path))

    def changed(self, **fields: Any) -> Self:
        """The same document with other fields, validated as when it is read: the one way to rebuild it.

        Pydantic's ``model_copy`` validates nothing, and keeps what was calculated of the old one. TypeError if there is
        no such field; the document's own error if they do not go together.
        """
        if unknown := sorted(set(fields) - set(type(self).model_fields)):
            raise TypeError(f"{a_or_an(self.kind)} has no field '{unknown[0]}'")
        kept = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).from_data(kept | fields, f"'{getattr(self, 'name', self.kind)}' changed")

    def to_json(self, indent: int | None = 1) -> str:
        """JSON text of the document; ``from_json`` gives it back unchanged."""
        encoder = json.JSONEncoder(indent=indent, allow_nan=False, ensure_ascii=False)
        data = self.model_dump(mode="json")
        if indent is None:
            return encoder.encode(data)
        text = io.StringIO()  # `encode` keeps a string of each figure until the end: 150 MB more for 82 000 jobs
        text.writelines(encoder.iterencode(data))
        return text.getvalue()

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, as 64 hexadecimal digits; calculated once, as that may take seconds."""
        known = _DIGESTS.get(id(self))
        if known is not None and known[0]() is self:
            return known[1]
        key, found = id(self), self._digest()
        _DIGESTS[key] = weakref.ref(self, lambda _: _DIGESTS.pop(key, None)), found
        return found

    def _digest(self) -> str:
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


class Instance(_Document):
    """The data of one problem: frozen, validated, SI units in the names.

    Bad data never becomes an ``Instance``: :class:`~ddlopt.models.errors.InstanceError` names the field, the
    index, both values and the fix.
    """

    error: ClassVar[type[DdloptError]] = InstanceError
    kind: ClassVar[str] = "instance"

    family: str
    name: str
    source: str = ""

    @property
    def sense(self) -> Sense:
        """Whether the objective is minimised or maximised; a bound is one from below or from above accordingly."""
        return "minimize"

    @property
    def objective_unit(self) -> str:
        """Unit of the objective: ``"s"`` for seconds, ``""`` for a number without one."""
        return "s"


class Solution(_Document):
    """What a person would write on paper as the answer; never solver variables."""

    error: ClassVar[type[DdloptError]] = SolutionError
    kind: ClassVar[str] = "solution"

    family: str
    instance: str
    instance_digest: str | None = None

    def belongs_to(self, instance: Instance) -> None:
        """Raise :class:`SolutionError` if the solution says that it answers another instance."""
        if self.family != instance.family:
            raise SolutionError(
                f"a {self.family} solution cannot answer the {instance.family} instance '{instance.name}'"
            )
        if self.instance_digest is not None and self.instance_digest != instance.digest:
            raise SolutionError(
                f"the solution was made for instance '{self.instance}' (digest {self.instance_digest[:12]}…), "
                f"not for '{instance.name}' (digest {instance.digest[:12]}…)"
            )


@dataclass(frozen=True)
class Violation:
    """One constraint that a solution breaks: which, where, and the two sides of it."""

    kind: str
    where: str
    lhs: Number
    rhs: Number

    def __str__(self) -> str:
        return f"{self.kind} at {plain(self.where)}: {float(self.lhs):.12g} against {float(self.rhs):.12g}"


@dataclass(frozen=True)
class Evaluation:
    """The independent check of a solution.

    ``objective`` is None where the solution is too broken for its objective to mean anything.
    """

    objective: Number | None
    violations: tuple[Violation, ...] = ()
    details: Mapping[str, Number] = field(default_factory=dict)

    @property
    def feasible(self) -> bool:
        """No violation, and the objective is known."""
        return not self.violations and self.objective is not None


class Evidence(StrEnum):
    """Why a bound, or that there is no solution, is believed."""

    COMBINATORIAL = "combinatorial"
    """Found by the problem's own bound, which needs no solver."""
    CERTIFICATE = "certificate"
    """A certificate that the checker has accepted."""
    SOLVER = "solver"
    """The word of a floating-point solver, or of a search of ours in floating point."""
    CLAIMED = "claimed"
    """Somebody else's word: shown, stored, and never used."""


@dataclass(frozen=True)
class Bound:
    """A bound on the objective of every solution of an instance, with the reason to believe it."""

    value: float
    evidence: Evidence

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"a bound is a finite number, got {self.value}; where there is none, say None")

    @property
    def counts(self) -> bool:
        """Whether gap and status may rest on it."""
        return self.evidence is not Evidence.CLAIMED


@runtime_checkable
class Formulation(Protocol):
    """A formulation as a frozen dataclass of options; it fills *somebody's* Pyomo block and owns no solver.

    ``build`` leaves a linear expression ``block.objective`` that is to be minimised or maximised (``sense``); every
    other port is documented in the class docstring. Indices are deterministic strings and integers.

    A class attribute ``outer = True`` says that the model's objective is an outer approximation: its bound holds for
    the instance, but its objective is only an estimate of that of the solution read, which ``evaluate`` finds. With
    ``relaxed = True`` beside it the model has necessary conditions only: where ``evaluate`` refuses the solution read,
    there is none. A third one, ``kernels``, names the modules whose kernels it calls; they are compiled before the
    clock begins.
    """

    sense: ClassVar[Sense]

    def refuses(self, instance: Any) -> str | None:
        """Why the formulation does not cover the instance; None if it does."""

    def scope(self, instance: Any) -> str | None:
        """The class of solutions searched where it is smaller than all (e.g. ``"circulant"``); None for all of them."""

    def build(self, block: "pyo.Block", instance: Any) -> None:
        """Fill ``block`` with the model of ``instance``."""

    def start(self, block: "pyo.Block", instance: Any, solution: Any) -> None:
        """Set variable values of a built ``block`` from a solution; those not set are left to the solver."""

    def read(self, block: "pyo.Block", instance: Any) -> Any:
        """The solution that the variable values describe; fails loudly where they describe none."""

    def objective_value(self, instance: Any, value: float) -> float:
        """The instance's objective that a value (or dual bound) of ``block.objective`` stands for.

        Strictly monotone: increasing where the model and the instance have the same sense, decreasing otherwise.
        """
