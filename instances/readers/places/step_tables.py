"""Jobs with tables of step times, in JSON.

An object of ``servers``, ``jobs`` (objects of ``iterations``, ``step``: seconds of an iteration on 1, 2, … servers or
null, and if one likes ``name``, ``arrival``, ``weight``, ``deadline``, ``least``), ``mode`` (``rigid``, or ``slots``
with ``slot``, their length) and ``objective``; ``name`` and a ``note`` may be there.
"""

from pathlib import Path
from typing import Any

from ddlopt.instances.options import checked
from ddlopt.instances.readers.text_files import name_of, object_of
from ddlopt.models.cluster.jobs.instance import JobsInstance
from ddlopt.models.errors import InstanceError

_KEYS = frozenset({"name", "note", "servers", "jobs", "mode", "slot", "objective"})
_FIELDS = {
    "name": "name",
    "iterations": "iterations",
    "arrival": "arrival_s",
    "weight": "weight",
    "deadline": "deadline_s",
    "step": "step_s",
    "least": "least_s",
}


@checked
def read_step_tables(path: str | Path, *, objective: str | None = None, name: str | None = None) -> JobsInstance:
    """Jobs, named ``job-0``, ``job-1`` and so on where the file has no names.

    Parameters
    ----------
    path : str or Path
        ``.json`` or ``.json.gz``.
    objective : {"makespan", "weighted_completion", "weighted_tardiness"}, optional
        None: the file's.
    name : str, optional
        None: the file's.

    Raises
    ------
    InstanceError
        If the file cannot be read, or the tables make no instance.
    """
    path = Path(path)
    data = object_of(path, "an object of servers, jobs and objective", keys=_KEYS)
    rows = data.get("jobs")
    if not isinstance(rows, list):
        raise InstanceError(f"{path}: jobs is no list")
    jobs: list[dict[str, Any]] = []
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise InstanceError(f"{path}: jobs[{place}] is no object")
        if odd := sorted(row.keys() - _FIELDS.keys()):
            raise InstanceError(f"{path}: jobs[{place}]: '{odd[0]}' is unknown; it has: {', '.join(_FIELDS)}")
        jobs.append({"name": f"job-{place}"} | {_FIELDS[key]: value for key, value in row.items()})
    note = data.get("note")
    return JobsInstance.from_data(
        {
            "name": name or data.get("name") or name_of(path),
            "source": f"{path.name}: tables of step times" + (f"; {note}" if note else ""),
            "servers": data.get("servers"),
            "jobs": jobs,
            "mode": data.get("mode", "rigid"),
            "slot_s": data.get("slot"),
            "objective": objective or data.get("objective", "makespan"),
        },
        str(path),
    )
