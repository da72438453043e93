"""Iteration times: golden values and closed forms."""

from fractions import Fraction

import pytest
from refusals import one_line
from volume import for_each

from ddlopt.models.errors import InstanceError
from ddlopt.models.scheduling import PolluxTiming, RingTiming

GOLDEN = {
    "gradient_bytes": 100e6,
    "bandwidth_bytes_per_s": 1250e6,
    "reduction_bytes_per_s": 1e10,
    "forward_s_per_sample": 0.002,
    "batch_samples": 32,
    "backward_s": 0.05,
    "overhead_s": 0.01,
}


@for_each(("workers", "seconds"), [(1, 0.124), (2, 0.209), (4, 0.2515), (8, 0.27275), (16, 0.283375)])
def test_golden_values_of_the_ring(workers, seconds):
    timing = RingTiming(**GOLDEN)
    assert timing.iteration_s(workers) == pytest.approx(seconds, rel=1e-12)
    assert timing.minibatches_per_s(workers) == pytest.approx(workers / seconds, rel=1e-12)
    # Latency: 2 (w - 1) steps.
    late = RingTiming(**GOLDEN, latency_s=0.003)
    assert late.iteration_s(workers) == pytest.approx(seconds + 2 * (workers - 1) * 0.003, rel=1e-12)


def test_no_workers_do_nothing():
    assert RingTiming(**GOLDEN).minibatches_per_s(0) == 0
    assert PolluxTiming(compute_s=1).minibatches_per_s(0, number=Fraction) == Fraction(0)


def test_another_bandwidth_than_its_own():
    timing = RingTiming(**GOLDEN)
    assert timing.iteration_s(4, 625e6) == pytest.approx(0.124 + 0.75 * (2 * 0.16 + 0.01), rel=1e-12)
    assert timing.iteration_s(1, 625e6) == timing.iteration_s(1)


def test_a_reduction_that_takes_no_time():
    timing = RingTiming(**{**GOLDEN, "reduction_bytes_per_s": None})
    assert timing.iteration_s(2) == pytest.approx(0.124 + 0.08, rel=1e-12)


def test_rational_numbers_are_exact():
    timing = RingTiming(
        gradient_bytes=3, bandwidth_bytes_per_s=7, reduction_bytes_per_s=5, forward_s_per_sample=0.5, latency_s=0.25
    )
    exact = timing.iteration_s(3, number=Fraction)
    assert exact == Fraction(1, 2) + Fraction(2, 3) * (Fraction(6, 7) + Fraction(3, 5)) + 4 * Fraction(1, 4)
    assert timing.minibatches_per_s(3, number=Fraction) == 3 / exact
    assert (
        timing.iteration_s(3, Fraction(1, 3), Fraction) == Fraction(1, 2) + Fraction(2, 3) * (18 + Fraction(3, 5)) + 1
    )
    assert isinstance(timing.iteration_s(3), float)


def test_pollux_adds_or_overlaps():
    added = PolluxTiming(compute_s=0.1, compute_s_per_sample=0.01, batch_samples=20, sync_s=0.4, sync_s_per_worker=0.05)
    assert [added.iteration_s(w) for w in (1, 2, 3, 6)] == pytest.approx([0.3, 0.7, 0.75, 0.9])
    norm = added.model_copy(update={"overlap": 2.0})
    assert norm.iteration_s(2) == pytest.approx(0.5)  # 0.3, 0.4: a right triangle
    assert norm.iteration_s(1) == pytest.approx(0.3)
    longest = added.model_copy(update={"overlap": 10.0})
    assert 0.4 < longest.iteration_s(2) < 0.41
    assert added.iteration_s(6, number=Fraction) == sum(map(Fraction, (0.1, 0.4))) + Fraction(0.01) * 20 + 4 * Fraction(
        0.05
    )
    assert isinstance(norm.iteration_s(2, number=Fraction), Fraction)
    assert added.iteration_s(4, 1e3) == added.iteration_s(4)  # bandwidth is no matter


@for_each(
    ("kind", "data"),
    [
        (RingTiming, {**GOLDEN, "bandwidth_bytes_per_s": 0}),
        (RingTiming, {**GOLDEN, "latency_s": -1e-9}),
        (RingTiming, {**GOLDEN, "gradient_bytes": float("nan")}),
        (RingTiming, {**GOLDEN, "batch_samples": 0}),
        (RingTiming, {"gradient_bytes": 1, "bandwidth_bytes_per_s": 1, "forward_s_per_sample": 0}),
        (PolluxTiming, {"compute_s": 1, "overlap": 0.5}),
        (PolluxTiming, {"compute_s": 0}),
        (PolluxTiming, {"compute_s": 1, "latency_s": 0}),
    ],
)
def test_what_makes_no_sense_is_refused(kind, data):
    with one_line(InstanceError, kind.__name__):
        kind(**data)


def test_timings_are_values():
    assert RingTiming(**GOLDEN) == RingTiming(**GOLDEN)
    assert hash(RingTiming(**GOLDEN)) == hash(RingTiming(**GOLDEN))
    assert RingTiming(**GOLDEN) != RingTiming(**GOLDEN, latency_s=1e-6)
