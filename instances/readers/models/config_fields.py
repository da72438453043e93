"""Fields of a configuration, each refused in a line where it is not what it has to be."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ddlopt.models.errors import InstanceError

LARGEST = 10**9
"""Of any size."""
# As many as no model comes near: a slip of the pen must not fill the memory.
_MOST = {"layers": 10_000, "experts": 4096}


class Fields:
    """The fields of a configuration of one kind."""

    def __init__(self, path: str | Path, data: Mapping[str, Any], name: str) -> None:
        self.path, self.data, self.name = path, data, name
        self.assumed: list[str] = []

    def number(self, name: str, otherwise: int | None = None) -> int:
        """A field that is a positive whole number; ``otherwise``: if it is left out or null."""
        value = self.data.get(name)
        if value is None and otherwise is not None:
            return otherwise
        if value is None:
            raise InstanceError(f"{self.path}: {name} is missing, which a {self.name} needs")
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST:
            raise InstanceError(f"{self.path}: {name} is {value!r}; it must be a whole number in 1..{LARGEST}")
        return value

    def flag(self, name: str, otherwise: bool) -> bool:
        """A field that is true or false."""
        value = self.data.get(name, otherwise)
        if not isinstance(value, bool):
            raise InstanceError(f"{self.path}: {name} is {value!r}; it must be true or false")
        return value

    def first(self, *names: str) -> str:
        """The first of several names that the configuration has; the first of all if it has none."""
        return next((name for name in names if self.data.get(name) is not None), names[0])

    def refuse_many(self, what: str, name: str, count: int) -> None:
        """Refuse more layers or experts than any model has."""
        if count > _MOST[what]:
            raise InstanceError(f"{self.path}: {name} is {count}; at most {_MOST[what]} are read")

    def refuse_unread(self, parts: Mapping[str, Any]) -> None:
        """Refuse fields that tell of a part that is not read, unless they have the value at which there is none."""
        for name, none in parts.items():
            if (value := self.data.get(name, none)) not in (none, None):
                raise InstanceError(f"{self.path}: {name} is {value!r}; a {self.name} is read where it is {none!r}")

    def kinds(self, name: str, layers: int, known: Mapping[str, str]) -> tuple[str, ...]:
        """A kind for each layer, from a list or from a word with a letter for each."""
        listed = self.data.get(name)
        if not isinstance(listed, list | str) or len(listed) != layers:
            raise InstanceError(
                f"{self.path}: {name} is {listed!r:.60}; it must have a kind for each of {layers} layers"
            )
        for place, kind in enumerate(listed):
            if not isinstance(kind, str) or kind not in known:
                raise InstanceError(f"{self.path}: {name}[{place}] is {kind!r}; what is read: {', '.join(known)}")
        return tuple(known[kind] for kind in listed)
