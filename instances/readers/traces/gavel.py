"""Traces of Gavel and of what grew from it, with its table of measured throughputs.

A trace has a line for each job, with tabs between the fields: 7 of them in Gavel's traces made from Philly's, 10 in
those of its physical cluster, 11 and 12 in Shockwave's. The table (``simulation_throughputs.json``) gives mini-batches
per second, of all workers together, by type of GPU, and by job type and number of workers. See
https://github.com/stanford-futuredata/gavel (MIT) and https://github.com/uw-mad-dash/shockwave (MIT).
"""

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ddlopt.instances.generators.scheduling.jobs import NETWORK_BYTES_PER_S, figure
from ddlopt.instances.options import checked, one_of, positive
from ddlopt.instances.readers.fitting import Measurement, fit_ring
from ddlopt.instances.readers.traces.csv_rows import Row, text_of_file
from ddlopt.instances.readers.traces.trace_jobs import Setting, TraceJob, seconds
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.models.scheduling import RingTiming, SchedulingInstance

_LONG = (
    "job_type",
    "command",
    "working_directory",
    "num_steps_arg",
    "needs_data_dir",
    "total_steps",
    "scale_factor",
    "mode",
    "priority_weight",
    "SLO",
    "duration",
    "arrival_time",
)
_LAYOUTS = {
    7: ("job_type", "command", "num_steps_arg", "needs_data_dir", "total_steps", "arrival_time", "scale_factor"),
    10: tuple(field for field in _LONG if field not in ("mode", "duration")),
    11: tuple(field for field in _LONG if field != "duration"),
    12: _LONG,
}

Throughputs = dict[tuple[str, int], float]
"""Mini-batches per second by job type and workers, on one type of GPU."""
Table = dict[str, Throughputs]
"""By type of GPU."""
_TYPE = "v100"
"""Of the instance, where none is named: Gavel's fastest."""


@checked
def read_gavel(
    path: str | Path,
    throughputs: str | Path,
    *,
    worker_type: str = _TYPE,
    types: str | None = None,
    mixed_types: bool = False,
    start: str | float | None = None,
    hours: float | None = None,
    tail_hours: float | None = None,
    slot_s: float = 360.0,
    gpus: int | None = None,
    gpus_per_server: int = 8,
    busy_quantile: float = 0.9,
    elastic: bool = False,
    deadlines: bool = True,
    missing: str = "refuse",
    preemptive: bool = True,
    network: str = "none",
    bandwidth_bytes_per_s: float = NETWORK_BYTES_PER_S,
    nic_bytes_per_s: float = 50e9,
    objective: str = "utility",
    utility: str = "capped",
    fair: str = "share",
    name: str | None = None,
) -> SchedulingInstance:
    """An instance of the jobs of a trace, on GPUs of one type or of several.

    A job wants its steps and is worth its priority. It has the trace's number of workers or none, at the throughput of
    the table exactly, whatever its place and the network. With ``elastic`` it may have fewer, and its timing is the
    ring model fitted to the throughputs at all numbers of workers in the table (non-negative least squares), which is
    our reading of them.

    With ``types`` its timing is that on the type where it is fastest, and its speed on every other is the ratio of the
    two throughputs at the trace's number of workers (with ``elastic`` at fewer, too), 0 where the table has none. How
    long a job runs by itself, which the horizon and the deadlines follow from, is taken on its fastest type.

    Parameters
    ----------
    path : str or Path
        The trace.
    throughputs : str or Path
        The table.
    worker_type : str
        A key of the table: ``v100``, ``p100``, ``k80``, or one of these with ``_unconsolidated``.
    types : str, optional
        Several of them in place of it, and how many GPUs of each: ``"v100:8,p100:16,k80:24"``.
    elastic : bool
        Whether a job may have fewer workers than in the trace.
    mixed_types : bool
        Field of the instance. Gavel's gangs are on one type.
    start : float, optional
        Second in the trace; None: the first arrival.
    hours, tail_hours, slot_s, gpus, gpus_per_server, busy_quantile, network, nic_bytes_per_s : optional
        See :class:`~ddlopt.instances.readers.traces.trace_jobs.Setting`. The slot is Gavel's round.
    deadlines : bool
        A positive SLO is a deadline: this many times the job's duration after its arrival.
    missing : {"refuse", "skip"}
        What becomes of jobs that the table does not have: Gavel's traces made from Philly's have many.
    bandwidth_bytes_per_s : float
        Reserved for an elastic job on every link of its ring; its gradient is what then explains the fit.
    objective, preemptive
        Fields of the instance.
    utility : str
        Of every job.
    fair : {"share", "count"}
        See :class:`~ddlopt.instances.readers.traces.trace_jobs.Setting`; ``count`` is how the simulator of Shockwave
        reports finish-time fairness, with all jobs of the trace.
    name : str, optional
        None: the file's.

    Raises
    ------
    InstanceError
        If a file cannot be read, a line makes no sense, or the table does not have a job.
    OptionError
        If an option is out of range.
    """
    path = Path(path)
    positive("bandwidth_bytes_per_s", bandwidth_bytes_per_s)
    one_of("missing", missing, ("refuse", "skip"))
    counts = _counts(types, worker_type, gpus, mixed_types)
    setting = Setting(
        path,
        start_s=seconds("start", start),
        hours=hours,
        tail_hours=tail_hours,
        slot_s=slot_s,
        gpus=gpus,
        gpus_per_server=gpus_per_server,
        busy_quantile=busy_quantile,
        types=counts,
        mixed_types=mixed_types,
        network=network,
        nic_bytes_per_s=nic_bytes_per_s,
        objective=objective,
        utility=utility,
        preemptive=preemptive,
        fair=fair,
    )
    rows = list(_rows(path))
    table = _table(Path(throughputs), tuple(counts) if counts else (worker_type,))
    made = _Maker(table, bandwidth_bytes_per_s, elastic, deadlines)
    known = [row for row in rows if missing == "refuse" or made.knows(row)]
    if len(known) < len(rows):
        setting.notes.append(f"left out {len(rows) - len(known)} jobs of the file that the table does not have")
    taken, start_s = setting.window([made.job(row) for row in known])
    kind = "ring model fitted to" if elastic else "gangs at"
    source = f"{path.name}: a trace of Gavel, {kind} the throughputs of {Path(throughputs).name} on {made.told}"
    return setting.instance(taken, start_s, name or path.name.removesuffix(".gz").removesuffix(".trace"), source)


