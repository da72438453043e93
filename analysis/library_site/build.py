"""Writes the site: pages, downloads, pictures."""

import csv
import gzip
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ddlopt.analysis import history
from ddlopt.analysis.bench.report.pages import ASSETS, asset
from ddlopt.analysis.library_site import pictures
from ddlopt.analysis.library_site.pages import FILES, Pages, stem
from ddlopt.instances import checkers, index
from ddlopt.instances.library import best_file, certificates, instance_file
from ddlopt.models.errors import OptionError

MARK = "library.json"
"""The file by which a folder is known as one of a site."""


def write_site(
    folder: str | Path,
    names: Iterable[str] | None = None,
    drawn: Path | None = None,
    losses: Mapping[tuple[str, str], float] | None = None,
) -> Path:
    """Write the site of the bundled library.

    It needs no server. Tables work without scripts, and sort, filter and search with them. 500 instances take some
    ten megabytes; without pictures they take seconds.

    Parameters
    ----------
    folder : str or Path
        Made if it is not there; files of an earlier site are replaced.
    names : iterable of str, optional
        Of the instances; all by default.
    drawn : Path, optional
        Folder in which pictures are kept from one time to the next; without one nothing is drawn.
    losses : mapping, optional
        By instance and method how much worse than the best known a kept run's solution is, as a part of it; pages of
        methods have profiles of them.

    Returns
    -------
    Path
        The first page.

    Raises
    ------
    OptionError
        If the folder holds something else, or cannot be written.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()) and not (folder / MARK).exists():
            raise OptionError(f"{folder} holds files that do not belong to a site of the library; name another folder")
        return _write(folder, index.read(), names, drawn, losses or {})
    except OSError as problem:
        raise OptionError(f"{folder} cannot be written: {problem.strerror or problem}") from None


def _write(
    folder: Path,
    known: index.Index,
    names: Iterable[str] | None,
    drawn: Path | None,
    losses: Mapping[tuple[str, str], float],
) -> Path:
    wanted = set(known.instances if names is None else names)
    instances = {name: listed for name, listed in known.instances.items() if name in wanted}
    pages = Pages(index.Index(known.problems, instances), history.read(), losses)
    _put(folder, MARK, json_text(instances.values()))
    _put(folder, "library.csv", csv_text(instances.values()))
    for name in ASSETS:
        _put(folder, f"assets/{name}", asset(name))
    for file, text in pages.all():
        _put(folder, file, text)
    for path in pages.problems():
        own = [listed for listed in instances.values() if listed.problem == path]
        _put(folder, f"data/{stem(path)}.csv", csv_text(own))
        _put(folder, f"data/{stem(path)}.json", json_text(own))
        checker = checkers.file_of(path)
        if checker is not None:
            _copy(checker, folder / "checkers" / checker.name)
    for name, listed in instances.items():
        picture = None if drawn is None else pictures.drawn(name, drawn)
        if picture is not None:
            _copy(picture, folder / "pictures" / f"{stem(name)}.png")
        sources: tuple[Path | None, ...] = (instance_file(name), best_file(name), certificates.file_of(name))
        for kind, source in zip(FILES, sources, strict=True):
            if source is not None:
                _copy(source, folder / kind.name_for(name, source))
        there = None if picture is None else f"pictures/{stem(name)}.png"
        _put(folder, f"instances/{stem(name)}.html", pages.instance(listed, there))
    return folder / "index.html"


def _put(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _copy(source: Path, file: Path) -> None:
    """Copy a file; JSON is packed on the way where the copy's name says so."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = source.read_bytes()
    packed = file.suffix == ".gz" and source.suffix != ".gz"
    file.write_bytes(gzip.compress(content, 9, mtime=0) if packed else content)


def _fields(listed: index.Listed) -> dict[str, Any]:
    """What tables to download say of an instance."""
    return {
        "name": listed.name,
        "problem": listed.problem,
        "size": listed.size,
        "sense": listed.sense,
        "unit": listed.unit,
        "objective": listed.objective,
        "bound": listed.bound,
        "gap": listed.gap,
        "proven": listed.proven,
        "evidence": certificates.label(listed.name, listed.digest) if listed.proven else None,
        "found_by": listed.found_by,
        "bound_by": listed.bound_by,
        "licence": listed.licence,
        "digest": listed.digest,
        "source": listed.source,
    }


def json_text(listed: Iterable[index.Listed]) -> str:
    """What is known of instances, as JSON."""
    lines = ",\n".join(json.dumps(_fields(each) | {"sizes": dict(each.sizes)}, ensure_ascii=False) for each in listed)
    return f"[\n{lines}\n]\n"


def csv_text(listed: Iterable[index.Listed]) -> str:
    """The same as a table."""
    rows = [_fields(each) for each in listed]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["name"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
