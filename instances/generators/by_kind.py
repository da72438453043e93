"""What the generators of families share whose every kind is a function of its own."""

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from ddlopt.instances.options import checked, refuse_odd_value, refuse_unknown
from ddlopt.models.contracts import Instance

Kinds = Mapping[str, str]
"""Module in this folder and function of every kind: ``function(rng, **options) -> Instance``."""


def made(kinds: Kinds, kind: str, seed: int, options: Mapping[str, Any], untold: tuple[str, ...] = ()) -> Any:
    """The instance of a kind; its ``source`` tells kind, seed and options, those in ``untold`` apart.

    Raises
    ------
    OptionError
        If the kind takes no such option, or not of this type.
    """
    options = dict(options)
    known = options_of(kinds, kind)
    name = options.pop("name", None)
    refuse_unknown(f"kind '{kind}'", options, [*sorted(known), "name"])
    if name is not None:
        refuse_odd_value("name", name, str)
    instance: Instance = checked(maker(kinds, kind))(np.random.default_rng(seed), **options)
    shown = {key: value for key, value in (known | options).items() if value is not None and key not in untold}
    told = ", ".join(f"{key} {value}" for key, value in shown.items())
    source = f"generated: kind {kind}, seed {seed}, {told}. {instance.source}".rstrip(". ")
    # A copy, as large instances take long to validate; nothing that is calculated from one depends on these fields.
    return instance.model_copy(update={"name": instance.name if name is None else name, "source": source})


def options_of(kinds: Kinds, kind: str) -> dict[str, Any]:
    """What a kind takes, with defaults."""
    _, *options = inspect.signature(maker(kinds, kind)).parameters.values()
    return {option.name: option.default for option in options}


def maker(kinds: Kinds, kind: str) -> Callable[..., Instance]:
    """The function that makes a kind."""
    module, _, function = kinds[kind].rpartition(".")
    found: Callable[..., Instance] = getattr(import_module(f"ddlopt.instances.generators.{module}"), function)
    return found
