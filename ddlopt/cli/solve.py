"""The command ``solve``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ddlopt.cli.shared import completion
from ddlopt.cli.shared.arguments import NO_ANSWER, Gap, Json, Memory, Name, Seed, Solver, Threads, TimeLimit, say, tell
from ddlopt.models.reading import is_file


def solve(
    name: Name,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="M",
            help="See `ddlopt list --methods`; by default the best exact one.",
            autocompletion=completion.methods,
        ),
    ] = None,
    solver: Solver = None,
    time_limit: TimeLimit = None,
    gap: Gap = 1e-4,
    threads: Threads = 1,
    seed: Seed = 0,
    memory: Memory = None,
    accept_error: Annotated[
        float | None,
        typer.Option(
            metavar="E", help="Largest error of a compression plan whose instance has no budget; 0.1 if not given."
        ),
    ] = None,
    start: Annotated[Path | None, typer.Option(metavar="FILE", help="A solution to begin from.")] = None,
    start_from: Annotated[
        str | None,
        typer.Option(
            metavar="M",
            help="A method whose solution to begin from, e.g. a heuristic.",
            autocompletion=completion.methods,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the solution here.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the solution (.png, .svg, .pdf).")] = None,
    explain: Annotated[
        bool | None,
        typer.Option(
            "--explain/--no-explain",
            help="Say what limits the step and what the solution changes; by default for files only.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Solve one instance: a solution that is checked, and a bound."""
    import ddlopt
    from ddlopt.analysis import tables
    from ddlopt.api import answered
    from ddlopt.cli.shared.best_known import best_known_line
    from ddlopt.cli.shared.display import LiveLine, exact_figures, out_console, quantity
    from ddlopt.models import files
    from ddlopt.solvers.contracts import Limits, ProgressCallback
    from ddlopt.solvers.standard_output import kept_clear
    from ddlopt.solvers.wrappers.guarded import machine_gigabytes

    if out:
        files.writable(out)
    if plot:
        from ddlopt.analysis import plots

        plots.picture_path(plot)
    instance = ddlopt.load(name)
    chosen: list[str] = []
    with LiveLine([instance], time_limit=time_limit) as line, kept_clear():

        def watched(name: str) -> ProgressCallback:
            chosen.append(name)
            return line.watch(instance.name, name)

        result = answered(
            instance, method, solver=solver, limits=Limits(time_limit, gap, threads), seed=seed, start=start,
            start_from=start_from, memory=machine_gigabytes() if memory is None else memory, accept_error=accept_error,
            watched=watched,
        )  # fmt: skip
    if method is None:
        tell(f"method: {chosen[0]} (the family's choice for this size; --method takes another)")
    exactly = exact_figures(instance, result)
    if as_json:
        told = {"exact": {key: str(value) for key, value in exactly.items()}} if exactly else {}
        print(tables.json_text(result.to_data() | told))
    else:
        out_console().print(tables.table([result], [instance]))
        for key, value in (dict(result.details) | exactly).items():
            unit = f"_{instance.objective_unit}" if key in ("claimed_bound", "claimed_scope_bound") else ""
            say(f"{key}: {quantity(key + unit, value)}")
        if result.message:
            tell(result.message)
        known = best_known_line(name)
        if known:
            say(known)
        if explain or (explain is None and is_file(name)):
            _explain_step(instance, result)
    if out and result.solution is not None:
        files.write_whole(out, result.solution.to_json() + "\n")
    if (out or plot) and result.solution is None:
        tell("there is no solution to write")
    if plot and result.solution is not None:
        plots.save(plots.solutions([result], [instance]), plot)
    raise typer.Exit(0 if result.status.solved else NO_ANSWER)


def _explain_step(instance: Any, result: Any) -> None:
    """What limits the step of a job, on standard error."""
    from ddlopt.analysis.step_limits import explained

    if result.solution is not None and result.checked:
        for line in explained(instance, result.solution):
            tell(line)
