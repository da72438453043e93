"""Outer pieces of utilities: nowhere below, and above by no more than they say."""

import itertools

import numpy as np
import pytest
from volume import for_each, spread

from ddlopt.models.scheduling import Capped, Fair, Logarithmic, LossCurve
from ddlopt.models.scheduling.concave.piecewise import ERROR, outer_pieces

CURVED = [
    Logarithmic(),
    Logarithmic(value=3.0, curvature=1e4),
    LossCurve(value=0.2),
    LossCurve(rate=1e3),
    Fair(),
    Fair(alpha=0.5, epsilon=1e-3),
    Fair(alpha=2.0, epsilon=1e-4),
    Fair(alpha=4.0, epsilon=1e-3),
]
RANGES = [(0.0, 1.0, 0.0), (0.0, 1.0, 0.01), (0.3, 1.0, 0.02), (0.1, 0.15, 0.001)]


def _excess(utility, pieces, low, high, points):
    gain = utility.of(high) - utility.of(low)
    return np.array([pieces.of(p) - utility.of(p) for p in points]) / gain


@for_each(("utility", "ends", "tangents"), spread(itertools.product(CURVED, RANGES, [None, 2, 7]), 5))
def test_pieces_are_above_by_no_more_than_they_say(utility, ends, tangents):
    low, high, step = ends
    pieces = outer_pieces(utility, low, high, step, tangents)
    excess = _excess(utility, pieces, low, high, np.linspace(low + step, high, 2001))
    rounding = 1e-12 + 1e-14 * utility.of(high) / (utility.of(high) - utility.of(low))
    assert excess.min() >= -rounding
    assert excess.max() <= pieces.error + rounding
    assert (np.diff(pieces.slopes) <= 1e-9 * pieces.slopes[0]).all()
    if tangents is None:
        assert pieces.error <= ERROR


@pytest.mark.parametrize("utility", CURVED[:1] + CURVED[2:3] + CURVED[4:5], ids=lambda one: one.kind)
def test_pieces_touch_at_both_ends_and_errors_are_nearly_equal(utility):
    pieces = outer_pieces(utility, 0.0, 1.0)
    assert pieces.of(0.0) == pytest.approx(0.0, abs=1e-12)
    assert pieces.of(1.0) == pytest.approx(utility.of(1.0), rel=1e-12)
    assert pieces.of(2.0) == pieces.of(1.0)
    meets = np.cumsum(pieces.lengths)[:-1]
    excess = _excess(utility, pieces, 0.0, 1.0, meets)
    assert excess.min() >= 0.9 * excess.max()
    assert pieces.error == pytest.approx(excess.max(), rel=1e-6)
    assert len(pieces.lengths) < 300


def test_default_number_of_tangents_is_not_wasteful():
    count = len(outer_pieces(Logarithmic(), 0.0, 1.0).lengths)
    fewer = outer_pieces(Logarithmic(), 0.0, 1.0, tangents=int(count * 0.9))
    assert fewer.error > ERROR


def test_below_the_least_progress_it_is_a_chord():
    utility = Fair(epsilon=1e-4)
    pieces = outer_pieces(utility, 0.2, 1.0, step=0.3)
    assert pieces.lengths[0] >= 0.3
    assert pieces.slopes[0] == pytest.approx((utility.of(0.5) - utility.of(0.2)) / 0.3)
    assert pieces.of(0.5) == pytest.approx(utility.of(0.5))


@pytest.mark.parametrize("utility", [Capped(value=3.0), Fair(alpha=0.0, value=3.0)])
def test_linear_utilities_have_one_piece(utility):
    pieces = outer_pieces(utility, 0.25, 0.75, 0.1)
    assert (pieces.lengths.tolist(), pieces.error) == ([0.5], 0.0)
    assert pieces.slopes == pytest.approx([3.0])
    assert pieces.of(0.75) == pytest.approx(2.25)


def test_nothing_to_gain_is_no_piece():
    pieces = outer_pieces(Logarithmic(), 1.0, 1.0)
    assert len(pieces.lengths) == 0
    assert pieces.of(1.0) == 1.0


def test_filling_takes_the_first_pieces_first():
    pieces = outer_pieces(Logarithmic(), 0.2, 1.0, tangents=5)
    filled = pieces.filled(0.5)
    assert filled.sum() == pytest.approx(0.3)
    full = np.isclose(filled, pieces.lengths)
    assert full.tolist() == sorted(full.tolist(), reverse=True)
    assert (filled[~full] > 0).sum() == 1
