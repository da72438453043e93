"""What the models are measured on: the bundled library, generators, readers of other formats, training jobs.

Everything here is imported on first use: to read one instance takes no generator and no reader.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ddlopt.instances.generators import generate, kinds, options_of
    from ddlopt.instances.json_schema import schema
    from ddlopt.instances.library import best, find, full_name, library_folder, load, names
    from ddlopt.instances.library.records import record
    from ddlopt.instances.library.store_best import store_best
    from ddlopt.instances.readers import FORMATS, convert

__all__ = [
    "FORMATS",
    "best",
    "convert",
    "find",
    "full_name",
    "generate",
    "kinds",
    "library_folder",
    "load",
    "names",
    "options_of",
    "record",
    "schema",
    "store_best",
]

_HOMES = {
    "generators": {"generate", "kinds", "options_of"},
    "library": {"best", "find", "full_name", "library_folder", "load", "names"},
    "library.store_best": {"store_best"},
    "library.records": {"record"},
    "readers": {"FORMATS", "convert"},
    "json_schema": {"schema"},
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ddlopt.instances' has no attribute '{name}'")
    home = next(module for module, names in _HOMES.items() if name in names)
    value = getattr(import_module(f"ddlopt.instances.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
