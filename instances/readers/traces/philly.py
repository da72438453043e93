"""The job list of Microsoft's Philly clusters, as a CSV file with a row for each job.

The jobs are those of the Philly traces (M. Jeon et al., *Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN
Training Workloads*, USENIX ATC 2019; CC-BY-4.0), in the form of AdaptDL's and ElasticFlow's artifacts: columns
``timestamp,duration,num_gpus,gpu_time,cluster``. Neither networks trained nor machines are in it, and the machine list
of the full traces contradicts the jobs.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ddlopt.instances.generators.scheduling.jobs import NETWORK_BYTES_PER_S
from ddlopt.instances.options import at_least, checked, positive
from ddlopt.instances.readers.traces.csv_rows import Row, csv_rows
from ddlopt.instances.readers.traces.trace_jobs import HOUR_S, Setting, TraceJob
from ddlopt.instances.workloads.cluster_models import cluster_model, models_by_gpu_hours
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.models.scheduling import RingTiming, SchedulingInstance

COLUMNS = ("timestamp", "duration", "num_gpus", "cluster")


@checked
def read_philly(
    path: str | Path,
    *,
    virtual_cluster: str | int | None = None,
    start: str | None = None,
    hours: float | None = None,
    tail_hours: float | None = None,
    slot_s: float = HOUR_S,
    gpus: int | None = None,
    gpus_per_server: int = 8,
    busy_quantile: float = 0.9,
    widths: tuple[int, ...] | None = None,
    shortest_s: float = 0.0,
    rigid: bool = False,
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
    """An instance of the jobs of a virtual cluster, or of all, that arrive in a window of time.

    A job may have 1 .. N workers of a GPU each, N as recorded, and wants the mini-batches that N workers do in its
    recorded duration. Its network is one of two of its class by GPU time (up to 1, 10, 100 hours, and more), drawn with
    ``seed`` for every row of the file, so that a job has the same network in every window: our rule, as the file names
    none.

    Parameters
    ----------
    path : str or Path
        ``.csv`` or ``.csv.gz``.
    virtual_cluster : str, optional
        None: all.
    start : str, optional
        Date, or date and time, as in the file (``2017-10-03 08:00:00``); None: the first arrival.
    hours, tail_hours, slot_s, gpus, gpus_per_server, busy_quantile, network, nic_bytes_per_s, slack : optional
        See :class:`~ddlopt.instances.readers.traces.trace_jobs.Setting`.
    widths : tuple of int, optional
        Only jobs with this number of GPUs; None: all.
    shortest_s : float
        Only jobs that ran for so long. A job counts at least the slots that it needs, so that short jobs weigh more
        than they did.
    rigid : bool
        N workers or none.
    bandwidth_bytes_per_s : float
        Reserved for a job on every link of its ring.
    objective, preemptive
        Fields of the instance.
    utility : str
        Of every job, with value 1.
    name : str, optional
        None: from the options.

    Raises
    ------
    InstanceError
        If the file cannot be read, a row makes no sense, there is no such virtual cluster, or no job is left.
    OptionError
        If an option is out of range.
    """
    path = Path(path)
    at_least("shortest_s", shortest_s, 0)
    at_least("seed", seed, 0)
    positive("bandwidth_bytes_per_s", bandwidth_bytes_per_s)
    setting = Setting(
        path,
        start_s=_start(start),
        hours=hours,
        tail_hours=tail_hours,
        slot_s=slot_s,
        gpus=gpus,
        gpus_per_server=gpus_per_server,
        busy_quantile=busy_quantile,
        network=network,
        nic_bytes_per_s=nic_bytes_per_s,
        slack=slack,
        objective=objective,
        utility=utility,
        preemptive=preemptive,
    )
    cluster = None if virtual_cluster is None else str(virtual_cluster)
    rows = _jobs(path, bandwidth_bytes_per_s, rigid, seed)
    jobs = [job for its_cluster, job in rows if cluster in (None, its_cluster)]
    if not jobs and rows:
        known = Counter(its_cluster for its_cluster, _ in rows)
        listed = ", ".join(f"{each} ({count})" for each, count in known.most_common())
        raise InstanceError(f"{path}: there is no virtual cluster '{cluster}'; there are, with jobs: {listed}")
    taken, start_s = setting.window(jobs, "date")
    taken = _kept(path, taken, widths, shortest_s, setting.notes)
    setting.notes.append(f"networks drawn by GPU time with seed {seed}, iteration times synthetic")
    where = "all virtual clusters" if cluster is None else f"virtual cluster {cluster}"
    when = f"from {start or 'the first arrival'} on, {'all' if hours is None else f'{hours:g}'} hours"
    source = f"{path.name}: jobs in the form of Philly's list (Jeon et al., USENIX ATC 2019), {where}, {when}"
    return setting.instance(taken, start_s, name or _name(cluster, start, hours), source)


def _name(cluster: str | None, start: str | None, hours: float | None) -> str:
    parts = ["philly", cluster]
    parts.append("".join(sign for sign in start if sign.isdigit()) if start else None)
    parts.append(f"{hours:g}h" if hours is not None else None)
    return "-".join(part for part in parts if part)


def _start(start: str | None) -> float | None:
    if start is None:
        return None
    try:
        return _seconds(start)
    except ValueError:
        raise OptionError(f"start is {start!r}; in this format it is a time such as '2017-10-03 08:00:00'") from None


def _seconds(time: str) -> float:
    """The file's times have no zone; they are counted as if in UTC."""
    found = datetime.fromisoformat(time)
    if found.tzinfo is not None:
        raise ValueError("a time zone")
    return found.replace(tzinfo=UTC).timestamp()


