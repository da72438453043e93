"""Instances from files in formats that others defined."""

from collections.abc import Callable
from pathlib import Path

from ddlopt.instances.readers.flexnet import read_flexnet
from ddlopt.instances.readers.miplib import read_miplib
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import UnknownNameError

_READERS: dict[str, Callable[[str | Path], Instance]] = {"flexnet": read_flexnet, "miplib": read_miplib}

FORMATS = tuple(_READERS)
"""What :func:`convert` can read."""


def convert(path: str | Path, source_format: str) -> Instance:
    """Read a file that is in somebody else's format.

    Parameters
    ----------
    path : str or Path
    source_format : {"flexnet", "miplib"}
        ``flexnet``: a task graph (``.fbuf``) of TopoOpt's simulator. ``miplib``: the MPS file of ``danoint`` or
        ``dano3mip``.

    Raises
    ------
    UnknownNameError
        If there is no such format.
    InstanceError
        If the file cannot be read or is something else.
    """
    if source_format not in _READERS:
        raise UnknownNameError(f"there is no format '{source_format}'; there are: {', '.join(FORMATS)}")
    return _READERS[source_format](path)


__all__ = ["FORMATS", "convert", "read_flexnet", "read_miplib"]
