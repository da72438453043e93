"""What the command line shows: the live line during a solve, and an instance at a glance."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import TracebackType
from typing import Any, Self

import numpy as np
from pydantic import BaseModel
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from ddlopt.analysis.fitted import out_console
from ddlopt.analysis.texts import NONE, gap_text, objective_text, time_text
from ddlopt.models.catalogue import problem_of
from ddlopt.models.contracts import Evaluation, Instance, Number, Sense
from ddlopt.models.errors import plain
from ddlopt.solvers.contracts import ProgressCallback, Result, TracePoint, relative_gap

__all__ = ["LiveLine", "out_console", "profile", "quantity", "verdict"]


_LINES = 8
"""Solves that are shown at once, the last ones."""


@dataclass
class _Solve:
    """What is known of a solve that runs, or has ended."""

    instance: str
    method: str
    sense: Sense
    unit: str
    started: float
    ended: float | None = None
    known: TracePoint = field(default_factory=lambda: TracePoint(0.0, None, None))
    limit_s: float | None = None

    def text(self, width: int) -> str:
        """All that goes on a line; where it is narrow without the bound, then without the instance."""
        best = objective_text(self.known.incumbent, self.unit)
        bound = objective_text(self.known.bound, self.unit, like=self.known.incumbent)
        gap = gap_text(relative_gap(self.known.incumbent, self.known.bound, self.sense))
        elapsed = f"{(self.ended or time.perf_counter()) - self.started:.0f} s"
        if self.limit_s is not None and self.ended is None:
            elapsed = f"{elapsed} of {self.limit_s:g} s"
        told = self.known.incumbent is not None or self.known.bound is not None
        claims = "claims: " if told and not self.known.settled else ""  # of a method, until its result is checked
        figures = [f"{claims}best {best}", f"bound {bound}", f"gap {gap}", elapsed]
        few = [figures[0], *figures[2:]]
        whole, fewer, alone, least = (
            "  ".join(parts)
            for parts in (
                (self.instance, self.method, *figures),
                (self.instance, self.method, *few),
                (self.method, *figures),
                (self.method, *few),
            )
        )
        return next((line for line in (whole, fewer, alone) if cell_len(line) <= width), least)


class LiveLine:
    """A line for each solve with incumbent, bound, gap and elapsed time on a terminal; silent where there is none.

    Those that have ended stay above the one that runs. ``instances`` tell sense and unit of their objectives; those of
    an instance that is not among them are taken to be seconds to be minimised.
    """

    def __init__(
        self,
        instances: Iterable[Instance] = (),
        console: Console | None = None,
        time_limit: float | None = None,
    ) -> None:
        self._limit_s = time_limit
        self._objectives = {instance.name: (instance.sense, instance.objective_unit) for instance in instances}
        self._console = console or Console(stderr=True)
        self._live = Live(self, console=self._console, refresh_per_second=5, transient=True)
        self._solves: list[_Solve] = []

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def __call__(self, instance: str, method: str, point: TracePoint) -> None:
        """Note what is known; the first point of a pair starts its clock and ends that of the pair before."""
        last = self._solves[-1] if self._solves else None
        if last is None or (last.instance, last.method) != (instance, method):
            now = time.perf_counter()
            if last is not None:
                last.ended = now
            sense, unit = self._objectives.get(instance, ("minimize", "s"))
            last = _Solve(instance, method, sense, unit, now, limit_s=self._limit_s)
            self._solves = [*self._solves[1 - _LINES :], last]
        if point.settled:
            last.known = point
            return
        known = last.known
        last.known = TracePoint(
            point.time_s,
            known.incumbent if point.incumbent is None else point.incumbent,
            known.bound if point.bound is None else point.bound,
        )

    def watch(self, instance: str, method: str) -> ProgressCallback:
        """A callback for one solve."""
        self(instance, method, TracePoint(0.0, None, None))
        return lambda point: self(instance, method, point)

    def lines(self, width: int) -> list[str]:
        """What is shown, the solve that runs last."""
        return [plain(solve.text(width)) for solve in self._solves]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Solves that have ended are dimmed."""
        *ended, running = self.lines(options.max_width) or [""]
        for line in ended:
            yield Text(line, style="dim", no_wrap=True, overflow="ellipsis")
        yield Text(running, style="cyan", no_wrap=True, overflow="ellipsis")


def verdict(instance: Instance, evaluation: Evaluation, exact: bool = False) -> str:
    """What a check came to: a line for each violation, and one with the objective."""
    objective = None if evaluation.objective is None else float(evaluation.objective)
    count = len(evaluation.violations)
    feasible = "feasible" if evaluation.feasible else f"infeasible: {count} violation{'s' if count > 1 else ''}"
    exactly = f" (exactly {evaluation.objective})" if exact and objective is not None else ""
    shown = objective_text(objective, instance.objective_unit, digits=12)
    lines = [*map(str, evaluation.violations), f"{instance.name}: {feasible}, objective {shown}{exactly}"]
    return "\n".join(lines)


def exact_figures(instance: Instance, result: Result) -> dict[str, Number]:
    """Details of a solution that the problem wants to be told as fractions, calculated anew."""
    problem = problem_of(instance)
    if result.solution is None or not problem.told_exactly:
        return {}
    found = problem.evaluate(instance, result.solution, exact=True)
    return {name: found.details[name] for name in problem.told_exactly}


_LONGEST_FRACTION = 24
"""Characters up to which a fraction is shown."""
_TOLD_ELSEWHERE = {"family", "problem", "name", "source"}
_DEPTH = 2
"""How many levels of parts within parts are told."""


