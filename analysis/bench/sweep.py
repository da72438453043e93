"""Running a plan: as many solves at a time as asked for, each result stored before the next solve begins."""

import errno
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from ddlopt.analysis.bench.processes.isolated import solve_isolated
from ddlopt.analysis.bench.rows import Described, Finished, no_outcome, run_row
from ddlopt.analysis.bench.store import Store
from ddlopt.analysis.bench.tasks import Task


@dataclass
class Sweep:
    """A plan and the store that its results go to.

    Parameters
    ----------
    tasks : list of Task
    store : Store
        What it holds already is not done again.
    jobs : int
        Solves at a time.
    executor : Executor, optional
        Where solves are watched over: threads of this process, or ``Client.get_executor()`` of a Dask cluster, whose
        workers each start the process of their solve.
    """

    tasks: list[Task]
    store: Store
    jobs: int = 1
    executor: Executor | None = None
    running: dict[Future[Any], Task] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        known = self.store.keys()
        self.left = [task for task in self.tasks if task.key not in known]
        self.done = len(self.tasks) - len(self.left)
        self.began = time.perf_counter()
        self.finished_here = 0

    @property
    def expected_s(self) -> float | None:
        """Seconds until the end, if the rest takes as long as what was done here did."""
        if not self.finished_here:
            return None
        left = len(self.tasks) - self.done
        return (time.perf_counter() - self.began) / self.finished_here * left

    @property
    def longest_s(self) -> float:
        """Seconds until the end, if every solve takes its whole limit."""
        left = sum(task.limits.time_s or 0.0 for task in self.left[self.finished_here :])
        return left / max(1, self.jobs)

    def run(self) -> Iterator[Finished]:
        """Do what is left, and yield every result once it is stored.

        On leaving early, by an exception or by closing the generator, the running solves are killed; what is stored
        stays.
        """
        stopped = threading.Event()
        own = self.executor is None
        executor = self.executor or ThreadPoolExecutor(self.jobs, thread_name_prefix="solve")
        described = Described()
        queue = iter(self.left)
        try:
            self._submit(executor, queue, described, stopped if own else None)
            while self.running:
                ready, _ = wait(self.running, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in ready:
                    task = self.running.pop(future)
                    finished = _outcome(future, task, described)
                    if finished is None:
                        continue
                    self.store.add(finished.run, finished.instance)
                    self.done += 1
                    self.finished_here += 1
                    yield finished
                self._submit(executor, queue, described, stopped if own else None)
        finally:
            stopped.set()
            for future in self.running:
                future.cancel()
            if own:
                executor.shutdown(wait=True, cancel_futures=True)

    def _submit(
        self, executor: Executor, queue: Iterator[Task], described: Described, stopped: threading.Event | None
    ) -> None:
        while len(self.running) < self.jobs:
            task = next(queue, None)
            if task is None:
                return
            told = (stopped.is_set,) if stopped is not None else ()
            self.running[executor.submit(solve_isolated, task, described.of(task), *told)] = task


def _outcome(future: Future[Any], task: Task, described: Described) -> Finished | None:
    """The result; that of a worker that was lost again and again is a crash."""
    try:
        finished: Finished | None = future.result()
    except Exception as problem:  # one lost worker must not lose the sweep
        if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise  # nor would any other solve begin
        lost = no_outcome("crashed", " ".join(f"{type(problem).__name__}: {problem}".split()))
        row = described.of(task)
        return Finished(run_row(task, row, lost, 0.0), dict(row))
    return finished
