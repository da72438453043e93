"""Help of the commands that take formats."""

import inspect
from typing import Any

from typer.core import TyperCommand


class FormatsCommand(TyperCommand):
    """A command whose help ends with formats and their options; what knows them is imported for the help only."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        self.epilog = "\n\n".join(["Formats, and what --set takes for each:", *self.formats()])
        super().format_help(ctx, formatter)

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
