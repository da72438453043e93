"""What all heuristics share: a clock around the work and the check behind it."""

import math
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from ddlopt.models.contracts import Evidence, Sense, Solution
from ddlopt.models.covering import Covering
from ddlopt.models.errors import (
    ContradictionError,
    InfeasibleError,
    NoSolutionError,
    NotApplicableError,
    SolverError,
)
from ddlopt.solvers import incumbents
from ddlopt.solvers.certify import Gate, MethodOutput, is_ours, leaf_of
from ddlopt.solvers.contracts import (
    Limits,
    ProgressCallback,
    Result,
    TracePoint,
    best_bound,
    compiled,
)
from ddlopt.solvers.wrappers.known import known_objective

_LEAST_S = 1e-3
"""Of what is solved within, where the time is up: enough to say so."""


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

    def part(self, share: float = 1.0, most_s: float = math.inf) -> float | None:
        """Seconds for what is solved within: a share of those that are left, at most ``most_s``; None for no limit.

        Where the time is up that is a millisecond, as a limit is more than 0.
        """
        seconds = min(share * self.left_s, most_s)
        return None if math.isinf(seconds) else max(_LEAST_S, seconds)

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

    def report(
        self, incumbent: float | None, bound: float | None = None, solution: incumbents.Told | None = None
    ) -> None:
        """Note an improvement (instance objective) and tell whoever watches, as a claim.

        The gate leaves out of the trace what is better than the objective that it checks in the end.

        Parameters
        ----------
        incumbent, bound : float or None
        solution : Solution or callable, optional
            That of the incumbent, or what makes it: the answer, should the method not come to its end.
        """
        point = TracePoint(self.elapsed_s, incumbent, bound)
        self.trace.append(point)
        if self._progress is not None:
            self._progress(point)
        if incumbent is not None and solution is not None:
            incumbents.tell(incumbent, solution)


class Asked(Clock):
    """A clock that asks somebody else whether the time is up."""

    def __init__(self, asked: Callable[[], bool]) -> None:
        super().__init__(Limits(), None)
        self._asked = asked

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return self.interrupted or self._asked()

    @property
    def left_s(self) -> float:
        """All or nothing."""
        return 0.0 if self.expired else math.inf


class CertifiedMethod(Covering, ABC):
    """A method in Python: a frozen dataclass of options that implements :meth:`find`."""

    family: ClassVar[str]
    """Told by the folder in ``ddlopt.solvers``; a method of another package says it."""
    kernels: ClassVar[tuple[str, ...]] = ()
    """Modules with the kernels that :meth:`find` calls, which are compiled before the clock begins."""
    uses: ClassVar[frozenset[str] | None] = None
    """Which of ``threads``, ``seed`` and ``start`` matter to it, told in the class statement; None: it does not say."""

    def __init_subclass__(cls, *, uses: Iterable[str] | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if uses is not None:
            cls.uses = frozenset(uses)
        match cls.__module__.split("."):
            case ["ddlopt", "solvers" | "frontier", family, _, *_]:
                cls.family = family

    @property
    @abstractmethod
    def name(self) -> str:
        """Kebab-case name, as in the catalogue."""

    proves_infeasible: ClassVar[bool] = False
    """Whether an ``InfeasibleError`` of :meth:`find` is a proof for the instance, not only for what was searched."""

    def kernels_for(self, instance: Any) -> tuple[str, ...]:
        """The modules of ``kernels``, and those of the methods that :meth:`find` asks."""
        return self.kernels

    @abstractmethod
    def find(self, instance: Any, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
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
        found, infeasible = None, None
        believed = Evidence.SOLVER if is_ours(self) else Evidence.CLAIMED
        try:
            with clock.heeding_ctrl_c():
                found = self.find(instance, limits, seed, clock, start)
            if not isinstance(found, MethodOutput):
                raise SolverError(f"find() gave {_described(found)}; expected a MethodOutput")
        except NoSolutionError as none_found:
            found = MethodOutput(None, message=str(none_found))
        except InfeasibleError as proof:
            found = MethodOutput(None, message=str(proof))
            infeasible = believed if self.proves_infeasible else None
            if infeasible is Evidence.SOLVER and known_objective(instance, start) is not None:
                raise ContradictionError(
                    f"{self.name} says that '{instance.name}' has no solution, but the start passes the check: {proof}"
                ) from None
        if believed is Evidence.CLAIMED:
            found = replace(found, evidence=believed)
        if clock.interrupted and found.solution is not None:
            found = replace(found, message="interrupted")
        gate = Gate(
            instance, self.name, limits, seed, clock.elapsed_s, compile_s, tuple(clock.trace), clock.interrupted,
            leaf=leaf_of(self.name, self),
        )  # fmt: skip
        return gate.certify(found) if infeasible is None else gate.without_solution(found, infeasible)


S = TypeVar("S", bound=Solution)
Answer = tuple[S, Mapping[str, Any]]
"""A solution of this class, and figures for :attr:`Result.details`."""


class Heuristic(CertifiedMethod):
    """A method that constructs a solution: a frozen dataclass of options that implements :meth:`answer`."""

    @abstractmethod
    def answer(self, instance: Any, seed: int, clock: Clock, start: Any) -> Answer[Any]:
        """The solution found and figures for :attr:`Result.details`; otherwise as :meth:`find`."""

    def certificate(self, instance: Any, solution: Any, clock: Clock) -> float | None:
        """A bound on the objective of every solution of the instance that the answer gives; None if it gives none."""
        return None

    def find(self, instance: Any, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """Answer and certificate."""
        given = self.answer(instance, seed, clock, start)
        if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping)):
            raise SolverError(
                f"answer() gave {_described(given)}; expected the solution and a mapping of figures, such as "
                "`return solution, {}`; where there is none, raise NoSolutionError"
            )
        solution, details = given
        return MethodOutput(solution, details, self.certificate(instance, solution, clock))


def _described(given: object) -> str:
    """What somebody returned, in a few words."""
    if isinstance(given, tuple):
        return f"({', '.join(type(each).__name__ for each in given)})"
    return "nothing (None)" if given is None else f"a {type(given).__name__}"
