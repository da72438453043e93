"""The command ``import-plan``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ddlopt.cli.shared.arguments import Name, say, tell


def import_plan(
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="As `export-plan` writes it, in any format.")],
    source_format: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="Format of another tool: msccl (XML), te-ccl (JSON) for collectives, torch-schedule (CSV) for orders; "
            "megatron, torchtitan, deepspeed, galvatron for training steps.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the solution here.")] = None,
) -> None:
    """Read the solution back from a file of `export-plan`, and check it; or check a schedule of another tool."""
    import ddlopt
    from ddlopt.cli.shared.display import verdict
    from ddlopt.instances.readers.schedules import FORMATS as SCHEDULES
    from ddlopt.models.files import writable, write_whole

    if out:
        writable(out)
    instance = ddlopt.load(name)
    if source_format is not None and source_format in SCHEDULES:
        instance, solution = _judged(instance, file, source_format, out is not None)
    else:
        solution = ddlopt.import_plan(instance, file, source_format)
        say(verdict(instance, ddlopt.check(instance, solution)))
    if out:
        write_whole(out, solution.to_json() + "\n")


def _judged(instance: Any, file: Path, source_format: str, wanted: bool) -> tuple[Any, Any]:
    """A schedule of somebody else, with how far from the bound it is; and the instance that it is a plan for.

    Where it is no plan, that is said, and an error if one is ``wanted``.
    """
    import ddlopt
    from ddlopt.analysis.texts import gap_text, time_text
    from ddlopt.certificates.own import exact_bound_of
    from ddlopt.cli.shared.display import quantity, verdict
    from ddlopt.instances.readers.schedules import read_schedule
    from ddlopt.models.errors import SolutionError
    from ddlopt.models.problem import path_of

    schedule = read_schedule(file, source_format, instance)
    objective = None
    if schedule.plan is not None:
        found = ddlopt.check(schedule.instance, schedule.plan, exact=True)
        say(verdict(schedule.instance, found, exact=True))
        objective = found.objective
    elif wanted:
        raise SolutionError(schedule.why)
    else:
        tell(schedule.why)
    if schedule.instance is not instance:
        tell(f"some accelerators of '{instance.name}' only forward there; --out has the plan for the others")
    exact_bound = exact_bound_of(path_of(schedule.instance))
    bound = 0.0 if exact_bound is None else float(exact_bound(schedule.instance))
    named = "links_busy_s" if schedule.instance.family == "topology" else "step_s"
    times = dict(schedule.details) | ({} if objective is None else {named: float(objective)})
    say(f"no plan takes less than {time_text(bound)}")
    for name, value in times.items():
        say(f"{name}: {quantity(name, value)}, {gap_text(max(0.0, 1 - bound / float(value)))} from the bound")
    return schedule.instance, schedule.plan
