"""Jobs of a cluster with what each trains, in TOML or JSON, and the cluster's file: jobs whose plans are decided, too.

On top ``name`` and ``objective``; then a table ``[[jobs]]`` for each, with ``name`` and what it trains: ``config`` (a
transformer's ``config.json``, or what it holds), ``workload`` (one of TopoOpt's networks), ``onnx`` (a file), or
``step_s`` (seconds of an iteration by number of servers, measured). Then ``iterations``, or ``tokens`` of a
transformer; ``servers``, the numbers that it may have; ``arrival_s``, ``weight``, ``deadline_s``; ``global_batch``,
``sequence`` and ``precision`` of a transformer, ``batch`` of a GPU of others, on the fewest
servers: on more a GPU has less, so that an iteration is the same; ``compressors`` of these and ``error_budget``, as of
:func:`ddlopt.instances.generators.codesign.jobs.job`.

Where the cluster's file has a table ``[fabric]``, a job on w servers sends :math:`2 G (w - 1) / w` bytes over each
uplink that it crosses, as a ring that all-reduces G bytes of gradients does whose racks are one behind another. G is
``gradient_bytes``, or that of all gradients of what the job trains; of measured ``step_s`` 0.
"""

import json
import reprlib
import tomllib
from difflib import get_close_matches
from math import ceil
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from ddlopt.instances.clusters.file import Cluster, load
from ddlopt.instances.clusters.options import applied
from ddlopt.instances.generators.cluster.joint import of_topoopt, share_of_batch
from ddlopt.instances.options import checked
from ddlopt.instances.readers.models.onnx_jobs import read_onnx_codesign
from ddlopt.instances.readers.models.transformer_pipeline import read_transformer_pipeline
from ddlopt.instances.workloads.racks import crossing_bytes, gradient_bytes
from ddlopt.instances.workloads.topoopt import JOBS
from ddlopt.models.cluster.joint.instance import JointInstance
from ddlopt.models.contracts import Instance, Part
from ddlopt.models.deployment.step.instance import StepInstance
from ddlopt.models.errors import DdloptError, InstanceError
from ddlopt.models.reading import UnreadableError, read_text

_TRAINED = ("config", "workload", "onnx", "step_s")
_PLANNED_BY = ("global_batch", "sequence", "precision", "batch", "compressors", "error_budget", "gradient_bytes")
"""What plans depend on besides."""
_BATCH = 512
"""Samples of a transformer's step, by default."""


_BATCH_OF_GPU = 32
"""Likewise, of a file's network on a GPU."""


class _Job(Part):
    name: str = Field(min_length=1)
    config: str | dict[str, Any] | None = None
    workload: str | None = None
    onnx: str | None = None
    step_s: dict[str, float] | None = None
    iterations: float | None = Field(default=None, gt=0)
    tokens: float | None = Field(default=None, gt=0)
    servers: tuple[int, ...] = ()
    arrival_s: float = Field(default=0.0, ge=0)
    weight: float = Field(default=1.0, ge=0)
    deadline_s: float | None = None
    global_batch: int = Field(default=_BATCH, ge=1)
    sequence: int | None = Field(default=None, ge=1)
    precision: str | None = None
    batch: int | None = Field(default=None, ge=1)
    compressors: tuple[str, ...] = ()
    error_budget: float | None = Field(default=None, ge=0)
    gradient_bytes: float | None = Field(default=None, ge=0)


@checked
def read_cluster_jobs(
    path: str | Path, *, cluster: str | Path | Cluster, objective: str | None = None, name: str | None = None
) -> JointInstance:
    """Jobs, each with a choice for every number of servers that it may have.

    Where a job does not say how many, it may have powers of two, and all servers: from one on if it is a transformer,
    from two on otherwise. Jobs that train the same in the same way share plans.

    Parameters
    ----------
    path : str or Path
        ``.toml`` or ``.json``; files that it names are looked for beside it.
    cluster : str, Path or Cluster
        A cluster's file or bundled name, with one kind of servers.
    objective : {"makespan", "weighted_completion", "weighted_tardiness"}, optional
        None: the file's.
    name : str, optional
        None: the file's, or its stem.

    Raises
    ------
    InstanceError
        If a file cannot be read, or a job makes no sense on the cluster.
    OptionError
        If the cluster lacks what a job needs.
    """
    path = Path(path)
    data = _data(path)
    found = load(cluster)
    if len(found.servers) > 1:
        raise InstanceError(f"cluster '{found.name}' has {len(found.servers)} kinds of servers; jobs take one kind")
    many = found.servers[0].count
    if odd := sorted(data.keys() - {"name", "objective", "jobs"}):
        raise InstanceError(f"{path}: there is no such key '{odd[0]}'; keys are: name, objective, jobs")
    rows = data.get("jobs")
    if not isinstance(rows, list) or not rows:
        raise InstanceError(f"{path}: there are no jobs; give a table [[jobs]] for each")
    made = _Made(path, found, many)
    jobs = [made.job(place, row) for place, row in enumerate(rows)]
    return JointInstance.from_data(
        {
            "name": name or data.get("name") or path.stem,
            "source": f"{path.name}: jobs of cluster '{found.name}'",
            "servers": many,
            "problems": made.problems,
            "workloads": made.workloads,
            "jobs": jobs,
            "objective": objective or data.get("objective", "makespan"),
            **made.fabric(),
        },
        str(path),
    )


