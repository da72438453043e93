"""A run of HiGHS that hears Ctrl-C and keeps a trace."""

import threading
import time
from collections.abc import Callable
from typing import Any

import highspy
import numpy as np

from ddlopt.models.tolerances import OBJECTIVE_TOL, ROUNDING
from ddlopt.solvers.backends.matrix import LinearModel, Vector
from ddlopt.solvers.contracts import ProgressCallback, TracePoint

_TRACE_STEP_S = 0.25
"""At most four points a second, so that long solves do not fill the memory."""
_POLL_S = 0.05
"""Between looks at Ctrl-C: people do not notice it."""


class Watch:
    """Runs HiGHS in a thread of its own, so that this one hears Ctrl-C, and keeps the trace.

    A fresh thread also has a fresh HiGHS scheduler, which is what lets the number of threads change within a process.

    HiGHS 1.16.0 evaluates a start after presolve, finds that what is left of it is better than the start itself, and
    from then on looks for what is better still, with the start in hand. Sometimes there is nothing as good as that.
    As soon as it says so of a solution, the run is ended and ``misled``; ``in_hand`` is the best solution that is
    what HiGHS said, None if there is none.
    """

    def __init__(
        self,
        highs: highspy.Highs,
        linear: LinearModel,
        started: float,
        progress: ProgressCallback | None,
        warm: bool = False,
    ) -> None:
        self._highs = highs
        self._linear = linear
        self._better: Callable[[float, float], float] = max if linear.maximise else min
        self._tighter: Callable[[float, float], float] = min if linear.maximise else max
        self._started = started
        self._warm = warm
        self._progress = progress
        self._stop = threading.Event()
        self._told = 0
        self.overdue = False
        self.misled = False
        self.in_hand: Vector | None = None
        self.trace: list[TracePoint] = []

    @property
    def elapsed_s(self) -> float:
        """Wall-clock seconds since the model began to be handed over."""
        return time.perf_counter() - self._started

    def run(self, deadline_s: float | None) -> None:
        """Solve; returns when HiGHS has ended, at the latest soon after ``deadline_s`` or Ctrl-C."""
        kinds = highspy.cb.HighsCallbackType
        self._highs.setCallback(self._hear, None)
        for kind in (
            kinds.kCallbackMipImprovingSolution,
            kinds.kCallbackMipInterrupt,
            kinds.kCallbackSimplexInterrupt,
            kinds.kCallbackIpmInterrupt,
        ):
            self._highs.startCallback(kind)
        ended = threading.Event()
        failures: list[BaseException] = []

        def work() -> None:
            try:
                self._highs.run()
                highspy.Highs.resetGlobalScheduler(False)
            except BaseException as failure:
                failures.append(failure)
            finally:
                ended.set()

        threading.Thread(target=work, name="highs", daemon=True).start()
        try:
            self._wait(ended, deadline_s)
        except BaseException as cause:
            self._stop.set()
            ended.wait()
            if not isinstance(cause, KeyboardInterrupt):
                failures.insert(0, cause)
        # HiGHS holds on to its callbacks, and with them to everything that they know.
        self._highs.disableCallbacks()
        if failures:
            raise failures[0]
        self._tell()

    def _wait(self, ended: threading.Event, deadline_s: float | None) -> None:
        while not ended.wait(_POLL_S):
            self._tell()
            if deadline_s is not None and self.elapsed_s > deadline_s and not self.overdue:
                self.overdue = True
                self._stop.set()

    def _tell(self) -> None:
        while self._progress is not None and self._told < len(self.trace):
            self._told += 1
            self._progress(self.trace[self._told - 1])

    def _hear(self, kind: Any, message: str, out: Any, into: Any, data: Any) -> None:
        if into is not None and self._stop.is_set():
            into.user_interrupt = True
        kinds = highspy.cb.HighsCallbackType
        if kind == kinds.kCallbackMipImprovingSolution:
            values = np.array(out.mip_solution)
            parts, said = self._linear.cost * values, float(out.objective_function_value)
            found = float(parts.sum() + self._linear.offset)
            room = OBJECTIVE_TOL * abs(said) + ROUNDING * (1 + float(np.abs(parts).sum()) + abs(self._linear.offset))
            # Without a start there is nothing to be misled by, and nothing to leave out.
            if not self._warm or self._better(found, said) == found or abs(found - said) <= room:
                self.in_hand = values
                self.note(finite(found), self._open_bound(out))
            else:
                self.misled = True
                self._stop.set()
        elif kind == kinds.kCallbackMipInterrupt and (
            not self.trace or self.elapsed_s - self.trace[-1].time_s >= _TRACE_STEP_S
        ):
            self.note(None, None if self.misled else self._open_bound(out))

    @staticmethod
    def _open_bound(out: Any) -> float | None:
        """The bound while the search goes on; of a start HiGHS says at first that its own objective is the bound."""
        return finite(out.mip_dual_bound) if out.mip_dual_bound != out.mip_primal_bound else None

    def note(self, incumbent: float | None, bound: float | None, final: bool = False) -> None:
        """Add a point to the trace if it says something new; neither bound ever falls back."""
        last = self.trace[-1] if self.trace else TracePoint(0.0, None, None)
        if last.incumbent is not None:
            incumbent = last.incumbent if incumbent is None else self._better(incumbent, last.incumbent)
        if last.bound is not None and not final:
            bound = last.bound if bound is None else self._tighter(bound, last.bound)
        if (incumbent, bound) != (last.incumbent, last.bound):
            self.trace.append(TracePoint(self.elapsed_s, incumbent, bound))
            if final:
                self._tell()


def finite(value: float) -> float | None:
    """The value; None where HiGHS has none."""
    return float(value) if abs(value) < highspy.kHighsInf and value == value else None
