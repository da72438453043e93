"""Convexity of progress, and the widths that a relaxation needs."""

import numpy as np
import pytest
import sympy

from ddlopt.models.scheduling import Job, PolluxTiming, RingTiming
from ddlopt.models.scheduling.concave.envelope import envelope_widths, numeric_corners


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
        corners = envelope_widths(job(timing, fewest, most))
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
        assert envelope_widths(job(timing, fewest, most)) == expected
        assert numeric_corners(timing, fewest, most) == expected
    assert seen == {False, True}  # on a slow ring further workers make things worse


def test_with_latency_there_are_more_corners_and_an_end():
    """w / (1 + 0.01 · 2 (w - 1)) rises to 50 per second, concave from the start; with a gradient it ends earlier."""
    timing = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1, latency_s=0.01)
    assert envelope_widths(job(timing, 1, 6)) == (0, 1, 2, 3, 4, 5, 6)
    # Pollux with a wide synchronisation: w / (1 + 0.5 + 0.1 (w - 2)), always rising; the second worker is not worth it.
    pollux = PolluxTiming(compute_s=1, sync_s=1.5, sync_s_per_worker=0.1)
    corners = envelope_widths(job(pollux, 1, 8))
    assert corners[:2] == (0, 1)
    assert 2 not in corners
    assert corners[-1] == 8


def test_workers_that_slow_the_job_down_are_no_corner():
    class Falling(PolluxTiming):
        """Progress 1, 1.6, 1.5: more than two workers are too many."""

        def iteration_s(self, workers, bandwidth_bytes_per_s=None, number=float):
            return {1: 1.0, 2: 2 / 1.6, 3: 2.0}[workers]

    assert numeric_corners(Falling(compute_s=1), 1, 3) == (0, 1, 2)
    assert numeric_corners(Falling(compute_s=1), 3, 3) == (0, 3)
