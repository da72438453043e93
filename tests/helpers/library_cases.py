"""The bundled instances as made, a library of one instance, and designs for it."""

from functools import cache

from ddlopt.instances import library
from ddlopt.instances.library.make import made
from ddlopt.models.topology import Ring, Route, TopologyDesign

TINY = "topology/tiny-n4-d2"
TINY_TEXT = library.instance_file(TINY).read_text(encoding="utf-8")


def library_of_one(folder, monkeypatch):
    """Have the library in a folder, with one instance in it; the folder of its family."""
    family = folder / "topology"
    family.mkdir()
    monkeypatch.setattr(library, "library_folder", lambda name: folder / name)
    (family / "tiny-n4-d2.json").write_text(TINY_TEXT)
    return family


@cache
def bundled(family):
    """The bundled instances of a family, as made, by name."""
    return {instance.name: instance for instance in made(family)}


def ring_design(count, **more):
    """Everything along the ring 0 -> 1 -> 2 -> 3 -> 0 of ``count`` links a hop."""
    along = {(i, j): tuple((i + step) % 4 for step in range((j - i) % 4 + 1)) for i in range(4) for j in range(4)}
    pairs = [(0, 1), (1, 3), (2, 0), (3, 1)]
    return TopologyDesign(
        instance="tiny-n4-d2",
        links=tuple((i, (i + 1) % 4, count) for i in range(4)),
        rings=(Ring(group=0, members=(0, 1, 2, 3), share=1.0, paths=tuple((i, (i + 1) % 4) for i in range(4))),),
        routes=tuple(Route(source=i, target=j, paths=(along[i, j],), fractions=(1.0,)) for i, j in pairs),
        **more,
    )
