"""Archives of the sets of instances, to be deposited where data are cited: one zip file a set, and checksums.

The same library gives the same files and checksums inside, on every machine and day, so that anybody can make one
again and compare; the bytes of the zip file itself are the same where zlib is.
"""

import hashlib
import io
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddlopt.analysis.bench import sets
from ddlopt.analysis.library_site.build import csv_text, json_text
from ddlopt.instances import checkers, index
from ddlopt.instances.library import best_file, certificates, instance_file
from ddlopt.models.errors import OptionError

SUMS = "SHA256SUMS"
_MADE = (1980, 1, 1, 0, 0, 0)
"""When files of a zip file were changed: the earliest time that its format has, whenever it is made."""
_README = """Instances of the set "{name}" of ddlopt {version}: {title}.

instances/     a file each; ddlopt.load reads it, "ddlopt schema FAMILY" is the format
solutions/     the best known solution of each that has one
certificates/  proofs of bounds, where there are any of less than 200 kB; "ddlopt check" reads them
checkers/      one Python file for each problem, without dependencies: python checkers/P.py INSTANCE SOLUTION
library.csv, library.json
               sizes, best known value and bound with who found them, and where each instance is from
SHA256SUMS     of all other files: sha256sum --check SHA256SUMS

Licences are in library.csv, by instance; the checkers are under Apache-2.0.
"""


@dataclass(frozen=True)
class Archive:
    """What was written of a set: its file, instances, bytes, and checksum."""

    name: str
    file: Path
    instances: int
    bytes: int
    sha256: str


def write_archives(folder: str | Path, version: str, names: Iterable[str] = tuple(sets.TITLES)) -> list[Archive]:
    """Write ``ddlopt-VERSION-SET.zip`` for each set, and ``SHA256SUMS`` of these files.

    Parameters
    ----------
    folder : str or Path
        Made if it is not there.
    version : str
        Of the release, for the names of files.
    names : iterable of str
        Of the sets; all of them by default.

    Raises
    ------
    OptionError
        If there is no such set, or the folder cannot be written.
    """
    folder, made = Path(folder), list[Archive]()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            if name not in sets.TITLES:
                raise OptionError(f"there is no set '{name}'; there are: {', '.join(sets.TITLES)}")
            content, file = archive(name, version), folder / f"ddlopt-{version}-{name}.zip"
            file.write_bytes(content)
            made.append(Archive(name, file, len(sets.members(name)), len(content), _sum(content)))
        (folder / SUMS).write_text(_sums({each.file.name: each.file.read_bytes() for each in made}), encoding="utf-8")
    except OSError as problem:
        raise OptionError(f"{folder} cannot be written: {problem.strerror or problem}") from None
    return made


def archive(name: str, version: str) -> bytes:
    """The zip file of a set."""
    listed = [index.read().instances[each] for each in sets.members(name)]
    title = sets.TITLES[name]
    files: dict[str, bytes] = {
        "README.txt": _README.format(name=name, version=version, title=title).encode(),
        "library.csv": csv_text(listed).encode(),
        "library.json": json_text(listed).encode(),
    }
    for each in listed:
        own = {"instances": instance_file(each.name), "solutions": best_file(each.name)}
        own["certificates"] = certificates.file_of(each.name)
        for kind, source in own.items():
            if source is not None:
                family = each.name.partition("/")[0]
                files[f"{kind}/{family}/{source.name.split('--')[-1]}"] = source.read_bytes()
        checker = checkers.file_of(each.problem)
        if checker is not None:
            files[f"checkers/{checker.name}"] = checker.read_bytes()
    files[SUMS] = _sums(files).encode()
    return _zipped(files, f"ddlopt-{version}-{name}")


def _zipped(files: Mapping[str, bytes], root: str) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name in sorted(files):
            entry: Any = zipfile.ZipInfo(f"{root}/{name}", _MADE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            entry.create_system = 3  # Unix, on every machine
            packed.writestr(entry, files[name])
    return held.getvalue()


def _sums(files: Mapping[str, bytes]) -> str:
    """As ``sha256sum`` writes and reads it."""
    return "".join(f"{_sum(files[name])}  {name}\n" for name in sorted(files))


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
