"""What pydantic has to say of wrong data, in one line of ours."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from ddlopt.models.errors import InstanceError

_PLAIN_WORDS = {
    "missing": "is missing; every document needs it",
    "extra_forbidden": "there is no such field; remove it or correct its name",
    "model_type": "expected an object of named fields",
    "dict_type": "expected an object of named fields",
    "tuple_type": "expected a list",
    "list_type": "expected a list",
    "string_type": "expected a text",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
}


def one_line(problem: ValidationError, kind: str, data: Any, origin: str) -> str:
    """The first error of pydantic as one line: entity, place, value, what was expected."""
    first, *others = problem.errors(include_url=False)
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    message = _PLAIN_WORDS.get(first["type"], first["msg"].removeprefix("Value error, "))
    name = data.get("name") or data.get("instance") if isinstance(data, Mapping) else None
    line = f"{kind} '{name}'" if isinstance(name, str) else f"{origin}: {kind}" if origin else kind
    line += f": {place}: {message}" if place else f": {message}"
    shown = repr(first["input"])
    if first["type"] not in ("missing", "value_error") and len(shown) <= 60:
        line += f" (got {shown})"
    if others:
        line += f" (and {len(others)} more)"
    return line.replace("\n", " ")


def taken_for(data: Any, wanted: str) -> str | None:
    """What a file is that was given in place of an instance or a solution; None where it may be what is wanted.

    Parameters
    ----------
    data : object
        As JSON says it.
    wanted : {"instance", "solution"}
    """
    if not isinstance(data, Mapping):
        return None
    fields = set(data)
    if {"format", "instance", "claim"} <= fields:
        return f"is a certificate for {data['instance']!r}; `ddlopt check NAME --certificate FILE` checks it"
    if {"method", "status", "objective", "checked"} <= fields:
        return "is a result, as --json prints it; `ddlopt solve --out FILE` writes the solution"
    if wanted == "instance" and "name" not in fields and {"instance", "instance_digest"} <= fields:
        return f"is a solution of {data['instance']!r}; expected the instance"
    if wanted == "instance" and "family" not in fields and "model_type" in fields:
        return (
            "is the configuration of a transformer; `ddlopt convert FILE --from transformer-pipeline -o FILE` reads it"
        )
    if wanted == "solution" and "instance" not in fields and {"family", "name"} <= fields:
        return f"is the instance {data['name']!r}; expected a solution of it"
    return None


if TYPE_CHECKING:  # type checkers know by pydantic's own metaclass, and not by one derived from it, what a class takes
    from pydantic._internal._model_construction import ModelMetaclass

    InOneLine = ModelMetaclass
else:

    class InOneLine(type(BaseModel)):  # whose own has no public name
        """Makes ``Thing(field=…)`` raise our error in one line, as data from a file do, in place of pydantic's.

        Validation inside of a document does not come this way, so that pydantic still knows where in it a part is
        wrong.
        """

        def __call__(cls, *args: Any, **fields: Any) -> Any:
            """An object of the class, or our error."""
            try:
                return super().__call__(*args, **fields)
            except ValidationError as problem:
                whole = hasattr(cls, "from_data")  # parts of documents may have fields of these names
                error, kind = (cls.error, cls.kind) if whole else (InstanceError, cls.__name__)
                raise error(one_line(problem, kind, fields, "")) from None
