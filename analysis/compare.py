"""Several methods on several instances, one after the other."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from ddlopt.models.contracts import Evidence, Instance, Sense
from ddlopt.models.errors import DdloptError, InfeasibleError
from ddlopt.solvers.certified import withdrawn
from ddlopt.solvers.certify import Gate, MethodOutput, is_ours
from ddlopt.solvers.contracts import (
    Limits,
    Method,
    ProgressCallback,
    Result,
    Status,
    TracePoint,
    better,
    solver_of,
)

_SLACK = 1e-5
"""Relative difference between a bound and an objective that is laid to tolerances of solvers."""

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


def refuted(results: Sequence[Result]) -> list[Result]:
    """The results, with status ``error`` where one claims a bound that another one's checked solution disproves.

    Nobody can tell from one result alone that a solver called something optimal which is not; side by side it shows.
    A bound within a scope is held against the solutions of the same method and scope.
    """
    return [_refuted(result, results) for result in results]


def _refuted(result: Result, results: Sequence[Result]) -> Result:
    same = [each for each in results if each.instance_digest == result.instance_digest and each.checked]
    within = [each for each in same if (each.method, each.scope) == (result.method, result.scope)]
    for name, bound, others in (("bound", result.bound, same), ("scope_bound", result.scope_bound, within)):
        for other in others:
            if bound is not None and other.objective is not None and _disproves(other.objective, bound, result.sense):
                by = " by ".join([other.method, *_solver_of(other)])
                message = f"its {name.replace('_', ' ')} is {bound:.9g}, but {by} has {other.objective:.9g}"
                return withdrawn(result, Status.ERROR, message, scope=name == "scope_bound")
    return result


def _disproves(objective: float, bound: float, sense: Sense) -> bool:
    slack = _SLACK * max(abs(objective), abs(bound))
    return better(objective, bound - slack if sense == "minimize" else bound + slack, sense)


def _solver_of(result: Result) -> list[str]:
    return [str(result.provenance["solver"])] if "solver" in result.provenance else []


def attempt(
    instance: Instance, method: Method, limits: Limits, seed: int = 0, progress: PairProgress | None = None
) -> Result:
    """The result of one solve; an exception becomes a result with status ``error`` and its message."""

    def watch(point: TracePoint) -> None:
        if progress is not None:
            progress(instance.name, method.name, point)

    watch(TracePoint(0.0, None, None))
    result = _attempted(instance, method, limits, seed, watch)
    watch(TracePoint(result.runtime_s, result.objective, result.bound, settled=True))
    return result


def _attempted(instance: Instance, method: Method, limits: Limits, seed: int, watch: ProgressCallback) -> Result:
    started = time.perf_counter()
    try:
        return method.solve(instance, limits, seed, watch)
    except (Exception, SystemExit, GeneratorExit) as problem:  # one method must not lose what the others found
        message = str(problem) if isinstance(problem, DdloptError) else f"{type(problem).__name__}: {problem}"
        gate, told = Gate(instance, method.name, limits, seed, time.perf_counter() - started), " ".join(message.split())
        if isinstance(problem, InfeasibleError):
            evidence = Evidence.SOLVER if is_ours(method) else Evidence.CLAIMED
            return gate.without_solution(MethodOutput(None, versions=_solver(method, instance), message=told), evidence)
        return gate.failed(told, _solver(method, instance))


def _solver(method: Method, instance: Instance) -> dict[str, str]:
    """The solver that was asked, where there is one behind the method."""
    with contextlib.suppress(DdloptError):  # the method may be no more able to say so than to solve
        name = solver_of(method, instance)
        return {"solver": name} if isinstance(name, str) else {}
    return {}
