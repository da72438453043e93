"""Utilities, their pieces, and the envelope of progress over widths."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import sympy
from volume import for_each, spread

from ddlopt.models.scheduling import AllOrNothing, Capped, Fair, Job, Logarithmic, LossCurve, PolluxTiming, RingTiming
from ddlopt.models.scheduling.concave.piecewise import ERROR, outer_pieces
from ddlopt.models.scheduling.fastest import corner_widths
from ddlopt.models.scheduling.utility import DONE

CONCAVE = [
    Capped(value=3),
    Logarithmic(value=2, curvature=9),
    LossCurve(value=2, rate=4),
    Fair(value=2, alpha=0, epsilon=0.25),
    Fair(value=2, alpha=0.5, epsilon=0.25),
    Fair(value=2, alpha=1, epsilon=0.25),
    Fair(value=2, alpha=3, epsilon=0.25),
]


@for_each(
    ("utility", "half", "whole"),
    [
        (CONCAVE[0], 1.5, 3),
        (CONCAVE[1], 2 * math.log10(5.5), 2),
        (CONCAVE[2], 2 * 2 / 3, 2 * 4 / 5),
        (CONCAVE[3], 1, 2),
        (CONCAVE[4], 4 * (math.sqrt(0.75) - 0.5), 4 * (math.sqrt(1.25) - 0.5)),
        (CONCAVE[5], 2 * math.log(3), 2 * math.log(5)),
        (CONCAVE[6], 16 - 1 / 0.75**2, 16 - 1 / 1.25**2),
        (AllOrNothing(value=3), 0, 3),
    ],
)
def test_values_by_hand(utility, half, whole):
    assert utility.of(0.0) == 0
    assert utility.of(0.5) == pytest.approx(half, rel=1e-12)
    assert utility.of(1.0) == pytest.approx(whole, rel=1e-12)
    for part in (Fraction(0), Fraction(1, 2), Fraction(1)):
        exact = utility.of(part)
        assert isinstance(exact, Fraction | int)
        assert float(exact) == pytest.approx(utility.of(float(part)), rel=1e-12)


@for_each("utility", CONCAVE)
def test_concave_and_never_falling(utility):
    assert utility.concave
    values = np.array([utility.of(part) for part in np.linspace(0, 1, 101)])
    assert (np.diff(values) > 0).all()
    assert (np.diff(values, 2) <= 1e-12).all()


@for_each("utility", CONCAVE)
def test_the_slope_is_the_derivative(utility):
    for part in (0.1, 0.5, 0.9):
        step = 1e-6
        assert utility.slope(part) == pytest.approx(
            (utility.of(part + step) - utility.of(part - step)) / (2 * step), rel=1e-6
        )
    assert utility.slope(0.0) == pytest.approx((utility.of(1e-7) - utility.of(0.0)) / 1e-7, rel=1e-4)


def test_rational_utilities_are_exact():
    assert Capped(value=0.5).of(Fraction(1, 3)) == Fraction(1, 6)
    assert LossCurve(value=2, rate=4).of(Fraction(1, 3)) == Fraction(8, 7)


def test_all_or_nothing():
    utility = AllOrNothing(value=2)
    assert not utility.concave
    assert utility.of(1 - 1e-8) == 0
    assert utility.of(DONE) == 2
    assert utility.slope(0.5) == 0
    assert utility.slope(1.0) == math.inf


def test_fairness_is_continuous_in_alpha():
    at = [Fair(alpha=alpha, epsilon=0.1).of(0.7) for alpha in (1 - 1e-7, 1, 1 + 1e-7)]
    assert at[0] == pytest.approx(at[1], rel=1e-5)
    assert at[2] == pytest.approx(at[1], rel=1e-5)


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


@pytest.mark.slow
def test_progress_is_convex_by_algebra():
    """The identity behind the theorem, for the iteration time as the class states it."""
    w, m, b, G, c = sympy.symbols("w m b G c", positive=True)
    tau = c + (w - 1) / w * (2 * m / b + m / G)
    a = 2 * m / b + m / G
    A = c + a
    assert sympy.simplify(w / tau - w**2 / (A * w - a)) == 0
    second = sympy.diff(w / tau, w, 2)
    assert sympy.simplify(second - 2 * a**2 / (A * w - a) ** 3) == 0
    # A w - a = c w + a (w - 1) is positive for w >= 1: put w = 1 + v.
    v = sympy.symbols("v", nonnegative=True)
    assert sympy.expand((A * w - a).subs(w, 1 + v)).is_positive
    # 1 / tau falls, so that no width has more progress for each worker than the least.
    falls = sympy.diff(1 / tau, w) * (c * w + a * (w - 1)) ** 2
    assert sympy.simplify(falls + a) == 0


def test_progress_is_convex_in_the_code_too():
    rng = np.random.default_rng(0)
    for _ in range(100):
        timing = random_ring(rng)
        progress = np.array([timing.minibatches_per_s(w) for w in range(1, 40)])
        assert (np.diff(progress, 2) >= -1e-9 * progress[2:]).all()
        assert (np.diff(progress / np.arange(1, 40)) <= 1e-12 * progress[:-1]).all()


def random_ring(rng, latency=0.0):
    return RingTiming(
        gradient_bytes=10 ** rng.uniform(6, 9),
        bandwidth_bytes_per_s=10 ** rng.uniform(8, 10),
        reduction_bytes_per_s=10 ** rng.uniform(9, 11) if rng.random() < 0.5 else None,
        forward_s_per_sample=10 ** rng.uniform(-3, 0),
        latency_s=latency,
    )


def hull_of_all_pairs(timing, fewest, most):
    """The concave envelope at every width: the highest chord over it, chords between all pairs of points."""
    points = [(0, 0.0), *((w, timing.minibatches_per_s(w)) for w in range(fewest, most + 1))]
    heights = []
    for w in range(most + 1):
        over = [y for x, y in points if x == w]
        for x1, y1 in points:
            for x2, y2 in points:
                if x1 <= w <= x2 and x1 < x2:
                    over.append(y1 + (y2 - y1) * (w - x1) / (x2 - x1))
        heights.append(max(over))
    return np.array(heights)


def job(timing, fewest, most):
    return Job(name="j", min_workers=fewest, max_workers=most, timing=timing, minibatches=1)


@pytest.mark.parametrize("latency", [0.0, 1e-3, 2e-2])
def test_the_corners_carry_the_whole_envelope(latency):
    rng = np.random.default_rng(1)
    for _ in range(30):
        timing = random_ring(rng, latency)
        fewest = int(rng.integers(1, 4))
        most = fewest + int(rng.integers(0, 14))
        corners = corner_widths(job(timing, fewest, most))
        assert corners[0] == 0
        assert list(corners) == sorted(set(corners))
        assert {*corners} <= {0, *range(fewest, most + 1)}
        heights = hull_of_all_pairs(timing, fewest, most)
        peak = int(np.argmax(heights))
        interpolated = np.interp(range(most + 1), corners, [timing.minibatches_per_s(w) for w in corners])
        assert interpolated[: peak + 1] == pytest.approx(heights[: peak + 1], rel=1e-9)
        assert interpolated.max() == pytest.approx(heights.max(), rel=1e-12)


def test_without_latency_the_corners_are_the_least_and_the_largest_width():
    rng, seen = np.random.default_rng(2), set()
    for _ in range(50):
        timing = random_ring(rng)
        fewest = int(rng.integers(1, 5))
        most = fewest + int(rng.integers(0, 30))
        faster = timing.minibatches_per_s(most) > timing.minibatches_per_s(fewest)
        expected = (0, fewest, most) if faster else (0, fewest)
        seen.add(expected[1:] == (fewest,))
        assert corner_widths(job(timing, fewest, most)) == expected
    assert seen == {False, True}  # on a slow ring further workers make things worse


def test_with_latency_there_are_more_corners_and_an_end():
    """w / (1 + 0.01 · 2 (w - 1)) rises to 50 per second, concave from the start; with a gradient it ends earlier."""
    timing = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1, latency_s=0.01)
    assert corner_widths(job(timing, 1, 6)) == (0, 1, 2, 3, 4, 5, 6)
    # Pollux with a wide synchronisation: w / (1 + 0.5 + 0.1 (w - 2)), always rising; the second worker is not worth it.
    pollux = PolluxTiming(compute_s=1, sync_s=1.5, sync_s_per_worker=0.1)
    corners = corner_widths(job(pollux, 1, 8))
    assert corners[:2] == (0, 1)
    assert 2 not in corners
    assert corners[-1] == 8


def test_workers_that_slow_the_job_down_are_no_corner():
    class Falling(PolluxTiming):
        """Progress 1, 1.6, 1.5: more than two workers are too many."""

        def iteration_s(self, workers, bandwidth_bytes_per_s=None, number=float):
            return {1: 1.0, 2: 2 / 1.6, 3: 2.0}[workers]

    assert corner_widths(job(Falling(compute_s=1), 1, 3)) == (0, 1, 2)
    assert corner_widths(job(Falling(compute_s=1), 3, 3)) == (0, 3)
