"""Proofs of the bundled instances' bounds: small ones as files, and what is known of all of them in ``index.json``.

The index vouches for nothing: the checker does, of the file and the instance as they are.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from ddlopt.models.files import write_whole
from ddlopt.models.reading import parsed, read_text

FOLDER = Path(__file__).parent
INDEX = FOLDER / "index.json"
_LABELS = {
    "combinatorial": "combinatorial, exact",
    "certificate": "exact certificate",
    "solver": "up to floating point",
}


@cache
def entries() -> dict[str, dict[str, Any]]:
    """What is known of each proven instance's certificate, by name of the instance; read once."""
    found: dict[str, dict[str, Any]] = parsed(read_text(INDEX)) if INDEX.exists() else {}
    return found


def label(name: str, digest: str) -> str:
    """By what evidence the best known solution of a proven instance is optimal, in two words or three for tables."""
    entry = entries().get(name)
    if entry is None or entry["instance_digest"] != digest:
        return _LABELS["solver"]
    return _LABELS[entry["evidence"]]


def file_of(name: str) -> Path | None:
    """The bundled certificate of an instance (``"topology/danoint"``); None where there is none."""
    return next((path for path in paths_of(name) if path.exists()), None)


def path_of(name: str, design: bool = False) -> Path:
    """Where it would be; ``design`` says that it is one of a topology's own branch and bound."""
    return paths_of(name)[design]


def paths_of(name: str) -> tuple[Path, Path]:
    """Where one in JSON would be, and where one of designs."""
    stem = name.replace("/", "--")
    return FOLDER / f"{stem}.json.gz", FOLDER / f"{stem}.ddlcert"


def write_entries(known: dict[str, dict[str, Any]]) -> None:
    """Write the index, a line an instance; it appears whole or not at all."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known))
    write_whole(INDEX, f"{{\n{lines}\n}}\n")
    entries.cache_clear()
