"""Objects of a Kubernetes cluster with Kueue, as ``kubectl get … -o yaml`` writes them: nodes and pod sets in levels.

Read are ``Topology`` (its levels are labels of nodes), ``ResourceFlavor`` (which nodes), ``Node``, and what has pods:
``Job``, ``JobSet`` and ``Workload``, with the annotations ``kueue.x-k8s.io/podset-required-topology`` and its like.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ddlopt.instances.options import at_least, checked
from ddlopt.instances.readers.places.common import instance_of
from ddlopt.instances.readers.places.yaml_text import documents_of
from ddlopt.models.cluster.placement.instance import ANYWHERE, MOST_HOSTS, PlacementInstance
from ddlopt.models.errors import InstanceError, OptionError

_HOSTNAME = "kubernetes.io/hostname"
_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
_KINDS = ("Topology", "ResourceFlavor", "Node", "Job", "JobSet", "Workload")


class _Object(NamedTuple):
    where: str
    kind: str
    name: str
    data: Mapping[str, Any]

    def get(self, *keys: str) -> Any:
        """What is at a path of keys; None where there is nothing."""
        found: Any = self.data
        for key in keys:
            if not isinstance(found, Mapping):
                return None
            found = found.get(key)
        return found


@checked
def read_kueue(
    path: str | Path,
    *,
    gangs: str | int | None = None,
    topology: str | None = None,
    flavor: str | None = None,
    resource: str | None = None,
    pod: int = 1,
    busy: str | None = None,
    objective: str = "pairs",
    name: str | None = None,
) -> PlacementInstance:
    """Nodes that have all labels of the topology, by level, and pod sets as gangs.

    A node takes one pod, or as many as its allocatable ``resource`` has room for. Where the innermost level is the
    hostname, nodes are leaves. Of levels of the same name with different ones around them Kueue makes different
    domains; so does this reader, with names such as ``b1/r1``. Nodes without the labels, those that are unschedulable,
    and objects of other kinds are left out and counted in ``source``.

    Parameters
    ----------
    path : str or Path
    gangs : str or int, optional
        Such as ``3x8,4:rack``, in place of the pod sets in the file.
    topology, flavor : str, optional
        Names of the ones to take; None: the only one, or that of the only flavor; all nodes where there is no flavor.
    resource : str, optional
        Such as ``nvidia.com/gpu``; None: one pod a node.
    pod : int
        Of the resource, a pod.
    busy : str, optional
        A hostlist of nodes that are not free.
    objective : {"pairs", "crossings", "max_gangs", "fits"}
        What is optimized.
    name : str, optional
        None: the file's.

    Raises
    ------
    InstanceError
        If the file cannot be read, or the objects are none of these.
    OptionError
        If an option is not understood.
    """
    at_least("pod", pod, 1)
    path = Path(path)
    objects = list(_objects(path))
    chosen = _chosen(path, objects, "ResourceFlavor", flavor, needed=flavor is not None)
    asked = topology or (chosen.get("spec", "topologyName") if chosen else None)
    labels = _labels(_chosen(path, objects, "Topology", asked, needed=True))
    wanted = (chosen.get("spec", "nodeLabels") if chosen else None) or {}
    if not isinstance(wanted, Mapping):
        raise InstanceError(f"{path}: nodeLabels of ResourceFlavor '{chosen.name if chosen else ''}' are no labels")
    places, out = dict[str, tuple[list[str], list[str]]](), 0
    for node in (each for each in objects if each.kind == "Node"):
        own = node.get("metadata", "labels") or {}
        if not isinstance(own, Mapping):
            raise InstanceError(f"{node.where}: labels of node '{node.name}' are no labels")
        own = {_HOSTNAME: node.name, **own}
        hidden = str(node.get("spec", "unschedulable")).lower() == "true"
        if hidden or any(not own.get(label) for label in labels) or any(own.get(key) != wanted[key] for key in wanted):
            out += 1
            continue
        values = [str(own[label]) for label in labels]
        if labels[-1] == _HOSTNAME:
            # Hostnames differ, so that they are domains by themselves.
            domains = ["/".join(values[: place + 1]) for place in range(len(values) - 1)] + [values[-1]]
        else:
            domains = ["/".join(values[: place + 1]) for place in range(len(values))]
        _, hosts = places.setdefault(domains[-1], (domains[:-1], []))
        hosts += _slots(node, resource, pod)
    if not places:
        raise InstanceError(f"{path}: no node has all labels of the topology: {', '.join(labels)}")
    found = gangs if gangs is not None else list(_pod_sets(objects, labels))
    if not found:
        raise OptionError(f"{path.name} has no Job, JobSet or Workload with pods; give gangs such as 3x8")
    others = sum(each.kind not in _KINDS for each in objects)
    source = f"objects of Kubernetes; left out are {out} nodes and {others} objects of other kinds"
    return instance_of(path, labels, places, found, source, {"busy": busy, "objective": objective, "name": name})


def _objects(path: Path) -> Iterator[_Object]:
    waiting = [(f"document {place}", each) for place, each in enumerate(documents_of(path), start=1)]
    while waiting:
        place, data = waiting.pop(0)
        where = f"{path}: {place}"
        if not isinstance(data, Mapping) or not isinstance(data.get("kind"), str):
            raise InstanceError(f"{where} is no object of Kubernetes: it has no kind")
        if data["kind"].endswith("List") and isinstance(data.get("items"), list):
            waiting += [(f"{place}, items[{number}]", each) for number, each in enumerate(data["items"])]
            continue
        metadata = data.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        if not isinstance(name, str) or not name:
            raise InstanceError(f"{where}: {data['kind']} has no metadata.name")
        yield _Object(where, data["kind"], name, data)


def _chosen(path: Path, objects: list[_Object], kind: str, wanted: str | None, needed: bool) -> Any:
    """The object of a kind that is meant; None where there is none and none is needed."""
    found = [each for each in objects if each.kind == kind and wanted in (None, each.name)]
    names = [each.name for each in objects if each.kind == kind]
    if not found and (needed or wanted is not None):
        has = f"; there are: {', '.join(names)}" if names else ""
        raise InstanceError(f"{path}: has no {kind}{'' if wanted is None else f' {wanted!r}'}{has}")
    if len(found) > 1:
        option = "flavor" if kind == "ResourceFlavor" else "topology"
        raise OptionError(f"{path.name} has several of kind {kind}; say which with {option}: {', '.join(names)}")
    return found[0] if found else None


def _labels(topology: _Object) -> list[str]:
    levels = topology.get("spec", "levels")
    labels = [each.get("nodeLabel") if isinstance(each, Mapping) else None for each in levels or []]
    known = [label for label in labels if isinstance(label, str) and label]
    if not known or len(known) < len(labels):
        raise InstanceError(f"{topology.where}: Topology '{topology.name}' needs spec.levels, each with a nodeLabel")
    return known


def _slots(node: _Object, resource: str | None, pod: int) -> list[str]:
    """A name for each pod that a node takes."""
    if resource is None:
        return [node.name]
    amount = node.get("status", "allocatable", resource) or node.get("status", "capacity", resource) or "0"
    if not isinstance(amount, str) or not amount.isdecimal() or int(amount) > MOST_HOSTS:
        raise InstanceError(f"{node.where}: node '{node.name}' has {amount!r:.40} of {resource}, not a whole number")
    count = int(amount) // pod
    return [node.name] if count == 1 else [f"{node.name}.{slot}" for slot in range(count)]


def _pod_sets(objects: list[_Object], labels: list[str]) -> Iterator[dict[str, Any]]:
    for each in objects:
        if each.kind == "Job":
            yield _gang(
                each, each.name, _count(each, each.get("spec", "parallelism")), _required(each, each.data), labels
            )
        for number, row in enumerate(_rows(each, {"JobSet": "replicatedJobs", "Workload": "podSets"}.get(each.kind))):
            name = f"{each.name}/{row.get('name', number)}"
            if each.kind == "Workload":
                request = row.get("topologyRequest")
                within = request.get("required") if isinstance(request, Mapping) else None
                yield _gang(each, name, _count(each, row.get("count")), within, labels)
            else:
                job = _Object(each.where, "Job", name, row.get("template") or {})
                count = _count(each, row.get("replicas")) * _count(each, job.get("spec", "parallelism"))
                yield _gang(each, name, count, _required(each, job.data), labels)


def _rows(each: _Object, key: str | None) -> list[Mapping[str, Any]]:
    rows = each.get("spec", key) if key else []
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise InstanceError(f"{each.where}: spec.{key} of '{each.name}' is no list of objects")
    return rows


def _required(each: _Object, job: Mapping[str, Any]) -> Any:
    """The level that the pods of a job ask for in their annotations."""
    template = _Object(each.where, each.kind, each.name, job)
    return template.get("spec", "template", "metadata", "annotations", _REQUIRED)


def _count(each: _Object, text: Any) -> int:
    if text is None:
        return 1
    if not isinstance(text, str) or not text.isdecimal() or int(text) > MOST_HOSTS:
        raise InstanceError(f"{each.where}: '{each.name}' has {text!r:.40} pods; counts are whole numbers")
    return int(text)


def _gang(each: _Object, name: str, hosts: int, within: Any, labels: list[str]) -> dict[str, Any]:
    if within is not None and within not in labels:
        raise InstanceError(f"{each.where}: '{name}' requires level {within!r:.80}; levels are: {', '.join(labels)}")
    return {"name": name, "hosts": hosts, "within": within or ANYWHERE}
