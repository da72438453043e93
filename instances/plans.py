"""Plans for those who run them: :func:`export_plan`, and back: :func:`import_plan`."""

from pathlib import Path
from typing import Any

from ddlopt.instances import load, writers
from ddlopt.instances.readers.schedules import FORMATS as SCHEDULES
from ddlopt.instances.readers.schedules import read_schedule
from ddlopt.models.catalogue import solution_of
from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.errors import SolutionError, UnknownNameError
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
        See :func:`ddlopt.api.load`.
    solution : Solution, str or Path
        Feasible for the instance, or its file.
    target_format : str
        ``table``: what a person reads, of any problem. ``torch-ddp``: a Python file with a communication hook for
        PyTorch's DistributedDataParallel (compression). ``routes``: rings, patches and a script of static routes
        (topology, codesign). ``msccl``: an algorithm of MSCCL as XML (collectives). ``slurm``, ``kueue``: a job for
        every run (scheduling). ``cluster-script``: the plans of
        all jobs of a cluster (jobs with plans). ``megatron``, ``torchtitan``, ``deepspeed``, ``galvatron``: what the
        framework takes (training steps).
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
    text = writers.export_plan(problem, solution_of(problem, solution), target_format, **options)
    if out is not None:
        write_whole(out, text)
    return text


def import_plan(instance: Instance | str | Path, file: str | Path, source_format: str | None = None) -> Solution:
    """The solution that a file of :func:`export_plan` was written from, unchanged; or what somebody else's file says.

    Parameters
    ----------
    instance : Instance, str or Path
        See :func:`ddlopt.api.load`.
    file : str or Path
        In any of the formats.
    source_format : str, optional
        That of a schedule that others have made (:func:`ddlopt.instances.readers.schedules.read_schedule`), or of a
        framework: ``megatron``, ``torchtitan``, ``deepspeed`` or ``galvatron``.

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
    if source_format not in SCHEDULES:
        raise UnknownNameError(
            f"there is no format '{source_format}' that others' plans are read from; there are: "
            f"{', '.join((*writers.OTHERS, *SCHEDULES))}"
        )
    schedule = read_schedule(file, source_format, problem)
    assert isinstance(problem, type(schedule.instance))  # others were refused
    if schedule.instance.digest != problem.digest:
        raise SolutionError(
            f"{file}: it is a plan for {schedule.instance.size} of the {problem.size} accelerators of "
            f"'{problem.name}'; ddlopt.instances.readers.schedules.read_schedule has that instance, too"
        )
    if schedule.plan is None:
        raise SolutionError(schedule.why)
    return schedule.plan
