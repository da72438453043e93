"""Fields of an instance made odd, whatever its problem is: what the schema refuses is taken back."""

import random
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

from ddlopt.instances.odd.said import copied, said, schema_of
from ddlopt.instances.schema_walk import Path, at, field_name, walk
from ddlopt.instances.spelled import spelled_out
from ddlopt.models.catalogue import problem_of
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import DdloptError, InfeasibleError, InstanceError

SETTINGS = ("ties", "zeros", "unequal")
"""``ties``: figures of a field are equal, or small multiples, and parts are twins. ``zeros``: figures are 0 and lists
empty. ``unequal``: figures differ by up to a million, and members are missing."""

_KEPT = (
    *("family", "problem", "kind", "source", "name"),
    *("tensor", "context", "expert", "micro_batch"),
)
"""What an instance is called, and of which kind it or a part of it is; and degrees for which all blocks of a training
step have to have a way: nearly all would have no plan otherwise."""
_AGAIN = 4
"""How often it is tried to make an instance that is not infeasible at first sight: on those all methods agree."""
_SAID = 0.7
"""How likely fields that are left at their defaults are said, too."""
_FIELDS, _PLACES = 0.4, 0.5
"""How likely a field is changed, and each of its places then."""
_WORDS = 0.3
"""How likely a choice among words, as of a norm or a goal, is another one."""
_UNEQUAL = (1e-3, 0.1, 0.5, 3.0, 10.0, 1e3)
"""Factors of figures: no further apart than what solvers in double precision take, as their answers are compared."""
_WHOLE = 0.5
"""How likely, with ties, all times are small whole numbers, so that events of different kinds fall together."""
_LARGEST_COUNT = 3
"""By which whole numbers may grow: they are sizes, and the instance is to stay small."""


def changed(instance: Instance, setting: str, seed: int) -> Instance:
    """The instance with some of its fields made odd, and other words in some that have a choice of them.

    Parameters
    ----------
    instance : Instance
        A small one: every change is validated.
    setting : str
        One of :data:`SETTINGS`.
    seed : int

    Returns
    -------
    Instance
        Of the same problem; its name tells setting and seed.
    """
    for again in range(_AGAIN):
        found = _changed(instance, setting, f"{seed}" + f" again {again}" * (again > 0))
        if not _seen_infeasible(found):
            break
    name, source = f"{instance.name}-{setting}-{seed}", f"{instance.source}; made odd ({setting}, {seed})"
    return found.changed(name=name, source=source)


def _seen_infeasible(instance: Instance) -> bool:
    try:
        problem_of(instance).bound(instance)
    except InfeasibleError:
        return True
    except DdloptError:  # figures that are too far apart, say
        return False
    return False


def _changed(instance: Instance, setting: str, seed: str) -> Instance:
    draw = random.Random(f"{setting} {seed}")
    change = {"ties": _tied, "zeros": _zero, "unequal": _unequal}[setting]
    in_seconds = setting == "ties" and draw.random() < _WHOLE
    kind, data = type(instance), instance.model_dump(mode="json")
    places_of = _by_field(data)
    fields = sorted(places_of)
    draw.shuffle(fields)
    for field in fields:
        places = places_of[field]
        if in_seconds and field.endswith("_s"):
            tries = [(places, figures) for figures in _WHOLE_S]
        elif draw.random() < _FIELDS:
            chosen = [path for path in places if draw.random() < _PLACES] or places[:1]
            # All at once or, where the schema refuses that, one of them.
            tries = [(chosen, change), (chosen[:1], change)]
        else:
            continue
        for some, way in tries:
            made = _made(data, some, places, way, draw)
            if _is_one(kind, made):
                data, places_of = made, _by_field(made)
                break
    data = _in_other_words(kind, data, random.Random(f"words {setting} {seed}"))
    if draw.random() < _SAID:
        data = said(kind, spelled_out(kind.from_data(data)), _is_one, random.Random(f"said {setting} {seed}"))
    return kind.from_data(data)


