"""What is known of the best solutions: who found them, and how much better any solution can be.

The records of a family are the file ``records.json`` in its folder, a line an instance. A record vouches for nothing:
what it says of an instance or a solution holds for the one with the digest that stands in it, and :func:`record` leaves
out what is said of another one.
"""

import datetime
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter, ValidationError

from ddlopt.instances import library
from ddlopt.models.contracts import Evidence, Part
from ddlopt.models.errors import InstanceError
from ddlopt.models.files import write_whole
from ddlopt.models.reading import read_text

UNKNOWN = "unknown"
"""The method of a solution that nobody has noted."""
EXACT = "exact"
"""The method that asks the one which fits; its ``leaf`` says which that was."""
COMBINATORIAL = str(Evidence.COMBINATORIAL)
"""The method of a bound that the family's ``bound`` gives, without a solver."""


class Run(Part):
    """What came to a solution or a bound.

    Parameters
    ----------
    method : str
        Name, and after a colon the options that are not at their defaults.
    leaf : str, optional
        The method that answered, where the one that was asked chooses among others.
    seed : int, optional
    version : str, optional
        Of ddlopt.
    date : date, optional
        Day, in UTC, on which the run ended.
    seconds : float, optional
        Wall-clock time of the run.
    author, licence : str, optional
        Of what somebody has handed in.
    """

    method: str = UNKNOWN
    leaf: str | None = None
    seed: int | None = None
    version: str | None = None
    date: datetime.date | None = None
    seconds: float | None = None
    author: str | None = None
    licence: str | None = None

    @property
    def is_vague(self) -> bool:
        """Whether it does not say what answered: nobody noted it, or noted only who was asked."""
        return self.method in (UNKNOWN, EXACT) and self.leaf is None

    @property
    def by(self) -> str:
        """The method, what answered in its place, and who handed it in."""
        named = self.method if self.leaf is None else f"{self.leaf}, asked by {self.method}"
        return named if self.author is None else f"{named} ({self.author})"

    @classmethod
    def now(cls, method: str = UNKNOWN, seed: int | None = None, seconds: float | None = None) -> Self:
        """A run of this version that ended today."""
        today = datetime.datetime.now(datetime.UTC).date()
        return cls(method=method, seed=seed, version=version("ddlopt"), date=today, seconds=seconds)


class Found(Run):
    """The run that reached the objective of the best known solution.

    Parameters
    ----------
    objective : float
        What ``evaluate(exact=True)`` says of the stored solution, rounded.
    digest : str
        SHA-256 of the solution's text.
    """

    objective: float
    digest: str


class Bound(Run):
    """The best bound on the objective of every solution, and the run that proved it."""

    value: float


class Challenge(Part):
    """A try to better what is known of an instance, whatever came of it.

    Parameters
    ----------
    methods : tuple of str
        That were tried.
    seconds : float
        Time limit of each.
    version : str
        Of ddlopt.
    code : str
        Digest of the code that answers the problem, :func:`ddlopt.analysis.challenges.code_of`.
    date : date
        Day, in UTC.
    """

    methods: tuple[str, ...]
    seconds: float
    version: str
    code: str
    date: datetime.date


class Record(Part):
    """What is known of an instance.

    Parameters
    ----------
    instance_digest : str
    found : Found, optional
        None where there is no solution, or nothing is known of it.
    bound : Bound, optional
    challenged : Challenge, optional
        The last one.
    """

    instance_digest: str
    found: Found | None = None
    bound: Bound | None = None
    challenged: Challenge | None = None


_ALL = TypeAdapter(dict[str, Record])


def record(name: str) -> Record | None:
    """What is known of a bundled instance; None where there is nothing.

    Raises
    ------
    UnknownNameError
        If there is no such instance.
    InstanceError
        If the file of records is damaged.
    """
    full = library.full_name(name)
    family_name, stem = full.split("/")
    known = read(family_name).get(stem)
    if known is None or known.instance_digest != digest_as_it_is(full):
        return None
    if known.found is not None and known.found.digest != digest_of_best(full):
        return known.model_copy(update={"found": None})
    return known


def digest_as_it_is(full: str) -> str:
    """The digest of a bundled instance; its file is read again where it has been changed."""
    file = library.instance_file(full)
    now = file.stat()
    return _digest(file, (now.st_mtime_ns, now.st_size, now.st_ino))


@cache
def _digest(file: Path, as_it_is: tuple[int, int, int]) -> str:
    """That of the instance in a file, as long as its time, its size and its place on the disk are these."""
    return library.load(file).digest


def digest_of_best(full: str) -> str | None:
    """SHA-256 of the text of the best known solution; None where none is stored."""
    file = library.best_file(full)
    return None if file is None else digest_of(read_text(file))


def digest_of(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def read(family_name: str) -> dict[str, Record]:
    """All records of a family as they stand in the file, by instance name.

    Raises
    ------
    InstanceError
        If the file is damaged.
    """
    path = _path(family_name)
    if not path.exists():
        return {}
    try:
        return _ALL.validate_json(path.read_bytes())
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InstanceError(f"{path}: {place}: {first['msg']}".replace(": : ", ": ")) from None


def text_of(records: Mapping[str, Record]) -> str:
    """The text of a file of records: a line an instance, in the order of :func:`ddlopt.instances.names`."""
    lines = [
        f" {json.dumps(name)}: {json.dumps(records[name].model_dump(mode='json', exclude_none=True))}"
        for name in sorted(records, key=library.natural)
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(family_name: str, records: Mapping[str, Record]) -> None:
    """Write all records of a family; the file appears whole or not at all."""
    write_whole(_path(family_name), text_of(records))


def _path(family_name: str) -> Path:
    return library.library_folder(family_name) / library.RECORDS
