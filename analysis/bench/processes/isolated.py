"""One solve in a process group of its own, with limits on time and memory that hold whatever the method does."""

import json
import math
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from ddlopt.analysis.bench.processes.process_group import GRACE_S, watch_over
from ddlopt.analysis.bench.rows import Finished, ended, no_outcome, run_row
from ddlopt.analysis.bench.tasks import Task
from ddlopt.models.compilation import compile_kernels
from ddlopt.solvers.machine import address_space_left_bytes

GRACE = 0.25, 15.0
"""Part of the time limit, and seconds, that a solve may take beyond its limit before it is killed."""
_START_S = 300.0
"""What a process may take to begin, the compiling of kernels not counted; its limit counts from then on."""
# Between looks at a child: hardly any work, and Ctrl-C is noticed at once.
_POLL_S = 0.2
_BEGUN = "begun"
_OF_RESULT = (
    "status", "objective", "bound", "evidence", "found_by", "proved_by", "gap", "checked", "scope", "scope_bound",
    "runtime_s", "compile_s", "message", "trace", "solution",
)  # fmt: skip
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def solve_isolated(
    task: Task, described: Mapping[str, Any], stopped: Callable[[], bool] | None = None
) -> Finished | None:
    """Solve in a process of its own and wait for it, and for all that it starts: nothing of it is left afterwards.

    A crash, a lack of memory and a solve that does not heed its limit are outcomes too, with status ``crashed``,
    ``out_of_memory`` and ``killed``. Incumbent and bound that it reported last are claims, among the details.

    Parameters
    ----------
    task : Task
    described : mapping
        The instance's row.
    stopped : callable, optional
        Asked several times a second; once it says so the process is killed.

    Returns
    -------
    Finished or None
        None if it was stopped.
    """
    began = time.perf_counter()
    child = _Child(task)
    claims: tuple[float | None, float | None] = None, None
    outcome: dict[str, Any] | None = None
    limit = math.inf if task.limits.time_s is None else task.limits.time_s * (1 + GRACE[0]) + GRACE[1]
    killed, until = False, began + _START_S + limit
    try:
        while outcome is None:
            if stopped is not None and stopped():
                return None
            if time.perf_counter() > until:
                killed = True
                break
            message = child.next_message(_POLL_S)
            if message is _ENDED:
                break
            if isinstance(message, int):
                until = math.inf  # it compiles
            elif message == _BEGUN:
                until = time.perf_counter() + limit
            elif isinstance(message, list):
                claims = message[1], message[2]
            elif isinstance(message, dict):
                outcome = message
    finally:
        exit_code = child.finish(kill=outcome is None)
    wall_s = time.perf_counter() - began
    if killed:
        message = f"did not end within its limit of {task.limits.time_s:g} s and the grace"
        outcome = no_outcome("killed", message, wall_s, claims)
    elif outcome is None:
        outcome = no_outcome(*ended(exit_code), wall_s, claims)
    return Finished(run_row(task, described, outcome, wall_s), dict(described))


_ENDED = object()
_END_S = GRACE_S + 30.0
"""What may pass until a group has ended; then whatever is left of it is killed from here."""


class _Child:
    """The process, however it was started: by the fork server, or anew where this process must have no children.

    It watches over the one that solves, which leads a group, see
    :func:`~ddlopt.analysis.bench.processes.process_group.watch_over`.
    """

    def __init__(self, task: Task) -> None:
        self._process: Any
        self._group: int | None = None
        if multiprocessing.current_process().daemon:
            self._own, theirs = multiprocessing.Pipe()
            os.set_inheritable(theirs.fileno(), True)
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import serve_descriptor; serve_descriptor({theirs.fileno()})"],
                pass_fds=[theirs.fileno()],
            )
        else:
            context = _fork_server()
            self._own, theirs = context.Pipe()
            self._process = context.Process(target=serve, args=(theirs,))
            with _without_main():
                self._process.start()
        theirs.close()
        self._own.send(task)

    def next_message(self, wait_s: float) -> Any:
        """A message, None if there is none yet, or ``_ENDED``."""
        try:
            message = self._own.recv() if self._own.poll(wait_s) else None
        except (EOFError, OSError):  # the latter in the midst of a message
            return _ENDED
        if isinstance(message, int):
            self._group = message
        return message

    def finish(self, kill: bool) -> int:
        """The exit code, after the process is gone, with its group."""
        if kill:
            self._ends_within(_POLL_S)  # one that is ending by itself keeps its exit code
            self._own.close()
        if not self._ends_within(_END_S):
            self._own.close()
            if kill or not self._ends_within(_END_S):
                self._process.kill()
                if self._group is not None:
                    with suppress(OSError):
                        os.killpg(self._group, signal.SIGKILL)
        if isinstance(self._process, subprocess.Popen):
            code = int(self._process.wait())
        else:
            self._process.join()
            code = int(self._process.exitcode)
            self._process.close()
        self._own.close()
        return code

    def _ends_within(self, wait_s: float) -> bool:
        if isinstance(self._process, subprocess.Popen):
            try:
                self._process.wait(timeout=wait_s)
            except subprocess.TimeoutExpired:
                return False
            return True
        self._process.join(wait_s)
        return self._process.exitcode is not None


