"""Co-design instances of any size: what each kind takes and where its figures come from stands with its function."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ddlopt.instances.options import checked, refuse_odd_value
from ddlopt.models.codesign import CodesignInstance
from ddlopt.models.errors import OptionError

_KINDS = {
    "job": "codesign_jobs.job",
    "random": "codesign_random.random_job",
}
"""Module in this folder and function of every kind: ``function(rng, **options) -> CodesignInstance``."""

KINDS = tuple(_KINDS)
"""What :func:`generate` can make."""


def generate(kind: str, seed: int = 0, **options: Any) -> CodesignInstance:
    """Make a co-design instance; see :func:`ddlopt.instances.generators.generate`.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`. ``job``: a training job of TopoOpt's evaluation. ``random``: a small job without one.
    seed : int
    **options
        What the kind takes (:func:`options_of`), and ``name``.
    """
    known = options_of(kind)
    name = options.pop("name", None)
    for option in options:
        if option not in known:
            raise OptionError(f"kind '{kind}' takes no option '{option}'; it takes: {', '.join(sorted(known))}, name")
    if name is not None:
        refuse_odd_value("name", name, str)
    made: CodesignInstance = checked(_function(kind))(np.random.default_rng(seed), **options)
    shown = {key: value for key, value in (known | options).items() if value is not None and key != "measures"}
    told = ", ".join(f"{key} {value}" for key, value in shown.items())
    source = f"generated: kind {kind}, seed {seed}, {told}. {made.source}".rstrip(". ")
    return made.model_copy(update={"name": made.name if name is None else name, "source": source})


def options_of(kind: str) -> dict[str, Any]:
    """What a kind takes, with defaults."""
    _, *options = inspect.signature(_function(kind)).parameters.values()
    return {option.name: option.default for option in options}


def _function(kind: str) -> Callable[..., CodesignInstance]:
    module, _, function = _KINDS[kind].partition(".")
    found: Callable[..., CodesignInstance] = getattr(import_module(f"ddlopt.instances.generators.{module}"), function)
    return found
