"""Networks of the Internet Topology Zoo, in GML or GraphML, as plain graphs.

The Topology Zoo (S. Knight, H. X. Nguyen, N. Falkner, R. Bowden, M. Roughan, "The Internet Topology Zoo", IEEE JSAC 29,
2011) is published under CC BY 4.0, DOI 10.25909/30153949. Its GML files have several nodes of one label, and parallel
edges without saying ``multigraph 1``, which general readers refuse.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx

from ddlopt.instances.readers.text_files import text_of
from ddlopt.models.errors import InstanceError

# A byte.
_BITS = 8


class PlainGraph(NamedTuple):
    """Names of the nodes, each once; edges, each once, as pairs of places in the names; their bandwidths.

    The bandwidths are in bytes per second, None where the file has none for an edge; None where it has none at all.
    """

    names: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]
    bandwidths: tuple[float | None, ...] | None


@dataclass(frozen=True)
class ZooFile:
    """What a file holds.

    Parameters
    ----------
    graph : PlainGraph
    title : str
        Name of the network.
    loops, parallel : int
        Edges from a node to itself, which are dropped, and edges merged into another one between the same nodes.
    parts : tuple of tuple of int
        Connected components, the largest first.
    origin : str
        File, network and, where the file says that it is of the Topology Zoo, that with its licence.
    """

    graph: PlainGraph
    title: str
    loops: int
    parallel: int
    parts: tuple[tuple[int, ...], ...]
    origin: str


def read_graph(path: str | Path) -> PlainGraph:
    """Names, edges and bandwidths of a network, connected or not; see :func:`read_zoo_file`.

    Raises
    ------
    InstanceError
        If the file cannot be read or holds no graph.
    """
    return read_zoo_file(path).graph


def read_zoo_file(path: str | Path) -> ZooFile:
    """A network as a simple graph: bandwidths of parallel edges are added up, edges from a node to itself dropped.

    A name that several nodes have is followed by the node's number; one that is empty is that number. A merged edge
    has the sum of those bandwidths that are known (``LinkSpeedRaw``, in bits per second).

    Parameters
    ----------
    path : str or Path
        A file ``.gml`` or ``.graphml``, perhaps with ``.gz`` behind it.

    Raises
    ------
    InstanceError
        If the file cannot be read or holds no graph.
    """
    path = Path(path)
    found = _parsed(path)
    nodes = {node: place for place, node in enumerate(found.nodes)}
    bandwidths: dict[tuple[int, int], float | None] = {}
    loops = parallel = 0
    for one, other, data in found.edges(data=True):
        low, high = sorted((nodes[one], nodes[other]))
        if low == high:
            loops += 1
            continue
        speed = _speed(path, data)
        if (low, high) in bandwidths:
            parallel += 1
            before = bandwidths[low, high]
            speed = before if speed is None else speed + (before or 0.0)
        bandwidths[low, high] = speed
    if not bandwidths:
        raise InstanceError(f"{path}: has {len(nodes)} nodes and no edge between two of them; expected a network")
    known = any(speed is not None for speed in bandwidths.values())
    edges = tuple(sorted(bandwidths))
    graph = PlainGraph(_names(found), edges, tuple(bandwidths[edge] for edge in edges) if known else None)
    simple = nx.Graph(graph.edges)
    simple.add_nodes_from(range(len(nodes)))
    parts = sorted(
        (tuple(sorted(part)) for part in nx.connected_components(simple)), key=lambda part: (-len(part), part)
    )
    title = str(found.graph.get("Network") or found.graph.get("label") or path.name.partition(".")[0])
    origin = f"{path.name} ({title})"
    if "topology zoo" in str(found.graph.get("Creator", "")).lower():
        origin += " of the Internet Topology Zoo (CC BY 4.0, DOI 10.25909/30153949)"
    return ZooFile(graph, title, loops, parallel, tuple(parts), origin)


def restricted(graph: PlainGraph, nodes: Sequence[int]) -> PlainGraph:
    """The graph on some of its nodes, numbered as these are listed."""
    place = {node: number for number, node in enumerate(nodes)}
    kept = [number for number, (one, other) in enumerate(graph.edges) if one in place and other in place]
    return PlainGraph(
        tuple(graph.names[node] for node in nodes),
        tuple((place[graph.edges[number][0]], place[graph.edges[number][1]]) for number in kept),
        None if graph.bandwidths is None else tuple(graph.bandwidths[number] for number in kept),
    )


def _parsed(path: Path) -> Any:
    """A NetworkX multigraph."""
    text = text_of(path)
    kind = (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()
    if kind not in (".gml", ".graphml"):
        raise InstanceError(f"{path}: expected a file .gml or .graphml of the Topology Zoo")
    try:
        if kind == ".graphml":
            return nx.parse_graphml(text, force_multigraph=True)
        return nx.parse_gml(_as_multigraph(text), label="id")
    except Exception as problem:  # The parsers raise whatever they stumble over.
        reason = " ".join(str(problem).split()) or type(problem).__name__
        raise InstanceError(f"{path}: not valid {kind[1:]}: {reason[:200]}") from None


def _as_multigraph(text: str) -> str:
    """GML that says that edges may be parallel."""
    head, bracket, rest = text.partition("[")
    if bracket and head.split()[-1:] == ["graph"] and "\n  multigraph 1" not in rest:
        return f"{head}[\n  multigraph 1\n{rest}"
    return text


def _speed(path: Path, data: dict[str, Any]) -> float | None:
    """Bandwidth of an edge in bytes per second; None where it is not known."""
    raw = data.get("LinkSpeedRaw")
    if raw is None:
        return None
    try:
        bits = float(raw)
    except (TypeError, ValueError):
        bits = math.nan
    if not 0 <= bits < math.inf:
        raise InstanceError(f"{path}: an edge has LinkSpeedRaw {raw!r}; expected bits per second")
    return bits / _BITS or None


def _names(found: Any) -> tuple[str, ...]:
    labels = [str(data.get("label") or "").strip() for _, data in found.nodes(data=True)]
    numbered = [f"{label} {place}".strip() for place, label in enumerate(labels)]
    names = [label if label and labels.count(label) == 1 else numbered[place] for place, label in enumerate(labels)]
    return tuple(names if len(set(names)) == len(names) else numbered)
