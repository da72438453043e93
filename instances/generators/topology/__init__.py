"""Traffic of any size, with a training job behind it or without."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ddlopt.instances.generators import by_kind
from ddlopt.instances.generators.topology import traffic
from ddlopt.instances.options import refuse_unknown
from ddlopt.instances.workloads import JOBS, topoopt_job
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.models.sizes import require_memory
from ddlopt.models.topology import TopologyInstance, TopologyProblem


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

_ROOMS = {"collective": "topology.collective.collective"}
"""Kinds of other problems: module in the folder of generators, and function."""

KINDS = (*_KINDS, *_ROOMS)
"""What :func:`generate` can make."""

_SEEDED = ("random", "permutation", "hybrid")
_SIZES = ("servers", "degree")
_COMMON = set(TopologyInstance.model_fields) - {"family", *_SIZES, "traffic_bytes", "allreduce_groups"}


def generate(
    kind: str, seed: int = 0, *, servers: int | None = None, degree: int | None = None, **options: Any
) -> TopologyProblem:
    """Make a topology instance; see :func:`ddlopt.instances.generators.generate`.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`: ``all-to-all``, ``random``, ``ring``, ``permutation``, ``hybrid`` (all-reduce groups and
        traffic), or a training job of TopoOpt's evaluation (``dlrm``, ``bert``, …); or ``collective``, on given links.
    seed : int
    servers, degree : int
        Both are needed, but for a collective.
    **options
        Fields of :class:`~ddlopt.models.topology.instance.TopologyInstance` (``name``, ``optics``,
        ``link_bandwidth_bytes_per_s``, ``compute_s`` …) and what the kind takes besides (:func:`options_of`). Links are
        1 byte/s unless the kind or an option says otherwise.
    """
    if kind in _ROOMS:
        given = {"servers": servers, "degree": degree}
        chosen = options | {key: value for key, value in given.items() if value is not None}
        made: TopologyProblem = by_kind.made(_ROOMS, kind, seed, chosen)
        return made
    _refuse_odd_sizes(kind, servers=servers, degree=degree)
    assert servers is not None
    assert degree is not None
    own = _own_options(kind, options)
    fields = _KINDS[kind](servers, degree, np.random.default_rng(seed), **own)
    told = "".join(f", {key} {value}" for key, value in (options_of(kind) | own).items() if value is not None)
    data = {
        "name": _name(kind, servers, degree, seed, options.get("optics", "one_way")),
        "source": f"generated: kind {kind}, servers {servers}, degree {degree}, seed {seed}{told}",
        "servers": servers,
        "degree": degree,
        "link_bandwidth_bytes_per_s": 1.0,
        **fields,
    }
    return TopologyInstance.from_data(data | {key: value for key, value in options.items() if key in _COMMON})


def options_of(kind: str) -> dict[str, Any]:
    """What a kind takes besides the fields of an instance, with defaults."""
    if kind in _ROOMS:
        return by_kind.options_of(_ROOMS, kind)
    parameters = inspect.signature(_KINDS[kind]).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters if parameter.default is not parameter.empty}


def _refuse_odd_sizes(kind: str, **sizes: Any) -> None:
    missing = [name for name, value in sizes.items() if value is None]
    if missing:
        raise OptionError(f"kind '{kind}' of a topology instance needs {' and '.join(missing)}")
    for name, value in sizes.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise OptionError(f"{name} is {value!r}; it must be a whole number")
    servers, degree = sizes["servers"], sizes["degree"]
    if servers < 2:
        raise InstanceError(f"servers is {servers}; a topology needs at least 2")
    require_memory(f"servers is {servers}: traffic between so many servers", 32.0 * servers**2, OptionError)
    if not 1 <= degree < servers:
        raise InstanceError(f"degree is {degree}, but {servers} servers need a degree of 1..{servers - 1}")


def _own_options(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are none of the instance's fields; all of them are numbers."""
    own = {key: value for key, value in options.items() if key not in _COMMON}
    known = options_of(kind)
    refuse_unknown(f"kind '{kind}'", own, [*_SIZES, *sorted(_COMMON | known.keys())])
    for option, value in own.items():
        if not isinstance(value, int | float) and not (value is None and known[option] is None):
            raise OptionError(f"{option} is {value!r}; it must be a number")
    return own


def _name(kind: str, servers: int, degree: int, seed: int, optics: str) -> str:
    name = f"{kind}-n{servers}-d{degree}"
    if kind in _SEEDED:
        name += f"-s{seed}"
    return f"{name}-duplex" if optics == "duplex" else name