def _in_other_words(kind: type[Instance], data: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """The data with other words in some fields that have a choice of them."""
    choices, places_of = _words(kind), dict[str, list[Path]]()
    for field, places in _by_field(data, texts=True).items():
        if field in choices:
            places_of[field] = [path for path in places if isinstance(at(data, path), str)]
    for field in sorted(field for field, places in places_of.items() if places):
        if draw.random() < _WORDS:
            old = at(data, places_of[field][0])
            word = draw.choice([word for word in choices[field] if word != old])
            # Everywhere or, where the schema refuses that, in one place.
            for some in (places_of[field], [draw.choice(places_of[field])]):
                made = _made(data, some, some, lambda *_, word=word: word, draw)
                if _is_one(kind, made):
                    data = made
                    break
    return data


@cache
def _words(kind: type[Instance]) -> dict[str, list[str]]:
    """The words of each field that has a choice of them."""
    found = dict[str, list[str]]()
    for path, each in walk(schema_of(kind), ("items",)):
        if all(isinstance(word, str) for word in each.get("enum", (None,))):
            found[field_name(path)] = each["enum"]
    return found


def _is_one(kind: type[Instance], data: dict[str, Any]) -> bool:
    try:
        kind.from_data(data)
    except InstanceError:
        return False
    return True


def _made(
    data: dict[str, Any], some: list[Path], places: list[Path], change: Callable[..., Any], draw: random.Random
) -> dict[str, Any]:
    """The data with some of a field's places changed, each of which is told what stands at the others."""
    made = copied(data)
    for path in reversed(some):  # later ones first, as lists may become shorter
        others = [at(data, other) for other in places if other != path]
        owner = at(made, path[:-1])
        owner[path[-1]] = change(owner[path[-1]], others, draw)
    return made


def _by_field(data: dict[str, Any], texts: bool = False) -> defaultdict[str, list[Path]]:
    """The places of each field, and of texts if wanted; of one that changes emptied, none."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    _note(data, (), "", texts, found)
    return found


def _note(data: Any, path: Path, field: str, texts: bool, found: defaultdict[str, list[Path]]) -> None:
    """Take up everything but names: lists and what is in them, figures, and what is missing."""
    if path:
        found[field].append(path)
    before = f"{field}." if path else ""
    if isinstance(data, dict):
        for name, value in data.items():
            if name not in _KEPT and (texts or not isinstance(value, str)):
                _note(value, (*path, name), before + name, texts, found)
    elif isinstance(data, list):
        for place, value in enumerate(data):
            if texts or not isinstance(value, str):
                _note(value, (*path, place), before + "*", texts, found)


def _whole_s(figures: tuple[float, ...]) -> Callable[..., Any]:
    return lambda value, others, draw: draw.choice(figures) if isinstance(value, float | int) else value


_WHOLE_S = tuple(map(_whole_s, ((0.0, 1.0, 1.0, 2.0), (1.0, 1.0, 2.0))))
"""Times of which many are equal, or sums of others; without 0 where the schema wants more."""


def _tied(value: Any, others: list[Any], draw: random.Random) -> Any:
    """As another one, or a small multiple of it; parts are twins of others but for their names."""
    model = copied(draw.choice(others)) if others else value
    if isinstance(value, dict) and isinstance(model, dict):
        return model | ({"name": value["name"]} if "name" in value else {})
    if isinstance(value, float) and isinstance(model, float):
        return float(f"{model:.1g}") * draw.choice((1.0, 1.0, 2.0))
    if isinstance(value, list) and value and others == [] and not isinstance(value[0], str | dict):
        return [draw.choice(value)] * len(value)
    return model if value is not None else draw.choice((None, 1))


def _zero(value: Any, others: list[Any], draw: random.Random) -> Any:
    """0, nothing, or the least that there can be."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return draw.choice((0, 0, 1))
    if isinstance(value, float):
        return 0.0
    if isinstance(value, list):
        return [] if draw.random() < 0.5 else value[:1]
    if isinstance(value, dict):
        return None
    return draw.choice((0, 0.0, []))


def _unequal(value: Any, others: list[Any], draw: random.Random) -> Any:
    """Much more or much less than it was; of a list a part, or more."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return max(0, value + draw.choice((-1, 1, draw.randint(1, _LARGEST_COUNT))))
    if isinstance(value, float):
        return value * draw.choice(_UNEQUAL)
    if isinstance(value, list) and value:
        dropped = draw.randrange(len(value))
        return value[:dropped] + value[dropped + 1 :]
    return value if value is not None else draw.choice((1, 2, 0.5, 10.0))
