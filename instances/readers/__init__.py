"""Instances from files in formats that others defined.

A reader is a function ``read(path, **options) -> Instance``; the options are those of its signature.
"""

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ddlopt.instances.options import refuse_unknown
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import DdloptError, OptionError, UnknownNameError

_READERS = {
    "flexnet": "graphs.flexnet.read_flexnet",
    "microbatches": "microbatches.read_microbatches",
    "miplib": "miplib.read_miplib",
    "philly": "traces.philly.read_philly",
    "openb": "traces.openb.read_openb",
    "gavel": "traces.gavel.read_gavel",
    "jobs-csv": "traces.jobs_csv.read_jobs_csv",
    "espresso": "espresso.read_espresso",
    "dnn-partitioning": "graphs.dnn_partitioning.read_dnn_partitioning",
    "pipedream": "graphs.pipedream.read_pipedream",
    "piper": "graphs.piper.read_piper",
    "iopddl": "graphs.iopddl.read_iopddl",
    "libffm": "libffm.read_libffm",
    "ina-routing": "ina_routing.read_ina_routing",
    "onnx": "models.onnx_jobs.read_onnx",
    "onnx-codesign": "models.onnx_jobs.read_onnx_codesign",
    "onnx-deployment": "models.onnx_jobs.read_onnx_deployment",
    "onnx-topology": "models.onnx_jobs.read_onnx_topology",
    "profile": "models.profile.read_profile",
    "profile-topology": "models.profile.read_profile_topology",
    "profile-pipeline": "models.profile_pipeline.read_profile_pipeline",
    "transformer": "models.transformer_config.read_compression",
    "transformer-codesign": "models.transformer_config.read_codesign",
    "transformer-deployment": "models.transformer_config.read_deployment",
    "transformer-pipeline": "models.transformer_pipeline.read_transformer_pipeline",
    "calculon": "models.calculon.read_calculon",
    "galvatron": "models.galvatron.read_galvatron",
    "transformer-topology": "models.transformer_config.read_topology",
    "topology-zoo": "zoo.topology_zoo.read_topology_zoo",
    "topology-zoo-gossip": "zoo.zoo_gossip.read_zoo_gossip",
    "kueue-objects": "places.kueue_objects.read_kueue",
    "slurm-topology": "places.slurm_topology.read_slurm_topology",
    "node-list": "places.node_list.read_node_list",
    "racks": "places.racks.read_racks",
    "step-tables": "places.step_tables.read_step_tables",
    "cluster-jobs": "places.cluster_jobs.read_cluster_jobs",
}
"""Module in this folder and function of every format."""

# Whole numbers beyond are not exact as floats.
_LARGEST_COUNT = 2**53
# Options of readers are factors and seconds; what is smaller, or larger than its inverse, is a slip of the pen.
_SMALLEST = 1e-30

CLUSTER_FORMAT = "nccl-tests"
"""What ``ddlopt convert`` reads besides: measurements that make a cluster's file
(:func:`ddlopt.instances.clusters.measured`)."""
FORMATS = tuple(_READERS)
"""What :func:`convert` can read."""


