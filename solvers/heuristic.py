"""What all heuristics share: a clock around the work and the check behind it."""

import math
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from ddlopt.models.catalogue import family as family_of
from ddlopt.models.contracts import Instance, Sense, Solution
from ddlopt.models.errors import InfeasibleError, NoSolutionError, NotApplicableError
from ddlopt.solvers.contracts import (
    Limits,
    ProgressCallback,
    Result,
    Status,
    TracePoint,
    best_bound,
    compiled,
    empty_result,
    provenance,
)
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

    def best_bound(self, sense: Sense) -> float | None:
        """The tightest of the bounds reported; None if none was."""
        return best_bound((point.bound for point in self.trace), sense)

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


@dataclass(frozen=True)
class Found:
    """What a method has in the end, apart from what the clock knows.

    Parameters
    ----------
    solution : Solution
    details, versions : mapping
        Figures, and what was run (``solver``), for :attr:`Result.details` and :attr:`Result.provenance`.
    bound : float or None
        On the objective of every solution of the instance.
    scope : str or None
        The class of solutions searched, if that is not all of them.
    scope_bound : float or None
        On the objectives of the solutions within the scope.
    message : str
    """

    solution: Solution
    details: Mapping[str, Any] = field(default_factory=dict)
    bound: float | None = None
    scope: str | None = None
    scope_bound: float | None = None
    versions: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""


class Timed(ABC):
    """A method in Python: a frozen dataclass of options that implements :meth:`find`."""

    family: ClassVar[str]
    covers: ClassVar[type[Instance]] = Instance
    """Of a family with several problems, the instances of those that it answers."""
    kernels: ClassVar[tuple[str, ...]] = ()
    """Modules with the kernels that :meth:`find` calls, which are compiled before the clock begins."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Kebab-case name, as in the catalogue."""

    def refuses(self, instance: Any) -> str | None:
        """Why the method does not cover the instance; None if it does."""
        if isinstance(instance, self.covers):
            return None
        return f"it answers a {self.covers.kind}, and this is a {instance.kind}"

    def kernels_for(self, instance: Any) -> tuple[str, ...]:
        """The modules of ``kernels``, and those of the methods that :meth:`find` asks."""
        return self.kernels

    @abstractmethod
    def find(self, instance: Any, limits: Limits, seed: int, clock: Clock, start: Any) -> Found:
        """The answer; stops soon after ``clock.expired``.

        Raises
        ------
        NoSolutionError
            If it finds none; :meth:`solve` then says so in its result.
        """

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
        compile_s = compiled(self, instance)
        clock = Clock(limits, progress)
        try:
            with clock.heeding_ctrl_c():
                found = self.find(instance, limits, seed, clock, start)
        except NoSolutionError as none_found:
            versions = provenance(seed, limits.threads)
            result = self._without_solution(instance, str(none_found), clock, versions)
            return replace(result, compile_s=compile_s)
        result = finish(
            instance,
            self.name,
            found.solution,
            runtime_s=clock.elapsed_s,
            limits=limits,
            seed=seed,
            bound=found.bound,
            scope=found.scope,
            scope_bound=found.scope_bound,
            trace=tuple(clock.trace),
            details=found.details,
            versions=found.versions,
            message="interrupted" if clock.interrupted else found.message,
            interrupted=clock.interrupted,
        )
        return replace(result, compile_s=compile_s)

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


class Heuristic(Timed):
    """A method that constructs a solution: a frozen dataclass of options that implements :meth:`answer`."""

    @abstractmethod
    def answer(self, instance: Any, seed: int, clock: Clock, start: Any) -> tuple[Solution, Mapping[str, Any]]:
        """The solution found and figures for :attr:`Result.details`; otherwise as :meth:`find`."""

    def certificate(self, instance: Any, solution: Any, clock: Clock) -> float | None:
        """A bound on the objective of every solution of the instance that the answer gives; None if it gives none."""
        return None

    def find(self, instance: Any, limits: Limits, seed: int, clock: Clock, start: Any) -> Found:
        """Answer and certificate."""
        solution, details = self.answer(instance, seed, clock, start)
        return Found(solution, details, self.certificate(instance, solution, clock))
