"""Collectives on boxes of accelerators and on graphs of any size: kind ``collective``."""

import math
from collections.abc import Callable, Iterable
from itertools import pairwise, product
from pathlib import Path
from typing import Literal, get_args

import networkx as nx
import numpy as np

from ddlopt import instances
from ddlopt.instances.clusters.file import load
from ddlopt.instances.options import at_least, one_of, positive
from ddlopt.instances.workloads.links_given import network as joined
from ddlopt.instances.workloads.links_given import of_cluster, of_design
from ddlopt.models.catalogue import require_feasible
from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.errors import OptionError, a_or_an
from ddlopt.models.topology import TopologyDesign, TopologyInstance, TopologyProblem
from ddlopt.models.topology.collective.instance import LARGEST, Collective, CollectiveInstance

# A definition.
_MICRO = 1e-6
_GB = 1e9
"""Bytes."""
_BOXES = {
    "dgx-a100": (300 * _GB, 25 * _GB),
    "dgx-h100": (450 * _GB, 50 * _GB),
}
"""Bytes per second of an accelerator to the switch of its box, and to the network."""
_MI250 = (
    "0-1:200 0-4:100 0-8:50 1-5:50 1-9:50 1-10:50 2-3:200 2-6:50 2-9:50 2-10:50 3-7:100 3-11:50 4-5:200 4-6:50 5-6:50 "
    "5-7:50 6-7:200 8-9:200 8-12:100 9-13:50 10-11:200 10-14:50 11-15:100 12-13:200 12-14:50 13-14:50 13-15:50 "
    "14-15:200"
)
"""Links of a box of sixteen MI250 dies, GB/s in each direction: as in liangyuRain/ForestColl, topologies.py."""

_NDV2 = "0-1:2 0-2:1 0-3:1 0-4:2 1-2:1 1-3:2 1-5:1 2-3:2 2-6:1 3-7:1 4-5:2 4-6:1 4-7:1 5-6:1 5-7:2 6-7:2"
"""Links of 25 GB/s in each direction between the eight accelerators of a box, as in microsoft/TE-CCL, ndv2.py."""

_MOST_PORTS = 42
"""Of a switch of a fat-tree: 18 522 accelerators."""

Network = Literal[
    "dgx-a100", "dgx-h100", "rails", "mi250", "ndv2", "dgx2", "ring", "two-way-ring", "path", "star", "complete",
    "hypercube", "torus", "fat-tree", "circulant", "kautz", "de-bruijn", "random", "unequal",
]  # fmt: skip
Arcs = dict[tuple[int, int], float]