def convert(path: str | Path, source_format: str, **options: Any) -> Instance:
    """Read a file that is in somebody else's format.

    Parameters
    ----------
    path : str or Path
    source_format : str
        One of :data:`FORMATS`. ``flexnet``: a task graph (``.fbuf``) of TopoOpt's simulator. ``miplib``: the MPS file
        of ``danoint`` or ``dano3mip``. ``philly``: the job list of Microsoft's Philly clusters. ``openb``: pods of
        Alibaba's GPU trace of 2023. ``gavel``: a trace of Gavel. ``jobs-csv``: our own CSV with a row for each job.
        ``espresso``: the gradients of a model as Espresso's authors publish them.
        ``dnn-partitioning``: graphs of msr-fiddle/dnn-partitioning. ``pipedream``: a profile of PipeDream.
        ``microbatches``: a pipeline of a collection whose micro-batches are to be ordered.
        ``piper``: a network with options by tensor-parallel degree, as Piper reads it.
        ``iopddl``: strategies of operators, as in the ASPLOS/EuroSys 2025 contest. ``libffm``: a click log.
        ``ina-routing``: a network with jobs whose gradients switches add up, in the layout of INARouting.
        ``onnx``: a neural network whose gradients are compressed; ``onnx-topology``: the same as a job
        that needs links; ``onnx-codesign``: that, with a strategy for each layer left open; ``onnx-deployment``: its
        operators, which need devices. ``transformer``, ``transformer-topology`` and so on: the same from the
        ``config.json`` of a transformer; ``transformer-pipeline``: plans for training it.
        ``calculon``: a model of Calculon, on one of its systems; ``galvatron``: a network that Galvatron profiled.
        ``profile``, ``profile-topology``: a job as ``profile_job.py`` measured it; ``profile-pipeline``: its stages.
        ``topology-zoo``: a network of the Internet Topology Zoo (GML or GraphML), with training jobs on it.
        ``topology-zoo-gossip``: the same as a graph whose nodes gossip.
        ``kueue-objects``: nodes and pod sets of a Kubernetes cluster with Kueue, for gangs in racks and blocks.
        ``slurm-topology``: Slurm's ``topology.conf`` or ``topology.yaml``; ``node-list``: nodes with their domains;
        ``racks``: numbers of free hosts by block and rack. ``step-tables``: jobs with step times by number of servers;
        ``cluster-jobs``: jobs with what they train, for a cluster (``cluster``).
    **options
        What the format's reader takes (:func:`options_of`), and ``cluster``: a cluster's file or bundled name
        (:mod:`ddlopt.instances.clusters`), which gives options of servers and networks.

    Raises
    ------
    UnknownNameError
        If there is no such format or cluster.
    OptionError
        If the reader does not take an option, or needs one that is not given.
    InstanceError
        If the file cannot be read or is something else.
    """
    if source_format == CLUSTER_FORMAT:
        raise OptionError(
            f"'{source_format}' makes a cluster, no instance; ddlopt.instances.clusters.measured reads it"
        )
    known, cluster = options_of(source_format), options.get("cluster")
    if cluster is not None and "cluster" not in known:
        from ddlopt.instances.clusters.options import applied, with_cluster

        return with_cluster(convert(path, source_format, **applied(options, known, source_format)), cluster)
    if cluster is None:
        options.pop("cluster", None)
    refuse_unknown(f"format '{source_format}'", options, known)
    missing = [name for name, default in known.items() if default is inspect.Parameter.empty and name not in options]
    if missing:
        raise OptionError(f"format '{source_format}' needs {' and '.join(missing)}")
    for option, value in options.items():
        _require_size(option, value)
    try:
        return reader_of(source_format)(path, **options)
    except DdloptError:
        raise
    except (ArithmeticError, ValueError, MemoryError) as problem:
        told = str(problem).partition("\n")[0]
        raise OptionError(f"{path}: no instance can be made with these figures and options: {told}") from None


def _require_size(option: str, value: Any) -> None:
    """Raise :class:`OptionError` if a number is of a size that no unit needs."""
    if isinstance(value, int) and abs(value) > _LARGEST_COUNT:
        raise OptionError(f"{option} is a whole number beyond {_LARGEST_COUNT}")
    if isinstance(value, float) and value and not _SMALLEST <= abs(value) <= 1 / _SMALLEST:
        raise OptionError(f"{option} is {value}; figures are 0 or of a size of {_SMALLEST:g} to {1 / _SMALLEST:g}")


def options_of(source_format: str) -> dict[str, Any]:
    """What the reader of a format takes besides the file, with defaults (``inspect.Parameter.empty``: none).

    Raises
    ------
    UnknownNameError
        If there is no such format.
    """
    _, *options = inspect.signature(reader_of(source_format)).parameters.values()
    return {option.name: option.default for option in options}


def reader_of(source_format: str) -> Callable[..., Instance]:
    """The function that reads a format.

    Raises
    ------
    UnknownNameError
        If there is no such format.
    """
    if source_format not in _READERS:
        raise UnknownNameError(f"there is no format '{source_format}'; there are: {', '.join(FORMATS)}")
    module, _, function = _READERS[source_format].rpartition(".")
    reader: Callable[..., Instance] = getattr(import_module(f"ddlopt.instances.readers.{module}"), function)
    return reader


__all__ = ["FORMATS", "convert", "options_of"]
