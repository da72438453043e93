"""A process for one solve, which tells what it finds while it runs, and of which nothing is left when it ends."""

import contextlib
import errno
import faulthandler
import gc
import os
import pickle
import resource
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.errors import DdloptError, SolutionError, SolverError
from ddlopt.solvers import incumbents, standard_output
from ddlopt.solvers.certified import told_anew
from ddlopt.solvers.contracts import ProgressCallback, Result, better
from ddlopt.solvers.machine import address_space_bytes

POINT, SOLUTION, RESULT, PROBLEM, SHORT = "point", "solution", "result", "problem", "short"
"""What a process tells: the last three once, in the end; ``SHORT``: it needs more memory."""
ENDED = "ended"
"""In place of what a process that has ended did not tell."""
# Between looks at what a child says on standard error, and at whether its parent is there.
_POLL_S = 0.25
_MAKING = 0.1
"""Part of the time that solutions may take to be made and sent; what is found meanwhile is told with the next."""
_NOTES_BYTES = 2**20
"""Of standard error at a time."""
_SIGNS = (
    *("MemoryError", "bad_alloc", "annot allocate memory", "an't start new thread", "failed to map segment"),
    "out of memory",
)
"""What messages of libraries have in them that ran out of memory."""

Work = Callable[[ProgressCallback], Result]


class GuardedProcess:
    """A forked process that solves, in a process group of its own.

    Parameters
    ----------
    work : callable
        Gives the result; called with what is to be told of progress.
    instance : Instance
        Solutions of others are not kept.
    memory_bytes : int or None
        Of address space, what the program itself takes included.
    """

    def __init__(self, work: Work, instance: Instance, memory_bytes: int | None) -> None:
        self._notes = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        self._own, theirs = Pipe(duplex=False)
        self._told_bytes = self._seen_bytes = 0
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # there may be none
                stream.flush()
        _end_threads_of_highs()
        with warnings.catch_warnings():  # that this process has threads: those of linear algebra are made anew
            warnings.simplefilter("ignore", DeprecationWarning)
            self._number = os.fork()
        if self._number == 0:
            self._own.close()
            _run(theirs, self._notes.fileno(), work, instance, memory_bytes)
        theirs.close()
        with contextlib.suppress(OSError):  # it has done so itself, or has ended
            os.setpgid(self._number, self._number)

    def next(self, wait_s: float) -> tuple[str, Any] | None:
        """What it tells next; None if there is nothing in time. Notes on standard error are passed on."""
        until = time.perf_counter() + wait_s
        while True:
            left_s = until - time.perf_counter()
            try:
                if self._own.poll(max(0.0, min(left_s, _POLL_S))):
                    kind, content = self._own.recv()
                    return kind, content
            except Exception:  # it may end in the midst of a message
                return ENDED, None
            self._pass_on_notes()
            if left_s <= 0:
                return None

    def interrupt(self) -> None:
        """Ask it to end, as Ctrl-C does."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """End it, and all that it started."""
        self._signal(signal.SIGKILL)

    def wait(self) -> int:
        """Wait until it is gone, and end what is left of its group; its exit code."""
        _, status = os.waitpid(self._number, 0)
        self.kill()
        return os.waitstatus_to_exitcode(status)

    def close(self, quiet: bool = False) -> None:
        """Pass on the last that it said, unless ``quiet``."""
        self._own.close()
        for _ in range(0 if quiet else 2):
            self._pass_on_notes()
        self._notes.close()

    def delayed_s(self) -> float:
        """Seconds in which it could have worked, had the machine not been busy; 0 where nobody counts them."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(Path(f"/proc/{self._number}/schedstat").read_text().split()[1]) / 1e9
        return 0.0

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._number, number)

    def _pass_on_notes(self) -> None:
        """Print what was on standard error a look ago: what libraries say that run out of memory comes at the end."""
        size = os.fstat(self._notes.fileno()).st_size
        until, self._seen_bytes = self._seen_bytes, size
        while self._told_bytes < until:
            some = os.pread(self._notes.fileno(), min(_NOTES_BYTES, until - self._told_bytes), self._told_bytes)
            if not some:
                return
            self._told_bytes += len(some)
            with contextlib.suppress(Exception):  # there may be no standard error
                sys.stderr.write(some.decode("utf-8", "replace"))
                sys.stderr.flush()


