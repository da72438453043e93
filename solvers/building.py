"""A time limit that holds while a model is built: Pyomo makes its objects one by one and knows no limit."""

import logging
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from ddlopt.models.compilation import to_stderr
from ddlopt.solvers.machine import memory_bytes

LARGE_BYTES = 2 * 2**30
"""Memory from which on a process says that it takes much, while there is time to stop it."""
# Between looks at the limit and at Ctrl-C.
_TICK_S = 0.1

Made = TypeVar("Made")


class TimeUpError(BaseException):
    """The time limit has passed; no ``Exception``, so that nobody who waits for errors takes it for one."""


@contextmanager
def building(
    time_s: float | None,
    tell: Callable[[str], None] = to_stderr,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[None]:
    """Raise :class:`TimeUpError` in the block once ``time_s`` seconds have passed; say so when it takes much memory.

    In the main thread, by the alarm of the operating system, which Python heeds between two of its instructions. In
    other threads, and where somebody else has set the alarm, a block ends when it ends.

    Compiled libraries may drop what is raised inside of them or make another error of it (NumPy does, where it
    compares). What comes of that is not believed: the time is up, whatever the block does afterwards.
    """
    alarm = getattr(signal, "SIGALRM", None)
    in_main = threading.current_thread() is threading.main_thread()
    if alarm is None or not in_main or signal.getitimer(signal.ITIMER_REAL)[0] > 0:
        yield
        return
    until = math.inf if time_s is None else clock() + time_s
    told, raised = memory_bytes() >= LARGE_BYTES, False

    def tick(_: int, frame: FrameType | None) -> None:
        nonlocal told, raised
        if not told and memory_bytes() >= LARGE_BYTES:
            told = True
            tell("the model takes more than 2 GiB of memory; --memory sets a limit")
        if clock() >= until and not _at_the_edge(frame):
            raised = True
            raise TimeUpError

    told_of = sys.unraisablehook

    def unless_time_is_up(unraisable: Any) -> None:
        """What is raised where nobody can catch it, as an object is thrown away, is raised again below."""
        if not isinstance(unraisable.exc_value, TimeUpError):
            told_of(unraisable)

    before = signal.signal(alarm, tick)
    sys.unraisablehook = unless_time_is_up
    loggers = logging.getLogger("pyomo").handlers
    for handler in loggers:
        handler.addFilter(_is_no_alarm)
    try:
        # A timer of 0 would be off; this is its resolution.
        first_s = _TICK_S if time_s is None else min(_TICK_S, max(1e-6, time_s))
        signal.setitimer(signal.ITIMER_REAL, first_s, _TICK_S)
        yield
    except Exception as error:
        if raised:
            raise TimeUpError from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(alarm, before)
        sys.unraisablehook = told_of
        for handler in loggers:
            handler.removeFilter(_is_no_alarm)
    if raised:
        raise TimeUpError


def built(time_s: float, make: Callable[[], Made], clock: Callable[[], float] = time.perf_counter) -> Made | None:
    """What ``make`` makes; None if ``time_s`` seconds of the clock, which may be infinite, are not enough."""
    try:
        with building(None if math.isinf(time_s) else max(0.0, time_s), clock=clock):
            return make()
    except TimeUpError:
        return None


def _is_no_alarm(record: logging.LogRecord) -> bool:
    """Pyomo logs whatever ends the making of a component as an error."""
    return TimeUpError.__name__ not in record.getMessage()


def _at_the_edge(frame: FrameType | None) -> bool:
    """Whether a ``with`` block, this one's or one inside, is being entered or left: that must not be cut short.

    Nor is the telling of what cannot be raised.
    """
    while frame is not None:
        if frame.f_code.co_name in ("__enter__", "__exit__", "unless_time_is_up"):
            return True
        frame = frame.f_back
    return False
