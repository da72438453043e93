"""The command ``export-plan``: solutions for those who run them."""

from pathlib import Path
from typing import Annotated

import typer

from ddlopt.cli.shared import completion
from ddlopt.cli.shared.arguments import Name, Out, Settings, options_of, say
from ddlopt.cli.shared.formats import FormatsCommand, option_text


class PlanFormatsCommand(FormatsCommand):
    """With the formats of plans."""

    def formats(self) -> list[str]:
        """A line for each format."""
        from ddlopt.instances import writers

        lines = []
        for name, summary in writers.summaries().items():
            options = writers.options_of(name).items()
            lines.append(f"{name}: {summary} ({', '.join(option_text(*option) for option in options) or 'no options'})")
        return lines


def export_plan(
    name: Name,
    solution: Annotated[Path, typer.Argument(metavar="SOLUTION", help="A .json file, as `solve --out` writes it.")],
    to: Annotated[
        str, typer.Option(metavar="FORMAT", help="One of those below.", autocompletion=completion.plan_formats)
    ],
    settings: Settings = None,
    out: Out = None,
) -> None:
    """Write a solution for those who run it: as tables, a hook for PyTorch, routes, or jobs of a queue."""
    import ddlopt

    given = options_of(settings)
    for own in ("out", "target_format", "instance", "solution"):
        if own in given:
            raise typer.BadParameter(f"--set {own}: it is given elsewhere on the command line")
    to_screen = out is None or str(out) == "-"
    text = ddlopt.export_plan(name, solution, to, out=None if to_screen else out, **given)
    if to_screen:
        say(text.rstrip("\n"))
