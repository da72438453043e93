"""The command line: a thin shell over :func:`ddlopt.load`, ``solve``, ``compare`` and ``check``.

Exit codes: 0 answered, 1 no answer, 2 bad input; what went wrong is one line on standard error.
"""

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from ddlopt.cli import (
    bench,
    certify,
    check,
    compare,
    convert,
    experiment,
    export,
    export_plan,
    generate,
    import_plan,
    import_solution,
    profile_script,
    report,
    results,
    schema,
    show,
    simulate,
    solve,
    submit,
    warm_up,
)
from ddlopt.cli import (
    list as listing,
)
from ddlopt.cli.shared.arguments import INTERRUPTED, NO_ANSWER, tell

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
    from ddlopt.models.reading import keeping_pipes, reading_up_to

    context.with_resource(keeping_pipes())
    if max_file_mb is not None:
        context.with_resource(reading_up_to(max_file_mb * 2**20))


app.command("list")(listing.list_instances)
app.command()(show.show)
app.command()(solve.solve)
app.command()(compare.compare)
app.command()(check.check)
app.command(cls=generate.KindsCommand)(generate.generate)
app.command(cls=convert.ReadFormatsCommand)(convert.convert)
app.command()(profile_script.profile_script)
app.command()(schema.schema)
app.command()(bench.bench)
app.command()(results.results)
app.command()(warm_up.warm_up)
app.command()(report.report)
app.command()(certify.certify)
app.command()(export.export)
app.command()(import_solution.import_solution)
app.command(cls=export_plan.PlanFormatsCommand)(export_plan.export_plan)
app.command()(import_plan.import_plan)
app.command()(submit.submit)
app.command()(simulate.simulate)
app.add_typer(experiment.app, name="experiment")


@functools.cache
def _command() -> Any:
    """What Typer makes of the functions above: once in a process, as it looks at every argument of every command."""
    return typer.main.get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Run a command line; its exit code. Whatever goes wrong is one line on standard error."""
    try:
        try:
            code = int(_command()([*arguments] or ["--help"], prog_name="ddlopt", standalone_mode=False) or 0)
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
        from ddlopt.cli.shared.failures import explain

        message, code = explain(problem)
        tell("ddlopt: " + " ".join(message.split()))
        return code


def _told(code: int) -> int:
    """The exit code; Typer turns Ctrl-C into a bare one."""
    if code == INTERRUPTED:
        tell("ddlopt: interrupted")
    return code


def _told_once() -> Callable[..., None]:
    """What shows a warning: as one line, each once, without the line of the code that gave it."""
    told: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        line = " ".join(str(message).split())
        if line not in told:
            told.add(line)
            tell(f"ddlopt: {line}")

    return show


def main() -> None:
    """Entry point of the ``ddlopt`` command."""
    from ddlopt.solvers.machine import hold_memory

    warnings.showwarning = _told_once()
    hold_memory()  # sizes that nobody foresaw end in one line, where the system would kill
    code = run(sys.argv[1:])
    with contextlib.suppress(OSError, AttributeError):  # what exit handlers of others print is no part of an answer
        sys.stdout.flush()
        os.dup2(2, 1)
    sys.exit(code)
