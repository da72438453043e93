"""A guard around any method: limits on time and memory that hold whatever the method does, and an answer all the same.

Each solve is a process of its own. Solutions that the method tells on the way (:mod:`ddlopt.solvers.incumbents`) are
kept here. Where the process does not end by itself it is asked to, then killed, and the best that was kept is checked
and is the answer.
"""

import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from ddlopt.models.contracts import Evidence, Instance, Solution
from ddlopt.models.errors import NotApplicableError, OptionError, SolverError
from ddlopt.solvers.certified import told_anew
from ddlopt.solvers.certify import Gate, MethodOutput
from ddlopt.solvers.contracts import (
    Limits,
    Method,
    ProgressCallback,
    Result,
    TracePoint,
    best_bound,
    better,
    compiled,
)
from ddlopt.solvers.external import ExternalMethod
from ddlopt.solvers.machine import address_space_left_bytes
from ddlopt.solvers.wrappers.by_instance import Asks
from ddlopt.solvers.wrappers.guarded_process import (
    ENDED,
    POINT,
    PROBLEM,
    RESULT,
    SHORT,
    SOLUTION,
    GuardedProcess,
    leaving_ctrl_c_to,
)
from ddlopt.solvers.wrappers.known import known_objective

# 2^33 gigabytes in bytes are 2^63, beyond which limits of the system are no numbers.
_MOST_GB = 2**33
_NOTHING_LEFT = -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGKILL, -signal.SIGBUS
"""How a process ends whose libraries do not look at what they are given; also by the system's own hand."""
_UNCLEAR = -signal.SIGSEGV, -signal.SIGBUS
"""Of these, those by which a defect shows as well: that memory is short may be said of them only as a guess."""
_WAIT_S = 3600.0
"""Between looks at the clock where there is no limit."""


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


def machine_gigabytes() -> float | None:
    """The memory limit of a command for which nobody gives one: what the machine has left; None if nobody says."""
    left = address_space_left_bytes() if can_guard() else None
    return None if left is None else left / 1e9


def can_guard() -> bool:
    """Whether a limit on time is guarded here: on Linux, in the main thread, unless ``DDLOPT_GUARD=off`` says no.

    Elsewhere a forked process may stand still, as it has locks that threads held which it does not have.
    """
    in_main = threading.current_thread() is threading.main_thread()
    return sys.platform == "linux" and in_main and os.environ.get("DDLOPT_GUARD") != "off"


@dataclass(frozen=True)
class Grace:
    """How long a method may go on after its limit: a number of seconds, and a part of the limit.

    What counts is the time in which the machine let it work; ``patience`` bounds the time by the clock.

    Parameters
    ----------
    ask_s, ask_part : float
        Until it is asked to end, as Ctrl-C does.
    stop_s, stop_part : float
        Until it is killed. With the check of what was kept it is to be less than 2 s and 5 %.
    patience : float
        How many times as long by the clock, where the machine is busy with something else.
    """

    ask_s: float = 0.5
    ask_part: float = 0.01
    stop_s: float = 1.25
    stop_part: float = 0.03
    patience: float = 4.0

    def asked_after_s(self, limit_s: float) -> float:
        """Seconds after its limit at which it is asked."""
        return self.ask_s + self.ask_part * limit_s

    def stopped_after_s(self, limit_s: float) -> float:
        """Seconds after its limit at which it is killed."""
        return self.stop_s + self.stop_part * limit_s


