"""The command line: a thin shell over :func:`ddlopt.load`, ``solve``, ``compare`` and ``check``.

Exit codes: 0 answered, 1 no answer, 2 bad input; what went wrong is one line on standard error.
"""

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ddlopt import completion, exchange, experiments, formats, library, proving, running, submitting, sweeps
from ddlopt.arguments import (
    INTERRUPTED,
    NO_ANSWER,
    ClusterFile,
    Gap,
    Json,
    Memory,
    Name,
    Out,
    Proof,
    ProofTimeLimit,
    Seed,
    Settings,
    Solver,
    Threads,
    TimeLimit,
    Vipr,
    emit,
    options_of,
    say,
    tell,
    words,
)

app = typer.Typer(
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Mathematical-optimization models for distributed deep learning: optima, heuristics, certified gaps.",
)


def _version(wanted: bool) -> None:
    if wanted:
        import ddlopt

        print(f"ddlopt {ddlopt.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    max_file_mb: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Read files of up to N megabytes, unpacked, in place of 64.")
    ] = None,
) -> None:
    if max_file_mb is not None:
        from ddlopt.models.reading import reading_up_to

        context.with_resource(reading_up_to(max_file_mb * 2**20))


app.command("list")(library.list_)
app.command()(library.show)


@app.command()
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
        typer.Option(metavar="E", help="Error up to which a compression plan without a budget is an answer; else 0.1."),
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
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the solution here.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the solution (.png, .svg, .pdf).")] = None,
    explain: Annotated[
        bool | None,
        typer.Option(
            "--explain/--no-explain", help="Tell what limits the step and what the solution changes; files: yes."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer one instance, with a bound and a check."""
    import ddlopt
    from ddlopt.analysis import tables
    from ddlopt.api import answered
    from ddlopt.display import LiveLine, exact_figures, out_console, quantity
    from ddlopt.library import best_known_line
    from ddlopt.models import files
    from ddlopt.solvers.contracts import Limits, ProgressCallback
    from ddlopt.solvers.standard_output import kept_clear
    from ddlopt.solvers.wrappers.guarded import machine_gigabytes

    if out:
        files.writable(out)
    if plot:
        _picture(plot)
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
            say(f"{key}: {quantity(key, value)}")
        if result.message:
            tell(result.message)
        known = best_known_line(name)
        if known:
            say(known)
        if explain or (explain is None and Path(name).is_file()):
            _explain_step(instance, result)
    if out and result.solution is not None:
        files.write_whole(out, result.solution.to_json() + "\n")
    if (out or plot) and result.solution is None:
        tell("there is no solution to write")
    if plot and result.solution is not None:
        _draw_solutions([result], [instance], plot)
    raise typer.Exit(0 if result.status.solved else NO_ANSWER)


@app.command()
def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME|FILE…", help="Bundled instances or .json files.", autocompletion=completion.instances
        ),
    ],
    methods: Annotated[
        str,
        typer.Option(
            metavar="A,B,…",
            help="Methods; `auto` is the family's choice for the size.",
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
    """Answer several instances with several methods; limits hold for each pair."""
    import ddlopt
    from ddlopt.analysis import tables
    from ddlopt.analysis.compare import refuted
    from ddlopt.display import LiveLine, out_console
    from ddlopt.solvers.standard_output import kept_clear
    from ddlopt.solvers.wrappers.guarded import machine_gigabytes

    if as_json and as_csv:
        raise typer.BadParameter("--json and --csv cannot both be printed")
    if plot:
        _picture(plot)
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
        from ddlopt.analysis import plots

        plots.save(plots.comparison(results), plot)
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(0 if all(result.status.solved for result in results) else NO_ANSWER)


_FINDINGS_S = 30.0
"""For the best plan beside somebody's; most instances are proven much sooner."""


@app.command()
def check(
    name: Name,
    solution: Annotated[
        Path | None, typer.Argument(metavar="SOLUTION", help="A .json file, as `solve --out` writes it.")
    ] = None,
    certificate: Proof = None,
    time_limit: ProofTimeLimit = None,
    vipr: Vipr = None,
    exact: Annotated[bool, typer.Option(help="Calculate in rational numbers; a proof always is.")] = False,
    source_format: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="SOLUTION is anybody's file for a framework: megatron, torchtitan or deepspeed.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a solution: its objective, and every constraint that it violates; or check the proof of a bound.

    Also what `submit` has made, alone or as SOLUTION.
    """
    import ddlopt

    if certificate is None and source_format is None and submitting.print_judged(name, solution, as_json):
        return
    if solution is None and certificate is None:
        raise typer.BadParameter("give a solution, or a proof with --certificate")
    if certificate is None and (time_limit is not None or vipr is not None):
        raise typer.BadParameter("--time-limit is for --certificate, and so is --vipr; a solution is no proof")
    instance = ddlopt.load(name)
    if certificate is not None:
        proving.print_checked(instance, certificate, solution, time_limit, vipr, as_json)
        return
    assert solution is not None
    from ddlopt.analysis.tables import json_text
    from ddlopt.display import quantity, verdict

    answer: Any = solution if source_format is None else ddlopt.import_plan(instance, solution, source_format)
    evaluation = ddlopt.check(instance, answer, exact=exact)
    objective = None if evaluation.objective is None else float(evaluation.objective)
    if as_json:
        data = {
            "instance": instance.name,
            "instance_digest": instance.digest,
            "family": instance.family,
            "feasible": evaluation.feasible,
            "objective": objective,
            "violations": [
                {"kind": v.kind, "where": v.where, "lhs": float(v.lhs), "rhs": float(v.rhs)}
                for v in evaluation.violations
            ],
            "details": {key: float(value) for key, value in evaluation.details.items()},
        }
        print(json_text(data | ({"exact_objective": str(evaluation.objective)} if exact else {})))
    else:
        say(verdict(instance, evaluation, exact))
        for key, value in evaluation.details.items():
            say(f"{key}: {quantity(key, value if exact else float(value))}")
        if source_format is not None:
            from ddlopt.plans import findings

            for line in findings(instance, answer, _FINDINGS_S):
                say(line)
    raise typer.Exit(0 if evaluation.feasible else NO_ANSWER)


@app.command(cls=formats.KindsCommand)
def generate(
    family: Annotated[str, typer.Argument(metavar="FAMILY", autocompletion=completion.families)],
    kind: Annotated[str, typer.Option(metavar="K", help="all-to-all, random, dlrm, …; with --help its options.")],
    servers: Annotated[int | None, typer.Option(metavar="N", help="Servers.")] = None,
    degree: Annotated[int | None, typer.Option(metavar="D", help="Interfaces of each server.")] = None,
    jobs: Annotated[int | None, typer.Option(metavar="J", help="Jobs.")] = None,
    slots: Annotated[int | None, typer.Option(metavar="T", help="Slots of time.")] = None,
    seed: Seed = 0,
    cluster: ClusterFile = None,
    settings: Settings = None,
    out: Out = None,
) -> None:
    """Generate an instance from a seed; which sizes are needed depends on the family."""
    import ddlopt

    sizes = {"servers": servers, "degree": degree, "jobs": jobs, "slots": slots, "cluster": cluster}
    emit(ddlopt.generate(family, kind, **options_of(settings, seed=seed, **sizes)).to_json(), out)


app.command(cls=formats.FormatsCommand)(formats.convert)
app.command()(formats.profile_script)


app.command()(library.schema)
app.command()(sweeps.bench)
app.command()(sweeps.results)
app.command()(sweeps.warm_up)
app.command()(sweeps.report)
app.command("certify")(proving.command)
app.command()(exchange.export)
app.command()(exchange.import_solution)
app.command(cls=formats.PlanFormatsCommand)(exchange.export_plan)
app.command()(exchange.import_plan)
app.command()(submitting.submit)
app.command("simulate")(running.command)
app.add_typer(experiments.app, name="experiment")


def _explain_step(instance: Any, result: Any) -> None:
    """What limits the step of a job, on standard error."""
    from ddlopt.analysis.step_limits import explained

    if result.solution is not None and result.checked:
        for line in explained(instance, result.solution):
            tell(line)


def _picture(path: Path) -> None:
    from ddlopt.analysis.plots import picture_path

    picture_path(path)


def _draw_solutions(results: Sequence[Any], instances: Sequence[Any], path: Path) -> None:
    from ddlopt.analysis import plots

    plots.save(plots.solutions(results, instances), path)


def run(arguments: Sequence[str]) -> int:
    """Run a command line; its exit code. Whatever goes wrong is one line on standard error."""
    with warnings.catch_warnings():
        warnings.showwarning = functools.partial(_warned, warnings.showwarning)
        return _run(arguments)


def _warned(otherwise: Callable[..., None], message: Warning | str, category: type[Warning], *place: Any) -> None:
    """What will change, in one line; any other warning as it is."""
    if category is FutureWarning:
        tell(f"ddlopt: {message}")
    else:
        otherwise(message, category, *place)


def _run(arguments: Sequence[str]) -> int:
    try:
        try:
            code = int(app(list(arguments) or ["--help"], prog_name="ddlopt", standalone_mode=False) or 0)
        except typer.Exit as leave:
            code = leave.exit_code
        sys.stdout.flush()  # a full disk is told here, not by Python on its way out
        return _told(code)
    except (KeyboardInterrupt, typer.Abort):
        return _told(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would complain once more on its way out
        return NO_ANSWER
    except Exception as problem:
        if "DDLOPT_TRACEBACK" in os.environ:
            raise
        from ddlopt.failures import explain

        message, code = explain(problem)
        tell("ddlopt: " + " ".join(message.split()))
        return code


def _told(code: int) -> int:
    """The exit code; Typer turns Ctrl-C into a bare one."""
    if code == INTERRUPTED:
        tell("ddlopt: interrupted")
    return code


def main() -> None:
    """Entry point of the ``ddlopt`` command."""
    from ddlopt.solvers.machine import hold_memory

    hold_memory()  # sizes that nobody foresaw end in one line, where the system would kill
    code = run(sys.argv[1:])
    with contextlib.suppress(OSError, AttributeError):  # what exit handlers of others print is no part of an answer
        sys.stdout.flush()
        os.dup2(2, 1)
    sys.exit(code)
