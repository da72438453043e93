"""Instances of any size, reproducible from their seed."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ddlopt.instances.generators import traffic
from ddlopt.instances.workloads import JOBS, topoopt_job
from ddlopt.models.errors import InstanceError, OptionError, UnknownNameError
from ddlopt.models.topology import TopologyInstance


def _job(job: str, servers: int, degree: int, rng: np.random.Generator) -> traffic.Fields:
    """A training job of :mod:`ddlopt.instances.workloads`; nothing in it is random."""
    return topoopt_job(job, servers, degree).model_dump(exclude={"name", "servers", "degree", "optics"})


_KINDS: dict[str, Callable[..., traffic.Fields]] = {
    "all-to-all": traffic.all_to_all,
    "random": traffic.random,
    "ring": traffic.ring,
    "permutation": traffic.permutation,
    "hybrid": traffic.hybrid,
    **{job: partial(_job, job) for job in JOBS},
}

KINDS = tuple(_KINDS)
"""What :func:`generate` can make."""

_SEEDED = ("random", "permutation", "hybrid")
_COMMON = set(TopologyInstance.model_fields) - {"family", "servers", "degree", "traffic_bytes", "allreduce_groups"}


def generate(kind: str, servers: int, degree: int, seed: int = 0, **options: Any) -> TopologyInstance:
    """Make a topology instance.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`: ``all-to-all``, ``random``, ``ring``, ``permutation``, ``hybrid`` (all-reduce groups and
        traffic), or a training job of TopoOpt's evaluation (``dlrm``, ``bert``, …).
    servers, degree : int
    seed : int
        Of NumPy's default generator; recorded in ``source``.
    **options
        Fields of :class:`~ddlopt.models.topology.instance.TopologyInstance` (``name``, ``optics``,
        ``link_bandwidth_bytes_per_s``, ``compute_s`` …) and what the kind takes besides (:func:`options_of`). Links are
        1 byte/s unless the kind or an option says otherwise.

    Raises
    ------
    UnknownNameError
        If there is no such kind.
    OptionError
        If an option is unknown or out of its range.
    InstanceError
        If the numbers make no instance.
    """
    if kind not in _KINDS:
        raise UnknownNameError(f"there is no kind of instance '{kind}'; there are: {', '.join(KINDS)}")
    if servers < 2:
        raise InstanceError(f"servers is {servers}; a topology needs at least 2")
    if not 1 <= degree < servers:
        raise InstanceError(f"degree is {degree}, but {servers} servers need a degree of 1..{servers - 1}")
    if seed < 0:
        raise OptionError(f"seed is {seed}; it must be at least 0")
    for option in options:
        if option not in _COMMON | options_of(kind).keys():
            allowed = ", ".join(sorted(_COMMON | options_of(kind).keys()))
            raise OptionError(f"kind '{kind}' takes no option '{option}'; it takes: {allowed}")
    own = {key: value for key, value in options.items() if key in options_of(kind)}
    fields = _KINDS[kind](servers, degree, np.random.default_rng(seed), **own)
    given = "".join(f", {key} {value}" for key, value in (options_of(kind) | own).items() if value is not None)
    data = {
        "name": _name(kind, servers, degree, seed, options.get("optics", "one_way")),
        "source": f"generated: kind {kind}, servers {servers}, degree {degree}, seed {seed}{given}",
        "servers": servers,
        "degree": degree,
        "link_bandwidth_bytes_per_s": 1.0,
        **fields,
    }
    return TopologyInstance.from_data(data | {key: value for key, value in options.items() if key in _COMMON})


def options_of(kind: str) -> dict[str, Any]:
    """What a kind takes besides the fields of an instance, with defaults."""
    if kind not in _KINDS:
        raise UnknownNameError(f"there is no kind of instance '{kind}'; there are: {', '.join(KINDS)}")
    parameters = inspect.signature(_KINDS[kind]).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters if parameter.default is not parameter.empty}


def _name(kind: str, servers: int, degree: int, seed: int, optics: str) -> str:
    name = f"{kind}-n{servers}-d{degree}"
    if kind in _SEEDED:
        name += f"-s{seed}"
    return f"{name}-duplex" if optics == "duplex" else name


__all__ = ["KINDS", "generate", "options_of"]