def collective(
    rng: np.random.Generator,
    network: str = "dgx-a100",
    collective: str = "all-gather",
    gigabytes: float = 1.0,
    root: int | None = None,
    boxes: int = 1,
    accelerators: int = 8,
    dimensions: str | int = "4x4",
    twist: int | None = None,
    degree: int = 2,
    offsets: str | int = "1,3",
    gigabytes_per_s: float = 1.0,
    job: str | None = None,
    design: str | None = None,
    cluster: str | None = None,
    step_us: float | None = None,
) -> CollectiveInstance:
    """One collective on a network.

    Parameters
    ----------
    rng : numpy.random.Generator
        Of ``random`` and ``unequal``.
    network : str
        Boxes: ``dgx-a100``, ``dgx-h100`` (eight accelerators on a switch, and a link of each to one switch of the
        network), ``rails`` (the same with eight switches between boxes, one for the accelerators of each place),
        ``mi250`` (a box of sixteen without switches), ``ndv2`` (eight with links between them, one of which sends to
        other boxes and another one gets) and ``dgx2`` (sixteen on a switch, every second one sends to its left
        neighbour's place in other boxes), both as TE-CCL has them. ``fat-tree``: accelerators under three levels of
        switches with ``degree`` ports. Graphs: ``ring``, ``circulant``, ``kautz``,
        ``de-bruijn`` and ``random`` have links in one direction, ``unequal`` has random bandwidths of 1 to 4 on a
        random graph, the others have the same in both.
    collective : str
        all-gather, reduce-scatter, all-reduce, broadcast, all-to-all.
    gigabytes : float
        M, in 10^9 bytes.
    root : int, optional
        Of a broadcast: 0.
    boxes : int
        How many, all on one network.
    accelerators : int
        Of a graph whose size nothing else says.
    dimensions : str or int
        Of a torus: ``4x4x4``.
    twist : int, optional
        Of a torus with two dimensions: places along the second one by which links around the first one shift. A
        ``4x8`` torus is usually twisted by 4.
    degree : int
        Links out of each accelerator: of ``kautz`` and ``de-bruijn`` (words over ``degree`` letters, one more for
        Kautz; as many accelerators as there are words of the shortest length that gives ``accelerators``), ``random``,
        ``unequal``. Of a ``fat-tree``, ports of a switch, k: :math:`k^3/4` accelerators.
    offsets : str or int
        Of a circulant: accelerator v has links to v plus each.
    gigabytes_per_s : float
        Of each link of a graph, in each direction.
    job : str, optional
        In place of a network: a bundled topology instance, or its file, whose servers are joined by the links of a
        design.
    design : str, optional
        The file of that design; the best known one of a bundled instance if not given.
    cluster : str, optional
        In place of a network: a cluster's file or bundled name, whose tiers are switches.
    step_us : float, optional
        Latency in microseconds, of each link of the longest way that bytes go.
    """
    one_of("network", network, get_args(Network))
    one_of("collective", collective, get_args(Collective))
    positive("gigabytes", gigabytes)
    positive("gigabytes_per_s", gigabytes_per_s)
    if step_us is not None:
        positive("step_us", step_us)
    if job is not None:
        return _in_steps(of_design(*_designed(job, design), collective, gigabytes * _GB, root), step_us)
    if cluster is not None:
        return _in_steps(of_cluster(load(cluster), collective, gigabytes * _GB, root), step_us)
    at_least("boxes", boxes, 1)
    at_least("accelerators", accelerators, 2)
    if max(boxes * 16, accelerators) > LARGEST:
        raise OptionError(f"there would be more than {LARGEST} accelerators")
    if network in _BOXES or network == "rails":
        count, switches, arcs = _boxes(network, boxes)
        name = f"{network}-{boxes}x8"
    elif network in ("ndv2", "dgx2"):
        count, switches, arcs = _ndv2(boxes) if network == "ndv2" else _dgx2(boxes)
        name = f"{network}-{boxes}x{count // boxes}"
    elif network == "mi250":
        count, switches, arcs = 16, 0, _weighted(_MI250, 1)
        name = "mi250-1x16"
    elif network == "fat-tree":
        count, switches, links = _fat_tree(degree)
        name, arcs = f"fat-tree-k{degree}", dict.fromkeys(links, gigabytes_per_s * _GB)
    else:
        count, links, name = _graph(network, accelerators, str(dimensions), twist or 0, degree, str(offsets), rng)
        switches, arcs = 0, {arc: each * gigabytes_per_s * _GB for arc, each in links.items()}
    size, source = gigabytes * _GB, _SOURCES.get(network, "")
    return _in_steps(joined(f"{collective}-{name}", count, switches, arcs, collective, size, root, source), step_us)


def _in_steps(instance: CollectiveInstance, step_us: float | None) -> CollectiveInstance:
    """The instance, with the latency of a step where one is given."""
    return instance if step_us is None else instance.changed(step_s=step_us * _MICRO)


_SOURCES = {
    "dgx-a100": "NVLink of 300 GB/s and a network card of 25 GB/s an accelerator, in each direction (data sheets)",
    "dgx-h100": "NVLink of 450 GB/s and a network card of 50 GB/s an accelerator, in each direction (data sheets)",
    "rails": "NVLink of 450 GB/s and a network card of 50 GB/s an accelerator, in each direction (data sheets)",
    "ndv2": "links and bandwidths as in microsoft/TE-CCL, ndv2.py",
    "dgx2": "links and bandwidths as in microsoft/TE-CCL, dgx2.py",
    "mi250": "bandwidths as in liangyuRain/ForestColl, topologies.py",
}


def _designed(job: str, design: str | None) -> tuple[TopologyInstance, TopologyDesign]:
    """A topology instance, bundled or in a file, and a design for it."""
    instance: Instance
    best: Solution | None
    if Path(job).suffix == ".json":
        instance, best = TopologyProblem.from_file(job), None
    else:
        instance, best = instances.load(job), instances.best(job)
    if not isinstance(instance, TopologyInstance):
        raise OptionError(
            f"job is {job!r}, {a_or_an(instance.kind)}; it is to be a topology instance, which has designs"
        )
    found = best if design is None else TopologyDesign.from_file(design)
    if not isinstance(found, TopologyDesign):
        raise OptionError(f"no design of '{instance.name}' is known; give one by the option design")
    found.belongs_to(instance)
    require_feasible(instance, found)
    return instance, found


