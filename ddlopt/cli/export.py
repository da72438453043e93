"""Commands that take models and plans elsewhere, and bring answers back: ``export``, ``export-plan`` and others."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ddlopt import completion
from ddlopt.arguments import NO_ANSWER, FormulationName, Name, Out, Seed, Settings, options_of, say, tell, words

_READ_STARTS = "highs,scip,cbc,gurobi"


def export(
    name: Name,
    formulation: FormulationName,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The model; names go beside it.")],
    to: Annotated[str | None, typer.Option(metavar="KIND", help="mps, lp, nl or json; else FILE's ending.")] = None,
    start_from: Annotated[
        str | None, typer.Option(metavar="M", help="Write the solution of this method as a start beside the model.")
    ] = None,
    start_for: Annotated[
        str | None,
        typer.Option(metavar="S,S,…", help=f"Solvers that are to read the start; by default {_READ_STARTS}."),
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


def import_solution(
    name: Name,
    formulation: FormulationName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="As HiGHS, CBC, SCIP, GLPK or Gurobi write solutions.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the solution here.")] = None,
) -> None:
    """Read another solver's solution of an exported model, and check it."""
    import ddlopt
    from ddlopt.display import verdict
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


def import_plan(
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="As `export-plan` writes it, in any format.")],
    source_format: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="Somebody else's: msccl (XML), te-ccl (JSON) for collectives, torch-schedule (CSV) for micro-batches.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the solution here.")] = None,
) -> None:
    """Read the solution back from a file of `export-plan`, and check it; or judge a schedule that others have made."""
    import ddlopt
    from ddlopt.display import verdict
    from ddlopt.models.files import writable, write_whole

    if out:
        writable(out)
    instance = ddlopt.load(name)
    if source_format is not None:
        instance, solution = _judged(instance, file, source_format)
    else:
        solution = ddlopt.import_plan(instance, file)
        say(verdict(instance, ddlopt.check(instance, solution)))
    if out:
        write_whole(out, solution.to_json() + "\n")


def _judged(instance: Any, file: Path, source_format: str) -> tuple[Any, Any]:
    """A schedule of somebody else, with how far from the bound it is; and the instance that it is a plan for."""
    import ddlopt
    from ddlopt.analysis.texts import gap_text, time_text
    from ddlopt.display import quantity, verdict
    from ddlopt.instances.readers.schedules import read_schedule
    from ddlopt.models.catalogue import problem_of

    schedule = read_schedule(file, source_format, instance)
    found = ddlopt.check(schedule.instance, schedule.plan, exact=True)
    say(verdict(schedule.instance, found, exact=True))
    if schedule.instance is not instance:
        tell(f"some accelerators of '{instance.name}' only forward there; --out has the plan for the others")
    exact_bound = problem_of(schedule.instance).exact_bound
    bound = 0.0 if exact_bound is None else float(exact_bound(schedule.instance))
    named = "links_busy_s" if schedule.instance.family == "topology" else "step_s"
    times = dict(schedule.details) | ({} if found.objective is None else {named: float(found.objective)})
    say(f"no plan takes less than {time_text(bound)}")
    for name, value in times.items():
        say(f"{name}: {quantity(name, value)}, {gap_text(max(0.0, 1 - bound / float(value)))} from the bound")
    return schedule.instance, schedule.plan
