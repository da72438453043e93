"""What the models are measured on: the bundled library, generators, readers of other formats, training jobs."""

from ddlopt.instances.generators import generate, kinds, options_of
from ddlopt.instances.library import best, find, full_name, library_folder, load, names
from ddlopt.instances.library.keep import store_best
from ddlopt.instances.library.records import record
from ddlopt.instances.readers import FORMATS, convert
from ddlopt.instances.schema import schema

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
