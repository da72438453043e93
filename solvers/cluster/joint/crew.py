"""Who solves inner problems: this process, several of this computer, or workers somewhere else; any may be lost."""

import math
import os
import signal
from collections.abc import Callable
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, NamedTuple

from ddlopt.models.catalogue import family
from ddlopt.models.errors import SolverError
from ddlopt.solvers import catalogue
from ddlopt.solvers.choice import within
from ddlopt.solvers.contracts import Limits, Status

_TRIES = 3
"""With workers that get lost."""
_POLL_S = 0.1
"""Between looks at the clock."""


class Outcome(NamedTuple):
    """Of a solve of an inner problem: what no plan is below, the plan's data, and what it means."""

    lower: float
    answer: dict[str, Any] | None
    closed: bool
    interrupted: bool


NOTHING = Outcome(0.0, None, False, False)
"""Of a solve that did not come to its end."""


class Task(NamedTuple):
    """An inner problem to solve; ``method`` is a name, or empty for the family's choice."""

    data: dict[str, Any]
    method: str
    seconds: float
    gap: float
    seed: int


def solved(task: Task) -> Outcome:
    """Solve an inner problem, anywhere, within its seconds whatever its method does."""
    inner = family(task.data["family"]).instance.from_data(task.data)
    made = catalogue.method(task.method, inner.family) if task.method else catalogue.default(inner)
    if made.refuses(inner) is not None:
        made = catalogue.default(inner)
    limits = Limits(task.seconds, task.gap)
    try:
        result = within(made, limits, None).solve(inner, limits, task.seed)
    except SolverError:  # it crashed, and has found nothing
        return NOTHING
    if result.status is Status.INFEASIBLE:
        return Outcome(math.inf, None, True, result.interrupted)
    answer = None if result.solution is None else result.solution.model_dump(mode="json")
    return Outcome(result.bound or 0.0, answer, result.status is Status.OPTIMAL, result.interrupted)


class Crew:
    """Solves several problems at a time.

    Parameters
    ----------
    size : int
        How many at a time; with 1, and no executor, this process does it itself.
    given : Executor, optional
        In place of processes of this computer.
    """

    def __init__(self, size: int = 1, given: Executor | None = None) -> None:
        self.size, self.given, self.lost = size, given, 0
        self._own: Executor | None = None
        self._leash: list[Connection] = []

    def outcomes(self, tasks: list[Task], late: Callable[[], bool]) -> list[Outcome]:
        """Of each task; nothing for those that are not done when it is late."""
        if self.size == 1 and self.given is None:
            return [NOTHING if late() else solved(task) for task in tasks]
        found: dict[int, Outcome] = {}
        for _ in range(_TRIES):
            left = [place for place in range(len(tasks)) if place not in found]
            if not left or late():
                break
            self._work({place: tasks[place] for place in left}, found, late)
        # Who was lost again and again is asked for nothing any more; its problem is solved here.
        return [
            found[place] if place in found else NOTHING if late() else solved(task) for place, task in enumerate(tasks)
        ]

    def _work(self, tasks: dict[int, Task], found: dict[int, Outcome], late: Callable[[], bool]) -> None:
        executor = self.given or self._own or self._started()
        pending: dict[Future[Outcome], int] = {}
        try:
            for place, task in tasks.items():
                pending[executor.submit(solved, task)] = place
            while pending:
                for future in wait(pending, _POLL_S, FIRST_COMPLETED).done:
                    found[pending.pop(future)] = future.result()
                if pending and late():
                    for future in pending:
                        future.cancel()
                    self.close()
                    return
        except Exception as problem:
            if not _is_loss(problem):
                raise
            self.lost += 1
            self.close()
            return

    def _started(self) -> Executor:
        context = get_context("spawn")
        theirs, ours = context.Pipe(duplex=False)
        self._leash = [theirs, ours]
        self._own = ProcessPoolExecutor(self.size, context, _begin, (theirs,))
        return self._own

    def close(self) -> None:
        """End our own workers, whatever they do."""
        own, self._own = self._own, None
        for end in self._leash[::-1]:
            end.close()
        self._leash = []
        if own is not None:
            own.shutdown(wait=True, cancel_futures=True)


def _begin(leash: Connection) -> None:
    """A worker leaves Ctrl-C to whoever began it, and ends when that one is gone, or lets go."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_followed, args=(leash,), daemon=True).start()


def _followed(leash: Connection) -> None:
    with suppress(EOFError, OSError):
        leash.recv()
    os._exit(1)


def _is_loss(problem: Exception) -> bool:
    """Whether a worker, or all of a cluster, is gone, and not what it did at fault.

    Dask, which may be absent, has exceptions of its own for it, which have no base in common; what a task raises itself
    is none of them.
    """
    of_dask = type(problem).__module__.partition(".")[0] == "distributed"
    return of_dask or isinstance(problem, BrokenExecutor | CancelledError)
