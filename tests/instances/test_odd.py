"""Odd instances have what schemas allow: zeros, what is missing, empty and unequal lists, figures that are equal."""

from collections import Counter, defaultdict

import pytest
from volume import for_each

from ddlopt.instances.odd import SETTINGS, changed, odd_instance
from ddlopt.models.catalogue import problem, problems

SEEDS = 40
ODDITIES = ("zero", "missing", "empty", "twins", "unequal figures", "unequal lists")
NOT_DRAWN: dict[str, set[tuple[str, str]]] = {}
"""What a schema allows and no odd instance has, by problem: the validators refuse it, for a reason that they give."""


def allowed(schema, whole, path=""):
    """What a schema allows by itself: (field, oddity)."""
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from allowed(each, whole, path)
    kind = schema.get("type")
    if kind == "null":
        yield path, "missing"
    if kind in ("number", "integer") and "const" not in schema:
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        if low <= 0 and schema.get("exclusiveMinimum", -1) < 0:
            yield path, "zero"
        if "*" in path:
            yield path, "twins"
            yield path, "unequal figures"
    if kind == "array" and "items" in schema:
        if not schema.get("minItems"):
            yield path, "empty"
        if "*" in path:
            yield path, "unequal lists"
        yield from allowed(schema["items"], whole, f"{path}.*")
    for name, value in schema.get("properties", {}).items():
        yield from allowed(value, whole, f"{path}.{name}".lstrip("."))


def met(data, found, path=""):
    """Note what an instance has, by field: values in ``found``."""
    found[path].append(data)
    if isinstance(data, dict):
        for name, value in data.items():
            met(value, found, f"{path}.{name}".lstrip("."))
    elif isinstance(data, list):
        for value in data:
            met(value, found, f"{path}.*")


def oddities(instance):
    """(field, oddity) of one instance."""
    found = defaultdict(list)
    met(instance.model_dump(mode="json"), found)
    for path, values in found.items():
        figures = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        lists = [value for value in values if isinstance(value, list)]
        tests = {
            "zero": 0 in figures,
            "missing": None in values,
            "empty": [] in lists,
            "twins": any(count > 1 for count in Counter(figures).values()),
            "unequal figures": len(set(figures)) > 1,
            "unequal lists": len({len(each) for each in lists}) > 1,
        }
        yield from ((path, name) for name, has in tests.items() if has)


def left_out(path):
    """What a schema allows and is never drawn."""
    model = problem(path).instance
    schema = model.model_json_schema(mode="validation")
    drawn = {
        pair
        for setting in (None, *SETTINGS)
        for seed in range(SEEDS)
        for pair in oddities(odd_instance(path, setting, seed))
    }
    # What is at its default is not written: fields that came later.
    return {pair for pair in set(allowed(schema, schema)) - drawn if not pair[0].endswith("kind")}


@for_each("path", list(problems()))
def test_what_the_schema_allows_is_drawn(path):
    assert left_out(path) == NOT_DRAWN.get(path, set())
