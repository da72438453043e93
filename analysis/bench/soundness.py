"""Whether a row of a store can be what a solve came to: stores travel, and anybody can write to one."""

import json
import math
from collections.abc import Callable, Container, Mapping
from typing import Any

from ddlopt.models.contracts import Evidence, Sense
from ddlopt.models.errors import plain
from ddlopt.models.tolerances import IMPROVEMENT_TOL, OBJECTIVE_TOL
from ddlopt.solvers.contracts import Status, better, relative_gap

_SHOWN = 40
"""Characters of a value that a message shows."""

Check = Callable[[Any], bool]

_CHECKED = (Status.OPTIMAL, Status.FEASIBLE)
_WITH_OBJECTIVE = (*_CHECKED, Status.REFERENCE)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _is_figure(value: Any) -> bool:
    return value is None or _is_finite(value)


def _is_time(value: Any) -> bool:
    return _is_finite(value) and value >= 0


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _data(value: Any) -> Any:
    """What JSON text says; None where it is none."""
    try:
        return json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return None


def _is_mapping(value: Any) -> bool:
    return isinstance(_data(value), dict)


def _is_machine(value: Any) -> bool:
    found = _data(value)
    known = {"cpu": _is_text, "system": _is_text, "cores": _is_finite, "memory_bytes": _is_finite}
    return isinstance(found, dict) and (
        not found or all(name in found and check(found[name]) for name, check in known.items())
    )


def _is_trace(value: Any) -> bool:
    points = _data(value)
    return isinstance(points, list) and all(
        isinstance(point, list) and len(point) == 3 and _is_time(point[0]) and all(map(_is_figure, point[1:]))
        for point in points
    )


_INSTANCE: dict[str, Check] = {
    "digest": _is_text,
    "name": _is_text,
    "family": _is_text,
    "sense": lambda value: value in ("minimize", "maximize"),
    "unit": _is_text,
    "sizes": _is_mapping,
    "source": _is_text,
    "best_objective": _is_figure,
}
_RUN: dict[str, Check] = {
    "key": _is_text,
    "instance_digest": _is_text,
    "instance": _is_text,
    "family": _is_text,
    "method": _is_text,
    "options": _is_mapping,
    "solver": _is_text,
    "seed": _is_count,
    "time_limit_s": _or_none(_is_time),
    "gap_limit": _is_time,
    "threads": _is_count,
    "memory_limit_bytes": _or_none(_is_count),
    "objective": _is_figure,
    "bound": _is_figure,
    "evidence": lambda value: value is None or value in tuple(Evidence),
    "found_by": _or_none(_is_text),
    "proved_by": _or_none(_is_text),
    "gap": _or_none(_is_time),
    "checked": lambda value: value in (0, 1),
    "scope": _or_none(_is_text),
    "scope_bound": _is_figure,
    "runtime_s": _is_time,
    "wall_s": _is_time,
    "compile_s": _is_time,
    "answer_s": _or_none(_is_time),
    "peak_memory_bytes": _or_none(_is_count),
    "message": _is_text,
    "host": _is_text,
    "finished": _is_text,
    "versions": _is_mapping,
    "machine": _is_machine,
    "revision": _or_none(_is_text),
    "details": _is_mapping,
    "trace": _is_trace,
}


def fault_of_run(row: Mapping[str, Any], statuses: Container[str], senses: Mapping[str, Sense]) -> str | None:
    """Why a row of ``runs`` is no outcome of a solve; None if it may be one.

    Parameters
    ----------
    row : mapping
    statuses : container of str
        Those that there are.
    senses : mapping
        Of the instances of the store, by their digests.
    """
    if row.get("status") not in statuses:
        return _said("status", row.get("status"))
    fault = _fault(row, _RUN)
    if fault is not None:
        return fault
    if row["instance_digest"] not in senses:
        return "its instance is not in the store"
    return _contradiction(row, senses[row["instance_digest"]])


def _contradiction(row: Mapping[str, Any], sense: Sense) -> str | None:
    """What of a row the gate would not have let through, although each figure may be one."""
    status, objective, bound, gap = row["status"], row["objective"], row["bound"], row["gap"]
    if row["evidence"] == Evidence.CLAIMED:
        return "a claim is no evidence of its bound"
    if status != Status.ERROR and (objective is None) == (status in _WITH_OBJECTIVE):
        return f"{status} {'without' if objective is None else 'with'} an objective"
    if status in _CHECKED and not row["checked"]:
        return f"{status} without a check"
    left = relative_gap(objective, bound, sense)
    if gap is not None and (left is None or abs(gap - left) > IMPROVEMENT_TOL * max(1.0, left)):
        return f"its gap is {gap}, which its objective and bound are not"
    if status not in _CHECKED:
        return None
    if bound is not None and better(objective, bound, sense) and abs(objective - bound) > _beyond(objective):
        return f"its bound {bound:.9g} is beyond its objective {objective:.9g}"
    if status == Status.OPTIMAL and (left is None or left > max(row["gap_limit"], OBJECTIVE_TOL) + IMPROVEMENT_TOL):
        return "optimal without a bound that says so"
    return None


def _beyond(objective: float) -> float:
    return OBJECTIVE_TOL * abs(objective) + IMPROVEMENT_TOL


def fault_of_instance(row: Mapping[str, Any]) -> str | None:
    """Why a row of ``instances`` is none; None if it may be one."""
    return _fault(row, _INSTANCE)


def _fault(row: Mapping[str, Any], checks: Mapping[str, Check]) -> str | None:
    for name, check in checks.items():
        if name not in row:
            return f"it has no {name}"
        if not check(row[name]):
            return _said(name, row[name])
        if isinstance(row[name], str) and not _is_utf8(row[name]):
            return f"{name} is no text"
    return None


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _said(name: str, value: Any) -> str:
    shown = plain(repr(value))
    return f"{name} is {shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + '…'}"
