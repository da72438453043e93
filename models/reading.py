"""Reading of files that anybody may have written: bounded, JSON without two meanings.

Files are regular, or pipes that somebody handed over open, as standard input is.

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
_GZIP = b"\x1f\x8b"
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS

_HANDED_OVER = re.compile(r"(?:/dev|/proc/self)/fd/([0-9]{1,6})")
STANDARD_INPUT = "-", "/dev/stdin"
"""Its names."""

_FRACTION = re.compile(r"-?[0-9]{1,3000}(/[1-9][0-9]{0,2999})?")

_most: ContextVar[int] = ContextVar("most_bytes", default=MOST_BYTES)
_kept: ContextVar[dict[int, bytes] | None] = ContextVar("kept", default=None)


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


@contextmanager
def keeping_pipes() -> Iterator[None]:
    """Keep within what comes through pipes, so that a command may look at it more than once."""
    before = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(before)


def handed_over(path: str | Path) -> int | None:
    """The descriptor that a path means: standard input, or a file that a shell opened, as for ``<(…)``; None of others.

    A pipe among them can be read only once, apart from :func:`keeping_pipes`.
    """
    if str(path) in STANDARD_INPUT:
        return 0
    found = _HANDED_OVER.fullmatch(str(path))
    return None if found is None else int(found[1])


def is_file(path: str | Path) -> bool:
    """Whether a path means a file that is there, or one that was handed over open."""
    return handed_over(path) is not None or Path(path).is_file()


def read_bytes(path: str | Path) -> bytes:
    """Content of a file, unpacked where its name ends in ``.gz``, or where it comes packed through a pipe.

    Raises
    ------
    UnreadableError
        If there is none, :func:`opened` refuses it, it is damaged, a pipe has nothing, or there are more bytes than
        are allowed, packed or unpacked.
    """
    number, kept = handed_over(path), _kept.get()
    if number is not None and kept is not None and number in kept:
        return kept[number]
    try:
        with opened(path) as file:
            data = file.read(_most.get() + 1)
            is_pipe = not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        refuse_larger(len(data))
        if is_pipe and not data:
            raise UnreadableError("nothing comes from it; what came through a pipe can be read only once")
        is_packed = data[:2] == _GZIP if is_pipe else Path(path).suffix == ".gz"
        data = unpacked(data) if is_packed else data
        if number is not None and is_pipe and kept is not None:
            kept[number] = data
        return data
    except OSError as problem:
        raise UnreadableError(problem.strerror or str(problem)) from None


def opened(path: str | Path) -> IO[bytes]:
    """A regular file, or a pipe that was handed over open, to be read in pieces by whoever can.

    Raises
    ------
    OSError
        If it cannot be opened.
    UnreadableError
        If it is another pipe, a device or a folder.
    """
    number = handed_over(path)
    if number is not None:
        mode = os.fstat(number).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            os.set_blocking(number, True)
            return os.fdopen(os.dup(number), "rb")
        if os.isatty(number):
            raise UnreadableError("it is a terminal; name a file, or pipe one in")
        path = f"/dev/fd/{number}"
    # Without waiting: to open a pipe that nobody writes to would last for ever.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    mode = os.fstat(file.fileno()).st_mode
    if not stat.S_ISREG(mode):
        file.close()
        hint = "; give a pipe as standard input, and '-' for its name" if stat.S_ISFIFO(mode) else ""
        raise UnreadableError(f"it is not a regular file{hint}")
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
    except json.JSONDecodeError as problem:
        raise ValueError(f"{problem}{_slip(text, problem.pos)}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _HALF.search(text):
        _refuse_halves(data)
    return data


_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that may be half of a character; two of them may be a whole one."""


def _slip(text: str, place: int) -> str:
    """What people take for JSON, where that is what stands there; else nothing."""
    before, rest = text[:place].rstrip(), text[place:].lstrip()
    if rest.startswith(("//", "/*", "#")):
        return "; JSON has no comments"
    if rest.startswith("'"):
        return "; JSON has double quotes only"
    if before.endswith(",") and rest.startswith(("}", "]")):
        return "; JSON has no comma after the last"
    if not before and not rest.startswith(("{", "[")):
        return "; is it YAML, TOML or a table? A document in JSON begins with {"
    return ""


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