def _rows(path: Path) -> Iterator[Row]:
    for number, line in enumerate(text_of_file(path).splitlines(), 1):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) not in _LAYOUTS:
            known = ", ".join(map(str, _LAYOUTS))
            raise InstanceError(f"{path}: row {number} has {len(cells)} fields between tabs; a trace has {known}")
        yield Row(path, number, dict(zip(_LAYOUTS[len(cells)], cells, strict=True)))


def _counts(types: str | None, worker_type: str, gpus: int | None, mixed_types: bool) -> dict[str, int] | None:
    """GPUs by type."""
    if types is None:
        if mixed_types:
            raise OptionError("mixed_types is true, but there is one type of GPU; give types as 'v100:8,k80:24'")
        return None
    if worker_type != _TYPE:
        raise OptionError(f"worker_type is {worker_type!r}, but types has {types!r}; give one of the two")
    if gpus is not None:
        raise OptionError(f"gpus is {gpus}, but types says how many there are of each type; leave it out")
    counts: dict[str, int] = {}
    for each in types.split(","):
        name, _, count = (part.strip() for part in each.partition(":"))
        if not name or not (count.isascii() and count.isdecimal()) or int(count) < 1:
            raise OptionError(f"types has '{each.strip()}'; write a type and a number of GPUs, such as 'v100:8,k80:24'")
        if name in counts:
            raise OptionError(f"types has '{name}' twice; give each type one number")
        counts[name] = int(count)
    if mixed_types and len(counts) == 1:
        raise OptionError(f"mixed_types is true, but types has one, {types!r}")
    return counts


def _table(path: Path, types: tuple[str, ...]) -> Table:
    try:
        data = json.loads(text_of_file(path))
    except (ValueError, RecursionError) as problem:
        if isinstance(problem, InstanceError):
            raise
        raise InstanceError(f"{path}: not valid JSON: {problem}") from None
    if not isinstance(data, Mapping) or not all(isinstance(each, Mapping) for each in data.values()):
        raise InstanceError(f"{path}: is no table of throughputs: an object by type of GPU and by job is expected")
    return {each: _of_type(path, data, each) for each in types}


