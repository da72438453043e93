"""Instances whose limits are what a known solution needs, or a hair below, as far as the check lets it pass.

No list of limits is needed: a figure is one for a solution where the check calls the solution infeasible once the
figure is smaller, or larger as a demand or an arrival, and halving finds where. In rational numbers the check tells
what is used exactly, in floating point how much more it lets pass. Where a solution breaks limits, figures are first
raised or lowered until it breaks none: good solutions of an instance with hardly any memory use none at all.
"""

import copy
import math
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ddlopt.instances.schema_walk import Path, at, field_name
from ddlopt.instances.spelled import spelled_out
from ddlopt.instances.symmetries.roles import lines_of, role
from ddlopt.instances.symmetries.unsaid import UNSAID, UnfitError
from ddlopt.models.catalogue import problem_of
from ddlopt.models.contracts import Evaluation, Instance, Solution
from ddlopt.models.errors import DdloptError
from ddlopt.models.tolerances import FEASIBILITY_TOL

_ASKED = 80
"""Figures of an instance that are tried at most."""
_FIGURES = (None, "figure", "moment")
"""Roles of what may be a limit; numbers of things and how many there are are none."""
_UNSAID = 0.3
"""How likely a default is left as it is."""
_UP = 1000
"""How many times as large a figure is tried."""


@dataclass(frozen=True)
class Tight:
    """An instance whose limits a solution just meets.

    Parameters
    ----------
    way : str
        Which figures are limits, and how near.
    instance : Instance
    solution : Solution
        That the check lets pass, in floating point.
    """

    way: str
    instance: Instance
    solution: Solution


def tight(instance: Instance, solution: Solution, draw: random.Random, most: int = 3) -> Tight | None:
    """An instance with limits that a solution just meets.

    Parameters
    ----------
    instance : Instance
    solution : Solution
        Feasible for it, or but for limits.
    draw : random.Random
        Which figures are tried, and on which side of what is used they end.
    most : int
        Of limits.

    Returns
    -------
    Tight or None
        None where no limit is found, or the solution breaks more than limits.
    """
    solution = solution.model_copy(update={"instance_digest": None})
    fitting = _fitting(instance, _said(instance, solution, draw), solution, draw)
    if fitting is None:
        return None
    data, told = fitting, []
    for place in _drawn(data, lines_of(problem_of(instance).path, data), draw):
        # Below what is used is let pass as rounding, by a part of what the check lets pass; or nothing is left over.
        within = draw.choice((0.0, 0.5, 0.8))
        found = _limit(type(instance), data, place, solution, within)
        if found is None:
            continue
        data = _with(data, place, found)
        told.append(f"{'.'.join(map(str, place))} {found!r}")
        if len(told) == most:
            break
    if not told:
        return None
    return Tight(f"tight {', '.join(told)}", type(instance).from_data(data, "tight"), solution)


def _drawn(data: dict[str, Any], lines: str, draw: random.Random) -> list[Path]:
    """Places of figures: one of each field, as there are many demands for each limit, then a second one of each."""
    fields: dict[str, list[Path]] = {}
    for place in _places(data, lines):
        fields.setdefault(field_name(place), []).append(place)
    found = []
    for places in fields.values():
        found += [(turn, draw.random(), place) for turn, place in enumerate(draw.sample(places, len(places)))]
    return [place for _, _, place in sorted(found, key=lambda each: each[:2])][:_ASKED]


def _said(instance: Instance, solution: Solution, draw: random.Random) -> dict[str, Any]:
    """The data of an instance, some of its defaults said: limits that nothing meets where there are none."""
    data = spelled_out(instance)
    for say in UNSAID.get(problem_of(instance).path, {}).values():
        if draw.random() < _UNSAID:
            continue
        more = copy.deepcopy(data)
        try:
            say(more)
        except UnfitError:
            continue
        if _broken(_told(type(instance), more, solution)) <= _broken(_told(type(instance), data, solution)):
            data = more
    return data


def _fitting(
    instance: Instance, data: dict[str, Any], solution: Solution, draw: random.Random
) -> dict[str, Any] | None:
    """The data with figures so much larger or smaller that a solution breaks nothing; None where that is not enough."""
    kind, lines = type(instance), lines_of(problem_of(instance).path, data)
    broken = _broken(_told(kind, data, solution))
    for place in _drawn(data, lines, draw) if 0 < broken < math.inf else ():
        value = at(data, place)
        for other in (value * _UP or _UP, value / _UP):
            more = _with(data, place, type(value)(other))
            fewer = _broken(_told(kind, more, solution))
            if fewer < broken:
                data, broken = more, fewer
                break
        if not broken:
            break
    return None if broken else data


