"""Fields that an instance leaves at their defaults, references and texts: said oddly, as its schema allows.

Serializers leave out what is at its default, so that what only changes data never meets it. Here the schema tells which
fields there are, of which kind each is, and what may stand in it; figures and names are those of the instance.
"""

import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeVar

from ddlopt.instances.schema_walk import Path, Schema, alternatives, at, item
from ddlopt.models.contracts import Instance

Data = TypeVar("Data")
_SAID = 0.2
"""How likely a field is said."""
_TRIES, _ALONE = 6, 3
"""Ways of which the first that the instance's validators take is taken, and how many of them change one field alone."""
_LEAST = 0.3
"""How likely an optional field of a new object is left out."""
_ORDERED = 0.3
"""How likely a new list of whole numbers is an order of so many things."""
_FACTORS = (0.5, 1.0, 1.0, 2.0)
"""Of a figure of the same unit, which a new one is."""
_NAMES = ("", " ", "0", "a/b", "1e9", "naïve", "None")
"""Before a number: what nobody would call anything."""
_NOT_SAID = ("family", "problem", "name", "source")
"""Of the instance as a whole: what it is, and what it is called."""


class Place(NamedTuple):
    """Where a field stands in the data, and its schema there."""

    path: Path
    schema: Schema


@dataclass
class Pool:
    """What the data of an instance has, to make more of the same kind.

    Parameters
    ----------
    texts : list of str
        Words, names, and keys of mappings.
    sizes : list of int
        Of lists, and small whole numbers.
    figures : dict of str to list of float
        By the last word of their field's name, as a rule its unit.
    """

    texts: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=lambda: [1])
    figures: dict[str, list[float]] = field(default_factory=dict)

    def note(self, value: Any, name: str) -> None:
        """Take up everything that is in a value."""
        if isinstance(value, dict):
            for key, each in value.items():
                self.texts.append(key) if key not in self.texts else None
                self.note(each, key)
        elif isinstance(value, list):
            self.sizes.append(len(value))
            for each in value:
                self.note(each, name)
        elif isinstance(value, str):
            self.texts.append(value)
        elif isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGE:
            self.sizes.append(value)
        elif isinstance(value, float) and value:
            self.figures.setdefault(name.rpartition("_")[2], []).append(value)


_LARGE = 9
"""A whole number that is no size of a small instance any more."""


def said(kind: type[Instance], data: dict[str, Any], is_one: Callable[..., bool], draw: random.Random) -> Any:
    """The data with some fields said that were left out, or in other words and references.

    Parameters
    ----------
    kind : type
        Of the instance.
    data : dict
        With every field (:func:`.spelled_out`); not changed.
    is_one : callable
        Whether some data makes an instance of a kind.
    draw : random.Random
    """
    schema = schema_of(kind)
    fields = sorted(by_field(data, schema))
    draw.shuffle(fields)
    for name in fields:
        if draw.random() < _SAID:
            for number in range(_TRIES):
                made = _otherwise(name, data, schema, draw)
                if made is not None and number >= _ALONE:  # some only go with a neighbour
                    near = [other for other in fields if other.rpartition(".")[0] == name.rpartition(".")[0]]
                    made = _otherwise(draw.choice(near), made, schema, draw)
                if made is not None and is_one(kind, made):
                    data = made
                    break
    return data


@cache
def schema_of(kind: type[Instance]) -> Schema:
    """What may stand in an instance; not to be changed."""
    return kind.model_json_schema(mode="validation")


def by_field(data: dict[str, Any], schema: Schema) -> dict[str, list[Place]]:
    """The places of each field that may be said; a field is its names, and * for a place in a list or mapping."""
    found: dict[str, list[Place]] = {}
    _note(data, schema, schema, (), "", found)
    return found


