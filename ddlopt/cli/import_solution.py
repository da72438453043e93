"""The command ``import-solution``: what another solver found for an exported model."""

from pathlib import Path
from typing import Annotated

import typer

from ddlopt.cli.shared.arguments import NO_ANSWER, FormulationName, Name, say


def import_solution(
    name: Name,
    formulation: FormulationName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="As HiGHS, CBC, SCIP, GLPK or Gurobi write solutions.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the solution here.")] = None,
) -> None:
    """Read another solver's solution of an exported model, and check it."""
    import ddlopt
    from ddlopt.cli.shared.display import verdict
    from ddlopt.models.files import writable, write_whole
    from ddlopt.solvers.backends.files import read_solution
    from ddlopt.solvers.catalogue import formulation_named

    if out:
        writable(out)
    instance = ddlopt.load(name)
    solution = read_solution(formulation_named(formulation, instance), instance, file)
    evaluation = ddlopt.check(instance, solution)
    say(verdict(instance, evaluation))
    if out:
        write_whole(out, solution.to_json() + "\n")
    raise typer.Exit(0 if evaluation.feasible else NO_ANSWER)
