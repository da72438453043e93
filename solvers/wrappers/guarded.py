"""A method with a limit on its memory: each solve is a process of its own, of which nothing is left when it ends."""

import contextlib
import errno
import faulthandler
import multiprocessing
import os
import pickle
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from numbers import Real
from typing import Any

from ddlopt.models.errors import OptionError, SolverError
from ddlopt.solvers.building import address_space_bytes
from ddlopt.solvers.certified import told_anew
from ddlopt.solvers.contracts import (
    Limits,
    Method,
    ProgressCallback,
    Result,
    compiled,
)
from ddlopt.solvers.wrappers.by_instance import Asks

_SIGNS = (
    *("MemoryError", "bad_alloc", "annot allocate memory", "an't start new thread", "failed to map segment"),
    "out of memory",
)
"""What messages of libraries have in them that ran out of memory."""
# 2^33 gigabytes in bytes are 2^63, beyond which limits of the system are no numbers.
_MOST_GB = 2**33
# Between looks at a child's memory, which takes a second to grow by gigabytes.
_POLL_S = 0.5
_NOTHING_LEFT = -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGKILL, -signal.SIGBUS
"""How a process ends whose libraries do not look at what they are given; also by the system's own hand."""


def memory_limit(gigabytes: float | None) -> int | None:
    """Bytes of a limit that was given in gigabytes.

    Raises
    ------
    OptionError
        If it is not positive and finite.
    """
    if gigabytes is None:
        return None
    if not isinstance(gigabytes, Real) or not 0 < gigabytes < _MOST_GB:
        raise OptionError(f"the memory must be a positive number of gigabytes, got {gigabytes}")
    return int(gigabytes * 1e9)


@dataclass(frozen=True)
class WithinMemory(Asks):
    """Asks another method in a forked process with so much address space.

    Parameters
    ----------
    asked : Method
    memory_bytes : int
        Of address space, what the program itself takes included.
    """

    asked: Method
    memory_bytes: int

    @property
    def name(self) -> str:
        """Of the method."""
        return self.asked.name

    @property
    def family(self) -> str:
        """Of the method."""
        return self.asked.family

    def method(self, instance: Any) -> Method:
        """The same for all instances."""
        return self.asked

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`.

        Raises
        ------
        SolverError
            If that takes more memory, or the process crashes.
        """
        compile_s = compiled(self.asked, instance)
        context = multiprocessing.get_context("fork")
        own, theirs = context.Pipe()

        def work() -> None:
            own.close()
            _serve(theirs, self.memory_bytes, lambda tell: self.asked.solve(instance, limits, seed, tell, start))

        sys.stdout.flush()
        sys.stderr.flush()
        child = context.Process(target=work)
        child.start()
        theirs.close()
        with _leaving_ctrl_c_to(child):
            answer = _answer(own, progress)
            child.join()
        own.close()
        if isinstance(answer, Result):
            return told_anew(answer, compile_s=answer.compile_s + compile_s)
        if isinstance(answer, Exception):
            raise answer
        if answer == "memory" or child.exitcode in _NOTHING_LEFT:
            raise SolverError(
                f"{self.name} on '{instance.name}' needs more than {self.memory_bytes / 1e9:g} GB of memory; "
                "--memory sets how much it may have"
            )
        raise SolverError(
            f"{self.name} on '{instance.name}' ended without a result, by exit code {child.exitcode}; "
            f"perhaps {self.memory_bytes / 1e9:g} GB of memory are too little"
        )


def _answer(pipe: Connection, progress: ProgressCallback | None) -> Any:
    """What the process sends in the end; None if it ends before."""
    while True:
        try:
            kind, content = pipe.recv()
        except (EOFError, ConnectionError):
            return None
        if kind != "point":
            return content
        if progress is not None:
            progress(content)


def _serve(pipe: Connection, memory_bytes: int, solve: Any) -> None:
    """Solve with so much memory; send points, then a result, an exception, or that memory is short."""
    faulthandler.disable()  # how it ends is told in one line
    spare = bytearray(2**22)  # so that there is room to say that there is none
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    with tempfile.TemporaryFile("w+") as notes:
        errors = os.dup(2)
        os.dup2(notes.fileno(), 2)  # libraries that are out of memory say so at length
        sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="replace")
        answer: tuple[str, Any]
        try:
            if address_space_bytes() > memory_bytes:
                raise MemoryError
            resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
            answer = "result", solve(lambda point: pipe.send(("point", point)))
        except (Exception, SystemExit, KeyboardInterrupt) as problem:
            del spare
            answer = ("short", "memory") if _is_short(problem) else ("problem", _portable(problem))
        sys.stderr.flush()
        os.dup2(errors, 2)
        if answer[0] != "short":
            notes.seek(0)
            os.write(2, notes.read().encode())
        pipe.send(answer)


def _end_with(parent: int) -> None:
    """Nobody waits for a solve whose parent is gone."""
    while os.getppid() == parent:
        time.sleep(_POLL_S)
    os._exit(1)


def tells_of_memory(message: str) -> bool:
    """Whether a message is that of something that ran out of memory, in whatever words of whatever library."""
    return any(sign in message for sign in _SIGNS)


def _is_short(problem: BaseException) -> bool:
    seen: BaseException | None = problem
    while seen is not None:
        short = isinstance(seen, MemoryError) or (isinstance(seen, OSError) and seen.errno == errno.ENOMEM)
        if short or tells_of_memory(str(seen)):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _portable(problem: BaseException) -> Exception:
    """The exception, in a form that another process can read."""
    if isinstance(problem, Exception):
        with contextlib.suppress(Exception):
            return pickle.loads(pickle.dumps(problem)) and problem
    return SolverError(f"{type(problem).__name__}: {problem}")


@contextlib.contextmanager
def _leaving_ctrl_c_to(child: Any) -> Iterator[None]:
    """Ctrl-C reaches the process as well, which then gives what it has; the second one ends it."""
    pressed: list[float] = []

    def press(*_: Any) -> None:
        pressed.append(time.perf_counter())
        if len(pressed) > 1:
            child.kill()
            raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGINT, press)
    except ValueError:  # not the main thread, which has Ctrl-C to itself
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
