"""Pictures of exchange times: the curve is the staleness that the check adds up, marks are at the sends."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from ddlopt.analysis.pictures.gossip.exchange import draw
from ddlopt.models.gossip import ExchangeInstance, ExchangeTimes, evaluate


@pytest.mark.parametrize(("more", "title"), [({"sends": 2}, "2 sends: 6"), ({"send_cost": 0.5}, "2 sends, with 0.5")])
def test_staleness_and_sends(more, title):
    instance = ExchangeInstance(name="line", points=np.arange(7.0)[:, np.newaxis], **more)
    solution = ExchangeTimes(instance="line", times=(2, 4))
    axes = Figure().add_subplot()
    draw(axes, instance, solution)
    curve, marks = axes.lines
    assert curve.get_ydata().tolist() == [0, 1, 0, 1, 0, 1, 4]
    assert curve.get_ydata().sum() == evaluate(instance, solution).details["staleness"]
    assert list(marks.get_xdata()) == [2, 4]
    assert axes.get_title().startswith(title.replace("6", "7"))
