"""The bundled instances, their best known solutions, and the way from a name or a file to an instance."""

import os
import re
import reprlib
from collections import defaultdict
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from ddlopt.models.catalogue import FAMILY_NAMES, family, problems, unknown_family
from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.errors import InstanceError, UnknownNameError
from ddlopt.models.reading import UnreadableError, handed_over, parsed, read_text
from ddlopt.models.refusals import taken_for

RECORDS = "records.json"
"""The file in a family's folder that is no instance."""


@cache
def library_folder(family_name: str) -> Path:
    """Where the instances of a family are, also in an installed package.

    Raises
    ------
    UnknownNameError
        If there is no such family.
    """
    if family_name not in FAMILY_NAMES:
        raise unknown_family(family_name)
    return Path(str(files(__name__) / family_name))


def names(family_name: str | None = None) -> tuple[str, ...]:
    """Names of the bundled instances, ``"topology/danoint"`` and so on, of one family or of all.

    Raises
    ------
    UnknownNameError
        If there is no such family.
    """
    folders = {each: library_folder(each) for each in (FAMILY_NAMES if family_name is None else (family_name,))}
    return tuple(
        name
        for each, folder in folders.items()
        if folder.is_dir()
        for name in _names(each, folder, folder.stat().st_mtime_ns)
    )


@lru_cache(maxsize=2 * len(FAMILY_NAMES))
def _names(family_name: str, folder: Path, changed_ns: int) -> tuple[str, ...]:
    """Names of the instances in a family's folder that was changed last at ``changed_ns``."""
    stems = (file.stem for file in folder.glob("*.json") if file.name != RECORDS)
    own = sorted((stem for stem in stems if not stem.endswith(".best")), key=natural)
    return tuple(f"{family_name}/{stem}" for stem in own)


def load(name_or_path: Instance | str | Path) -> Instance:
    """A bundled instance by its name (see :func:`find`), a drawn one, or one from a ``.json`` or ``.json.gz`` file.

    An instance is returned as it is. ``"drawn:7/topology/3"`` is the third instance of topology that seed 7 draws; see
    :mod:`ddlopt.instances.drawn`. ``"-"`` is a file that comes through standard input; a pipe can be read only once.

    Raises
    ------
    UnknownNameError
        If there is neither an instance nor a file of that name.
    InstanceError
        If the file cannot be read or is not an instance.
    """
    if isinstance(name_or_path, Instance):
        return name_or_path
    if not isinstance(name_or_path, str | os.PathLike):
        what = f"a {type(name_or_path).__name__} is no instance"
        raise InstanceError(f"{what}: give a name, a file or an Instance; from_data of its class reads plain data")
    text = str(name_or_path)
    if isinstance(name_or_path, str):
        name = find(text)
        if name is not None:
            return load(instance_file(name))
        from ddlopt.instances import drawn

        if text.startswith(drawn.PREFIX):
            return drawn.load(text)
        is_file = text.endswith((".json", ".gz")) or handed_over(text) is not None or Path(text).exists()
        if not is_file:
            raise UnknownNameError(_unknown(text))
    return _read(Path(name_or_path))


def best(name: str) -> Solution | None:
    """The best known solution of a bundled instance; None where none is stored.

    Raises
    ------
    UnknownNameError
        If there is no such instance.
    """
    full = full_name(name)
    file = best_file(full)
    return None if file is None else family(full.split("/")[0]).solution.from_file(file)


def find(name: str) -> str | None:
    """The full name of a bundled instance; None if there is none.

    Without its family a name stands for the instance of the first family that has one, in the order of
    :data:`~ddlopt.models.catalogue.FAMILY_NAMES`: a family that is added takes no name away.
    """
    its_family = name.partition("/")[0]
    if its_family in FAMILY_NAMES and name in names(its_family):
        return name
    return next((full for each in FAMILY_NAMES if (full := f"{each}/{name}") in names(each)), None)


def full_name(name: str) -> str:
    """The full name of a bundled instance; see :func:`find`.

    Raises
    ------
    UnknownNameError
        If there is no such instance.
    """
    full = find(name)
    if full is None:
        raise UnknownNameError(_unknown(name))
    return full


def _unknown(name: str) -> str:
    if name.partition("/")[0] in FAMILY_NAMES and name in {*FAMILY_NAMES, *problems()}:
        what = "family" if name in FAMILY_NAMES else "problem"
        return f"there is no instance or file '{name}'; it is a {what}: ddlopt list {name} has its instances"
    known: dict[str, list[str]] = defaultdict(list)
    for full in names():
        known[full.split("/")[-1]].append(full)
    similar = get_close_matches(name.split("/")[-1], known, n=3, cutoff=0.5)
    close = [full for match in similar for full in known[match]]
    hint = f"do you mean {' or '.join(close)}?" if close else f"the library has {', '.join(names()[:3])}, …"
    return f"there is no instance or file '{name}'; {hint}"


def instance_file(full: str) -> Path:
    """Where a bundled instance lies, by its full name."""
    its_family, stem = full.split("/")
    return library_folder(its_family) / f"{stem}.json"


def best_files(full: str) -> tuple[Path, Path]:
    """Where the best known solution of an instance may lie: as it is, and compressed."""
    file = instance_file(full)
    return file.with_suffix(".best.json"), file.with_suffix(".best.json.gz")


def best_file(full: str) -> Path | None:
    """Where the best known solution of an instance lies; None where none is stored."""
    return next((file for file in best_files(full) if file.exists()), None)


def _read(path: Path) -> Instance:
    """Read a file of whatever family it says it is."""
    try:
        text = read_text(path)
    except UnreadableError as problem:
        raise InstanceError(f"{path}: cannot be read: {problem}") from None
    try:
        data = parsed(text)
    except ValueError:
        return Instance.from_json(text, str(path))  # which says what is wrong
    other = taken_for(data, "instance")
    if other is not None:
        raise InstanceError(f"{path} {other}")
    if not isinstance(data, Mapping):
        raise InstanceError(f"{path}: expected an object of named fields (got {reprlib.repr(data)})")
    its_family = data.get("family", FAMILY_NAMES[0])
    if its_family not in FAMILY_NAMES:
        raise InstanceError(f"{path}: family is {its_family!r}; use one of: {', '.join(FAMILY_NAMES)}")
    try:
        return family(its_family).instance.from_data(data, str(path))
    except InstanceError as problem:
        if "family" in data:
            raise
        raise InstanceError(
            f"{path}: family is missing, so that it is read as {its_family}; use one of: {', '.join(FAMILY_NAMES)} "
            f"({problem})"
        ) from None


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key: n5 before n10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
