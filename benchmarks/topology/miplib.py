"""HiGHS on a file of MIPLIB as it is, on one thread."""

import time
from collections.abc import Callable
from pathlib import Path

import highspy

from ddlopt.solvers.backends.silent_highs import SilentHighs

Point = tuple[float, float | None, float | None]


def solve_file(path: Path, seconds: float, tell: Callable[[Point], object]) -> Point:
    """Seconds, best and bound in the end; told whenever HiGHS knows something new."""
    highs = SilentHighs()
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("time_limit", float(seconds))
    if highs.readModel(str(path)) != highspy.HighsStatus.kOk:
        raise SystemExit(f"{path} cannot be read")
    started = time.perf_counter()

    def point(best: float, bound: float) -> Point:
        return time.perf_counter() - started, _finite(best), _finite(bound)

    highs.cbMipInterrupt += lambda event: tell(point(event.data_out.mip_primal_bound, event.data_out.mip_dual_bound))
    highs.run()
    info = highs.getInfo()
    return point(info.objective_function_value, info.mip_dual_bound)


def _finite(value: float) -> float | None:
    return value if abs(value) < highspy.kHighsInf else None
