"""Files that appear whole or not at all."""

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ddlopt.models.errors import OptionError


def writable(path: str | Path) -> Path:
    """The path, if a file can appear there; to be asked before hours of work.

    Raises
    ------
    OptionError
        If its folder does not exist or cannot be written to, or it is a folder itself.
    """
    path = Path(path)
    if path.is_dir():
        raise OptionError(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise OptionError(f"{path} cannot be written: the folder {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise OptionError(f"{path} cannot be written: the folder {path.parent} is read-only")
    return path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place on leaving without an error, and vanishes otherwise."""
    path = writable(path)
    if path.exists() and not path.is_file():  # a pipe or a terminal, e.g. /dev/stdout: nothing to replace
        yield path
        return
    path = path.resolve()
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        _on_disk(temporary)
        temporary.replace(path)
    except OSError as problem:
        raise OptionError(f"{path} cannot be written: {problem.strerror or problem}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _on_disk(path: Path) -> None:
    """Have the system write what it holds of a file, so that a full disk is told before the file counts."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write bytes, or text as UTF-8; the file appears whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def write_whole_packed(path: str | Path, text: str) -> None:
    """Write text, as gzip where the name ends in ``.gz``: the same text is the same bytes, whatever the time."""
    data = text.encode()
    write_whole(path, gzip.compress(data, mtime=0) if Path(path).suffix == ".gz" else data)
