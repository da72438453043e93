"""What the command line shows: the live line during a solve, and an instance at a glance."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.text import Text

from ddlopt.analysis.index import gap_of, run_text
from ddlopt.analysis.tables import NONE, gap_text, objective_text, time_text
from ddlopt.instances import record
from ddlopt.models.contracts import Evaluation, Instance, Sense
from ddlopt.solvers.contracts import ProgressCallback, TracePoint, relative_gap

_WIDE = 240


def out_console() -> Console:
    """Standard output; tables are not squeezed where it is a file or a pipe."""
    return Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False)


class LiveLine:
    """A line with incumbent, bound, gap and elapsed time on a terminal; silent where standard error is none.

    ``instances`` tell sense and unit of their objectives; those of an instance that is not among them are taken to be
    seconds to be minimised.
    """

    def __init__(self, instances: Iterable[Instance] = (), console: Console | None = None) -> None:
        self._objectives = {instance.name: (instance.sense, instance.objective_unit) for instance in instances}
        self._sense: Sense = "minimize"
        self._unit = "s"
        self._console = console or Console(stderr=True)
        self._live = Live(self, console=self._console, refresh_per_second=5, transient=True)
        self._label = ""
        self._started = time.perf_counter()
        self._known = TracePoint(0.0, None, None)

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
        """Note what is known; the first point of a pair starts its clock."""
        label = f"{instance}  {method}"
        if label != self._label:
            self._label, self._started, self._known = label, time.perf_counter(), TracePoint(0.0, None, None)
            self._sense, self._unit = self._objectives.get(instance, ("minimize", "s"))
        known = self._known
        self._known = TracePoint(
            point.time_s,
            known.incumbent if point.incumbent is None else point.incumbent,
            known.bound if point.bound is None else point.bound,
        )

    def watch(self, instance: str, method: str) -> ProgressCallback:
        """A callback for one solve."""
        self(instance, method, TracePoint(0.0, None, None))
        return lambda point: self(instance, method, point)

    def __rich__(self) -> Text:
        known = self._known
        gap = gap_text(relative_gap(known.incumbent, known.bound, self._sense))
        best = objective_text(known.incumbent, self._unit)
        bound = objective_text(known.bound, self._unit, like=known.incumbent)
        elapsed = time.perf_counter() - self._started
        return Text(
            f"{self._label}  best {best}  bound {bound}  gap {gap}  {elapsed:.0f} s",
            style="cyan",
            no_wrap=True,
            overflow="ellipsis",
        )


def verdict(instance: Instance, evaluation: Evaluation, exact: bool = False) -> str:
    """What a check came to: a line for each violation, and one with the objective."""
    objective = None if evaluation.objective is None else float(evaluation.objective)
    feasible = "feasible" if evaluation.feasible else f"infeasible: {len(evaluation.violations)} violations"
    exactly = f" (exactly {evaluation.objective})" if exact and objective is not None else ""
    shown = objective_text(objective, instance.objective_unit, digits=12)
    lines = [*map(str, evaluation.violations), f"{instance.name}: {feasible}, objective {shown}{exactly}"]
    return "\n".join(lines)


def best_known(name: str, instance: Instance) -> Iterator[tuple[str, str]]:
    """What the library records of a bundled instance, by name: its best known solution and its best bound."""
    known = record(name)
    if known is None:
        return
    unit, objective = instance.objective_unit, None if known.found is None else known.found.objective
    if known.found is not None:
        yield "best known solution", f"{objective_text(objective, unit)} by {run_text(known.found)}"
    if known.bound is not None:
        gap = gap_text(gap_of(known, instance))
        bound = objective_text(known.bound.value, unit, like=objective)
        yield "best known bound", f"{bound} by {run_text(known.bound)}; gap {gap}"


def fields(instance: Instance) -> Iterator[tuple[str, str]]:
    """Name and value of an instance's fields, the units written out."""
    for name in type(instance).model_fields:
        yield name, quantity(name, getattr(instance, name))


def quantity(name: str, value: Any) -> str:
    """A value of a field or detail, in the unit that its name ends in."""
    match value:
        case None:
            return NONE
        case bool() | str():
            return str(value) or NONE
        case np.ndarray():
            used = f"{np.count_nonzero(value)} of {value.size} entries, {quantity(name, float(value.sum()))} in all"
            return f"{' × '.join(map(str, value.shape))}: {used}"
        case tuple() | list():
            return f"{len(value)}" + (f": {_first(value)}" if value else "")
        case float() | int() if name.endswith("_bytes_per_s"):
            return f"{_bytes(value)}/s" + (f" ({8 * value / 1e9:.6g} Gb/s)" if value >= 1e6 else "")
        case float() | int() if name.endswith("_bytes"):
            return _bytes(value)
        case float() | int() if name.endswith("_s"):
            return time_text(value)
        case float():
            return f"{value:.6g}"
    return _plain(value)


def _bytes(value: float) -> str:
    factor, unit = next(
        (pair for pair in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if value >= pair[0]), (1, "B")
    )
    return f"{value / factor:.6g} {unit}"


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
