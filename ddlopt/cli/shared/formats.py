"""Help of the commands that take formats."""

import inspect
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from typer.core import TyperCommand

_UNITS = {
    "gigabytes_per_s": "10^9 bytes per second",
    "gigabit_per_s": "Gb/s",
    "bytes_per_s": "bytes per second",
    "memory_gigabytes": "10^9 bytes",
    "bytes": "bytes",
    "us": "microseconds",
    "ms": "milliseconds",
    "s": "seconds",
}
"""Of options, by how their names end; the longest ending counts."""


def told_line(name: str, default: Any, meaning: str) -> str:
    """An option, its default, what it means, and its unit."""
    shown = "" if default is None or default == () else f"={written(default)}"
    unit = next((unit for end, unit in _UNITS.items() if name == end or name.endswith(f"_{end}")), None)
    told = "" if unit is None or unit in meaning else f" (in {unit})"
    # On a command line nobody can write None: the option is left out.
    said = re.sub(r"(^|\. )None: ", r"\1By default ", meaning).replace("None: ", "by default ")
    return f"{name}{shown}: {said}{told}".rstrip(": ")


def value_after(words: Sequence[str], option: str) -> str | None:
    """What a command line gives for an option, as the next word or behind an equals sign."""
    joined = [part for word in words for part in word.split("=", 1)]
    return next((value for word, value in pairwise(joined) if word == option), None)


class AskedCommand(TyperCommand):
    """A command whose help ends with what was asked for; help comes before anything else is read."""

    asked: tuple[str, ...] = ()
    """Words of the command line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the words."""
        self.asked = tuple(args)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        from rich.markup import escape

        self.epilog = escape("\n\n".join(self.lines()))
        super().format_help(ctx, formatter)

    def lines(self) -> list[str]:
        """The paragraphs at the end of the help."""
        raise NotImplementedError


class FormatsCommand(AskedCommand):
    """A command whose help ends with formats and their options; what knows them is imported for the help only."""

    def lines(self) -> list[str]:
        """Of the format that is asked for, or of all."""
        return self.of_format() or ["Formats, and what --set takes for each:", *self.formats()]

    def of_format(self) -> list[str]:
        """Lines on the one format that is asked for; empty where there is none."""
        return []

    def formats(self) -> list[str]:
        """A line for each format."""
        raise NotImplementedError


def option_text(option: str, default: Any) -> str:
    """An option and its default."""
    if default is inspect.Parameter.empty:
        return f"{option} (needed)"
    return option if default is None else f"{option}={written(default)}"


def written(value: Any) -> str:
    """A value as the command line takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
