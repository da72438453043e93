"""Data centres and other networks with several jobs: kinds ``fat-tree``, ``leaf-spine``, ``torus``, ``graph-random``.

Every switch has as many slots as any other; jobs and where their hosts are come from the seed.
"""

import functools
import inspect
import itertools
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

from ddlopt.instances.generators.aggregation.jobs import Fabric, JobOptions, instance_on
from ddlopt.instances.options import at_least, positive
from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.models.errors import OptionError

# Bytes per second: a definition.
_GIGABIT = 1.25e8
_LINK = 100 * _GIGABIT
_WHERE = "gradients drawn from ResNet-50, ResNet-101, VGG-16, VGG-19, BERT-base and GPT-2"


def with_jobs(network: Callable[..., tuple[str, Fabric]]) -> Callable[..., GraphInstance]:
    """The generator of a network with jobs on it: its options, and behind them all of :class:`JobOptions`."""

    @functools.wraps(network)
    def generator(rng: np.random.Generator, **options: Any) -> GraphInstance:
        job_options = JobOptions(**{option: options.pop(option) for option in JobOptions._fields if option in options})
        name, fabric = network(rng, **options)
        source = _WHERE if job_options.gradient_bytes is None else ""
        return instance_on(
            rng, f"{name}-j{job_options.jobs}-w{job_options.workers}-{job_options.goal}", source, fabric, job_options
        )

    own = inspect.signature(network, eval_str=True)
    of_jobs = inspect.signature(JobOptions, eval_str=True).parameters.values()
    parameters = [*own.parameters.values(), *of_jobs]
    generator.__signature__ = own.replace(parameters=parameters, return_annotation=GraphInstance)  # type: ignore[attr-defined]
    return generator


@with_jobs
def fat_tree(
    rng: np.random.Generator,
    k: int = 4,
    oversubscription: float = 1.0,
    bandwidth_bytes_per_s: float = _LINK,
) -> tuple[str, Fabric]:
    """A tree of k pods, each with k/2 edge and k/2 aggregation switches, (k/2)² core switches and k³/4 hosts.

    Parameters
    ----------
    rng : numpy.random.Generator
    k : int
        Ports of a switch, even.
    oversubscription : float
        Bandwidth of a host's link, relative to that of a link between switches.
    bandwidth_bytes_per_s : float
        Of a host's link.

    References
    ----------
    M. Al-Fares, A. Loukissas, A. Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008.
    """
    if k < 2 or k % 2:
        raise OptionError(f"k is {k}; it must be even and at least 2")
    positive("oversubscription", oversubscription)
    positive("bandwidth_bytes_per_s", bandwidth_bytes_per_s)
    half = k // 2
    edges = [f"edge{pod}.{i}" for pod in range(k) for i in range(half)]
    middles = [f"aggregation{pod}.{i}" for pod in range(k) for i in range(half)]
    cores = [f"core{i}.{j}" for i in range(half) for j in range(half)]
    cables = [
        (pod * half + i, len(edges) + pod * half + j) for pod in range(k) for i in range(half) for j in range(half)
    ]
    above = len(edges) + len(middles)
    cables += [
        (len(edges) + pod * half + i, above + i * half + j)
        for pod in range(k)
        for i in range(half)
        for j in range(half)
    ]
    inner = bandwidth_bytes_per_s / oversubscription
    hosts = [(f"host{e // half}.{e % half}.{i}", e) for e in range(len(edges)) for i in range(half)]
    fabric = Fabric(
        [*edges, *middles, *cores], [(one, other, inner) for one, other in cables], hosts, bandwidth_bytes_per_s
    )
    return f"fat-tree-k{k}", fabric


@with_jobs
def leaf_spine(
    rng: np.random.Generator,
    leaves: int = 4,
    spines: int = 2,
    hosts: int = 4,
    bandwidth_bytes_per_s: float = _LINK,
    spine_bandwidth_bytes_per_s: float = _LINK,
) -> tuple[str, Fabric]:
    """Every leaf switch has a link to every spine switch, and hosts.

    Parameters
    ----------
    rng : numpy.random.Generator
    leaves, spines : int
        Switches below and above; each of one has a link to each of the other.
    hosts : int
        Of each leaf.
    bandwidth_bytes_per_s, spine_bandwidth_bytes_per_s : float
        Of a host's link, and of a link between a leaf and a spine.
    """
    for option, value in (("leaves", leaves), ("spines", spines), ("hosts", hosts)):
        at_least(option, value, 1)
    positive("bandwidth_bytes_per_s", bandwidth_bytes_per_s)
    positive("spine_bandwidth_bytes_per_s", spine_bandwidth_bytes_per_s)
    fabric = Fabric(
        [f"leaf{i}" for i in range(leaves)] + [f"spine{i}" for i in range(spines)],
        [(i, leaves + j, spine_bandwidth_bytes_per_s) for i in range(leaves) for j in range(spines)],
        [(f"host{i}.{j}", i) for i in range(leaves) for j in range(hosts)],
        bandwidth_bytes_per_s,
    )
    return f"leaf-spine-{leaves}x{spines}", fabric


