"""Numbers of free hosts by block and rack, in JSON, and gangs.

An object of ``blocks`` (a list for each block of the free hosts of its racks), ``gangs`` (objects of ``hosts``, and
``within``: ``any``, ``block`` or ``rack``), and ``objective``; ``name`` may be there, and a ``note``.
"""

from pathlib import Path
from typing import Any

from ddlopt.instances.options import checked
from ddlopt.instances.readers.text_files import name_of, object_of
from ddlopt.models.cluster.placement.instance import ANYWHERE, PlacementInstance
from ddlopt.models.errors import InstanceError

_KEYS = frozenset({"name", "note", "blocks", "gangs", "objective"})


@checked
def read_racks(path: str | Path, *, objective: str | None = None, name: str | None = None) -> PlacementInstance:
    """Racks ``b0-r0``, ``b0-r1`` and so on in blocks ``b0``, ``b1`` and so on; gangs ``g0``, ``g1`` and so on.

    Parameters
    ----------
    path : str or Path
        ``.json`` or ``.json.gz``.
    objective : {"pairs", "crossings", "max_gangs", "fits"}, optional
        None: the file's.
    name : str, optional
        None: the file's.

    Raises
    ------
    InstanceError
        If the file cannot be read, or the numbers make no instance.
    """
    path = Path(path)
    data = object_of(path, "an object of blocks, gangs and objective", keys=_KEYS)
    leaves = []
    for block, racks in enumerate(_list(path, "blocks", data.get("blocks"))):
        for rack, hosts in enumerate(_list(path, f"blocks[{block}]", racks)):
            leaves.append({"name": f"b{block}-r{rack}", "inside": [f"b{block}"], "hosts": hosts})
    gangs = []
    for place, gang in enumerate(_list(path, "gangs", data.get("gangs"))):
        if not isinstance(gang, dict) or "hosts" not in gang:
            raise InstanceError(f"{path}: gangs[{place}] is no object with hosts")
        gangs.append({"name": f"g{place}", "within": ANYWHERE, **gang})
    note = data.get("note")
    return PlacementInstance.from_data(
        {
            "name": name or data.get("name") or name_of(path),
            "source": f"{path.name}: numbers of free hosts by rack" + (f"; {note}" if note else ""),
            "levels": ["block", "rack"],
            "leaves": leaves,
            "gangs": gangs,
            "objective": objective or data.get("objective", "pairs"),
        },
        str(path),
    )


def _list(path: Path, where: str, data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise InstanceError(f"{path}: {where} is no list")
    return data
