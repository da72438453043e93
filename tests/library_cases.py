"""A library of one instance, and designs for it."""

from functools import cache

from ddlopt.instances import library
from ddlopt.instances.library.make import made, text_of
from ddlopt.models.topology import Ring, Route, TopologyDesign

TINY = "topology/tiny-n4-d2"


def library_of_one(folder, monkeypatch):
    """Have the library in a folder, with one instance in it; the folder of its family."""
    family = folder / "topology"
    family.mkdir()
    monkeypatch.setattr(library, "library_folder", lambda name: folder / name)
    (family / "tiny-n4-d2.json").write_text(_text())
    return family


@cache
def _text():
    (instance,) = (each for each in made("topology") if each.name == "tiny-n4-d2")
    return text_of(instance)


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
