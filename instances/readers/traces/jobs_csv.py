"""Our own plain CSV: a row for each job, with as many of the columns below as one likes.

Needed are ``name``, ``arrival_s``, the workers (``workers``: exactly that number or none; or ``max_workers``, with
``min_workers`` 1 if left out) and the length (``duration_s`` with all its workers, or ``minibatches`` in all).

How fast a job is follows from ``model`` (one of ddlopt's cluster models) or from numbers: ``compute_s`` (an iteration
of one worker; 1 if left out), ``gradient_bytes`` (0: adding workers costs nothing), ``bandwidth_bytes_per_s`` (of its
ring), ``reduction_bytes_per_s``, ``latency_s`` (of a step of the ring). Numbers replace those of the model.

Besides, ``deadline_s``, ``value`` (1), and what each worker takes, a column for every resource: ``demand_gpu`` (1 if
left out), ``demand_cpu``, and so on (0 if left out). A blank cell counts as left out. Times are seconds of a clock of
the file's own.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ddlopt.instances.generators.scheduling.jobs import NETWORK_BYTES_PER_S
from ddlopt.instances.options import checked, positive
from ddlopt.instances.readers.traces.columns import DEMAND, Columns, seconds_of
from ddlopt.instances.readers.traces.csv_rows import Header, Row, csv_rows
from ddlopt.instances.readers.traces.trace_jobs import GPU, HOUR_S, Setting, TraceJob, seconds
from ddlopt.instances.workloads.cluster_models import CLUSTER_MODELS, cluster_model
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.models.scheduling import RingTiming, SchedulingInstance, ServerGroup

NEEDED = ("name", "arrival_s")
OTHERS = (
    "workers",
    "min_workers",
    "max_workers",
    "duration_s",
    "minibatches",
    "model",
    "compute_s",
    "gradient_bytes",
    "bandwidth_bytes_per_s",
    "reduction_bytes_per_s",
    "latency_s",
    "deadline_s",
    "value",
)
_LONGEST = 120
"""Letters of a mapping that a source tells."""


@checked
def read_jobs_csv(
    path: str | Path,
    *,
    columns: str | dict[str, Any] | None = None,
    start: str | float | None = None,
    hours: float | None = None,
    tail_hours: float | None = None,
    slot_s: float = HOUR_S,
    gpus: int | None = None,
    gpus_per_server: int = 8,
    busy_quantile: float = 0.9,
    servers: tuple[dict[str, Any], ...] | None = None,
    preemptive: bool = True,
    network: str = "none",
    bandwidth_bytes_per_s: float = NETWORK_BYTES_PER_S,
    nic_bytes_per_s: float = 50e9,
    objective: str = "utility",
    utility: str = "capped",
    name: str | None = None,
) -> SchedulingInstance:
    """An instance of the jobs that arrive in a window of time; for the columns see the module.

    Parameters
    ----------
    path : str or Path
        ``.csv`` or ``.csv.gz``.
    columns : str or dict, optional
        Where the columns above are found in somebody else's file; see :mod:`ddlopt.instances.readers.traces.columns`.
    start : float, optional
        Second in the file's clock, or a date if it has dates; None: the first arrival.
    hours, tail_hours, slot_s, gpus, gpus_per_server, busy_quantile, network, nic_bytes_per_s : optional
        See :class:`~ddlopt.instances.readers.traces.trace_jobs.Setting`.
    servers : list of objects, optional
        Groups of equal servers as in an instance, ``[{"count": 4, "capacity": {"gpu": 8, "cpu": 64}}]``, in place of
        ``gpus``; needed where workers take more than GPUs.
    bandwidth_bytes_per_s : float
        Of the rings of jobs that have none of their own.
    objective, preemptive
        Fields of the instance.
    utility : str
        Of every job.
    name : str, optional
        None: the file's.

    Raises
    ------
    InstanceError
        If the file cannot be read, a row makes no sense, or no job is left.
    OptionError
        If an option is out of range.
    """
    path = Path(path)
    positive("bandwidth_bytes_per_s", bandwidth_bytes_per_s)
    setting = Setting(
        path,
        start_s=seconds("start", start) if columns is None else _start(start),
        hours=hours,
        tail_hours=tail_hours,
        slot_s=slot_s,
        gpus=gpus,
        gpus_per_server=gpus_per_server,
        busy_quantile=busy_quantile,
        servers=None if servers is None else _servers(servers, gpus),
        network=network,
        nic_bytes_per_s=nic_bytes_per_s,
        objective=objective,
        utility=utility,
        preemptive=preemptive,
    )
    mapped = None if columns is None else Columns.of(columns, (*NEEDED, *OTHERS))
    header, rows = csv_rows(path) if mapped is None else mapped.rows(path)
    _check(header, servers is not None)
    demands = tuple(column for column in header.columns if column.startswith(DEMAND))
    jobs = [_job(row, demands, bandwidth_bytes_per_s) for row in rows]
    taken, start_s = setting.window(jobs)
    stem = path.name.removesuffix(".gz").removesuffix(".csv")
    told = "jobs as given there" if mapped is None else f"jobs by columns {_told(columns)}"
    setting.notes[:0] = mapped.notes if mapped else []
    return setting.instance(taken, start_s, name or stem, f"{path.name}: {told}")


def _start(start: str | float | None) -> float | None:
    """Begin of a window in seconds, or as a date."""
    try:
        return seconds("start", start)
    except OptionError:
        with suppress(ValueError):
            return seconds_of(str(start))
        raise


def _told(columns: str | dict[str, Any] | None) -> str:
    text = columns if isinstance(columns, str) else json.dumps(columns)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _servers(groups: tuple[Mapping[str, Any], ...], gpus: int | None) -> tuple[ServerGroup, ...]:
    if gpus is not None:
        raise OptionError("gpus and servers both say how large the cluster is; give one of them")
    if not groups:
        raise OptionError("servers is empty; give groups such as {'count': 4, 'capacity': {'gpu': 8}}")
    try:
        return tuple(ServerGroup.model_validate(group) for group in groups)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise OptionError(
            f"servers: {place}: {first['msg']}; such as {{'count': 4, 'capacity': {{'gpu': 8}}}}"
        ) from None


def _check(header: Header, servers: bool) -> None:
    header.needs(NEEDED)
    for choices in (("workers", "max_workers"), ("duration_s", "minibatches")):
        if not set(choices) & set(header.columns):
            raise InstanceError(f"{header.path}: a column {' or '.join(choices)} is missing")
    for column in header.columns:
        if column not in (*NEEDED, *OTHERS) and not (column.startswith(DEMAND) and len(column) > len(DEMAND)):
            known = ", ".join((*NEEDED, *OTHERS, f"{DEMAND}gpu, …"))
            raise InstanceError(f"{header.path}: there is no column {column!r}; there are: {known}")
        if column.startswith(DEMAND) and column != "demand_gpu" and not servers:
            raise InstanceError(f"{header.path}: workers take {column.removeprefix(DEMAND)}; say what the servers have")


def _job(row: Row, demands: tuple[str, ...], bandwidth_bytes_per_s: float) -> TraceJob:
    least, most = _workers(row)
    timing = _timing(row, bandwidth_bytes_per_s)
    arrival_s, speed = row.number_of("arrival_s"), float(timing.minibatches_per_s(most))
    if row.has("minibatches") == row.has("duration_s"):
        raise row.wrong("duration_s", "give either duration_s or minibatches")
    if row.has("minibatches"):
        minibatches = row.number_of("minibatches", positive=True)
        duration_s = minibatches / speed
    else:
        duration_s = row.number_of("duration_s", positive=True)
        minibatches = speed * duration_s
    due_s = row.number_of("deadline_s") if row.has("deadline_s") else None
    if due_s is not None and due_s <= arrival_s:
        raise row.wrong("deadline_s", f"it must be after arrival_s, {row.cells['arrival_s']}")
    demand = dict(GPU)
    demand |= {column.removeprefix(DEMAND): row.number_of(column, 0) for column in demands if row.has(column)}
    if not any(demand.values()):
        raise row.wrong(demands[0], "a worker must take something")
    return TraceJob(
        row=row.number,
        name=row.cells["name"],
        arrival_s=arrival_s,
        duration_s=duration_s,
        min_workers=least,
        max_workers=most,
        timing=timing,
        minibatches=minibatches,
        value=row.number_of("value", positive=True) if row.has("value") else 1.0,
        due_s=due_s,
        demand=demand,
    )


def _workers(row: Row) -> tuple[int, int]:
    if row.has("workers"):
        for column in ("min_workers", "max_workers"):
            if row.has(column):
                raise row.wrong(column, "give either workers, or min_workers and max_workers")
        return row.count_of("workers", 1), row.count_of("workers", 1)
    if not row.has("max_workers"):
        raise row.wrong("max_workers" if "max_workers" in row.cells else "workers", "expected a number of workers")
    least, most = row.count_of("min_workers", 1) if row.has("min_workers") else 1, row.count_of("max_workers", 1)
    if least > most:
        raise row.wrong("min_workers", f"more than max_workers, {most}")
    return least, most


def _timing(row: Row, bandwidth_bytes_per_s: float) -> RingTiming:
    if row.has("model"):
        if row.cells["model"] not in CLUSTER_MODELS:
            raise row.wrong("model", f"there are: {', '.join(CLUSTER_MODELS)}")
        timing = cluster_model(row.cells["model"]).timing(bandwidth_bytes_per_s)
    else:
        timing = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=bandwidth_bytes_per_s, forward_s_per_sample=1)
    numbers: dict[str, float] = {}
    for column in ("bandwidth_bytes_per_s", "reduction_bytes_per_s"):
        if row.has(column):
            numbers[column] = row.number_of(column, positive=True)
    for column in ("gradient_bytes", "latency_s"):
        if row.has(column):
            numbers[column] = row.number_of(column, 0)
    if row.has("compute_s"):
        compute_s = row.number_of("compute_s", positive=True)
        numbers |= {"forward_s_per_sample": compute_s, "batch_samples": 1.0, "backward_s": 0.0, "overhead_s": 0.0}
    return timing.model_copy(update=numbers)
