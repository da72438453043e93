"""What the models are measured on: the bundled library, generators, readers of other formats, training jobs."""

from ddlopt.instances.generators import generate, kinds, options_of
from ddlopt.instances.library import best, find, library_folder, load, names, store_best
from ddlopt.instances.readers import FORMATS, convert
from ddlopt.instances.schema import schema

__all__ = [
    "FORMATS",
    "best",
    "convert",
    "find",
    "generate",
    "kinds",
    "library_folder",
    "load",
    "names",
    "options_of",
    "schema",
    "store_best",
]