def _jobs(path: Path, bandwidth_bytes_per_s: float, rigid: bool, seed: int) -> list[tuple[str, TraceJob]]:
    """(virtual cluster, job) of every row."""
    header, rows = csv_rows(path)
    header.needs(COLUMNS)
    listed = list(rows)
    draws = np.random.default_rng(seed).random(len(listed)).tolist()
    timings: dict[str, RingTiming] = {}
    speeds: dict[tuple[str, int], float] = {}
    jobs = []
    for row, draw in zip(listed, draws, strict=True):
        gpus = row.count_of("num_gpus", 1)
        duration_s = row.number_of("duration", positive=True)
        choices = models_by_gpu_hours(gpus * duration_s / HOUR_S)
        model = choices[int(draw * len(choices))]
        if model not in timings:
            timings[model] = cluster_model(model).timing(bandwidth_bytes_per_s)
        if (model, gpus) not in speeds:
            speeds[model, gpus] = float(timings[model].minibatches_per_s(gpus))
        job = TraceJob(
            row=row.number,
            name=f"row-{row.number}",
            arrival_s=_arrival_s(row),
            duration_s=duration_s,
            min_workers=gpus if rigid else 1,
            max_workers=gpus,
            timing=timings[model],
            minibatches=float(f"{speeds[model, gpus] * duration_s:.6g}"),
        )
        jobs.append((row.cells["cluster"], job))
    return jobs


def _arrival_s(row: Row) -> float:
    try:
        return _seconds(row.cells["timestamp"])
    except ValueError:
        raise row.wrong("timestamp", "expected a time such as 2017-10-03 08:00:00") from None


def _kept(
    path: Path, jobs: list[TraceJob], widths: Sequence[int] | None, shortest_s: float, notes: list[str]
) -> list[TraceJob]:
    """Jobs of the widths and durations that are wanted; what is left out is noted."""
    kept = [job for job in jobs if (widths is None or job.max_workers in widths) and job.duration_s >= shortest_s]
    if len(kept) < len(jobs):
        wanted = "" if widths is None else f"widths other than {', '.join(map(str, widths))}"
        short = f"less than {shortest_s:g} s" if shortest_s else ""
        notes.append(f"left out {len(jobs) - len(kept)} jobs of {' or '.join(filter(None, (wanted, short)))}")
    if jobs and not kept:
        raise InstanceError(
            f"{path}: none of {len(jobs)} jobs has a width and duration within the limits; relax widths, shortest_s"
        )
    return kept
