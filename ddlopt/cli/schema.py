"""The command ``schema``."""

from typing import Annotated

import typer

from ddlopt.cli.shared import completion
from ddlopt.cli.shared.arguments import Out, emit


def schema(
    family: Annotated[str, typer.Argument(metavar="FAMILY|PROBLEM", autocompletion=completion.problems)],
    solution: Annotated[bool, typer.Option("--solution", help="The schema of solutions.")] = False,
    out: Out = None,
) -> None:
    """Print the JSON schema of a family's or problem's instances or solutions, or of a `cluster-file`."""
    import ddlopt
    from ddlopt.analysis.tables import json_text

    emit(json_text(ddlopt.schema(family, solution=solution)), out)
