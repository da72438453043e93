"""The picture of a placement in register arrays."""

import matplotlib.pyplot as plt

from ddlopt.analysis.pictures.aggregation.registers import draw
from ddlopt.models.aggregation import Placement, RegisterInstance


def test_counts_marks_and_title() -> None:
    instance = RegisterInstance(
        name="drawn", parameters=4, arrays=2, capacity=3, entries=2, batches=((3,), (0, 1, 2), (0, 1), (2, 3))
    )
    figure, axes = plt.subplots()
    draw(axes, instance, Placement(instance="drawn", arrays=(0, 0, 1, 1)))
    (image,), (marks,) = axes.images, axes.lines
    # Batches by size: (0, 1, 2), (0, 1), (2, 3), (3,).
    assert image.get_array().tolist() == [[2, 2, 0, 0], [1, 0, 2, 1]]
    assert list(marks.get_xdata()) == [1, 2]
    assert axes.get_title().startswith("7 packets; at best 5;")
    plt.close(figure)
