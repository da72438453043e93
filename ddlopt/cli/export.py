"""The command ``export``: a model for other solvers."""

from pathlib import Path
from typing import Annotated

import typer

from ddlopt.cli.shared.arguments import FormulationName, Name, Seed, say, words

_READ_STARTS = "highs,scip,cbc,gurobi"


def export(
    name: Name,
    formulation: FormulationName,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="File for the model; a table of names is written beside it."),
    ],
    to: Annotated[str | None, typer.Option(metavar="KIND", help="mps, lp, nl or json; else FILE's ending.")] = None,
    start_from: Annotated[
        str | None, typer.Option(metavar="M", help="Write the solution of this method as a start beside the model.")
    ] = None,
    start_for: Annotated[
        str | None,
        typer.Option(metavar="S,S,…", help=f"Solvers that will read the start; by default {_READ_STARTS}."),
    ] = None,
    time_limit: Annotated[float | None, typer.Option(metavar="S", help="Seconds for the method of the start.")] = None,
    seed: Seed = 0,
) -> None:
    """Write a formulation of an instance as a file that other solvers read, and a start for them."""
    import ddlopt
    from ddlopt.models.errors import NoSolutionError
    from ddlopt.solvers.backends.files import write_model
    from ddlopt.solvers.backends.start_files import must_read_starts, write_start
    from ddlopt.solvers.catalogue import formulation_named
    from ddlopt.solvers.standard_output import kept_clear

    of_start = {"--start-for": start_for is not None, "--time-limit": time_limit is not None, "--seed": seed != 0}
    given = [option for option, there in of_start.items() if there]
    if start_from is None and given:
        raise typer.BadParameter(f"{given[0]} is for the start that --start-from METHOD makes; give both or neither")
    instance, solvers = ddlopt.load(name), words(_READ_STARTS if start_for is None else start_for)
    chosen = formulation_named(formulation, instance)
    if start_from is not None:
        must_read_starts(solvers)
    for path in write_model(chosen, instance, out, to):  # type: ignore[arg-type]
        say(path)
    if start_from is None:
        return
    with kept_clear():
        found = ddlopt.solve(instance, start_from, time_limit=time_limit, seed=seed)
    if found.solution is None:
        raise NoSolutionError(f"{start_from} on '{instance.name}' has no solution to start from: {found.message}")
    for path in write_start(chosen, instance, found.solution, out, to, solvers):  # type: ignore[arg-type]
        say(path)
