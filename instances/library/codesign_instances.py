"""The bundled co-design instances: training jobs of TopoOpt's evaluation at several sizes, and tiny ones."""

from collections.abc import Iterator

from ddlopt.models.codesign import CodesignInstance


def instances() -> Iterator[CodesignInstance]:
    """All bundled instances of the family."""
    yield from ()
