"""Plans from Python: ``export_plan`` and ``import_plan``, as the commands of these names do them."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ddlopt.api import answer, check, load, solve
from ddlopt.instances import writers
from ddlopt.instances.readers.schedules import read_schedule
from ddlopt.models.catalogue import problem_of
from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.errors import SolutionError
from ddlopt.models.files import writable, write_whole


def export_plan(
    instance: Instance | str | Path,
    solution: Solution | str | Path,
    target_format: str,
    *,
    out: str | Path | None = None,
    **options: Any,
) -> str:
    """A solution as a file for those who run it.

    Parameters
    ----------
    instance : Instance, str or Path
        See :func:`load`.
    solution : Solution, str or Path
        Feasible for the instance, or its file.
    target_format : str
        ``table``: what a person reads, of any problem. ``torch-ddp``: a Python file with a communication hook for
        PyTorch's DistributedDataParallel (compression). ``routes``: rings, patches and a script of static routes
        (topology, codesign). ``msccl``: an algorithm of MSCCL as XML (collectives). ``slurm``, ``kueue``: a job for
        every run (scheduling). ``megatron``, ``torchtitan``, ``deepspeed``: what the framework takes (training steps).
    out : str or Path, optional
        Write the text here.
    **options
        What the format takes (``ddlopt.instances.writers.options_of``).

    Returns
    -------
    str
        The text of the file, which :func:`import_plan` reads back.

    Raises
    ------
    UnknownNameError
        If there is no such format.
    OptionError
        If the format is of other problems, an option is unknown or out of its range, or nothing can be written there.
    InstanceError, SolutionError
        If either cannot be read, or the solution is of another instance or infeasible. Nothing is written then.
    """
    if out is not None:
        writable(out)
    problem = load(instance)
    text = writers.export_plan(problem, answer(problem, solution), target_format, **options)
    if out is not None:
        write_whole(out, text)
    return text


def import_plan(instance: Instance | str | Path, file: str | Path, source_format: str | None = None) -> Solution:
    """The solution that a file of :func:`export_plan` was written from, unchanged; or what somebody else's file says.

    Parameters
    ----------
    instance : Instance, str or Path
        See :func:`load`.
    file : str or Path
        In any of the formats.
    source_format : str, optional
        That of a schedule that others have made (:func:`ddlopt.instances.readers.schedules.read_schedule`), or of a
        framework: ``megatron``, ``torchtitan`` or ``deepspeed``.

    Raises
    ------
    InstanceError, SolutionError
        If either cannot be read, the plan is for another instance, or the file was edited so that it says something
        else than the solution that it carries.
    """
    problem = load(instance)
    if source_format is None:
        return writers.import_plan(problem, file)
    if source_format in writers.OTHERS:
        return writers.read_plan(problem, file, source_format)
    schedule = read_schedule(file, source_format, problem)
    assert isinstance(problem, type(schedule.instance))  # others were refused
    if schedule.instance.digest != problem.digest:
        raise SolutionError(
            f"{file}: it is a plan for {schedule.instance.size} of the {problem.size} accelerators of "
            f"'{problem.name}'; ddlopt.instances.readers.schedules.read_schedule has that instance, too"
        )
    return schedule.plan


def findings(instance: Instance, solution: Solution, time_limit: float) -> list[str]:
    """What a person asks of a plan of their own: what limits it, how far it is from the best, what would make it fit.

    Parameters
    ----------
    instance : Instance
    solution : Solution
    time_limit : float
        Seconds for the best plan.
    """
    result = solve(instance, time_limit=time_limit)
    evaluation = check(instance, solution)
    found = advice(instance, solution)
    if result.bound is not None:
        found.append(f"no plan takes less than {result.bound:.6g} {instance.objective_unit}")
    if evaluation.feasible and evaluation.objective is not None and result.bound:
        gap = float(evaluation.objective) / result.bound - 1
        found.append(f"this one is {max(0.0, gap):.2%} above that")
    if result.solution is not None and result.objective is not None:
        found.append(
            f"the best that was found takes {result.objective:.6g} {instance.objective_unit} ({result.method})"
        )
    elif result.message:
        found.append(result.message)
    return found


def advice(instance: Instance, solution: Solution) -> list[str]:
    """What a problem has to say to a plan, by ``advice`` of its room in the solvers; nothing where it has none."""
    place = f"ddlopt.solvers.{problem_of(instance).path.replace('/', '.')}.advice"
    found: list[str] = import_module(place).advice(instance, solution) if find_spec(place) else []
    return found