@with_jobs
def torus(
    rng: np.random.Generator,
    sides: tuple[int, ...] = (4, 4),
    bandwidth_bytes_per_s: float = _LINK,
) -> tuple[str, Fabric]:
    """A torus of switches with a host each; links of hosts are as fast as those between switches.

    Parameters
    ----------
    rng : numpy.random.Generator
    sides : tuple of int
        Switches along each of 1 to 3 dimensions; along one with 2 there is a single link.
    bandwidth_bytes_per_s : float
    """
    if not 1 <= len(sides) <= 3 or min(sides) < 1 or max(sides) < 2:
        raise OptionError(f"sides are {tuple(sides)}; give 1 to 3 whole numbers of at least 1, not all of them 1")
    positive("bandwidth_bytes_per_s", bandwidth_bytes_per_s)
    places = {place: number for number, place in enumerate(itertools.product(*map(range, sides)))}
    cables: dict[tuple[int, int], None] = {}
    for place, number in places.items():
        for axis, side in enumerate(sides):
            other = places[(*place[:axis], (place[axis] + 1) % side, *place[axis + 1 :])]
            if other != number:
                cables.setdefault((min(number, other), max(number, other)))
    names = [".".join(map(str, place)) for place in places]
    return f"torus-{'x'.join(map(str, sides))}", hosts_at_switches(names, list(cables), bandwidth_bytes_per_s)


@with_jobs
def random_graph(
    rng: np.random.Generator,
    switches: int = 12,
    degree: int = 3,
    hosts: int = 1,
    bandwidth_bytes_per_s: float = _LINK,
) -> tuple[str, Fabric]:
    """A random regular graph of switches, each with hosts.

    Parameters
    ----------
    rng : numpy.random.Generator
    switches, degree : int
        Switches, and links of each to others.
    hosts : int
        Of each switch.
    bandwidth_bytes_per_s : float

    References
    ----------
    A. Singla, C.-Y. Hong, L. Popa, P. B. Godfrey, "Jellyfish: networking data centers randomly", NSDI 2012.
    """
    at_least("switches", switches, 2)
    at_least("degree", degree, 1)
    at_least("hosts", hosts, 1)
    positive("bandwidth_bytes_per_s", bandwidth_bytes_per_s)
    if degree >= switches or degree * switches % 2 or (degree == 1 and switches > 2):
        raise OptionError(
            f"degree is {degree} and switches are {switches}; a connected regular graph needs a degree of at least 2 "
            "(1 for two switches) that is below the number of switches, and an even product of the two"
        )
    while True:
        drawn = nx.random_regular_graph(degree, switches, seed=int(rng.integers(2**31)))
        if nx.is_connected(drawn):
            break
    names = [str(number) for number in range(switches)]
    cables = sorted((min(edge), max(edge)) for edge in drawn.edges)
    return f"graph-n{switches}-d{degree}", hosts_at_switches(names, cables, bandwidth_bytes_per_s, hosts)


def hosts_at_switches(
    names: list[str],
    cables: list[tuple[int, int]],
    bandwidth_bytes_per_s: float,
    hosts: int = 1,
    bandwidths: list[float] | None = None,
) -> Fabric:
    """A given graph of switches with a number of hosts at each.

    Parameters
    ----------
    names : list of str
        Of the switches.
    cables : list of (int, int)
    bandwidth_bytes_per_s : float
        Of links of hosts, and of cables where ``bandwidths`` are not given.
    hosts : int
    bandwidths : list of float, optional
        Of each cable, in bytes per second.
    """
    speeds = [bandwidth_bytes_per_s] * len(cables) if bandwidths is None else bandwidths
    host = [f"host {name}" if hosts == 1 else f"host {name}.{i}" for name in names for i in range(hosts)]
    return Fabric(
        [f"switch {name}" for name in names],
        [(one, other, speed) for (one, other), speed in zip(cables, speeds, strict=True)],
        [(each, place // hosts) for place, each in enumerate(host)],
        bandwidth_bytes_per_s,
    )
