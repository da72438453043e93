"""Workers for tasks, processes on this computer or on a cluster, which may be lost."""

from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from signal import SIG_IGN, SIGINT, signal
from typing import TypeVar

from ddlopt.solvers.dask_workers import executor_of

_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")

# As often a task may be lost before it is taken for what loses them.
_MOST_LOSSES = 5


class Crew:
    """Workers for tasks. Those that are lost are replaced, and what they had under way is told.

    Parameters
    ----------
    make : callable
        Gives an executor; asked again when the one before is broken.
    size : int
        Tasks that it is given at a time.
    """

    def __init__(self, make: Callable[[], Executor], size: int) -> None:
        self._make, self.size, self.lost = make, size, 0
        self._executor = make()
        self._losses: dict[int, int] = {}

    def submit(self, work: Callable[[_Task], _Answer], task: _Task) -> "Future[_Answer]":
        """Have a task done."""
        try:
            return self._executor.submit(work, task)
        except BrokenExecutor:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = self._make()
            return self._executor.submit(work, task)

    def result(self, future: "Future[_Answer]", number: int) -> _Answer | None:
        """What a task gave; None if its worker was lost.

        Raises
        ------
        BrokenExecutor
            If that has happened several times to the task of this number.
        """
        try:
            return future.result()
        except Exception as problem:
            if not _is_loss(problem) or self._losses.get(number, 0) == _MOST_LOSSES:
                raise
        self.lost += 1
        self._losses[number] = self._losses.get(number, 0) + 1
        return None

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown(cancel_futures=True)


def _is_loss(problem: Exception) -> bool:
    """Whether a worker is gone, and not what it did at fault; Dask's exception is named, as it may be absent."""
    return isinstance(problem, BrokenExecutor | CancelledError) or type(problem).__name__ == "KilledWorker"


def local_crew(workers: int) -> Crew:
    """A number of processes on this computer, which leave Ctrl-C to this one."""
    context = get_context("spawn")
    return Crew(lambda: ProcessPoolExecutor(workers, context, signal, (SIGINT, SIG_IGN)), workers)


@contextmanager
def cluster_crew(address: str) -> Iterator[Crew]:
    """The workers of the Dask cluster with this address of its scheduler."""
    with executor_of(address) as (executor, many):
        assert executor is not None
        assert many is not None
        yield Crew(lambda: executor, many)
