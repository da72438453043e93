"""Gradients of networks that are trained, what is measured of them, and plans run for real."""

from functools import cache

import numpy as np
import pytest
from volume import for_each

import ddlopt
from ddlopt.instances.generators.compression.measured import FIRST, setting_of
from ddlopt.instances.library.compression.measured import measured, measurements
from ddlopt.instances.workloads.compression.measured import mean_error, run_plan, samples, spectral_tails, tail_energies
from ddlopt.instances.workloads.compression.numpy_compressors import Setting, squared_error
from ddlopt.instances.workloads.digits import Perceptron, Training, images
from ddlopt.models.errors import InstanceError, OptionError

TRAINING = Training(workers=4, batch=8)


@cache
def taken():
    return samples(TRAINING, first=3, count=2, every=2)


def test_gradients_are_those_of_the_loss():
    network = Perceptron.fresh(np.random.default_rng(0), (64, 12, 10))
    pixels, digits, _, _ = (each[:20] for each in images())

    def loss():
        scores = network.forward(pixels)[-1]
        return np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(20), digits])

    found = network.gradients(pixels, digits)
    for parameter, gradient in zip(network.parameters, found, strict=True):
        place = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        kept, step = parameter[place], 1e-6
        parameter[place] = kept + step
        above = loss()
        parameter[place] = kept - step
        slope = (above - loss()) / (2 * step)
        parameter[place] = kept
        assert slope == pytest.approx(gradient[place], rel=1e-5)


def test_the_mean_of_the_workers_is_the_gradient_of_all():
    network = Perceptron.fresh(np.random.default_rng(0), (64, 12, 10))
    pixels, digits = next(iter(TRAINING.batches(1)))
    together = network.gradients(pixels.reshape(-1, 64), digits.ravel())
    for mean, whole in zip(TRAINING.gradients(network, pixels, digits), reversed(together), strict=True):
        np.testing.assert_allclose(mean.mean(axis=0), whole, atol=1e-12)


def test_tails_bound_and_meet_the_errors():
    place = next(place for place, each in enumerate(taken()[0].gradients) if each.ndim == 3)
    tails, spectrum = tail_energies(place, taken()), spectral_tails(place, taken())
    assert tails[-1] == pytest.approx(0, abs=1e-15)
    assert np.all(np.diff(tails, 2) >= -1e-12)
    rows, columns = taken()[0].gradients[place].shape[1:]
    for kept in (5, 200):
        setting = Setting("top_k", ratio=kept / (rows * columns))
        assert mean_error(setting, place, taken()) <= tails[kept] * (1 + 1e-9)
    for rank in (1, 3):
        promised = spectrum[rank]
        assert promised <= mean_error(Setting("powersgd", rank=rank), place, taken()) * (1 + 1e-9)


def test_a_plan_run_for_real_has_the_errors_of_its_first_step():
    settings = [Setting("top_k", ratio=0.2) if each.ndim == 3 else Setting("none") for each in taken()[0].gradients]
    run = run_plan(settings, TRAINING, first=3, steps=1)
    rng = np.random.default_rng(0)
    errors = [
        squared_error(setting, each, rng) / taken()[0].energy
        for setting, each in zip(settings, taken()[0].gradients, strict=True)
    ]
    np.testing.assert_allclose(run.errors[0], errors, atol=1e-15)
    assert 0 < run.error < 1


@pytest.mark.slow
def test_training_works_with_compression_and_feedback():
    settings = [Setting("top_k", ratio=0.05) if each.ndim == 3 else Setting("none") for each in taken()[0].gradients]
    plain = run_plan([Setting("none")] * len(settings), Training(), first=0, steps=60)
    assert plain.errors.max() < 1e-25
    assert plain.accuracy > 0.8
    assert run_plan(settings, Training(), first=0, steps=60, feedback=True).accuracy > 0.7


@pytest.mark.slow
@for_each("name", measurements())
def test_measured_again_they_are_the_same(name):
    stored, again = ddlopt.load(f"compression/{name}"), measured(name)
    assert stored.source == again.source
    for old, new in zip(stored.gradients, again.gradients, strict=True):
        assert old.model_dump(exclude={"curve"}) == new.model_dump(exclude={"curve"})
        if stored.problem == "levels":
            assert old.curve.levels == new.curve.levels
            np.testing.assert_allclose(old.curve.errors, new.curve.errors, rtol=1e-6, atol=1e-9)
    if stored.problem == "timeline":
        for old, new in zip(stored.menus, again.menus, strict=True):
            assert [each.model_copy(update={"error": 0.0}) for each in old] == [
                each.model_copy(update={"error": 0.0}) for each in new
            ]
            np.testing.assert_allclose([o.error for o in old], [o.error for o in new], rtol=2e-3)


@pytest.mark.slow
def test_a_plan_keeps_its_promise():
    """Errors were measured at five steps; over other steps the plan's stay within a quarter of the promise."""
    instance = ddlopt.load("compression/measured-digits-w8-10g")
    result = ddlopt.solve(instance, "overlap-timeline")
    assert result.details["error"] <= instance.error_budget * (1 + 1e-9)
    settings = [setting_of(instance.option(i, choice)) for i, choice in enumerate(result.solution.choices)]
    assert any(setting.compressor != "none" for setting in settings)
    seed = int(np.random.default_rng(1).integers(2**31))
    run = run_plan(settings, Training(workers=8, seed=seed), FIRST, steps=6)
    assert run.error == pytest.approx(result.details["error"], rel=0.25)


def test_bad_options():
    with pytest.raises(OptionError, match="compressor is 'zip'; use one of: powersgd, top_k"):
        ddlopt.generate("compression", "levels-measured", compressor="zip")
    with pytest.raises(OptionError, match="workers is 1; it must be at least 2"):
        ddlopt.generate("compression", "measured", workers=1)
    with pytest.raises(InstanceError, match="error_budget is 1e-09, but no choice of levels has less than"):
        ddlopt.generate(
            "compression", "levels-measured", compressor="top_k", workers=2, batch=2, error_budget_part=1e-9
        )
