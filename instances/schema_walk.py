"""Places of a document: what stands there, what they are called, and what may stand there as its JSON Schema says."""

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]
Path = tuple[str | int, ...]


def alternatives(schema: Schema, whole: Schema) -> list[Schema]:
    """What may stand in a place: schemas without references and choices.

    Parameters
    ----------
    schema : dict
        Of the place.
    whole : dict
        Of the document, which has what is referred to.
    """
    if "$ref" in schema:
        return alternatives(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    choices = (*schema.get("anyOf", ()), *schema.get("oneOf", ()))
    return [found for each in choices for found in alternatives(each, whole)] if choices else [schema]


def item(schema: Schema, number: int) -> Schema:
    """What may stand at a place of a list."""
    first: list[Schema] = schema.get("prefixItems", [])
    return first[number] if number < len(first) else schema.get("items", {})


def walk(
    whole: Schema, inside: tuple[str, ...] = ("items", "additionalProperties", "prefixItems")
) -> Iterator[tuple[Path, Schema]]:
    """Every place of a document and what may stand there, one alternative after the other, what is around it first.

    Parameters
    ----------
    whole : dict
        Of the document.
    inside : tuple of str
        Keywords of what is entered besides fields: ``items`` of lists and ``additionalProperties``, values of
        mappings, are ``*`` in a path, ``prefixItems`` their numbers.
    """

    def of(schema: Schema, path: Path) -> Iterator[tuple[Path, Schema]]:
        for each in alternatives(schema, whole):
            yield path, each
            for step, within in _within(each, inside):
                yield from of(within, (*path, step))

    yield from of(whole, ())


def _within(schema: Schema, inside: tuple[str, ...]) -> Iterator[tuple[str | int, Schema]]:
    for word in inside:
        told = schema.get(word)
        if isinstance(told, list):
            yield from enumerate(told)
        elif isinstance(told, dict):  # or true: anything
            yield "*", told
    yield from schema.get("properties", {}).items()


def at(data: Any, path: Path) -> Any:
    """What stands at a place of data."""
    for step in path:
        data = data[step]
    return data


def field_name(path: Path) -> str:
    """The name of all places that are alike: names with dots between them, and ``*`` for a place in a list."""
    return ".".join("*" if isinstance(step, int) else step for step in path)
