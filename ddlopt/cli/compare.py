"""The command ``compare``."""

from pathlib import Path
from typing import Annotated

import typer

from ddlopt.cli.shared import completion
from ddlopt.cli.shared.arguments import INTERRUPTED, NO_ANSWER, Gap, Json, Memory, Seed, Threads, TimeLimit, tell, words


def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME|FILE…",
            help="Bundled instances or .json files; - is standard input.",
            autocompletion=completion.instances,
        ),
    ],
    methods: Annotated[
        str,
        typer.Option(
            metavar="A,B,…",
            help="Methods; auto: the family's choice for the size; all-heuristics, all-exact: those that cover it.",
            autocompletion=completion.methods,
        ),
    ],
    solvers: Annotated[
        str | None,
        typer.Option("--solvers", "--solver", metavar="S,S,…", help="Solvers behind formulations, side by side."),
    ] = None,
    time_limit: TimeLimit = None,
    gap: Gap = 1e-4,
    threads: Threads = 1,
    seed: Seed = 0,
    memory: Memory = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the comparison (.png, .svg, .pdf).")] = None,
) -> None:
    """Solve several instances with several methods; limits are for each solve."""
    import ddlopt
    from ddlopt.analysis import tables
    from ddlopt.analysis.compare import refuted
    from ddlopt.cli.shared.display import LiveLine, out_console
    from ddlopt.solvers.standard_output import kept_clear
    from ddlopt.solvers.wrappers.guarded import machine_gigabytes

    if as_json and as_csv:
        raise typer.BadParameter("--json and --csv cannot both be printed")
    if plot:
        from ddlopt.analysis import plots

        plots.picture_path(plot)
    instances = [ddlopt.load(name) for name in names]
    wanted = words(methods)
    results: list[ddlopt.Result] = []
    interrupted = False
    try:
        with LiveLine(instances, time_limit=time_limit) as line, kept_clear():
            ddlopt.compare(
                instances, wanted, solver=words(solvers) if solvers else None, time_limit=time_limit, gap=gap,
                threads=threads, seed=seed, memory=machine_gigabytes() if memory is None else memory,
                progress=line, on_result=results.append,
            )  # fmt: skip
    except KeyboardInterrupt:  # what was found until then is still worth printing
        interrupted = True
    results = refuted(results)
    if as_json:
        print(tables.json_text({"results": [result.to_data() for result in results]}))
    elif as_csv:
        print(tables.csv_text(results, instances), end="")
    else:
        out_console().print(tables.table(results, instances))
    for note in tables.notes(results):
        tell(note)
    if plot and any(result.objective is not None for result in results):
        plots.save(plots.comparison(results), plot)
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(0 if all(result.status.solved for result in results) else NO_ANSWER)
