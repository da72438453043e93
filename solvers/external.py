"""Methods of other packages: what they answer passes the same gate as our own, and what they say is not believed."""

import contextlib
import copy
import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from ddlopt.models.catalogue import family as family_of
from ddlopt.models.contracts import Evidence, Instance, Solution
from ddlopt.models.errors import DdloptError, NotApplicableError, OptionError, SolutionError, SolverError
from ddlopt.solvers import standard_output
from ddlopt.solvers.certify import Gate, MethodOutput, finite, is_ours
from ddlopt.solvers.contracts import (
    Limits,
    Method,
    ProgressCallback,
    Result,
    Status,
    TracePoint,
    compiled,
    kernels_of,
    uses_of,
)
from ddlopt.solvers.heuristic import CertifiedMethod

# A trace from outside must not fill the memory.
_MOST_POINTS = 100_000
# Characters of a message from outside.
_LONGEST = 1000
_NO_FIGURES = "its figures are no plain data"


def checked(method: Any) -> Method:
    """The method itself where it is one of ours, which pass the gate by themselves; else :class:`ExternalMethod`."""
    return method if isinstance(method, ExternalMethod) or is_ours(method) else ExternalMethod(method)


@dataclass(frozen=True)
class ExternalMethod:
    """A method of which only solutions are believed, after the check, and nothing else that it says.

    It gets a copy of the instance. Its bounds are shown as claims. Whatever it raises is a :class:`SolverError` in one
    line, and what it prints on standard output goes to standard error.

    Parameters
    ----------
    method : Method

    Raises
    ------
    OptionError
        If it has no name or no family.
    """

    options_in: ClassVar[str] = "method"

    method: Method

    def __post_init__(self) -> None:
        for what in ("name", "family"):
            value = _asked(partial(getattr, self.method, what))
            if type(value) is not str or not value or not value.isprintable():
                raise OptionError(
                    f"the {what} of a method is a word, but that of a {type(self.method).__name__} is not"
                )
            object.__setattr__(self, f"_{what}", value)

    @property
    def name(self) -> str:
        """What the method said when it came."""
        name: str = vars(self)["_name"]
        return name

    @property
    def family(self) -> str:
        """What the method said when it came."""
        family: str = vars(self)["_family"]
        return family

    def refuses(self, instance: Any) -> str | None:
        """What the method refuses; where it cannot say, that."""
        if instance.family != self.family:
            return f"it answers instances of {self.family}, and this is one of {instance.family}"
        refusal = _asked(lambda: self.method.refuses(copy.deepcopy(instance)))
        return refusal if refusal is None else _line(refusal)

    def kernels_for(self, instance: Any) -> tuple[str, ...]:
        """What the method says that it calls, if it says so in words."""
        said = _asked(lambda: kernels_of(self.method, instance))
        return said if isinstance(said, tuple) and all(type(each) is str for each in said) else ()

    def uses_for(self, instance: Any) -> frozenset[str] | None:
        """What the method says that it uses, if it says so in words."""
        said = _asked(lambda: uses_of(self.method, instance))
        return said if isinstance(said, frozenset) and all(type(each) is str for each in said) else None

    def solve(
        self,
        instance: Instance,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`.

        Raises
        ------
        NotApplicableError
            If the method refuses the instance.
        SolverError
            If the answer fails the check, is not worth what the method says, or is none, or the method fails.
        """
        reason = self.refuses(instance)
        if reason is not None:
            raise NotApplicableError(f"{self.name} does not cover '{instance.name}': {reason}")
        with self._held(instance):
            compile_s = compiled(self, instance)
        own, begin = copy.deepcopy(instance), copy.deepcopy(start)
        began = time.perf_counter()
        watch = None if progress is None else _watched(progress, began, instance)
        with self._held(instance):
            claim = self.method.solve(own, limits, seed, watch, begin)
        runtime_s = time.perf_counter() - began
        if claim is None:
            raise SolverError(
                f"{self.name} on '{instance.name}': solve() gave nothing (None); expected a Result with its "
                "solution, or with status 'no_solution'"
            )
        with self._held(instance, "its answer cannot be read: "):
            solution, said = claim.solution, str(claim.status)
            objective, bound, scope_bound = claim.objective, claim.bound, claim.scope_bound
            message, interrupted = _line(claim.message), claim.interrupted is True
            solver = claim.provenance.get("solver")
            details, trace = _plain(claim.details), _points(claim.trace, runtime_s, instance)
            # Of a class derived from one of ours, whose own gate has put a claim there; else the bound is that gate's.
            gated = isinstance(self.method, CertifiedMethod) and claim.evidence is Evidence.COMBINATORIAL
            bound = details.pop("claimed_bound", None if gated else bound)
            scope_bound = details.pop("claimed_scope_bound", scope_bound)
        if said not in list(Status):
            raise SolverError(f"{self.name} on '{instance.name}' has the status {_line(said)!r}, which there is not")
        who = f"{self.name} on '{instance.name}': its"
        output = MethodOutput(
            None if solution is None else self._own_copy(solution, instance),
            details,
            None if bound is None else finite(bound, f"{who} bound"),
            None,
            None if scope_bound is None else finite(scope_bound, f"{who} bound within its scope"),
            {"solver": solver} if type(solver) is str else {},
            message,
            Evidence.CLAIMED,
        )
        gate = Gate(instance, self.name, limits, seed, runtime_s, compile_s, trace, interrupted)
        if output.solution is None:
            if said in (Status.OPTIMAL, Status.FEASIBLE, Status.REFERENCE):
                raise SolverError(f"{self.name} on '{instance.name}' claims to be {said} without a solution")
            return gate.without_solution(output, Evidence.CLAIMED if said == Status.INFEASIBLE else None)
        return gate.certify(output, objective)

    def _own_copy(self, solution: Any, instance: Instance) -> Solution:
        """The solution by its plain data, so that it is what it says to be and nobody can change it afterwards."""
        kind = family_of(instance.family).solution
        if not issubclass(type(solution), Solution):
            raise SolverError(f"{self.name} on '{instance.name}' gives a {type(solution).__name__} as a solution")
        with self._held(instance, "its solution cannot be read: "):
            data = json.loads(json.dumps(solution.model_dump(mode="json")))
            read: Solution = kind.from_data(data, self.name)
            read.belongs_to(instance)
        return read

    @contextlib.contextmanager
    def _held(self, instance: Instance, what: str = "") -> Iterator[None]:
        """Make one line of whatever the method raises, Ctrl-C excepted, and keep it off standard output."""
        with _ctrl_c_noted() as pressed, standard_output.kept_clear():
            try:
                yield
            except BaseException as problem:
                if isinstance(problem, KeyboardInterrupt) and pressed():
                    raise
                if isinstance(problem, NotApplicableError):
                    raise
                told = _line(problem) if isinstance(problem, DdloptError) else _raised(problem)
                kind = SolutionError if isinstance(problem, SolutionError) and not what else SolverError
                who = f"{self.name} on '{instance.name}'"
                said = not what and told.startswith(who)  # by the gate of a class derived from one of ours
                raise kind(told if said else f"{who}: {what}{told}") from None


@contextlib.contextmanager
def _ctrl_c_noted() -> Iterator[Callable[[], bool]]:
    """Tell whether somebody has pressed Ctrl-C, which a method may pretend."""
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: Any) -> None:
        pressed.append(number)
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def _asked(question: Callable[[], Any]) -> Any:
    """The answer, or in one line what was raised in its place."""
    with _ctrl_c_noted() as pressed:
        try:
            with standard_output.kept_clear():
                return question()
        except BaseException as problem:
            if isinstance(problem, KeyboardInterrupt) and pressed():
                raise
            return f"it cannot say whether it covers the instance ({_raised(problem)})"


def _raised(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {_line(problem)}".rstrip(": ")


def _line(said: Any) -> str:
    """What somebody says, as one line that is not too long."""
    try:
        text = str(said)
    except Exception:
        text = f"a {type(said).__name__} without words"
    return " ".join(str.split(text))[:_LONGEST]


def _plain(details: Any) -> dict[str, Any]:
    """Figures as plain data."""
    try:
        found = json.loads(json.dumps(dict(details), default=_line, allow_nan=True), parse_constant=lambda word: word)
    except (TypeError, ValueError):
        return {"figures": _NO_FIGURES}
    return {str(name): value for name, value in found.items()}


def _points(trace: Any, runtime_s: float, instance: Instance) -> tuple[TracePoint, ...]:
    """Its incumbents by time; bounds of a trace are claims, too, and left out."""
    found = []
    for point in list(trace)[:_MOST_POINTS]:
        incumbent = point.incumbent
        if incumbent is not None:
            who = f"its trace on '{instance.name}'"
            time_s = min(max(0.0, finite(point.time_s, who)), runtime_s)
            found.append(TracePoint(time_s, finite(incumbent, who), None))
    return tuple(sorted(found, key=lambda point: point.time_s))


def _watched(progress: ProgressCallback, began: float, instance: Instance) -> ProgressCallback:
    """Hand on what is a number."""

    def watch(point: Any) -> None:
        incumbent = getattr(point, "incumbent", None)
        if isinstance(incumbent, int | float) and math.isfinite(incumbent):
            progress(TracePoint(time.perf_counter() - began, float(incumbent), None))

    return watch