def _boxes(network: str, boxes: int) -> tuple[int, int, Arcs]:
    inner, outer = _BOXES.get(network, _BOXES["dgx-h100"])
    count = 8 * boxes
    arcs: Arcs = {}
    for node in range(count):
        ends = [(count + node // 8, inner)]
        if boxes > 1:
            ends.append((count + boxes + (node % 8 if network == "rails" else 0), outer))
        for switch, each in ends:
            arcs[node, switch] = arcs[switch, node] = each
    between = 0 if boxes == 1 else 8 if network == "rails" else 1
    return count, boxes + between, arcs


def _weighted(told: str, unit_gb: float, first: int = 0) -> Arcs:
    """Links the same in both directions, of accelerators from ``first`` on."""
    arcs: Arcs = {}
    for link in told.split():
        ends, _, each = link.partition(":")
        i, j = (first + int(end) for end in ends.split("-"))
        arcs[i, j] = arcs[j, i] = float(each) * unit_gb * _GB
    return arcs


def _ndv2(boxes: int) -> tuple[int, int, Arcs]:
    """Of each box accelerator 0 sends to others and 1 gets, 12.5 GB/s, over a switch where boxes are more than two."""
    arcs: Arcs = {}
    for box in range(boxes):
        arcs |= _weighted(_NDV2, 25, 8 * box)
    ends = range(0, 8 * boxes, 8)
    if boxes == 2:
        arcs |= {(0, 9): 12.5 * _GB, (8, 1): 12.5 * _GB}
    elif boxes > 2:
        arcs |= {(first, 8 * boxes): 12.5 * _GB for first in ends}
        arcs |= {(8 * boxes, first + 1): 12.5 * _GB for first in ends}
    return 8 * boxes, int(boxes > 2), arcs


def _dgx2(boxes: int) -> tuple[int, int, Arcs]:
    """125 GB/s to the switch of the box and from it, 12.5 GB/s from each odd place to the even one before it."""
    count = 16 * boxes
    arcs: Arcs = {}
    for node in range(count):
        arcs[node, count + node // 16] = arcs[count + node // 16, node] = 125 * _GB
    for one, other in product(range(boxes), repeat=2):
        if one != other:
            arcs |= {(16 * one + place, 16 * other + place - 1): 12.5 * _GB for place in range(1, 16, 2)}
    return count, boxes, arcs


def _graph(
    network: str, count: int, dimensions: str, twist: int, degree: int, offsets: str, rng: np.random.Generator
) -> tuple[int, Arcs, str]:
    """Accelerators, relative bandwidths and a name."""
    if network in ("random", "unequal"):
        arcs = _random(count, degree, rng)
        if network == "unequal":
            arcs = {arc: float(rng.integers(1, 5)) for arc in arcs}
        return count, arcs, f"{network}-n{count}-d{degree}"
    if network == "torus":
        sizes = _numbers("dimensions", dimensions, "x", 1)
        if twist and len(sizes) != 2:
            raise OptionError(
                f"twist is {twist}; a torus of two dimensions is twisted, and dimensions is {dimensions!r}"
            )
        name = f"torus-{dimensions}" + (f"-twist{twist}" if twist else "")
        return math.prod(sizes), _both(_torus(sizes, twist)), name
    if network == "circulant":
        steps = _numbers("offsets", offsets, ",", 1)
        name = f"circulant-{count}-{'-'.join(map(str, steps))}"
        return count, {(v, (v + s) % count): 1.0 for v in range(count) for s in steps if s % count}, name
    if network in ("kautz", "de-bruijn"):
        words = _words(network, count, degree)
        numbers = {word: place for place, word in enumerate(words)}
        arcs = {
            (numbers[word], numbers[(*word[1:], letter)]): 1.0
            for word in words
            for letter in range(degree + 1)
            if (*word[1:], letter) in numbers and (*word[1:], letter) != word
        }
        return len(words), arcs, f"{network}-{degree}-{len(words[0])}"
    arcs_of: dict[str, Callable[[], Arcs]] = {
        "ring": lambda: {(v, (v + 1) % count): 1.0 for v in range(count)},
        "two-way-ring": lambda: _both((v, (v + 1) % count) for v in range(count)),
        "path": lambda: _both((v, v + 1) for v in range(count - 1)),
        "star": lambda: _both((0, v) for v in range(1, count)),
        "complete": lambda: {(i, j): 1.0 for i in range(count) for j in range(count) if i != j},
        "hypercube": lambda: _both((v, v ^ (1 << k)) for v in range(count) for k in range(count.bit_length() - 1)),
    }
    if network == "hypercube" and count & (count - 1):
        raise OptionError(f"accelerators is {count}; a hypercube has a power of two")
    return count, arcs_of[network](), f"{network}-{count}"


def _both(edges: Iterable[tuple[int, int]]) -> Arcs:
    return {arc: 1.0 for i, j in edges if i != j for arc in ((i, j), (j, i))}


def _numbers(option: str, text: str, mark: str, least: int) -> list[int]:
    parts = text.split(mark)
    if not all(part.isdecimal() and len(part) < 6 and int(part) >= least for part in parts):
        raise OptionError(f"{option} is {text!r}; expected whole numbers of at least {least}, joined by '{mark}'")
    if math.prod(map(int, parts)) > LARGEST and option == "dimensions":
        raise OptionError(f"{option} is {text!r}: more than {LARGEST} accelerators")
    return [int(part) for part in parts]


def _torus(sizes: list[int], twist: int) -> Iterable[tuple[int, int]]:
    places = {place: number for number, place in enumerate(product(*map(range, sizes)))}
    for place, number in places.items():
        for axis, size in enumerate(sizes):
            further = [*place]
            further[axis] = (place[axis] + 1) % size
            if twist and axis == 0 and not further[0]:
                further[1] = (place[1] + twist) % sizes[1]
            yield number, places[tuple(further)]


def _fat_tree(ports: int) -> tuple[int, int, Arcs]:
    """Accelerators under edge switches, these under those that join a pod, these under the core.

    M. Al-Fares, A. Loukissas, A. Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008.
    """
    if ports % 2 or not 2 <= ports <= _MOST_PORTS:
        raise OptionError(f"degree is {ports}; a switch of a fat-tree has an even number of ports, 2 to {_MOST_PORTS}")
    half = ports // 2
    count, edge, pod = half * half * ports, ports * half, ports * half
    links = [(host, count + host // half) for host in range(count)]
    for switch, place in product(range(edge), range(half)):
        above = switch // half * half + place
        links.append((count + switch, count + edge + above))
    for switch, place in product(range(pod), range(half)):
        links.append((count + edge + switch, count + edge + pod + switch % half * half + place))
    return count, edge + pod + half * half, _both(links)


def _words(network: str, count: int, degree: int) -> list[tuple[int, ...]]:
    """All words of the least length that gives enough; in Kautz graphs no letter stands twice in a row."""
    at_least("degree", degree, 2)
    letters, length = (degree + 1, 1) if network == "kautz" else (degree, 1)
    while (letters * degree ** (length - 1) if network == "kautz" else degree**length) < count:
        length += 1
    words = product(range(letters), repeat=length)
    return [each for each in words if network == "de-bruijn" or all(a != b for a, b in pairwise(each))]


def _random(count: int, degree: int, rng: np.random.Generator) -> Arcs:
    """As many permutations as links, drawn until each node has that many other neighbours and reaches all."""
    if not 1 <= degree < count:
        raise OptionError(f"degree is {degree}; expected 1..{count - 1} with {count} accelerators")
    for _ in range(10_000):
        arcs: set[tuple[int, int]] = set()
        for _ in range(degree):
            free = None
            for _ in range(1000):
                order = rng.permutation(count)
                drawn = [(int(order[k]), int(order[(k + 1) % count])) for k in range(count)]
                if not arcs.intersection(drawn):
                    free = drawn
                    break
            if free is None:
                break
            arcs.update(free)
        if len(arcs) == count * degree and nx.is_strongly_connected(nx.DiGraph(list(arcs))):
            return dict.fromkeys(sorted(arcs), 1.0)
    raise OptionError(f"no random graph with {count} accelerators and degree {degree} was found; use fewer links")
