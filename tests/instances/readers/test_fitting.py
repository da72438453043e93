"""Parameters of iteration times from measurements."""

import itertools
import math

import numpy as np
import pytest
from volume import for_each

from ddlopt.instances.readers.fitting import Measurement, fit_pollux, fit_ring, read_measurements
from ddlopt.models.errors import InstanceError


def measured(overhead_s, bandwidth, latency_s, workers=(1, 2, 3, 4, 8, 16), sizes=(1e7, 1e8, 4e8), noise=0.0):
    rng = np.random.default_rng(0)
    return [
        Measurement(
            w, m, (overhead_s + 2 * (w - 1) / w * m / bandwidth + 2 * (w - 1) * latency_s) * (1 + noise * rng.normal())
        )
        for w, m in itertools.product(workers, sizes)
    ]


def test_known_parameters_are_recovered():
    fit = fit_ring(measured(0.02, 1.25e9, 0.003))
    assert fit.overhead_s == pytest.approx(0.02)
    assert fit.bandwidth_bytes_per_s == pytest.approx(1.25e9)
    assert fit.latency_s == pytest.approx(0.003)
    assert fit.r_squared == pytest.approx(1)
    assert np.abs(fit.residuals_s).max() < 1e-12
    assert len(fit.residuals_s) == 18
    timing = fit.timing(gradient_bytes=1e8, forward_s_per_sample=0.001, batch_samples=100, backward_s=0.2)
    assert timing.iteration_s(4) == pytest.approx(0.1 + 0.2 + 0.02 + 1.5 * 1e8 / 1.25e9 + 6 * 0.003)


def test_one_size_of_gradients_is_enough():
    fit = fit_ring(measured(0.01, 2e9, 0.002, sizes=(2e8,)))
    assert (fit.overhead_s, fit.bandwidth_bytes_per_s, fit.latency_s) == pytest.approx((0.01, 2e9, 0.002))


def test_almost_collinear_measurements_stay_times():
    """Unconstrained least squares gives a negative bandwidth here: times rise faster than with latency alone."""
    data = [Measurement(w, 1e8, seconds) for w, seconds in [(2, 0.1), (4, 0.11), (8, 0.2), (12, 0.37)]]
    free = np.linalg.lstsq(
        np.array([[1, 2 * (w - 1) / w * m, 2 * (w - 1)] for w, m, _ in data]), [one.sync_s for one in data], rcond=None
    )[0]
    assert free[1] < 0
    fit = fit_ring(data)
    assert fit.overhead_s >= 0
    assert fit.latency_s > 0
    assert fit.bandwidth_bytes_per_s == math.inf
    # Bytes make no difference then, and the timing says so too.
    timing = fit.timing(gradient_bytes=1e8, forward_s_per_sample=1)
    assert timing.iteration_s(8) == pytest.approx(1 + fit.overhead_s + 14 * fit.latency_s, rel=1e-9)


def test_it_is_the_best_fit():
    data = measured(0.02, 1.25e9, 0.003, noise=0.1)
    fit = fit_ring(data)

    def missed(overhead_s, bandwidth, latency_s):
        model = measured(overhead_s, bandwidth, latency_s)
        return sum((one.sync_s - other.sync_s) ** 2 for one, other in zip(data, model, strict=True))

    best = missed(fit.overhead_s, fit.bandwidth_bytes_per_s, fit.latency_s)
    assert best == pytest.approx(sum(residual**2 for residual in fit.residuals_s))
    for factors in itertools.product((0.98, 1, 1.02), repeat=3):
        near = (fit.overhead_s * factors[0], fit.bandwidth_bytes_per_s * factors[1], fit.latency_s * factors[2])
        assert missed(*near) >= best
    mean = np.mean([one.sync_s for one in data])
    assert fit.r_squared == pytest.approx(1 - best / sum((one.sync_s - mean) ** 2 for one in data))


def test_latency_explains_what_bandwidth_does_not():
    data = measured(0.02, 1.25e9, 0.01, sizes=(1e8,), noise=0.02)
    with_it, without = fit_ring(data), fit_ring(data, latency=False)
    assert without.latency_s == 0
    assert with_it.r_squared > 0.99
    assert without.r_squared < 0.9


