"""Reading of files that anybody may have written: bounded, regular files only, JSON without two meanings.

What cannot be read is an :class:`UnreadableError` with one line, without the path: those who call know what the file
was to be.
"""

import codecs
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

MOST_BYTES = 64 * 2**20
"""Unpacked bytes of a file that are read unless :func:`reading_up_to` says otherwise."""
# A megabyte at a time, so that nothing hostile can fill the memory.
_CHUNK = 2**20
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS

_FRACTION = re.compile(r"-?[0-9]{1,3000}(/[1-9][0-9]{0,2999})?")

_most: ContextVar[int] = ContextVar("most_bytes", default=MOST_BYTES)


class UnreadableError(Exception):
    """Why a file cannot be read, in one line that does not name it."""


@contextmanager
def reading_up_to(most_bytes: int) -> Iterator[None]:
    """Read files of up to ``most_bytes`` unpacked bytes within; ``ddlopt --max-file-mb`` does so."""
    if most_bytes < 1:
        raise ValueError(f"the largest file to be read has {most_bytes} bytes; expected a positive number")
    before = _most.set(most_bytes)
    try:
        yield
    finally:
        _most.reset(before)


def read_bytes(path: str | Path) -> bytes:
    """Content of a regular file, unpacked where its name ends in ``.gz``.

    Raises
    ------
    UnreadableError
        If there is none, it is a pipe, a device or a folder, is damaged, or has more bytes than are allowed, packed or
        unpacked.
    """
    try:
        with opened(path) as file:
            data = file.read(_most.get() + 1)
        refuse_larger(len(data))
        return unpacked(data) if Path(path).suffix == ".gz" else data
    except OSError as problem:
        raise UnreadableError(problem.strerror or str(problem)) from None


def opened(path: str | Path) -> IO[bytes]:
    """A regular file, to be read in pieces by whoever can.

    Raises
    ------
    OSError
        If it cannot be opened.
    UnreadableError
        If it is a pipe, a device or a folder.
    """
    # Without waiting: to open a pipe that nobody writes to would last for ever.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise UnreadableError("it is not a regular file")
    return file


def unpacked(data: bytes) -> bytes:
    """What gzip or zlib has packed, in one or more members; as much as is allowed, or an :class:`UnreadableError`."""
    most, parts, size = _most.get(), [], 0
    while data:
        member = zlib.decompressobj(_GZIP_OR_ZLIB)
        while not member.eof:
            try:
                part = member.decompress(data, min(_CHUNK, most - size + 1))
            except zlib.error as problem:
                raise UnreadableError(f"it is no gzip file, or damaged: {problem}") from None
            data = member.unconsumed_tail
            if not part and not data and not member.eof:
                raise UnreadableError("the packed file is truncated")
            parts.append(part)
            size += len(part)
            refuse_larger(size)
        data = member.unused_data.lstrip(b"\0")  # which pads to whole blocks
    return b"".join(parts)


def refuse_larger(size: int) -> None:
    """Raise an :class:`UnreadableError` if a file has, or says that it has, more unpacked bytes than are allowed."""
    most = _most.get()
    if size > most:
        raise UnreadableError(
            f"it has more than {most} bytes; ddlopt --max-file-mb N, or ddlopt.models.reading.reading_up_to, reads more"
        )


def read_text(path: str | Path) -> str:
    """Text of a regular UTF-8 file, unpacked where its name ends in ``.gz``; errors as of :func:`read_bytes`."""
    try:
        return decoded(read_bytes(path))
    except UnicodeDecodeError as problem:
        raise UnreadableError(f"it is no text in UTF-8, as byte {problem.start} shows") from None


def decoded(data: bytes) -> str:
    """Text in UTF-8, without the byte order mark that editors and spreadsheets put before it.

    Raises
    ------
    UnicodeDecodeError
        If it is no UTF-8.
    """
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")


def parsed(text: str, finite: bool = True) -> Any:
    """The data in JSON text.

    Parameters
    ----------
    text : str
    finite : bool
        Whether ``NaN`` and ``Infinity`` are refused wherever they stand; otherwise whoever uses a figure must look.

    Raises
    ------
    ValueError
        If it is no JSON, has a key twice, a number that is not finite, or half of a character.
    """
    constant = _refuse_constant if finite else float
    try:
        data = json.loads(text, parse_constant=constant, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _HALF.search(text):
        _refuse_halves(data)
    return data


_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that may be half of a character; two of them may be a whole one."""


def _refuse_halves(data: Any) -> None:
    try:
        json.dumps(data, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as problem:
        raise ValueError(f"a string has an unpaired surrogate (U+{ord(problem.object[problem.start]):04X})") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number that JSON knows; every figure must be finite")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key!r} stands twice in one object; give it once")
            seen.add(key)
    return found


def is_fraction(text: str) -> bool:
    """Whether a text is a fraction of reasonable length."""
    return _FRACTION.fullmatch(text) is not None
