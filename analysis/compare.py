"""Several methods on several instances, one after the other."""

import time
from collections.abc import Callable, Iterable, Iterator

from ddlopt.models.contracts import Instance
from ddlopt.models.errors import DdloptError
from ddlopt.solvers.contracts import Limits, Method, Result, Status, TracePoint, empty_result, provenance

PairProgress = Callable[[str, str, TracePoint], None]
"""Called with instance name, method name and what is known."""


def run(
    pairs: Iterable[tuple[Instance, Method]],
    limits: Limits,
    seed: int = 0,
    progress: PairProgress | None = None,
) -> Iterator[Result]:
    """Answer each pair in turn and yield its result as it comes.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C; a solver that returned what it had has its result yielded first.
    """
    for instance, method in pairs:
        result = attempt(instance, method, limits, seed, progress)
        yield result
        if result.interrupted:
            raise KeyboardInterrupt


def attempt(
    instance: Instance, method: Method, limits: Limits, seed: int = 0, progress: PairProgress | None = None
) -> Result:
    """The result of one solve; an exception becomes a result with status ``error`` and its message."""

    def watch(point: TracePoint) -> None:
        if progress is not None:
            progress(instance.name, method.name, point)

    started = time.perf_counter()
    watch(TracePoint(0.0, None, None))
    try:
        return method.solve(instance, limits, seed, watch)
    except Exception as problem:  # whatever one method does must not lose what the others found
        message = str(problem) if isinstance(problem, DdloptError) else f"{type(problem).__name__}: {problem}"
        return empty_result(
            instance,
            method.name,
            Status.ERROR,
            runtime_s=time.perf_counter() - started,
            provenance=provenance(seed, limits.threads),
            message=" ".join(message.split()),
        )
