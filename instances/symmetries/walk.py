"""A walk through the data of an instance or an answer that changes each field as its role says."""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ddlopt.instances.symmetries.roles import Role, Unit, lines_of, role, roles_in


class UntranslatedError(Exception):
    """The answer names places of a list that came into another order, which is not followed."""


@dataclass
class Change:
    """What becomes of numbers, texts, figures and lists; by default nothing.

    Parameters
    ----------
    orders : dict of str to list of int
        The new number of each entity, by its old one.
    word : callable
        The new text, of the class and the old one.
    factors : dict of str to float
        By dimension.
    later : dict of str to float
        What is added to moments, by unit.
    shuffle : random.Random or None
        Brings lists without an order into another one.
    blind : set of str
        Paths of the instance of which the order changed and which answers name by place.
    """

    orders: dict[str, list[int]] = field(default_factory=dict)
    word: Callable[[str, str], str] = lambda _, text: text
    factors: Mapping[str, float] = field(default_factory=dict)
    later: Mapping[str, float] = field(default_factory=dict)
    shuffle: random.Random | None = None
    blind: set[str] = field(default_factory=set)

    def inside(self) -> "Change":
        """What becomes of a document within another one: entities are its own, and keep their order."""
        return Change({}, self.word, self.factors, {}, None)

    def factor(self, unit: Unit) -> float:
        """By which a figure of this unit becomes larger."""
        found = 1.0
        for dimension, exponent in unit:
            found *= self.factors.get(dimension, 1.0) ** exponent
        return found

    def figure(self, value: Any, told: Role) -> Any:
        """A figure in other units, and later if it is a moment."""
        factor, later = self.factor(told.unit), self.later.get(told.of, 0) if told.kind == "moment" else 0
        if factor == 1 and later == 0:
            return value
        if isinstance(value, str):
            return str(Fraction(value) * Fraction(factor) + Fraction(later))
        if isinstance(value, int) and (value * factor).is_integer():
            return int(value * factor) + later
        return value * factor + later

    def number(self, value: Any, entity: str) -> Any:
        """The new number of an entity; of a pass as ``2F0`` that of its chunk."""
        if entity == "pass":
            match = re.fullmatch(r"(\d+)(\D+\d+)", str(value))
            return value if match is None else f"{self.number(int(match[1]), 'chunk')}{match[2]}"
        order = self.orders.get(entity, ())
        return order[value] if isinstance(value, int) and 0 <= value < len(order) else value


def changed_data(data: Any, lines: str, change: Change, answer: bool = False) -> Any:
    """The data of an instance, or of an answer, after a change.

    Parameters
    ----------
    data : dict
        As ``model_dump(mode="json")`` gives it.
    lines : str
        Of :mod:`.shapes`, with the roles of its fields.
    change : Change
    answer : bool
        Whether it is the data of an answer.

    Returns
    -------
    dict
        New data; what it is an instance of, or an answer to, is not checked here.
    """

    def walk(value: Any, place: str, at: tuple[int, ...] = ()) -> Any:
        told = role(lines, place)
        if told is not None and told.kind == "document":
            return _document(value, told.of, change, answer)
        if isinstance(value, dict):
            keys = told.of if told is not None and told.kind == "keys" else None
            inner = {
                name: walk(each, f"{place}.{'*' if keys else name}" if place else name, at)
                for name, each in value.items()
            }
            return {change.word(keys, name): each for name, each in inner.items()} if keys else inner
        if isinstance(value, list):
            named = f"{place}.0", f"{place}.1", f"{place}.2"
            apart = any(role(lines, each) for each in named)
            moved = [walk(each, f"{place}.{i if apart else '*'}", (*at, i)) for i, each in enumerate(value)]
            return _ordered(moved, value, told, place, at)
        return _leaf(value, told, change, at)

    def _ordered(items: list[Any], before: list[Any], told: Role | None, place: str, at: tuple[int, ...]) -> list[Any]:
        if told is None:
            return items
        order = change.orders.get(told.entity(at)) if told.kind == "list" else None
        if order is not None and len(order) == len(items):
            made: list[Any] = [None] * len(items)
            for old, new in enumerate(order):
                made[new] = items[old]
            return made
        if order is not None and answer and items and order != sorted(order):
            raise UntranslatedError(f"{place} has {len(items)} entries for {len(order)} of {told.of}")
        if told.kind in ("shuffled", "inner") and change.shuffle is not None:
            change.shuffle.shuffle(items)
            if told.kind == "inner":
                change.blind.add(place)
        # What does not ascend is wrong, and stays so.
        if told.kind == "ends" and change.orders:
            return [*sorted(items[:2], reverse=before[:2] != sorted(before[:2])), *items[2:]]
        return sorted(items) if told.kind == "ascending" and before == sorted(before) else items

    return walk(data, "")


def _leaf(value: Any, told: Role | None, change: Change, at: tuple[int, ...]) -> Any:
    if told is None or value is None or isinstance(value, bool):
        return value
    if told.kind == "text" and isinstance(value, str):
        return change.word(told.of, value)
    if told.kind == "number":
        return change.number(value, told.entity(at))
    return change.figure(value, told) if told.kind in ("figure", "moment") else value


def _document(data: Any, path: str, change: Change, answer: bool) -> Any:
    if data is None:
        return None
    if path != "*":
        return changed_data(data, lines_of(path, data, answer), change, answer)
    own = "/".join(filter(None, (data["family"], data.get("problem"))))
    made: dict[str, Any] = changed_data(data, lines_of(own, data, answer), change.inside(), answer)
    return made | {"instance_digest": None} if answer else made


def sizes(data: Mapping[str, Any], lines: str) -> dict[str, list[int]]:
    """How many there are of each entity, block by block."""
    found = dict[str, list[int]]()
    for place, told in roles_in(lines).items():
        steps = place.split(".")
        if "*" in steps and "{" not in told.of:
            continue
        for at, value in _values(data, steps):
            if told.kind == "count" and isinstance(value, int):
                found.setdefault(told.of, []).append(value)
            elif told.kind == "list" and isinstance(value, list) and value:
                found.setdefault(told.entity(at), [len(value)])
    return found


def _values(data: Any, steps: Sequence[str], at: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """What a path leads to, with the places in lists on the way."""
    if not steps:
        yield at, data
    elif steps[0] == "*" and isinstance(data, list):
        for place, each in enumerate(data):
            yield from _values(each, steps[1:], (*at, place))
    elif isinstance(data, dict) and steps[0] in data:
        yield from _values(data[steps[0]], steps[1:], at)
