"""Figures that no instance has by intention are refused wherever they stand, and the message says where."""

import math
import re
from functools import cached_property

import numpy as np
import pytest
from pydantic import BaseModel

from ddlopt.models.sizes import LARGEST, LARGEST_INTEGER, SMALLEST, refuse_odd_figures


class Part(BaseModel):
    figures: tuple[float, ...]

    @cached_property
    def squares(self):
        return [each**2 for each in self.figures]


@pytest.mark.parametrize(
    "odd", [LARGEST * 1.01, -LARGEST * 1.01, SMALLEST / 1.01, "1e200", " -1e-200", LARGEST_INTEGER + 1]
)
@pytest.mark.parametrize(
    ("around", "place"),
    [
        (lambda odd: {"costs": [1.0, odd]}, "costs[1]"),
        (lambda odd: {"jobs": [{"cost": 0}, {"cost": odd}]}, "jobs[1].cost"),
        (lambda odd: {"jobs": ({"costs": (odd,)},)}, "jobs[0].costs[0]"),
        (lambda odd: {"part": Part.model_construct(figures=(1.0, odd))}, "part.figures[1]"),
        (lambda odd: {"before": np.ones(2), "cost": odd}, "cost"),
    ],
)
def test_an_odd_figure_is_refused_with_its_place(odd, around, place):
    with pytest.raises(ValueError, match=f"^{re.escape(place)} is "):
        refuse_odd_figures(around(odd))


def test_of_an_array_too():
    with pytest.raises(ValueError, match=r"^costs\[1\]\[0\] is 1e\+101"):
        refuse_odd_figures({"costs": np.array([[1.0, 0.0], [1e101, 2.0]])})


def test_usual_ones_are_not():
    most = [LARGEST, -SMALLEST, LARGEST_INTEGER, -LARGEST_INTEGER, 0, 0.0]
    others = [
        True,
        None,
        math.inf,
        -math.nan,
        "nan",
        "infinity",
        "e9",
        "",
        "1e-99",
        "name",
        np.array([0.0, math.inf, 1.0]),
    ]
    refuse_odd_figures({"all": [most, {"others": others}, Part(figures=(1.0,))]})


def test_what_was_calculated_of_a_part_is_no_figure_of_it():
    """A table whose values had been asked for could not be rebuilt with another name."""
    part = Part(figures=(1e-60, 1.0))
    assert part.squares[0] < SMALLEST
    refuse_odd_figures({"parts": [part], "name": "other"})


def test_what_is_inside_of_itself_has_an_end():
    data = {"jobs": []}
    data["jobs"] += [data, data]
    with pytest.raises(RecursionError):
        refuse_odd_figures(data)
