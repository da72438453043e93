"""A list of nodes: a line for each, with the domains that it is in.

The first line names the columns: ``node`` first, then levels, the outermost first. Columns are parted by spaces or
tabs, or by commas if the first line has one. ``node`` may be a hostlist such as ``node[01-04]`` where columns are
parted by spaces. What follows a ``#`` is a comment. Without levels all nodes are in one ``cluster``.
"""

from pathlib import Path

from ddlopt.instances.options import checked
from ddlopt.instances.readers.places.common import hosts_of, instance_of
from ddlopt.instances.readers.text_files import text_of
from ddlopt.models.cluster.placement.instance import PlacementInstance
from ddlopt.models.errors import InstanceError


@checked
def read_node_list(
    path: str | Path,
    *,
    gangs: str | int = "1",
    busy: str | None = None,
    objective: str = "pairs",
    name: str | None = None,
) -> PlacementInstance:
    """Nodes by their domains.

    Parameters
    ----------
    path : str or Path
    gangs : str or int
        Such as ``3x8,4:rack``: three gangs of 8 hosts anywhere, one of 4 within a rack.
    busy : str, optional
        A hostlist of nodes that are not free.
    objective : {"pairs", "crossings", "max_gangs", "fits"}
        What is optimized.
    name : str, optional
        None: the file's.

    Raises
    ------
    InstanceError
        If the file cannot be read or a line has other columns, a node is there twice, or levels do not nest.
    OptionError
        If an option is not understood.
    """
    path = Path(path)
    rows = []
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        if text := line.partition("#")[0].strip():
            rows.append((f"{path}: line {number}", text))
    if not rows:
        raise InstanceError(f"{path}: has no lines; the first one names the columns, such as: node block rack")
    comma = "," in rows[0][1]
    columns = _cells(rows[0][1], comma)
    if columns[0].lower() != "node" or not all(columns) or len(set(columns)) < len(columns):
        raise InstanceError(f"{rows[0][0]}: columns are '{rows[0][1][:60]}'; expected names such as: node block rack")
    levels = columns[1:] or ["cluster"]
    places: dict[str, tuple[list[str], list[str]]] = {}
    seen: dict[str, str] = {}
    for where, text in rows[1:]:
        cells = _cells(text, comma)
        if len(cells) != len(columns) or not all(cells):
            raise InstanceError(f"{where}: '{text[:60]}' has {len(cells)} columns, and the first line {len(columns)}")
        *around, leaf = cells[1:] or ["cluster"]
        known, hosts = places.setdefault(leaf, (around, []))
        if known != around:
            level = next(place for place, (a, b) in enumerate(zip(known, around, strict=True)) if a != b)
            raise InstanceError(
                f"{where}: levels do not nest: {levels[-1]} '{leaf}' is in {levels[level]} '{around[level]}' here and "
                f"in '{known[level]}' before; name racks of different blocks differently"
            )
        for host in hosts_of(where, cells[0]):
            if host in seen:
                raise InstanceError(f"{where}: node '{host}' is there already, in {seen[host]}")
            seen[host] = where.rpartition(": ")[2]
            hosts.append(host)
    if not places:
        raise InstanceError(f"{path}: has no nodes below its first line")
    source = f"a list of {len(seen)} nodes"
    return instance_of(path, levels, places, gangs, source, {"busy": busy, "objective": objective, "name": name})


def _cells(text: str, comma: bool) -> list[str]:
    return [cell.strip() for cell in text.split(",")] if comma else text.split()