def _of_type(path: Path, data: Mapping[str, Any], worker_type: str) -> Throughputs:
    if worker_type not in data:
        raise OptionError(f"worker_type is {worker_type!r}, but {path} has: {', '.join(data)}")
    found = {}
    for key, value in data[worker_type].items():
        place = f"{path}: {worker_type}, {key}"
        alone = value.get("null") if isinstance(value, Mapping) else None
        if isinstance(alone, bool) or not isinstance(alone, int | float) or not 0 <= alone < 1e12:
            raise InstanceError(f"{place}: 'null', the throughput of the job alone, is {alone!r}; expected a number")
        found[_key(key, place)] = float(alone)
    return found


def _key(text: str, place: str) -> tuple[str, int]:
    """Keys are written ``('ResNet-18 (batch size 16)', 2)``."""
    try:
        key: Any = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        key = None
    match key:
        case (str(job_type), int(workers)):
            return job_type, workers
    raise InstanceError(f"{place}: a key is written ('job type', workers)")


class _Maker:
    """Jobs of rows; fits are made once for each job type and number of workers."""

    def __init__(self, table: Table, bandwidth_bytes_per_s: float, elastic: bool, deadlines: bool) -> None:
        self.table = table
        self.told = " and ".join(table)
        self.bandwidth_bytes_per_s = bandwidth_bytes_per_s
        self.elastic = elastic
        self.deadlines = deadlines
        self.timings: dict[tuple[str, int], RingTiming] = {}

    def _key(self, row: Row) -> tuple[str, int]:
        return row.cells["job_type"], row.count_of("scale_factor", 1)

    def _fastest(self, key: tuple[str, int]) -> str:
        """The type on which a job does most in a second."""
        return max(self.table, key=lambda each: self.table[each].get(key, 0.0))

    def knows(self, row: Row) -> bool:
        """Whether the table has a throughput of the job."""
        key = self._key(row)
        return self.table[self._fastest(key)].get(key, 0.0) > 0

    def job(self, row: Row) -> TraceJob:
        """The job of a line."""
        key = self._key(row)
        if not self.knows(row):
            what = "a throughput of 0" if any(key in own for own in self.table.values()) else "no throughput"
            raise row.wrong("job_type", f"the table has {what} of it with {key[1]} workers on {self.told}")
        fastest = self._fastest(key)
        most = self.table[fastest][key]
        if key not in self.timings:
            self.timings[key] = (self._fitted if self.elastic else self._exact)(fastest, *key)
        steps = row.count_of("total_steps", 1)
        arrival_s, duration_s = row.number_of("arrival_time", 0), steps / most
        slo = row.number_of("SLO") if row.has("SLO") else -1.0
        return TraceJob(
            row=row.number,
            name=f"row-{row.number}",
            arrival_s=arrival_s,
            duration_s=duration_s,
            min_workers=1 if self.elastic else key[1],
            max_workers=key[1],
            timing=self.timings[key],
            minibatches=float(steps),
            value=row.number_of("priority_weight", positive=True) if row.has("priority_weight") else 1.0,
            due_s=arrival_s + slo * duration_s if self.deadlines and slo > 0 else None,
            speeds={each: own.get(key, 0.0) / most for each, own in self.table.items()},
        )

    def _exact(self, worker_type: str, job_type: str, workers: int) -> RingTiming:
        iteration_s = workers / self.table[worker_type][job_type, workers]
        return RingTiming(
            gradient_bytes=0, bandwidth_bytes_per_s=self.bandwidth_bytes_per_s, forward_s_per_sample=iteration_s
        )

    def _fitted(self, worker_type: str, job_type: str, workers: int) -> RingTiming:
        measured = [
            Measurement(count, 1.0, count / speed)
            for (each, count), speed in self.table[worker_type].items()
            if each == job_type and speed > 0
        ]
        if workers == 1 or len(measured) < 2:
            return self._exact(worker_type, job_type, workers)
        fit = fit_ring(measured)
        return RingTiming(
            gradient_bytes=figure(self.bandwidth_bytes_per_s / fit.bandwidth_bytes_per_s, 6),
            bandwidth_bytes_per_s=self.bandwidth_bytes_per_s,
            forward_s_per_sample=figure(fit.overhead_s, 6),
            latency_s=figure(fit.latency_s, 6),
        )
