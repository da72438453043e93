"""The bundled instances, their best known solutions, and the way from a name or a file to an instance."""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from difflib import get_close_matches
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

from ddlopt.models.catalogue import FAMILY_NAMES, family
from ddlopt.models.contracts import Instance, Number, Sense, Solution, read_text
from ddlopt.models.errors import InstanceError, SolutionError, UnknownNameError
from ddlopt.models.files import write_whole

_ROUNDING = Fraction(1, 10**9)
"""A new solution must be better by more than what rounding in a solver makes of the same one, relative to itself."""
_LARGEST_PLAIN_BYTES = 200_000
"""Best known solutions above this size are stored compressed."""


def library_folder(family_name: str) -> Path:
    """Where the instances of a family are, also in an installed package.

    Raises
    ------
    UnknownNameError
        If there is no such family.
    """
    if family_name not in FAMILY_NAMES:
        raise UnknownNameError(f"there is no family '{family_name}'; there are: {', '.join(FAMILY_NAMES)}")
    return Path(str(files(__name__) / family_name))


def names(family_name: str | None = None) -> tuple[str, ...]:
    """Names of the bundled instances, ``"topology/danoint"`` and so on, of one family or of all.

    Raises
    ------
    UnknownNameError
        If there is no such family.
    """
    found = []
    for each in FAMILY_NAMES if family_name is None else (family_name,):
        stems = (file.stem for file in library_folder(each).glob("*.json") if not file.stem.endswith(".best"))
        found += [f"{each}/{stem}" for stem in sorted(stems, key=_natural)]
    return tuple(found)


def load(name_or_path: str | Path) -> Instance:
    """A bundled instance by its name (see :func:`find`), or one from a ``.json`` or ``.json.gz`` file.

    Raises
    ------
    UnknownNameError
        If there is neither an instance nor a file of that name.
    InstanceError
        If the file cannot be read or is not an instance.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, str):
        name = find(text)
        if name is not None:
            return load(_file(name))
        if not text.endswith((".json", ".gz")) and not Path(text).exists():
            raise UnknownNameError(_unknown(text))
    return _read(Path(name_or_path))


def best(name: str) -> Solution | None:
    """The best known solution of a bundled instance; None where none is stored.

    Raises
    ------
    UnknownNameError
        If there is no such instance.
    """
    full = _known(name)
    for file in _best_files(full):
        if file.exists():
            return family(full.split("/")[0]).solution.from_file(file)
    return None


def store_best(name: str, solution: Solution) -> bool:
    """Store a solution of a bundled instance if it beats the best known one, judged in exact arithmetic.

    Returns
    -------
    bool
        Whether it was stored. The file appears whole or not at all.

    Raises
    ------
    UnknownNameError
        If there is no such instance.
    SolutionError
        If the solution is not feasible.
    """
    full = _known(name)
    instance, its_family = load(full), family(full.split("/")[0])
    judged = its_family.evaluate(instance, solution, exact=True)
    if judged.objective is None or judged.violations:
        problems = "; ".join(str(violation) for violation in judged.violations[:3])
        raise SolutionError(f"'{full}': the solution is not feasible: {problems}")
    stored = best(full)
    if stored is not None:
        rival = its_family.evaluate(instance, stored, exact=True)
        known = rival.objective if rival.feasible else None
        if known is not None and not _beats(judged.objective, known, instance.sense):
            return False
    plain, packed = _best_files(full)
    signed = solution.model_copy(update={"instance": instance.name, "instance_digest": instance.digest})
    data = (signed.to_json(indent=None) + "\n").encode()
    if len(data) > _LARGEST_PLAIN_BYTES:
        write_whole(packed, gzip.compress(data, mtime=0))
        plain.unlink(missing_ok=True)
    else:
        write_whole(plain, data)
        packed.unlink(missing_ok=True)
    return True


def _beats(objective: Number, rival: Number, sense: Sense) -> bool:
    gain = rival - objective if sense == "minimize" else objective - rival
    return gain > _ROUNDING * (objective if objective > 0 else -objective)


def find(name: str) -> str | None:
    """The full name of a bundled instance; None if there is none.

    Without its family a name stands for the instance of the first family that has one, in the order of
    :data:`~ddlopt.models.catalogue.FAMILY_NAMES`: a family that is added takes no name away.
    """
    known = names()
    if name in known:
        return name
    return next((f"{each}/{name}" for each in FAMILY_NAMES if f"{each}/{name}" in known), None)


def _known(name: str) -> str:
    full = find(name)
    if full is None:
        raise UnknownNameError(_unknown(name))
    return full


def _unknown(name: str) -> str:
    known: dict[str, list[str]] = defaultdict(list)
    for full in names():
        known[full.split("/")[-1]].append(full)
    alike = get_close_matches(name.split("/")[-1], known, n=3, cutoff=0.5)
    close = [full for match in alike for full in known[match]]
    hint = f"do you mean {' or '.join(close)}?" if close else f"the library has {', '.join(names()[:3])}, …"
    return f"there is no instance or file '{name}'; {hint}"


def _file(full: str) -> Path:
    its_family, stem = full.split("/")
    return library_folder(its_family) / f"{stem}.json"


def _best_files(full: str) -> tuple[Path, Path]:
    file = _file(full)
    return file.with_suffix(".best.json"), file.with_suffix(".best.json.gz")


def _read(path: Path) -> Instance:
    """Read a file of whatever family it says it is."""
    try:
        data = json.loads(read_text(path))
        its_family = data.get("family", FAMILY_NAMES[0]) if isinstance(data, Mapping) else FAMILY_NAMES[0]
    except Exception:  # the family's own reader says what is wrong
        its_family = FAMILY_NAMES[0]
    if its_family not in FAMILY_NAMES:
        raise InstanceError(f"{path}: family is {its_family!r}; use one of: {', '.join(FAMILY_NAMES)}")
    return family(its_family).instance.from_file(path)


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort key: n5 before n10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