def profile(instance: Instance) -> Iterator[tuple[str, str]]:
    """Sizes, ranges and totals of an instance: a row for each field, and for each field of its parts."""
    for name in type(instance).model_fields:
        if name not in _TOLD_ELSEWHERE:
            yield from _summary(name, [getattr(instance, name)])


def _summary(path: str, values: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """What a field is, in one part or in many."""
    name, values = path.rpartition(".")[2], [value for value in values if value is not None]
    match next(iter(values), None):
        case None:
            return
        case BaseModel():
            yield from _parts(path, values)
        case tuple() | list():
            flat = [each for value in values for each in value]
            if not flat and "." in path:
                return
            count = str(len(flat)) if len(values) == 1 else f"{_range('', [len(value) for value in values])} each"
            if flat and all(isinstance(each, BaseModel) for each in flat):
                named = [str(each.name) for each in flat if getattr(each, "name", None)]
                yield path, count + (f": {_some(named)}" if named and len(values) == 1 else "")
                yield from _parts(path, flat)
            elif flat and all(isinstance(each, int | float) for each in flat):
                yield path, f"{count}: {_range(name, flat)}"
            else:
                yield path, quantity(name, values[0]) if len(values) == 1 else count
        case np.ndarray():
            yield path, "; ".join(quantity(name, value) for value in values[:1])
        case dict():
            keys = dict.fromkeys(key for value in values for key in value)
            own = {key: _figures([value[key] for value in values if key in value]) for key in keys}
            yield path, "; ".join(f"{key} {_range(name, figures)}" for key, figures in own.items() if figures)
        case bool() | str():
            counts = Counter(map(str, values))
            one = len(counts) == 1
            yield path, next(iter(counts)) if one else ", ".join(f"{each} × {times}" for each, times in counts.items())
        case int() | float():
            yield path, _range(name, values)
        case other:
            yield path, str(other)


def _parts(path: str, parts: Sequence[BaseModel]) -> Iterator[tuple[str, str]]:
    if path.count(".") >= _DEPTH:
        return
    kinds: dict[type[BaseModel], None] = dict.fromkeys(type(part) for part in parts)
    names = dict.fromkeys(name for kind in kinds for name in kind.model_fields)
    for name in names:
        if name != "name":
            yield from _summary(f"{path}.{name}", [getattr(part, name, None) for part in parts])


def _figures(values: Iterable[Any]) -> list[float]:
    """All figures, out of lists too."""
    found: list[float] = []
    for value in values:
        found += (
            _figures(value) if isinstance(value, tuple | list) else [value] if isinstance(value, int | float) else []
        )
    return found


def _range(name: str, values: Sequence[float]) -> str:
    """Smallest and largest of some figures, and their sum where that means something."""
    low, high = min(values), max(values)
    if len(values) == 1:
        return quantity(name, low)
    adds_up = name.endswith(("_bytes", "_s", "_flops")) and "_per_" not in name
    total = f", {quantity(name, sum(values))} in all" if adds_up and high > low else ""
    return (f"{quantity(name, low)} to {quantity(name, high)}" if low < high else quantity(name, low)) + total


def _some(words: Sequence[str]) -> str:
    return ", ".join(words[:3]) + (", …" if len(words) > 3 else "")


def quantity(name: str, value: Any) -> str:
    """A value of a field or detail, in the unit that its name ends in."""
    match value:
        case None:
            return NONE
        case Fraction():
            exactly = _exactly(name, value)
            return quantity(name, float(value)) + ("" if exactly is None else f", exactly {exactly}")
        case bool() | str():
            return str(value) or NONE
        case np.ndarray():
            used = value[value != 0]
            told = f"{' × '.join(map(str, value.shape))}: {used.size} of {value.size} entries"
            return told + (f", {_range(name, used.tolist())}" if used.size else "")
        case tuple() | list():
            return f"{len(value)}" + (f": {_first(value)}" if value else "")
        case float() | int() if name.endswith("_bytes_per_s"):
            return f"{_bytes(value)}/s" + (f" ({8 * value / 1e9:.6g} Gb/s)" if value >= 1e6 else "")
        case float() | int() if name.endswith("_bytes"):
            return _bytes(value)
        case float() | int() if name.endswith("_s") and "_per_" not in name:
            return time_text(value)
        case float():
            return f"{value:.6g}"
    return _plain(value)


def _bytes(value: float) -> str:
    factor, unit = _unit_of_bytes(value)
    return f"{value / factor:.6g} {unit}"


def _unit_of_bytes(value: float) -> tuple[int, str]:
    units = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
    return next((pair for pair in units if value >= pair[0]), (1, "B"))


def _exactly(name: str, value: Fraction) -> str | None:
    """The fraction in the unit that is shown; None where it is too long to be read, or a whole number without unit."""
    if name.endswith(("_bytes_per_s", "_bytes")):
        factor, unit = _unit_of_bytes(float(value))
        told = f"{value / factor} {unit}" + ("/s" if name.endswith("_per_s") else "")
    elif name.endswith("_s"):
        told = f"{value} s"
    elif value.denominator == 1:
        return None
    else:
        told = str(value)
    return told if len(told) <= _LONGEST_FRACTION else None


def _first(values: Any) -> str:
    shown = "; ".join(_plain(value) for value in values[:3])
    return shown if len(values) <= 3 else f"{shown}; …"


def _plain(value: Any) -> str:
    if isinstance(value, tuple | list) and value and hasattr(value[0], "label"):
        return f"{len(value)} ({', '.join(each.label for each in value[:4])}{', …' if len(value) > 4 else ''})"
    if not hasattr(value, "model_dump"):
        return str(value)
    parts: Mapping[str, Any] = value.model_dump()
    return ", ".join(
        f"{len(part)} {name}" if isinstance(part, tuple | list) else f"{name} {quantity(name, part)}"
        for name, part in parts.items()
        if part is not None
    )
