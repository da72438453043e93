"""Locks on modules of kernels, so that of several processes one compiles."""

import os
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from filelock import FileLock

_locks: dict[tuple[int, str], FileLock] = {}
"""By process, as a forked one must not use those of its parent, and by path."""
_locks_guard = threading.Lock()


def lock_of(folder: str, module: str) -> AbstractContextManager[object]:
    """Held while kernels of a module are compiled, so that of several processes one does it.

    The lock may be taken again by the thread that has it. Where the folder cannot be written to there is none.
    """
    path = Path(folder, f"{module}.lock")
    if not os.access(folder, os.W_OK):
        return nullcontext()
    with _locks_guard:
        return _locks.setdefault((os.getpid(), str(path)), FileLock(path))