def _data(path: Path) -> dict[str, Any]:
    try:
        text = read_text(path)
        data = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (UnreadableError, OSError) as fault:
        raise InstanceError(f"{path}: cannot be read: {fault}") from None
    except ValueError as fault:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise InstanceError(f"{path}: not valid {kind}: {fault}") from None
    if not isinstance(data, dict):
        raise InstanceError(f"{path}: expected name, objective and jobs")
    return data


class _Made:
    """Workloads and problems, as jobs ask for them."""

    def __init__(self, path: Path, cluster: Cluster, many: int) -> None:
        self.path, self.cluster, self.many = path, cluster, many
        self.problems: list[Instance] = []
        self.workloads: list[dict[str, Any]] = []
        self._known: dict[str, int] = {}

    def job(self, place: int, row: Any) -> dict[str, Any]:
        """The data of a job; its workload is made if there is none like it."""
        where = f"{self.path}: jobs[{place}]"
        try:
            job = _Job.model_validate(row)
        except ValidationError as fault:
            raise InstanceError(f"{where}: {_first(fault)}") from None
        where = f"{where} ('{job.name}')"
        told = [each for each in _TRAINED if getattr(job, each) is not None]
        if len(told) != 1:
            raise InstanceError(
                f"{where}: has {' and '.join(told) or 'nothing to train'}; give one of: {', '.join(_TRAINED)}"
            )
        if job.deadline_s is not None and job.deadline_s < job.arrival_s:
            raise InstanceError(
                f"{where}: its deadline, {job.deadline_s:g} s, is before its arrival, {job.arrival_s:g} s"
            )
        if (job.compressors or job.error_budget is not None) and job.workload is None and job.onnx is None:
            raise InstanceError(f"{where}: compressors and error_budget are for a workload or a file of ONNX")
        widths = self._widths(where, job)
        key = json.dumps(job.model_dump(include={*_TRAINED, *_PLANNED_BY}) | {"servers": widths})
        if key not in self._known:
            try:
                choices = [self._crossing(job, choice) for choice in self._choices(job, widths)]
            except DdloptError as fault:
                raise InstanceError(f"{where}: {fault}") from None
            self._known[key] = len(self.workloads)
            self.workloads.append({"name": _name(job), "choices": choices})
        workload = self._known[key]
        return {
            "name": job.name,
            "workload": workload,
            "iterations": self._iterations(where, job),
            **job.model_dump(include={"arrival_s", "weight", "deadline_s"}),
        }

    def fabric(self) -> dict[str, Any]:
        """That of the cluster's file, if it has one."""
        if self.cluster.fabric is None:
            return {}
        return {"fabric": {"groups": self.cluster.fabric.groups(self.many, self.cluster.network)}}

    def _crossing(self, job: _Job, choice: dict[str, Any]) -> dict[str, Any]:
        if self.cluster.fabric is None:
            return choice
        sent = job.gradient_bytes
        if sent is None:
            sent = gradient_bytes(self.problems[choice["problem"]]) if "problem" in choice else 0.0
        return choice | {"crossing_bytes": crossing_bytes(sent, choice["servers"])}

    def _widths(self, where: str, job: _Job) -> list[int]:
        if job.step_s is not None:
            if not job.step_s or not all(each.isascii() and each.isdigit() and int(each) > 0 for each in job.step_s):
                raise InstanceError(f"{where}: step_s has keys {list(job.step_s)}; they are numbers of servers")
            widths = sorted(map(int, job.step_s))
        else:
            first = 1 if job.config is not None else 2
            powers = [2**power for power in range(30) if first <= 2**power <= self.many]
            widths = sorted({*job.servers} or {*powers, self.many})
        if widths[0] < 1:
            raise InstanceError(f"{where}: servers has {widths[0]}; a job needs at least one")
        if widths[-1] > self.many:
            raise InstanceError(
                f"{where} may have {widths[-1]} servers, and cluster '{self.cluster.name}' has {self.many}"
            )
        if widths[0] < 2 and (job.workload is not None or job.onnx is not None):
            raise InstanceError(f"{where}: servers has {widths[0]}; links are laid between at least 2")
        return widths

    def _iterations(self, where: str, job: _Job) -> float:
        if (job.iterations is None) == (job.tokens is None):
            raise InstanceError(f"{where}: give either iterations or tokens")
        if job.tokens is None:
            assert job.iterations is not None
            return job.iterations
        if job.config is None or job.sequence is None:
            raise InstanceError(f"{where}: tokens need config, global_batch and sequence; else give iterations")
        return float(ceil(job.tokens / (job.global_batch * job.sequence)))

    def _choices(self, job: _Job, widths: list[int]) -> list[dict[str, Any]]:
        if job.step_s is not None:
            return [{"servers": width, "step_s": job.step_s[str(width)]} for width in widths]
        if job.config is None:
            return [{"servers": width, "problem": self._add(self._codesign(job, width, widths[0]))} for width in widths]
        options: dict[str, Any] = {
            "global_batch": job.global_batch,
            "sequence": job.sequence,
            "precision": job.precision,
        }
        config = job.config if isinstance(job.config, dict) else self._file(job.config)
        made = read_transformer_pipeline(config, **self._of_cluster(_KNOWN, widths[-1]), **options)
        assert isinstance(made, StepInstance)
        place, devices = self._add(made), made.devices // widths[-1]
        return [{"servers": width, "problem": place, "devices": width * devices} for width in widths]

    def _codesign(self, job: _Job, width: int, least: int) -> Instance:
        if job.workload is not None and job.workload not in JOBS:
            raise InstanceError(f"there is no workload '{job.workload}'; there are: {', '.join(JOBS)}")
        options: dict[str, Any] = self._of_cluster(_LINKS, width)
        options["degree"] = min(int(options["degree"]), width - 1)
        options |= {"compressors": job.compressors, "error_budget": job.error_budget}
        if job.workload is not None:
            return of_topoopt(job.workload, least=least, batch_per_gpu=job.batch, **options)
        assert job.onnx is not None
        return read_onnx_codesign(
            self._file(job.onnx), **options, batch=share_of_batch(job.batch or _BATCH_OF_GPU, least, width)
        )

    def _of_cluster(self, known: tuple[str, ...], width: int) -> dict[str, Any]:
        options: dict[str, Any] = applied({"cluster": self.cluster}, dict.fromkeys(known), "jobs")
        return options | {"servers": width}

    def _file(self, named: str) -> Path:
        found = self.path.parent / named
        if not found.exists():
            raise InstanceError(f"there is no file '{found}'")
        return found

    def _add(self, problem: Instance) -> int:
        self.problems.append(problem)
        return len(self.problems) - 1


_KNOWN = (
    *("gpus_per_server", "accelerator", "memory_gigabytes", "intra_gigabytes_per_s"),
    *("network_gigabit_per_s", "latency_us", "unit_servers", "spine_gigabit_per_s"),
)
"""Of a cluster, for transformers; and for co-designs."""
_LINKS = ("degree", "gigabit_per_s", "optics", "gpus_per_server", "accelerator", "memory_gigabytes")


def _name(job: _Job) -> str:
    if isinstance(job.config, dict):
        return str(job.config.get("model_type", "transformer"))
    return job.workload or (Path(job.config or job.onnx or job.name).stem)


def _first(fault: ValidationError) -> str:
    first = fault.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        close = get_close_matches(str(first["loc"][-1]), list(_Job.model_fields), 1)
        return f"there is no such key '{place}'" + (
            f"; did you mean '{close[0]}'?" if close else f"; keys are: {', '.join(_Job.model_fields)}"
        )
    return f"{place}: {first['msg'].lower()}" + (
        f" (it is {reprlib.repr(first['input'])})" if first["type"] != "missing" else ""
    )
