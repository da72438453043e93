"""Plans for those who run them: a solution in a format that people or clusters read, and back.

A writer is a function ``body(instance, solution, evaluation, **options) -> str``; the options are those of its
signature. :mod:`~ddlopt.instances.writers.document` puts the solution itself below what it writes, so that every
format can be read back.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ddlopt.instances.options import refuse_unknown
from ddlopt.instances.writers import document
from ddlopt.models.catalogue import problem_of, require_feasible
from ddlopt.models.contracts import Evaluation, Instance, Solution
from ddlopt.models.errors import DdloptError, OptionError, SolutionError, UnknownNameError


@dataclass(frozen=True)
class Writer:
    """One format.

    Parameters
    ----------
    place : str
        Module in this folder and function.
    problems : tuple of str
        Paths of the problems whose answers it writes; empty: of all.
    summary : str
        What comes of it, for people.
    first_line : str, optional
        That the file must begin with.
    xml : bool
        Whether comments are those of XML.
    bare : bool
        Whether the file has nothing besides, as whoever reads it knows no comments. It is read back by
        :mod:`ddlopt.instances.readers.schedules`, or as anybody's.
    reads : str, optional
        Module and function that makes a solution of anybody's file in this format.
    """

    place: str
    problems: tuple[str, ...]
    summary: str
    first_line: str = ""
    xml: bool = False
    bare: bool = False
    reads: str = ""

    def body(self, instance: Instance, solution: Solution, evaluation: Evaluation, options: Mapping[str, Any]) -> str:
        """What the format says of a solution that has been checked."""
        written: str = _function(self.place)(instance, solution, evaluation, **options)
        return written

    def read(self, instance: Instance, text: str, origin: str) -> Solution:
        """A solution that the file of somebody says."""
        found: Solution = _function(self.reads)(instance, text, origin)
        return found

    def options(self) -> dict[str, Any]:
        """What it takes besides, with defaults."""
        signature = inspect.signature(_function(self.place))
        return {each.name: each.default for each in list(signature.parameters.values())[3:]}


def _function(place: str) -> Any:
    module, _, function = place.rpartition(".")
    return getattr(import_module(f"{__name__}.{module}"), function)


_BASH = "#!/usr/bin/env bash"
_WRITERS = {
    "table": Writer("table.table", (), "what a person reads, of any problem"),
    "torch-ddp": Writer(
        "torch_ddp.torch_ddp",
        ("compression/timeline", "compression/levels", "compression/sfb"),
        "a Python file with a communication hook for PyTorch's DistributedDataParallel",
    ),
    "routes": Writer("routes.routes", ("topology", "codesign"), "rings, patches and a script of static routes", _BASH),
    "msccl": Writer("msccl.msccl", ("topology/collective",), "an algorithm of MSCCL, as XML", xml=True),
    "torch-schedule": Writer(
        "torch_schedule.torch_schedule",
        ("deployment/microbatches",),
        "a schedule for torch.distributed.pipelining, as CSV",
        bare=True,
    ),
    "micro-batches": Writer(
        "deployment.orders.micro_batches",
        ("deployment/step", "deployment/pipeline"),
        "the order of the plan's micro-batches as an instance of deployment/microbatches",
        bare=True,
    ),
    "slurm": Writer("slurm.slurm", ("scheduling",), "a script that submits a Slurm job for every run", _BASH),
    "kueue": Writer("kueue.kueue", ("scheduling",), "a Kubernetes JobSet for every run, queued by Kueue"),
    "node-list": Writer("cluster.hosts.node_list", ("cluster/placement",), "the hosts of each gang, with commas"),
    "cluster-script": Writer(
        "cluster.joint.cluster_script",
        ("cluster/joint",),
        "a script with start, servers and the plan of every job",
        _BASH,
    ),
    "rank-file": Writer("cluster.hosts.rank_file", ("cluster/placement",), "the host of each rank, for Open MPI"),
    "megatron": Writer(
        "training.megatron.megatron",
        ("deployment/step",),
        "flags of Megatron-LM",
        _BASH,
        reads="training.megatron.read_megatron",
    ),
    "torchtitan": Writer(
        "training.torchtitan.torchtitan",
        ("deployment/step",),
        "tables of torchtitan's TOML",
        reads="training.torchtitan.read_torchtitan",
    ),
    "deepspeed": Writer(
        "training.deepspeed.deepspeed",
        ("deployment/step",),
        "DeepSpeed's JSON",
        reads="training.deepspeed.read_deepspeed",
        bare=True,
    ),
    "galvatron": Writer(
        "training.galvatron.galvatron",
        ("deployment/step",),
        "a plan of Galvatron",
        reads="training.galvatron.read_galvatron",
        bare=True,
    ),
    "topology": Writer(
        "training.traffic.topology",
        ("deployment/step",),
        "what a plan sends between servers, as an instance of topology",
        bare=True,
    ),
}

FORMATS = tuple(_WRITERS)
"""What :func:`export_plan` can write."""
OTHERS = tuple(name for name, writer in _WRITERS.items() if writer.reads)
"""Formats in which :func:`read_plan` takes anybody's files."""


