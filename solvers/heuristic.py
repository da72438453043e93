"""What all heuristics share: a clock around the work and the check behind it."""

import math
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from ddlopt.models.catalogue import family as family_of
from ddlopt.models.contracts import Solution
from ddlopt.models.errors import InfeasibleError, NoSolutionError, NotApplicableError
from ddlopt.solvers.contracts import Limits, ProgressCallback, Result, Status, TracePoint, empty_result, provenance
from ddlopt.solvers.finish import finish


class Clock:
    """Seconds since the start of a solve, the trace so far, and whether the time is up."""

    def __init__(self, limits: Limits, progress: ProgressCallback | None) -> None:
        self._started = time.perf_counter()
        self._limit = limits.time_s
        self.gap = limits.gap
        """Relative gap that was asked for."""
        self._progress = progress
        self.interrupted = False
        self.trace: list[TracePoint] = []

    @property
    def elapsed_s(self) -> float:
        """Wall-clock seconds since the start."""
        return time.perf_counter() - self._started

    @property
    def left_s(self) -> float:
        """Seconds until the time is up; infinite without a limit."""
        if self.interrupted:
            return 0.0
        return math.inf if self._limit is None else max(0.0, self._limit - self.elapsed_s)

    @property
    def expired(self) -> bool:
        """Whether the time limit has passed or somebody has pressed Ctrl-C."""
        return self.interrupted or (self._limit is not None and self.elapsed_s >= self._limit)

    @property
    def least_bound(self) -> float | None:
        """The least of the bounds reported; None if none was."""
        return min((point.bound for point in self.trace if point.bound is not None), default=None)

    @contextmanager
    def heeding_ctrl_c(self) -> Iterator[None]:
        """Note Ctrl-C instead of raising, so that a heuristic ends with what it has.

        An exception from a signal, while a compiled kernel hands its results over, would also crash the process.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, lambda *_: setattr(self, "interrupted", True))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def lending_ctrl_c(self) -> Iterator[None]:
        """Let Ctrl-C be an exception again, which solver back ends take for the wish to stop."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def report(self, incumbent: float | None, bound: float | None = None) -> None:
        """Note an improvement (instance objective) and tell whoever watches."""
        point = TracePoint(self.elapsed_s, incumbent, bound)
        self.trace.append(point)
        if self._progress is not None:
            self._progress(point)


class Heuristic(ABC):
    """A method that constructs a solution: a frozen dataclass of options that implements :meth:`answer`."""

    family: ClassVar[str]

    @property
    @abstractmethod
    def name(self) -> str:
        """Kebab-case name, as in the catalogue."""

    def refuses(self, instance: Any) -> str | None:
        """Why the heuristic does not cover the instance; None if it does."""
        return None

    @abstractmethod
    def answer(self, instance: Any, seed: int, clock: Clock, start: Any) -> tuple[Solution, Mapping[str, Any]]:
        """The solution found and figures for :attr:`Result.details`; stops soon after ``clock.expired``.

        Raises
        ------
        NoSolutionError
            If it finds none; :meth:`solve` then says so in its result.
        """

    def certificate(self, instance: Any, solution: Any, clock: Clock) -> float | None:
        """A bound on the objective of every solution of the instance that the answer gives; None if it gives none."""
        return None

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer, check and time; see :class:`~ddlopt.solvers.contracts.Method`."""
        reason = self.refuses(instance)
        if reason is not None:
            raise NotApplicableError(f"{self.name} does not cover '{instance.name}': {reason}")
        clock = Clock(limits, progress)
        try:
            with clock.heeding_ctrl_c():
                solution, details = self.answer(instance, seed, clock, start)
                bound = self.certificate(instance, solution, clock)
        except NoSolutionError as none_found:
            return self._without_solution(instance, str(none_found), clock, provenance(seed, limits.threads))
        return finish(
            instance,
            self.name,
            solution,
            runtime_s=clock.elapsed_s,
            limits=limits,
            seed=seed,
            bound=bound,
            trace=tuple(clock.trace),
            details=details,
            message="interrupted" if clock.interrupted else "",
            interrupted=clock.interrupted,
        )

    def _without_solution(self, instance: Any, message: str, clock: Clock, versions: Mapping[str, Any]) -> Result:
        status, bound = Status.NO_SOLUTION, None
        try:
            bound = family_of(instance.family).bound(instance)
        except InfeasibleError as proof:
            status, message = Status.INFEASIBLE, str(proof)
        return empty_result(
            instance,
            self.name,
            status,
            runtime_s=clock.elapsed_s,
            bound=bound,
            provenance=versions,
            trace=tuple(clock.trace),
            message=message,
            interrupted=clock.interrupted,
        )
