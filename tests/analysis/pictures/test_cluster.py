"""Pictures of places: a square for each host that was free, in the colour of its gang."""

from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from ddlopt.analysis.pictures.cluster import placement
from ddlopt.models.cluster import GangPlaces, PlacementInstance


def test_every_free_host_is_a_square_of_its_gang():
    leaves = [{"name": "r0", "inside": ["b1"], "hosts": 3}, {"name": "r1", "inside": ["b0"], "hosts": 2}]
    leaves.append({"name": "r2", "inside": ["b1"], "hosts": 1})
    gangs = [{"name": "one", "hosts": 3}, {"name": "two", "hosts": 1}]
    instance = PlacementInstance(name="small", levels=("block", "rack"), leaves=leaves, gangs=gangs)
    answer = GangPlaces(instance="small", places=(((0, 2), (2, 1)), ((1, 1),)))
    axes = Figure().add_subplot()
    placement.draw(axes, instance, answer)
    drawn = {(patch.get_y(), patch.get_x()): to_hex(patch.get_facecolor()) for patch in axes.patches}
    # Racks of a block are rows one after the other: r0, r2, r1.
    one, two, free = drawn[0, 0], drawn[2, 0], to_hex(placement._FREE)
    assert len({one, two, free}) == 3
    assert drawn == {(0, 0): one, (0, 1): one, (0, 2): free, (1, 0): one, (2, 0): two, (2, 1): free}
    assert [text.get_text() for text in axes.get_yticklabels()] == ["r0", "r2", "r1"]
    assert len(axes.lines) == 1