def formats_of(instance: Instance) -> tuple[str, ...]:
    """Formats for answers of an instance."""
    path = problem_of(instance).path
    return tuple(name for name, writer in _WRITERS.items() if not writer.problems or path in writer.problems)


def summaries() -> dict[str, str]:
    """What each format is, for people."""
    return {name: writer.summary for name, writer in _WRITERS.items()}


def options_of(target_format: str) -> dict[str, Any]:
    """What a format takes besides, with defaults.

    Raises
    ------
    UnknownNameError
        If there is no such format.
    """
    return _writer(target_format).options()


def export_plan(instance: Instance, solution: Solution, target_format: str, **options: Any) -> str:
    """A solution as a file for those who run it.

    Parameters
    ----------
    instance : Instance
    solution : Solution
        Feasible for it.
    target_format : str
        One of :func:`formats_of`.
    **options
        What the format takes (:func:`options_of`).

    Raises
    ------
    UnknownNameError
        If there is no such format.
    OptionError
        If the format is of other problems, or an option is unknown or out of its range.
    SolutionError
        If the solution is of another instance, or infeasible.
    """
    writer = _writer(target_format)
    _require_format(instance, target_format)
    refuse_unknown(f"format '{target_format}'", options, writer.options())
    evaluation = require_feasible(instance, solution)
    stamp = document.Stamp.of(target_format, instance, solution, options)
    body = writer.body(instance, solution, evaluation, options)
    if writer.bare:
        return body
    return document.written(stamp, writer.first_line, body, writer.xml)


def written(instance: Instance, solution: Solution, target_format: str, evaluation: Evaluation) -> str:
    """What a format says of a solution that has been checked, alone, for a file that holds several."""
    return _writer(target_format).body(instance, solution, evaluation, {})


def import_plan(instance: Instance, file: str | Path) -> Solution:
    """The solution that a file of :func:`export_plan` was written from, unchanged.

    Raises
    ------
    SolutionError
        If it cannot be read, is no such file or one for another instance, or says something else than its solution.
    """
    text = document.read(file)
    stamp = document.stamp_of(text, str(file))
    if stamp.format not in _WRITERS:
        raise SolutionError(f"{file}: its format is '{document.shown(stamp.format)}'; there are: {', '.join(FORMATS)}")
    stamp.belongs_to(instance, str(file))
    kind = problem_of(instance).solution
    solution = kind.from_data(stamp.solution, str(file))
    try:
        again = export_plan(instance, solution, stamp.format, **stamp.options)
    except (DdloptError, TypeError) as problem:
        raise SolutionError(f"{file}: {problem}") from None
    document.require_same(text, again, str(file))
    return solution


def read_plan(instance: Instance, file: str | Path, source_format: str) -> Solution:
    """The solution that anybody's file in a format says, e.g. flags that somebody trains with.

    Raises
    ------
    UnknownNameError
        If there is no such format.
    OptionError
        If the format is of other problems, or is not read without the solution in it.
    SolutionError
        If the file cannot be read.
    """
    writer = _writer(source_format)
    _require_format(instance, source_format)
    if not writer.reads:
        raise OptionError(
            f"format '{source_format}' is read by import-plan alone; of others' files: {', '.join(OTHERS)}"
        )
    return writer.read(instance, document.read(file), str(file))


def _writer(name: str) -> Writer:
    if name not in _WRITERS:
        raise UnknownNameError(f"there is no format '{name}'; there are: {', '.join(FORMATS)}")
    return _WRITERS[name]


def _require_format(instance: Instance, name: str) -> None:
    has = formats_of(instance)
    if name not in has:
        raise OptionError(
            f"format '{name}' is for {', '.join(_WRITERS[name].problems)}, and '{instance.name}' is of "
            f"{problem_of(instance).path}, which has: {', '.join(has)}"
        )


__all__ = ["FORMATS", "export_plan", "formats_of", "import_plan", "options_of", "read_plan", "summaries"]