@dataclass(frozen=True)
class Guarded(Asks):
    """Asks another method in a forked process.

    Parameters
    ----------
    asked : Method
    memory_bytes : int or None
        Of address space, what the program itself takes included.
    grace : Grace
    """

    asked: Method
    memory_bytes: int | None = None
    grace: Grace = field(default_factory=Grace)

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
            If the process takes more memory or crashes before there is a solution.
        """
        reason = self.refuses(instance)
        if reason is not None:
            raise NotApplicableError(f"{self.name} does not cover '{instance.name}': {reason}")
        compile_s = compiled(self.asked, instance)
        instance.digest  # noqa: B018 - for many jobs it takes seconds, which are no part of the solve; it is kept
        process = GuardedProcess(
            lambda tell: self._solved(instance, limits, seed, tell, start), instance, self.memory_bytes
        )
        watch = _Watch(process, limits.time_s, self.grace, progress)
        try:
            with leaving_ctrl_c_to(process) as pressed:
                kind, content = watch.answer(pressed)
        except BaseException:
            process.kill()
            process.wait()
            process.close()
            raise
        exit_code = process.wait()
        crashed = kind == ENDED and not watch.late
        short = kind == SHORT or (crashed and self.memory_bytes is not None and exit_code in _NOTHING_LEFT)
        unasked = kind == PROBLEM and isinstance(content, KeyboardInterrupt) and not pressed and not watch.late
        # OpenBLAS sends its own process SIGINT where a thread of it has no room for a stack.
        short = short or (unasked and self.memory_bytes is not None)
        process.close(quiet=short)
        if kind == RESULT and not (watch.late and content.solution is None and watch.kept is not None):
            return self._told(content, compile_s, watch.late if not pressed else "")
        if kind == PROBLEM and pressed and isinstance(content, KeyboardInterrupt):
            raise content
        if kind == PROBLEM and not watch.late and not short:
            raise content
        kept = _better(instance, watch.kept, start)
        unclear = exit_code in _UNCLEAR and kind == ENDED
        why = watch.late or (self._needs_more(instance) if short and not unclear else self._ended(instance, exit_code))
        if kept is None and not watch.late:
            raise SolverError(why)
        return self._kept(instance, limits, seed, watch, compile_s, kept, why)

    def _solved(self, instance: Any, limits: Limits, seed: int, progress: ProgressCallback, start: Any) -> Result:
        """What the process does: linear algebra takes no more threads than were asked for, either."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits.threads):
            return self.asked.solve(instance, limits, seed, progress, start)

    def _told(self, result: Result, compile_s: float, late: str) -> Result:
        told = told_anew(result, compile_s=result.compile_s + compile_s)
        if not late:
            return told
        return told_anew(told, interrupted=False, message=late, details={**told.details, "stopped": late})

    def _kept(
        self,
        instance: Instance,
        limits: Limits,
        seed: int,
        watch: "_Watch",
        compile_s: float,
        kept: Solution | None,
        why: str,
    ) -> Result:
        """The best that was told before the process was no more, through the gate."""
        foreign = isinstance(self.asked, ExternalMethod)
        output = MethodOutput(
            kept,
            {"stopped": why},
            None if foreign else best_bound((point.bound for point in watch.points), instance.sense),
            message=why if kept is None else f"{why}; this is the best that was found until then",
            evidence=Evidence.CLAIMED if foreign else Evidence.SOLVER,
        )
        gate = Gate(instance, self.name, limits, seed, watch.elapsed_s, compile_s, tuple(watch.points))
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits.threads):
            result = gate.certify(output)
        return told_anew(result, runtime_s=watch.elapsed_s)

    def _needs_more(self, instance: Instance) -> str:
        told = "there is" if self.memory_bytes is None else f"{self.memory_bytes / 1e9:g} GB of memory"
        return f"{self.name} on '{instance.name}' needs more than {told}; --memory sets how much it may have"

    def _ended(self, instance: Instance, exit_code: int) -> str:
        few = "" if self.memory_bytes is None else f"; perhaps {self.memory_bytes / 1e9:g} GB of memory are too little"
        how = signal.Signals(-exit_code).name if exit_code < 0 else f"exit code {exit_code}"
        return f"{self.name} on '{instance.name}' ended without a result, by {how}{few}"


@dataclass
class _Watch:
    """Follows a process until it ends, or has to."""

    process: GuardedProcess
    limit_s: float | None
    grace: Grace
    progress: ProgressCallback | None
    began: float = field(default_factory=time.perf_counter)
    points: list[TracePoint] = field(default_factory=list)
    kept: Solution | None = None
    late: str = ""
    """What was done about a method that did not heed its limit."""

    @property
    def elapsed_s(self) -> float:
        """Seconds since the process began."""
        return time.perf_counter() - self.began

    def answer(self, pressed: list[float]) -> tuple[str, Any]:
        """What the process tells in the end; after Ctrl-C there is no limit but the second one."""
        delayed_s: float | None = None
        while True:
            left_s = _WAIT_S
            if self.limit_s is not None and not pressed:
                over_s = self.elapsed_s - self.limit_s
                if over_s >= 0:
                    delayed_s = self.process.delayed_s() if delayed_s is None else delayed_s
                    asked = self.late
                    if self._is_stopped(over_s, self.process.delayed_s() - delayed_s):
                        self.process.kill()
                        kind, content = self._last_told()
                        # It had ended by itself, while nobody listened: who is told of progress may be slow.
                        self.late = asked if kind != ENDED else self.late
                        return kind, content
                left_s = -over_s if over_s < 0 else 0.05
            news = self.process.next(min(left_s, _WAIT_S))
            if news is not None and not self._noted(news):
                return news

    def _noted(self, news: tuple[str, Any]) -> bool:
        """Whether that is no end yet, but something to be passed on or kept."""
        kind, content = news
        if kind == POINT:
            self.points.append(content)
            if self.progress is not None:
                self.progress(content)
        elif kind == SOLUTION:
            self.kept = content
        return kind in (POINT, SOLUTION)

    def _last_told(self) -> tuple[str, Any]:
        """What a process that is killed had told before."""
        while (news := self.process.next(0.0)) is not None:
            if not self._noted(news):
                return news
        return ENDED, None

    def _is_stopped(self, over_s: float, delayed_s: float) -> bool:
        """Ask the process, so long after its limit; whether it is to be killed."""
        limit_s = self.limit_s or 0.0
        worked_s = max(over_s - delayed_s, over_s / self.grace.patience)
        if worked_s >= self.grace.stopped_after_s(limit_s):
            self.late = f"did not heed its limit of {limit_s:g} s, and was stopped {over_s:.1f} s later"
            return True
        if not self.late and worked_s >= self.grace.asked_after_s(limit_s):
            self.late = f"did not heed its limit of {limit_s:g} s, and was asked to end {over_s:.1f} s later"
            self.process.interrupt()
        return False


def _better(instance: Instance, kept: Solution | None, start: Solution | None) -> Solution | None:
    """The solution that was kept, or the start where that is better; the check of an answer is the gate's."""
    known = known_objective(instance, start)
    found = known_objective(instance, kept) if known is not None else None
    if known is None or (found is not None and not better(known, found, instance.sense)):
        return kept
    return start