def test_pollux():
    seconds = {1: 0.0, 2: 0.2, 3: 0.25, 5: 0.35, 16: 0.9}
    fit = fit_pollux([Measurement(w, 1e8, s) for w, s in seconds.items()])
    assert (fit.sync_s, fit.sync_s_per_worker) == pytest.approx((0.2, 0.05))
    assert fit.r_squared == pytest.approx(1)
    assert len(fit.residuals_s) == 4
    timing = fit.timing(compute_s=0.1, compute_s_per_sample=0.01, batch_samples=10)
    assert [timing.iteration_s(w) - 0.2 for w in seconds] == pytest.approx(list(seconds.values()))
    falling = fit_pollux([Measurement(w, 1e8, 1 / w) for w in (2, 4, 8)])
    assert falling.sync_s_per_worker == 0
    assert falling.sync_s == pytest.approx((1 / 2 + 1 / 4 + 1 / 8) / 3)
    constant = fit_pollux([Measurement(w, 1e8, 0.1) for w in (2, 4, 8)])
    assert constant.r_squared == 1.0


@for_each(
    ("fit", "data", "line"),
    [
        (fit_ring, [], "a fit needs measurements with different numbers of workers, or of bytes"),
        (
            fit_ring,
            [Measurement(2, 1e8, 1), Measurement(2, 1e8, 2)],
            "a fit needs measurements with different numbers of workers, or of bytes",
        ),
        (fit_pollux, [Measurement(1, 1e8, 1)], "a fit of pollux timing needs measurements with two or more workers"),
        (
            fit_pollux,
            [Measurement(2, 1e8, 1), Measurement(3, 2e8, 1)],
            "pollux timing has no bytes, but the measurements have 100000000 to 200000000 of them; "
            "fit each size apart, or a ring",
        ),
    ],
)
def test_too_little_to_fit(fit, data, line):
    with pytest.raises(InstanceError) as caught:
        fit(data)
    assert str(caught.value) == line


def test_a_file_of_measurements(tmp_path):
    path = tmp_path / "sync.csv"
    path.write_text("\ufeffcluster,workers,sync_s,bytes\na,2,0.1,1e8\nb,4,0.15,100000000\n")
    assert read_measurements(path) == [Measurement(2, 1e8, 0.1), Measurement(4, 1e8, 0.15)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "{}: there is no column 'workers'; expected workers, bytes, sync_s, got none"),
        (
            "workers,bytes\n2,1\n",
            "{}: there is no column 'sync_s'; expected workers, bytes, sync_s, got workers, bytes",
        ),
        ("workers,bytes,sync_s\n", "{}: has no measurements; expected rows of workers, bytes, sync_s"),
        ("workers,bytes,sync_s\n2,1,1\n2.5,1,1\n", "{}, line 3: workers is 2.5; expected an integer of at least 1"),
        ("workers,bytes,sync_s\n0,1,1\n", "{}, line 2: workers is 0; expected an integer of at least 1"),
        ("workers,bytes,sync_s\n2,1,fast\n", "{}, line 2: sync_s is 'fast'; expected a number"),
        ("workers,bytes,sync_s\n2,1\n", "{}, line 2: sync_s is None; expected a number"),
        ("workers,bytes,sync_s\n2,-1,1\n", "{}, line 2: bytes is -1; it must be finite and at least 0"),
        ("workers,bytes,sync_s\n2,1,nan\n", "{}, line 2: sync_s is nan; it must be finite and at least 0"),
        ("workers,bytes,sync_s\ninf,1,1\n", "{}, line 2: workers is inf; it must be finite and at least 0"),
    ],
)
def test_bad_files_get_one_line(tmp_path, text, line):
    path = tmp_path / "sync.csv"
    path.write_text(text)
    with pytest.raises(InstanceError) as caught:
        read_measurements(path)
    assert str(caught.value) == line.format(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InstanceError, match="cannot be read: No such file"):
        read_measurements(tmp_path / "none.csv")
