"""Instances of any size, reproducible from their seed.

A family's own generators are ``ddlopt.instances.generators.<family>``: ``KINDS``, ``options_of(kind)`` and
``generate(kind, seed, **options)``, where the kind is one of ``KINDS`` and the seed a whole number from 0 on.
"""

import math
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ddlopt.models.catalogue import family as family_of
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import OptionError, UnknownNameError
from ddlopt.models.sizes import require_memory, require_seed

_COUNTS = ("servers", "degree", "jobs", "slots", "nodes")
"""Options that count things, besides those that a kind has a whole number for."""
_LEAST_BYTES = 200.0
"""What anything that is counted takes at least, in Python."""
_BYTES_OF = {"jobs": 3000.0}
"""What those take whose parts are known better: of 50 000 drawn jobs of a schedule each takes 3.3 kB, and 70 µs."""


def kinds(family: str) -> tuple[str, ...]:
    """What :func:`generate` can make of a family.

    Raises
    ------
    UnknownNameError
        If there is no such family.
    """
    names: tuple[str, ...] = _generators(family).KINDS
    return names


def options_of(family: str, kind: str) -> dict[str, Any]:
    """What a kind takes besides the fields of an instance, with defaults.

    Raises
    ------
    UnknownNameError
        If there is no such family or kind.
    """
    _refuse_unknown(family, kind)
    options: dict[str, Any] = _generators(family).options_of(kind)
    return options


def generate(family: str, kind: str, seed: int = 0, **options: Any) -> Instance:
    """Make an instance.

    Parameters
    ----------
    family : str
    kind : str
        One of :func:`kinds`.
    seed : int
        Of NumPy's default generator; recorded in ``source``.
    **options
        ``cluster``: a cluster's file or bundled name (:mod:`ddlopt.instances.clusters`), which gives options of servers
        and networks. Sizes (``servers``, ``degree`` of a topology instance, …), any other field of the family's
        instances that is not itself generated, and what :func:`options_of` lists for the kind.

    Raises
    ------
    UnknownNameError
        If there is no such family or kind.
    OptionError
        If an option is missing, unknown or out of its range.
    InstanceError
        If the numbers make no instance.
    """
    _refuse_unknown(family, kind)
    require_seed(seed)
    cluster = options.get("cluster")
    if cluster is None:
        options.pop("cluster", None)
    else:
        from ddlopt.instances.clusters.options import applied, with_cluster

        options = applied(options, options_of(family, kind), kind, family)
    try:
        _refuse_large_counts(family, kind, options)
        instance: Instance = _generators(family).generate(kind, seed, **options)
    except (MemoryError, OverflowError) as problem:
        told = ", ".join(f"{name} {value}" for name, value in options.items())
        raise OptionError(f"{kind} with {told} is too large: {problem or 'there is not so much memory'}") from None
    return instance if cluster is None else with_cluster(instance, cluster)


def _refuse_large_counts(family: str, kind: str, options: Mapping[str, Any]) -> None:
    """Raise OptionError where an option counts things of which there are far too many."""
    known = options_of(family, kind)
    for name, value in options.items():
        counts = name in _COUNTS or type(known.get(name)) is int
        if counts and isinstance(value, float) and not math.isfinite(value):
            raise OptionError(f"{name} is {value}; it must be a finite number")
        if counts and isinstance(value, int | float):
            each = _BYTES_OF.get(name, _LEAST_BYTES)
            require_memory(f"{name} is {value}: so many", each * abs(value), OptionError)


def _generators(family: str) -> Any:
    return import_module(f"ddlopt.instances.generators.{family_of(family).name}")


def _refuse_unknown(family: str, kind: str) -> None:
    if kind not in kinds(family):
        raise UnknownNameError(f"there is no kind of instance '{kind}'; there are: {', '.join(kinds(family))}")


__all__ = ["generate", "kinds", "options_of"]
