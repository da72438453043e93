"""Pods of Alibaba's GPU cluster trace of 2023 (``cluster-trace-gpu-v2023``), from its CSV files.

Columns of the pods: ``name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec, qos, pod_phase, creation_time,
deletion_time, scheduled_time``; of the nodes: ``sn, cpu_milli, memory_mib, gpu, model``. Times are seconds. See
https://github.com/alibaba/clusterdata and Q. Weng et al., *Beware of Fragmentation: Scheduling GPU-Sharing Workloads
with Fragmentation Gradient Descent*, USENIX ATC 2023.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ddlopt.instances.generators.scheduling.jobs import NETWORK_BYTES_PER_S
from ddlopt.instances.options import at_least, checked, positive
from ddlopt.instances.readers.traces.csv_rows import Row, csv_rows
from ddlopt.instances.readers.traces.trace_jobs import HOUR_S, Setting, TraceJob, seconds
from ddlopt.instances.workloads.cluster_models import cluster_model, models_by_gpu_hours
from ddlopt.models.errors import InstanceError
from ddlopt.models.scheduling import SchedulingInstance, ServerGroup

COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
NODE_COLUMNS = ("cpu_milli", "memory_mib", "gpu")
# A definition.
MEBIBYTE = 2**20
USUAL_NODE = {"gpu": 8.0, "cpu": 96.0, "memory_bytes": 393216.0 * MEBIBYTE}
"""The most frequent node with 8 GPUs in the list of nodes."""


@checked
def read_openb(
    path: str | Path,
    *,
    nodes: str | Path | None = None,
    start: str | float | None = None,
    hours: float | None = None,
    tail_hours: float | None = None,
    slot_s: float = HOUR_S,
    servers: int | None = None,
    busy_quantile: float = 0.9,
    rigid: bool = True,
    cpu_pods: bool = True,
    preemptive: bool = True,
    network: str = "none",
    bandwidth_bytes_per_s: float = NETWORK_BYTES_PER_S,
    nic_bytes_per_s: float = 50e9,
    slack: float | None = None,
    objective: str = "utility",
    utility: str = "capped",
    seed: int = 0,
    name: str | None = None,
) -> SchedulingInstance:
    """An instance of the pods that are created in a window of time.

    A pod with n GPUs is a job of n workers, each with a GPU and the n-th part of the pod's CPUs and memory; a pod that
    shares a GPU is one worker with that part of it; a pod without is one worker that needs CPUs and memory. It wants
    the mini-batches that it would have done from its scheduling to its deletion; its network is drawn with ``seed`` by
    its GPU time, our rule, as the file names none. Shares of GPUs are added up over a server, so that fragments of
    single GPUs are ignored, and so are the GPU types that some pods ask for. Pods that were never scheduled have no
    duration and are left out.

    Parameters
    ----------
    path : str or Path
        ``openb_pod_list_….csv``.
    nodes : str or Path, optional
        ``openb_node_list_….csv``; None: nodes of 8 GPUs, 96 CPUs and 384 GiB, the most frequent ones of that list.
    start : float, optional
        Second in the file's clock; None: the first creation.
    hours, tail_hours, slot_s, busy_quantile, network, nic_bytes_per_s, slack : optional
        See :class:`~ddlopt.instances.readers.traces.trace_jobs.Setting`.
    servers : int, optional
        Without ``nodes``; None: enough for the ``busy_quantile`` of GPUs in use, and for every pod.
    rigid : bool
        All workers of a pod or none; if not, 1 to n.
    cpu_pods : bool
        Whether pods without GPU are taken.
    bandwidth_bytes_per_s : float
        Reserved for a job on every link of its ring.
    objective, preemptive
        Fields of the instance.
    utility : str
        Of every job, with value 1.
    name : str, optional
        None: the file's.

    Raises
    ------
    InstanceError
        If a file cannot be read, a row makes no sense, or no pod is left.
    OptionError
        If an option is out of range.
    """
    path = Path(path)
    at_least("seed", seed, 0)
    positive("bandwidth_bytes_per_s", bandwidth_bytes_per_s)
    if servers is not None:
        at_least("servers", servers, 1)
    given = (ServerGroup(count=servers, capacity=USUAL_NODE),) if servers is not None else None
    rows = list(_rows(path))
    setting = Setting(
        path,
        start_s=seconds("start", start),
        hours=hours,
        tail_hours=tail_hours,
        slot_s=slot_s,
        gpus_per_server=int(USUAL_NODE["gpu"]),
        per_server=USUAL_NODE,
        busy_quantile=busy_quantile,
        servers=given if nodes is None else _nodes(Path(nodes)),
        network=network,
        nic_bytes_per_s=nic_bytes_per_s,
        slack=slack,
        objective=objective,
        utility=utility,
        preemptive=preemptive,
    )
    draws = np.random.default_rng(seed).random(len(rows)).tolist()
    jobs = [_job(row, draw, bandwidth_bytes_per_s, rigid) for row, draw in zip(rows, draws, strict=True)]
    ran = [job for job in jobs if job is not None and (cpu_pods or job.demand["gpu"])]
    if len(ran) < len(jobs):
        without = "" if cpu_pods else ", or have no GPU"
        setting.notes.append(f"left out {len(jobs) - len(ran)} pods of the file that were never scheduled{without}")
    taken, start_s = setting.window(ran)
    setting.notes.append(f"networks drawn by GPU time with seed {seed}, iteration times synthetic")
    source = f"{path.name}: Alibaba's GPU cluster trace of 2023 (Weng et al., USENIX ATC 2023)"
    return setting.instance(taken, start_s, name or path.name.removesuffix(".gz").removesuffix(".csv"), source)


def _rows(path: Path) -> Iterator[Row]:
    header, rows = csv_rows(path)
    header.needs(COLUMNS)
    return rows


def _job(row: Row, draw: float, bandwidth_bytes_per_s: float, rigid: bool) -> TraceJob | None:
    """The job of a pod; None if it never ran."""
    gpus, cpus = row.count_of("num_gpu"), row.number_of("cpu_milli", 0) / 1000
    memory_bytes = row.number_of("memory_mib", 0) * MEBIBYTE
    created_s, deleted_s = row.number_of("creation_time", 0), row.number_of("deletion_time", 0)
    if deleted_s < created_s:
        raise row.wrong("deletion_time", f"before creation_time, {row.cells['creation_time']}")
    if not row.has("scheduled_time"):
        return None
    began_s = row.number_of("scheduled_time", created_s)
    if began_s > deleted_s:
        raise row.wrong("scheduled_time", f"after deletion_time, {row.cells['deletion_time']}")
    share = row.number_of("gpu_milli", 0) / 1000
    if gpus == 1 and not 0 < share <= 1:
        raise row.wrong("gpu_milli", "a pod with one GPU uses 1..1000 thousandths of it")
    demand = {"gpu": min(1.0, share) if gpus == 1 else float(gpus > 0)}
    workers = max(1, gpus)
    demand |= {"cpu": cpus / workers, "memory_bytes": memory_bytes / workers}
    if not any(demand.values()):
        raise row.wrong("cpu_milli", "the pod asks for nothing: no CPU, no memory, no GPU")
    duration_s = max(1.0, deleted_s - began_s)  # some end in the second in which they begin
    choices = models_by_gpu_hours(workers * demand["gpu"] * duration_s / HOUR_S)
    timing = cluster_model(choices[int(draw * len(choices))]).timing(bandwidth_bytes_per_s)
    return TraceJob(
        row=row.number,
        name=row.cells["name"],
        arrival_s=created_s,
        duration_s=duration_s,
        min_workers=workers if rigid else 1,
        max_workers=workers,
        timing=timing,
        minibatches=float(f"{float(timing.minibatches_per_s(workers)) * duration_s:.6g}"),
        demand=demand,
    )


def _nodes(path: Path) -> tuple[ServerGroup, ...]:
    """Groups of equal nodes, the most frequent ones first."""
    header, rows = csv_rows(path)
    header.needs(NODE_COLUMNS)
    nodes = Counter(
        (row.count_of("gpu"), row.number_of("cpu_milli", 0) / 1000, row.number_of("memory_mib", 0) * MEBIBYTE)
        for row in rows
    )
    if not nodes:
        raise InstanceError(f"{path}: there is no node in it")
    return tuple(
        ServerGroup(count=count, capacity={"gpu": gpus, "cpu": cpus, "memory_bytes": memory_bytes})
        for (gpus, cpus, memory_bytes), count in nodes.most_common()
    )
