"""What pictures of schedules show."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from ddlopt.analysis.pictures.scheduling import boxes, busy, draw
from ddlopt.models.scheduling import Run, Schedule, SchedulingInstance

TIMING = {"gradient_bytes": 0, "bandwidth_bytes_per_s": 1, "forward_s_per_sample": 1, "kind": "ring"}


@pytest.fixture
def pair():
    data = {
        "name": "chart",
        "slots": 4,
        "slot_s": 10.0,
        "servers": [{"count": 2, "capacity": {"gpu": 2}}],
        "jobs": [{"name": name, "max_workers": 3, "minibatches": 100, "timing": TIMING} for name in "abc"],
    }
    runs = [
        Run(job=0, start=0, slots=2, workers=((0, 2), (1, 1))),
        Run(job=1, start=1, slots=2, workers=((1, 1),)),
        Run(job=2, start=2, slots=1, workers=((0, 1), (1, 1))),
    ]
    return SchedulingInstance.from_data(data), Schedule(instance="chart", runs=tuple(runs))


def test_boxes_cover_every_worker_once(pair):
    drawn, floors = boxes(*pair)
    assert floors == [0, 2, 4]
    cells = [
        (slot, place)
        for b in drawn
        for slot in range(b.start, b.start + b.slots)
        for place in range(b.lowest, b.lowest + b.places)
    ]
    assert len(cells) == len(set(cells)) == sum(run.width * run.slots for run in pair[1].runs)
    assert max(place for _, place in cells) < floors[-1]


def test_busy_counts_workers(pair):
    assert busy(*pair) == pytest.approx(np.array([3, 4, 3, 0]) / 4)


def test_the_picture_has_a_box_for_every_run_and_server(pair):
    figure = Figure()
    axes = figure.add_subplot()
    draw(axes, *pair)
    assert len(axes.collections[0].get_paths()) == 5
    assert [text.get_text() for text in axes.texts].count("a") == 2
    assert len(figure.axes) == 2
