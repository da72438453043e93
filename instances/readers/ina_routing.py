"""Networks and jobs in the JSON layout of INARouting.

An object with ``network_json`` (``nodes``: lists of names by kind, of which ``all_servers`` are hosts; ``links``: a
list of ``source``, ``target``, ``bandwidth``, one for each direction, itself or under
``potential_links_with_bandwidth``; ``switch_processing_capacities``) and ``jobs_json`` (``id``, ``workers``, ``ps``).
Numbers have no unit there; they are read as bytes per second.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ddlopt.instances.readers.text_files import object_of
from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.models.errors import InstanceError

_HOSTS = "all_servers"


def read_ina_routing(
    path: str | Path, goal: str = "rates", merging: bool = True, name: str | None = None
) -> GraphInstance:
    """An aggregation network with jobs; every switch can aggregate for every job.

    Parameters
    ----------
    path : str or Path
    goal : {"rates", "utilization", "congestion"}
    merging : bool
        Messages of a job that meet are aggregated, as the layout's authors have it.
    name : str, optional
        Of the instance; by default the file's.

    Raises
    ------
    InstanceError
        If the file cannot be read, has another layout, or the directions of a link differ in bandwidth.

    References
    ----------
    jianglong-nie/INARouting (no licence stated; none of its data is here).
    """
    path = Path(path)
    data = object_of(path, "an object with network_json and jobs_json")
    try:
        network, jobs = data["network_json"], data["jobs_json"]
        hosts = list(network["nodes"][_HOSTS])
        switches = [each for kind, names in network["nodes"].items() if kind != _HOSTS for each in names]
        number = {each: place for place, each in enumerate([*switches, *hosts])}
        rates = network["switch_processing_capacities"]
        nodes = [{"name": s, "slots": len(jobs), "aggregation_bytes_per_s": rates[s]} for s in switches]
        fields = {
            "name": name or path.name.removesuffix(".json"),
            "source": "in the layout of jianglong-nie/INARouting",
            "nodes": [*nodes, *({"name": host, "forwards": False} for host in hosts)],
            "links": _links(path, network["links"], number),
            "jobs": [
                {"name": str(job["id"]), "workers": [number[w] for w in job["workers"]], "server": number[job["ps"]]}
                for job in jobs
            ],
            "goal": goal,
            "merging": merging,
        }
    except (KeyError, TypeError, AttributeError) as problem:
        raise InstanceError(f"{path}: expected the layout of INARouting, but {problem!r}") from None
    return GraphInstance.from_data(fields, str(path))


def _links(path: Path, links: Any, number: Mapping[str, int]) -> list[dict[str, Any]]:
    rows = links["potential_links_with_bandwidth"] if isinstance(links, Mapping) else links
    found: dict[tuple[int, int], float] = {}
    for row in rows:
        one, other, speed = number[row["source"]], number[row["target"]], row["bandwidth"]
        ends = (min(one, other), max(one, other))
        if found.setdefault(ends, speed) != speed:
            raise InstanceError(
                f"{path}: link {row['source']}-{row['target']} has bandwidth {speed} in one direction and "
                f"{found[ends]} in the other; give it one"
            )
    return [{"ends": ends, "bandwidth_bytes_per_s": speed} for ends, speed in sorted(found.items())]
