"""YAML of somebody else, in which every scalar is text: ``01`` and ``no`` are names as well."""

from pathlib import Path
from typing import Any

import yaml

from ddlopt.instances.readers.text_files import text_of
from ddlopt.models.errors import InstanceError


class _Plain(yaml.BaseLoader):  # type: ignore[misc]
    """No aliases, which grow without limit, and no key twice, of which one would be lost."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "aliases are not read", self.peek_event().start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [key.value for key, _ in node.value if isinstance(key.value, str)]
        double = next((key for place, key in enumerate(keys) if key in keys[:place]), None)
        if double is not None:
            raise yaml.constructor.ConstructorError(None, None, f"'{double}' is there twice", node.start_mark)
        return super().construct_mapping(node, deep)


def documents_of(path: Path) -> list[Any]:
    """The documents of a file, empty ones left out.

    Raises
    ------
    InstanceError
        If the file cannot be read or is no YAML.
    """
    text = text_of(path)
    try:
        return [each for each in yaml.load_all(text, _Plain) if each not in (None, "")]
    except RecursionError:
        raise InstanceError(f"{path}: is nested too deeply") from None
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        line = "" if mark is None else f"line {mark.line + 1}: "
        told = getattr(problem, "problem", None) or str(problem).partition("\n")[0]
        raise InstanceError(f"{path}: {line}no YAML that is read here: {told}") from None
