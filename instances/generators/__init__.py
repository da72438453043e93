"""Instances of any size, reproducible from their seed.

A family's own generators are ``ddlopt.instances.generators.<family>``: ``KINDS``, ``options_of(kind)`` and
``generate(kind, seed, **options)``, where the kind is one of ``KINDS`` and the seed a whole number from 0 on.
"""

from importlib import import_module
from typing import Any

from ddlopt.models.catalogue import family as family_of
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import OptionError, UnknownNameError


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
        Sizes (``servers``, ``degree`` of a topology instance, …), any other field of the family's instances that is
        not itself generated, and what :func:`options_of` lists for the kind.

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
    if not isinstance(seed, int) or seed < 0:
        raise OptionError(f"seed is {seed}; it must be a whole number of at least 0")
    instance: Instance = _generators(family).generate(kind, seed, **options)
    return instance


def _generators(family: str) -> Any:
    return import_module(f"ddlopt.instances.generators.{family_of(family).name}")


def _refuse_unknown(family: str, kind: str) -> None:
    if kind not in kinds(family):
        raise UnknownNameError(f"there is no kind of instance '{kind}'; there are: {', '.join(kinds(family))}")


__all__ = ["generate", "kinds", "options_of"]
