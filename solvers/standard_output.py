"""Standard output belongs to whoever asked: what a method prints there, in whatever way, goes to standard error."""

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from typing import TextIO

_LOCK = threading.RLock()
# How many are within: nested ones redirect once.
_inside = 0
_own: list[int] = []
_stream: TextIO | None = None


@contextlib.contextmanager
def kept_clear() -> Iterator[None]:
    """Send to standard error what is printed meanwhile, by Python, by compiled code, and by programs that it starts.

    Of several that overlap, in threads or one within another, the last to end gives standard output back.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def is_kept_clear() -> bool:
    """Whether somebody has asked for it."""
    return _inside > 0


def _enter() -> None:
    global _inside, _stream
    with _LOCK:
        _inside += 1
        if _inside > 1:
            return
        _flush()
        _stream, sys.stdout = sys.stdout, sys.stderr
        with contextlib.suppress(OSError):  # there may be no standard output
            _own.append(os.dup(1))
            _point_elsewhere()


def _leave() -> None:
    global _inside, _stream
    with _LOCK:
        _inside -= 1
        if _inside:
            return
        _flush()
        sys.stdout, _stream = _stream, None
        if _own:
            own = _own.pop()
            os.dup2(own, 1)
            os.close(own)


def _point_elsewhere() -> None:
    try:
        os.dup2(2, 1)
    except OSError:  # there is no standard error either
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


def _flush() -> None:
    """Write what waits in the buffers of Python and of C, while it still goes where it was printed to."""
    for stream in (sys.stdout, sys.__stdout__):
        with contextlib.suppress(Exception):
            if stream is not None:
                stream.flush()
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).fflush(None)
