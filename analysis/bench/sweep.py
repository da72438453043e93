"""Running a plan: as many solves at a time as asked for, each result stored before the next solve begins."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from ddlopt.analysis.bench.isolated import Finished, _failed, _row, solve_isolated
from ddlopt.analysis.bench.store import Store
from ddlopt.analysis.bench.tasks import Task
from ddlopt.analysis.views import sizes
from ddlopt.models.contracts import Instance


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
        self, executor: Executor, queue: Iterator[Task], described: "Described", stopped: threading.Event | None
    ) -> None:
        while len(self.running) < self.jobs:
            task = next(queue, None)
            if task is None:
                return
            told = (stopped.is_set,) if stopped is not None else ()
            self.running[executor.submit(solve_isolated, task, described.of(task), *told)] = task


class Described:
    """Rows of ``instances``, made once each."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Any]] = {}

    def of(self, task: Task) -> Mapping[str, Any]:
        """The row of a task's instance."""
        if task.digest not in self._rows:
            self._rows[task.digest] = row_of(task.load(), task)
        return self._rows[task.digest]


def row_of(instance: Instance, task: Task) -> dict[str, Any]:
    """What the store keeps of an instance."""
    from ddlopt import instances
    from ddlopt.models.catalogue import family

    best = instances.best(task.instance) if task.text is None else None
    objective = None if best is None else family(instance.family).evaluate(instance, best).objective
    return {
        "digest": task.digest,
        "name": instance.name,
        "family": instance.family,
        "sense": instance.sense,
        "unit": instance.objective_unit,
        "sizes": sizes(instance),
        "source": instance.source,
        "best_objective": None if objective is None else float(objective),
    }


def _outcome(future: Future[Any], task: Task, described: Described) -> Finished | None:
    """The result; that of a worker that was lost again and again is a crash."""
    try:
        finished: Finished | None = future.result()
    except Exception as problem:  # one lost worker must not lose the sweep
        lost = _failed(task, [], 0.0, killed=False, exit_code=None)
        lost["message"] = " ".join(f"{type(problem).__name__}: {problem}".split())
        row = described.of(task)
        return Finished(_row(task, row, lost, 0.0), dict(row))
    return finished


Watch = Callable[[Sweep, Finished], None]
"""Called after every result."""


def run_all(sweep: Sweep, watch: Iterable[Watch] = ()) -> int:
    """Run a sweep to its end; how many solves were done."""
    for finished in sweep.run():
        for each in watch:
            each(sweep, finished)
    return sweep.finished_here