def _places(data: Any, lines: str, named: str = "", path: Path = ()) -> Iterator[Path]:
    """Where figures are, those of documents within included."""
    told = role(lines, named)
    if told is not None and told.kind == "document" and isinstance(data, dict):
        own = told.of if told.of != "*" else "/".join(filter(None, (data["family"], data.get("problem"))))
        lines, named, told = lines_of(own, data), "", None
    if isinstance(data, dict):
        keys = told is not None and told.kind == "keys"
        for name, each in data.items():
            yield from _places(each, lines, ".".join(filter(None, (named, "*" if keys else name))), (*path, name))
    elif isinstance(data, list):
        apart = any(role(lines, f"{named}.{place}") for place in range(3))
        for place, each in enumerate(data):
            yield from _places(each, lines, f"{named}.{place if apart else '*'}", (*path, place))
    elif type(data) in (int, float) and (told.kind if told is not None else None) in _FIGURES:
        yield path


def _limit(
    kind: type[Instance], data: dict[str, Any], place: Path, solution: Solution, within: float
) -> float | int | None:
    """A figure in a place with which a solution is just feasible; None where it is no limit, or is met already.

    It is not the last one that the check lets pass, where the order of a sum decides.
    """

    def told(figure: float, exact: bool = False) -> Evaluation | None:
        return _told(kind, _with(data, place, figure), solution, exact)

    value = at(data, place)
    if told(value + 0.5) is not None:  # a float that is written as a whole number
        value = float(value)
    number = type(value)
    for end in map(number, (0, 1, value / 2, value / _UP, value * 2, value * _UP or 1)):
        at_end = told(end)
        if end == value or at_end is None or at_end.feasible:
            continue
        last = _last(value, end, lambda figure: _feasible(told(figure)))
        if last == value or told(_next(last, end)) is None:
            return None  # the schema's limit, not the solution's
        if number is int:
            return last
        exactly = _feasible(told(value, True))
        used = _last(value, end, lambda figure: _feasible(told(figure, True))) if exactly else value
        if abs(used - last) < FEASIBILITY_TOL / 2 * abs(last):  # rounding is let pass in rational numbers as well
            used = last * (1 + FEASIBILITY_TOL if value > last else 1 - FEASIBILITY_TOL)
            if abs(value - used) > abs(value - last):
                return None
        near = used + within * (last - used)
        return near if _feasible(told(near)) else None
    return None


def _last(good: float, bad: float, passes: Callable[[float], bool]) -> float:
    """The last number between a good and a bad one that passes, to the last digit."""
    whole = isinstance(good, int)
    low, high = (int(good), int(bad)) if whole else (_ordinal(good), _ordinal(bad))
    while abs(high - low) > 1:
        middle = (low + high) // 2
        if passes(middle if whole else _float(middle)):
            low = middle
        else:
            high = middle
    return low if whole else _float(low)


def _next(value: float, towards: float) -> float:
    step = 1 if towards > value else -1
    return value + step if isinstance(value, int) else _float(_ordinal(value) + step)


def _ordinal(value: float) -> int:
    """The place of a double that is not negative among all of them."""
    return int(struct.unpack("<q", struct.pack("<d", abs(value)))[0]) * (-1 if value < 0 else 1)


def _float(ordinal: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", abs(ordinal)))[0]) * (-1 if ordinal < 0 else 1)


def _with(data: Any, place: Path, value: Any) -> Any:
    """The data with another figure, copied along the way to it."""
    if not place:
        return value
    made = dict(data) if isinstance(data, dict) else list(data)
    made[place[0]] = _with(data[place[0]], place[1:], value)  # type: ignore[index]
    return made


def _told(kind: type[Instance], data: dict[str, Any], solution: Solution, exact: bool = False) -> Evaluation | None:
    """What the check says, None where the data are no instance or the solution is none of this instance."""
    try:
        instance = kind.from_data(data, "tight")
        return problem_of(instance).evaluate(instance, solution, exact=exact)
    except DdloptError:
        return None


def _feasible(told: Evaluation | None) -> bool:
    return told is not None and told.feasible


def _broken(told: Evaluation | None) -> float:
    """How much is wrong; infinite where a solution means nothing."""
    return math.inf if told is None or told.objective is None else len(told.violations)
