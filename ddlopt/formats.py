"""The command ``convert``: instances from files in formats that others defined."""

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ddlopt import completion
from ddlopt.arguments import Out, Settings, emit, options_of


class FormatsCommand(TyperCommand):
    """A command whose help ends with all formats and their options; the readers are imported for it only."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        self.epilog = "\n\n".join(["Formats, and what --set takes for each:", *_formats()])
        super().format_help(ctx, formatter)


def _formats() -> list[str]:
    from ddlopt.instances import readers

    lines = []
    for name in readers.FORMATS:
        options = readers.options_of(name).items()
        lines.append(f"{name}: {', '.join(_told(*option) for option in options) or 'no options'}")
    return lines


def _told(option: str, default: Any) -> str:
    if default is inspect.Parameter.empty:
        return f"{option} (needed)"
    return option if default is None else f"{option}={_written(default)}"


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    source_format: Annotated[
        str,
        typer.Option(
            "--from", metavar="FORMAT", help="The format of FILE; see below.", autocompletion=completion.formats
        ),
    ],
    virtual_cluster: Annotated[str | None, typer.Option(metavar="V", help="Only this part of a trace.")] = None,
    start: Annotated[str | None, typer.Option(metavar="WHEN", help="Where in a trace to begin.")] = None,
    hours: Annotated[float | None, typer.Option(metavar="H", help="How much of a trace to take.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="K", help="Seed of what the file leaves open.")] = None,
    settings: Settings = None,
    out: Out = None,
) -> None:
    """Convert a file in somebody else's format into an instance; which options there are depends on the format."""
    import ddlopt

    given = {"virtual_cluster": virtual_cluster, "start": start, "hours": hours, "seed": seed}
    emit(ddlopt.convert(file, source_format, **options_of(settings, **given)).to_json(), out)
