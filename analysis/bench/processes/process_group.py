"""Processes that end together with all that they started, whatever those do about it."""

import ctypes
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

GRACE_S = 1.0
"""What processes that are asked to end may take before they are killed."""
_KILL_S = 10.0
"""After which processes that cannot be killed, as they wait for a disk, are left alone."""
# Between looks at processes that are ending, which takes some hundredths of a second.
_PAUSE_S = 0.01
_ADOPT_ORPHANS = 36
"""``PR_SET_CHILD_SUBREAPER`` of Linux."""


def watch_over(work: Callable[[], object], pipe: Connection) -> NoReturn:
    """Do the work in a process of its own, and end this one as that one ends, with all that is left of it.

    The process leads a session and a group of its own. Once the other end of ``pipe`` is closed, by whoever holds it or
    as that one died, or this process is asked to end, the group is sent SIGTERM, after :data:`GRACE_S` SIGKILL, and
    waited for. On Linux that holds for processes, too, that have left the group. Temporary files go to a folder that is
    removed in the end.
    """
    with suppress(OSError):
        os.setsid()
    _adopt_orphans()
    folder = None
    with suppress(OSError):  # a full disk is for the solve to meet
        folder = tempfile.mkdtemp(prefix="ddlopt-")
    worker = os.fork()
    if worker == 0:
        if folder is not None:
            tempfile.tempdir = os.environ["TMPDIR"] = folder
        _lead(work)
    with _woken_by(signal.SIGCHLD, signal.SIGTERM) as (alarm, came):
        code = _wait(worker, pipe, alarm, came)
        code = _end_group(worker, code)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    _end_as(code)


def _end_group(leader: int, code: int | None) -> int | None:
    """End the group, and on Linux all other children of this process, and wait for them; the leader's exit code."""
    began, asked = time.monotonic(), False
    while True:
        gone, ended = _collect(leader)
        code = ended if code is None else code
        elapsed_s = time.monotonic() - began
        if gone or elapsed_s > GRACE_S + _KILL_S:
            return code
        if elapsed_s > GRACE_S:
            _signal_all(leader, signal.SIGKILL)
        elif not asked:
            _signal_all(leader, signal.SIGTERM)
            asked = True
        time.sleep(_PAUSE_S)


def _lead(work: Callable[[], object]) -> NoReturn:
    code = 1
    try:
        os.setsid()
        work()
        code = 0
    except BaseException:  # nothing may get back to what the process was forked from
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(code)


@contextmanager
def _woken_by(*signals: signal.Signals) -> Iterator[tuple[int, list[int]]]:
    """A descriptor that becomes readable when one of the signals comes, and which of them have come."""
    alarm, wake = os.pipe()
    os.set_blocking(wake, False)
    came: list[int] = []
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for each in signals:
        signal.signal(each, lambda number, _: came.append(number))
    yield alarm, came


def _wait(worker: int, pipe: Connection, alarm: int, came: list[int]) -> int | None:
    """Until the worker has ended or has to end; its exit code, None if it has not."""
    poll = select.poll()
    poll.register(pipe.fileno(), 0)  # that the other end was closed is told always
    poll.register(alarm, select.POLLIN)
    while signal.SIGTERM not in came:
        ended, status = os.waitpid(worker, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        for descriptor, _ in poll.poll():
            if descriptor != alarm:
                return None
            os.read(alarm, 512)
    return None


def _adopt_orphans() -> None:
    """Make this process the parent of all below it whose own parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)


def _collect(leader: int) -> tuple[bool, int | None]:
    """Whether neither the group nor any child is left, and the leader's exit code if it was among those collected."""
    code = None
    with suppress(ChildProcessError):
        while True:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == leader:
                code = os.waitstatus_to_exitcode(status)
            if not ended:
                return False, code
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return True, code
    return False, code


def _signal_all(leader: int, number: int) -> None:
    with suppress(OSError):
        os.killpg(leader, number)
    for child in _children():
        with suppress(OSError):
            os.kill(child, number)


def _children() -> list[int]:
    """All below this process on Linux; elsewhere none."""
    parents: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            # The name of the program, in parentheses, may be anything.
            parent = int(place.read_bytes().rpartition(b")")[2].split()[1])
            parents.setdefault(parent, []).append(int(place.parent.name))
    found = list(parents.get(os.getpid(), ()))
    for each in found:
        found += parents.get(each, ())
    return found


def _end_as(code: int | None) -> NoReturn:
    """End with an exit code, or by the signal that it stands for."""
    if code is None or code >= 0:
        os._exit(1 if code is None else code)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # some cannot be handled
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    time.sleep(_KILL_S)
    os._exit(1)