def _end_threads_of_highs() -> None:
    """End the threads that HiGHS keeps for its next run in this thread.

    A forked process has none of them, but HiGHS believes it has: it fails when it ends them ("Invalid argument").
    """
    if "highspy" in sys.modules:
        sys.modules["highspy"].Highs.resetGlobalScheduler(True)


def _run(pipe: Connection, notes: int, work: Work, instance: Instance, memory_bytes: int | None) -> None:
    """Solve, and end the process."""
    code = 1
    try:
        faulthandler.disable()  # how it ends is told in one line
        gc.freeze()  # what was there before is not walked through, nor copied by that
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
        os.dup2(notes, 2)
        if standard_output.is_kept_clear():
            os.dup2(notes, 1)
        # Streams of this process may have locks that other threads of it held.
        sys.stdout = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8", errors="replace")
        sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="replace")
        news = _News(pipe, instance)
        with incumbents.kept_by(news.keep):
            answer = _answer(news, work, memory_bytes)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        news.send(*answer)
        code = 0
    finally:
        os._exit(code)


def _answer(news: "_News", work: Work, memory_bytes: int | None) -> tuple[str, Any]:
    spare = bytearray(2**22)  # so that there is room to say that there is none
    try:
        if memory_bytes is not None:
            if address_space_bytes() > memory_bytes:
                raise MemoryError
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            most = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        return RESULT, _portable_result(work(news.point))
    except BaseException as problem:
        del spare
        return (SHORT, None) if _is_short(problem) else (PROBLEM, _portable(problem))


class _News:
    """Sends what is found."""

    def __init__(self, pipe: Connection, instance: Instance) -> None:
        self._pipe, self._instance, self._process = pipe, instance, os.getpid()
        self._lock = threading.RLock()
        self._began, self._spent_s = time.perf_counter(), 0.0
        self._best: float | None = None

    def send(self, kind: str, content: Any) -> None:
        """Send something whole: a signal that ends the work must not cut it short."""
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGALRM})
        try:
            with self._lock:
                self._pipe.send((kind, content))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def point(self, point: Any) -> None:
        self.send(POINT, point)

    def keep(self, objective: float, solution: incumbents.Told) -> None:
        """Send a solution that is better than those sent."""
        if os.getpid() != self._process:  # a process that the method started
            return
        sense = self._instance.sense
        if objective != objective or (self._best is not None and not better(objective, self._best, sense)):
            return
        began = time.perf_counter()
        if self._best is not None and self._spent_s > _MAKING * (began - self._began):
            return
        made = solution() if callable(solution) else solution
        if not isinstance(made, Solution):
            raise TypeError(
                f"report() got a {type(made).__name__} as a solution; give one, or a function that makes it"
            )
        try:
            made.belongs_to(self._instance)
        except SolutionError:  # of a part, or of another instance that is solved on the way
            return
        self.send(SOLUTION, made)
        self._best = objective
        self._spent_s += time.perf_counter() - began


def _end_with(parent: int) -> None:
    """Nobody waits for a solve whose parent is gone."""
    while os.getppid() == parent:
        time.sleep(_POLL_S)
    with contextlib.suppress(OSError):
        os.killpg(0, signal.SIGKILL)
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


def _portable_result(result: Any) -> Any:
    """The result, in a form that another process can read: figures of other packages may be anything."""
    with contextlib.suppress(Exception):
        pickle.dumps(result)
        return result
    plain = {str(name): str(value) for name, value in result.details.items()}
    return told_anew(result, details=plain, provenance={str(name): str(v) for name, v in result.provenance.items()})


def _portable(problem: BaseException) -> BaseException:
    """The exception, in a form that another process can read."""
    if isinstance(problem, Exception):
        with contextlib.suppress(Exception):
            return pickle.loads(pickle.dumps(problem)) and problem
    if isinstance(problem, KeyboardInterrupt):
        return KeyboardInterrupt()
    return SolverError(str(problem) if isinstance(problem, DdloptError) else f"{type(problem).__name__}: {problem}")


@contextlib.contextmanager
def leaving_ctrl_c_to(process: GuardedProcess) -> Iterator[list[float]]:
    """Pass Ctrl-C on to the process, which then gives what it has; the second one ends it. When it was pressed."""
    pressed: list[float] = []

    def press(*_: Any) -> None:
        pressed.append(time.perf_counter())
        if len(pressed) > 1:
            process.kill()
            raise KeyboardInterrupt
        process.interrupt()

    try:
        before = signal.signal(signal.SIGINT, press)
    except ValueError:  # not the main thread, which has Ctrl-C to itself
        yield pressed
        return
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