def _note(
    data: Any, schema: Schema, whole_schema: Schema, path: Path, name: str, found: dict[str, list[Place]]
) -> None:
    if name and name not in _NOT_SAID:
        found.setdefault(name, []).append(Place(path, schema))
    if not isinstance(data, (dict, list)):
        return
    before = f"{name}." if name else ""
    for each in alternatives(schema, whole_schema):
        if isinstance(data, dict) and each.get("type") == "object":
            known = each.get("properties", {})
            others = each.get("additionalProperties")
            if not others and set(data) - set(known):
                continue
            for key, value in data.items():
                if key in known:
                    _note(value, known[key], whole_schema, (*path, key), before + key, found)
                elif isinstance(others, dict):
                    _note(value, others, whole_schema, (*path, key), f"{name}.*", found)
            return
        if isinstance(data, list) and each.get("type") == "array":
            for number, value in enumerate(data):
                _note(value, item(each, number), whole_schema, (*path, number), f"{name}.*", found)
            return


def _otherwise(name: str, data: dict[str, Any], schema: Schema, draw: random.Random) -> dict[str, Any] | None:
    """The data with another value in a field: in all of its places, in one, or wherever something has that name."""
    places_of = by_field(data, schema)
    places = places_of.get(name)
    if places is None:  # another change has emptied it
        return None
    made, pool = copied(data), Pool()
    pool.note(data, "")
    new = [_invented(place.schema, schema, _called(name).partition(".")[0], pool, draw) for place in places]
    how = draw.choice(("all", "all alike", "one", "everywhere"))
    if how == "everywhere":  # one value for another one, as if it were called otherwise
        old = at(data, places[draw.randrange(len(places))].path)
        for other, others in places_of.items():
            for place in others:
                if _called(other) == _called(name) and at(data, place.path) == old:
                    _put(made, place.path, new[0])
        return made
    if how == "one":
        kept = draw.randrange(len(places))
        places, new = places[kept : kept + 1], new[kept : kept + 1]
    for place, value in zip(places, new, strict=True):
        _put(made, place.path, copied(new[0]) if how == "all alike" else value)
    return made


def _called(name: str) -> str:
    """The last name of a field, with what stands after it: ``forward.*`` of ``jobs.*.forward.*``."""
    return name[name.rstrip(".*").rfind(".") + 1 :]


def copied(data: Data) -> Data:
    """Data of JSON anew, as :func:`copy.deepcopy` would, in a tenth of its time: one list in two places stays one."""
    same: Data = pickle.loads(pickle.dumps(data))
    return same


def _put(data: Any, path: Path, value: Any) -> None:
    at(data, path[:-1])[path[-1]] = value


def _invented(schema: Schema, whole_schema: Schema, name: str, pool: Pool, draw: random.Random) -> Any:
    """A value that the schema allows, made of what else the instance has."""
    each = draw.choice(alternatives(schema, whole_schema))
    if "const" in each:
        return each["const"]
    if "enum" in each:
        return draw.choice(each["enum"])
    match each.get("type"):
        case "boolean":
            return draw.random() < 0.5
        case "integer":
            return draw.randint(0, 3) if draw.random() < 0.5 else draw.choice(pool.sizes)
        case "number":
            known = pool.figures.get(name.rpartition("_")[2]) or [1.0]
            return draw.choice(known) * draw.choice(_FACTORS)
        case "string":
            return draw.choice(pool.texts) if draw.random() < 0.5 else f"{draw.choice(_NAMES)}{draw.randint(0, 99)}"
        case "array":
            count = min(max(draw.choice(pool.sizes), each.get("minItems", 0)), each.get("maxItems", _LARGE))
            if each.get("items", {}).get("type") == "integer" and draw.random() < _ORDERED:
                return draw.sample(range(count), count)
            return [_invented(item(each, number), whole_schema, name, pool, draw) for number in range(count)]
        case "object":
            return _object(each, whole_schema, pool, draw)
    return None


def _object(schema: Schema, whole_schema: Schema, pool: Pool, draw: random.Random) -> dict[str, Any]:
    known, needed = schema.get("properties", {}), schema.get("required", ())
    made = {
        key: _invented(each, whole_schema, key, pool, draw)
        for key, each in known.items()
        if key in needed or draw.random() >= _LEAST
    }
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        keys = draw.sample(pool.texts, min(len(pool.texts), draw.randint(1, 2)))
        made |= {key: _invented(others, whole_schema, key, pool, draw) for key in keys}
    return made