_SERVER_LOCK = threading.Lock()


def _fork_server() -> Any:
    """A context whose processes begin with everything imported."""
    context = multiprocessing.get_context("forkserver")
    with _SERVER_LOCK:
        for name in _ONE_THREAD:
            os.environ.setdefault(name, "1")
        context.set_forkserver_preload(["ddlopt.analysis.bench.processes.preload"])
    return context


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep a new process from running this one's script first, as those of multiprocessing do.

    It needs nothing of it, and the imports of a command line alone would take longer than many a solve.
    """
    main = sys.modules["__main__"]
    with _SERVER_LOCK:
        known = {name: getattr(main, name, None) for name in ("__file__", "__spec__")}
        try:
            for name in known:
                setattr(main, name, None)
            yield
        finally:
            for name, value in known.items():
                setattr(main, name, value)


def serve_descriptor(descriptor: int) -> None:
    """Solve the task that comes over an inherited pipe."""
    serve(Connection(descriptor))


def serve(pipe: Connection) -> None:
    """Solve the task that comes over the pipe, and end whatever that leaves behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the sweep's to handle
    watch_over(lambda: _work(pipe), pipe)


def _work(pipe: Connection) -> None:
    """Solve; send the group's number, trace points, then the outcome."""
    with suppress(OSError):  # there may be no standard error
        os.dup2(2, 1)  # what solvers print is no part of what the sweep does
    task: Task = pipe.recv()
    pipe.send(os.getpid())
    compile_s = compile_kernels(task.kernels, tell=None)
    memory_bytes = task.memory_bytes or address_space_left_bytes()
    if memory_bytes is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    pipe.send(_BEGUN)
    news = _News(pipe)
    try:
        outcome = _solved(task, news)
        outcome["compile_s"] += compile_s
    except MemoryError:
        outcome = _short_of_memory(task)
    news.stop()
    pipe.send(outcome)


class _News(threading.Thread):
    """Sends what is known, now and then, so that a process that gives no result does not take it along."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._ended = threading.Event()
        self.latest: list[float | None] | None = None
        self._told: list[float | None] | None = None
        self.start()

    def run(self) -> None:
        while not self._ended.wait(_POLL_S):
            if self._pipe.poll():
                os._exit(1)  # nothing is ever sent to a solve that runs: the sweep is gone
            self._tell()

    def _tell(self) -> None:
        latest = self.latest
        if latest is not self._told:
            self._told = latest
            self._pipe.send(latest)

    def stop(self) -> None:
        """Leave the pipe to the outcome."""
        self._ended.set()
        self.join()


def _solved(task: Task, news: _News) -> dict[str, Any]:
    from ddlopt.analysis.compare import attempt
    from ddlopt.solvers import catalogue
    from ddlopt.solvers.wrappers.guarded_process import tells_of_memory

    def watch(_: str, __: str, point: Any) -> None:
        news.latest = [point.time_s, point.incumbent, point.bound]

    method = catalogue.method(task.method, task.family, task.solver or "highs")
    instance = task.load()
    began = time.perf_counter()
    result = attempt(instance, method, task.limits, task.seed, watch)
    answer_s = time.perf_counter() - began
    if result.solution is None and tells_of_memory(result.message):
        return _short_of_memory(task)
    data = result.to_data(with_solution=True)
    outcome = {name: data[name] for name in _OF_RESULT}
    outcome["answer_s"] = answer_s
    outcome["details"] = json.loads(json.dumps(data["details"], default=str))
    outcome["peak_memory_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return outcome


def _short_of_memory(task: Task) -> dict[str, Any]:
    limit = "there is" if task.memory_bytes is None else f"{task.memory_bytes} bytes"
    return no_outcome("out_of_memory", f"needs more than {limit}")
