"""Data of a document with all of its fields, or without those at their defaults: serializers leave out some of them."""

from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python


def spelled_out(document: BaseModel) -> dict[str, Any]:
    """The data of a document with every field, also those that are at their defaults and not written therefore."""
    data: dict[str, Any] = _whole(document, document.model_dump(mode="json"))
    return data


def _whole(value: Any, data: Any) -> Any:
    if isinstance(value, BaseModel):
        dumped = value.model_dump(mode="json") if data is None else data
        return {name: _whole(getattr(value, name), dumped.get(name)) for name in type(value).model_fields}
    if isinstance(value, list | tuple):
        parts = [None] * len(value) if data is None else data
        return [_whole(each, part) for each, part in zip(value, parts, strict=True)]
    if data is None:
        return dict(value) if isinstance(value, dict) else value
    return data


def terse(document: BaseModel) -> dict[str, Any]:
    """The data of a document without fields at their defaults, but with words that tell of which kind a part is."""
    found: dict[str, Any] = _short(document, spelled_out(document))
    return found


def _short(value: Any, data: Any) -> Any:
    if isinstance(value, BaseModel):
        kept = {}
        for name, field in type(value).model_fields.items():
            told = _short(getattr(value, name), data[name])
            plain = to_jsonable_python(field.get_default(call_default_factory=True), fallback=str)
            if name in ("family", "problem", "kind") or field.is_required() or told != plain:
                kept[name] = told
        return kept
    if isinstance(value, tuple | list) and isinstance(data, list):
        return [_short(each, told) for each, told in zip(value, data, strict=True)]
    return data
