"""Instances of how much to compress: their curves against direct calculation, and the bundled ones."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from volume import for_each, some

from ddlopt.instances import best, library_folder, load, names
from ddlopt.instances.generators.compression import generate
from ddlopt.instances.generators.compression.levels import NETWORKS, _points
from ddlopt.instances.workloads import V100
from ddlopt.instances.workloads.networks.gradients import backward_gradients
from ddlopt.instances.workloads.networks.published import vgg16
from ddlopt.models.compression import LevelInstance, bound, evaluate
from ddlopt.solvers.compression.levels.convex_levels import ConvexLevels
from ddlopt.solvers.contracts import Limits

MADE = [name.partition("/")[2] for name in names("compression") if "/levels-" in name and "measured" not in name]
TENSORS = backward_gradients(vgg16(32), V100)


def network(**options):
    return generate("levels-network", 1, **options)


def test_what_the_library_must_hold():
    made = [load(f"compression/{name}") for name in MADE]
    compressors = {gradient.compressor for instance in made for gradient in instance.gradients}
    assert compressors == {"powersgd", "top_k", "qsgd"}
    assert {instance.goal for instance in made} == {"time", "error"}
    assert max((library_folder("compression") / f"{name}.json").stat().st_size for name in MADE) < 200_000
    assert {name.split("-")[1] for name in MADE} == {*NETWORKS, "random"}
    assert {any(each.encode_s for each in instance.gradients) for instance in made} == {True, False}


@for_each("name", some(MADE, 4))
def test_best_known_levels(name):
    stored = best(f"compression/{name}")
    instance = load(f"compression/{name}")
    judged = evaluate(instance, stored, exact=True)
    assert not judged.violations
    assert bound(instance) <= judged.objective


@pytest.mark.parametrize("name", ["levels-vgg16-top-k-alone", "levels-resnet50-powersgd", "levels-gpt2-qsgd-error"])
def test_best_known_levels_are_between_bound_and_answer(name):
    instance = load(f"compression/{name}")
    known = float(evaluate(instance, best(f"compression/{name}")).objective)
    result = ConvexLevels().solve(instance, Limits())
    assert result.bound <= known * (1 + 1e-9)
    assert known <= result.objective <= 1.001 * known


@for_each("overlap", [True, False])
@for_each("compressor", ["powersgd", "top_k", "qsgd"])
def test_gradients_are_those_of_the_network(compressor, overlap):
    instance = network(compressor=compressor, overlap=overlap)
    for made, tensor in zip(instance.gradients, TENSORS, strict=True):
        assert (made.name, made.shape) == (tensor.name, tensor.shape)
        assert made.ready_s == pytest.approx(tensor.ready_s if overlap else 0.0, rel=1e-5)
        if len(tensor.shape) == 1:  # as it is: 4 bytes a number, 2 · 7/8 times, at 10 Gb/s
            (level,) = made.curve.allowed
            sent = 4 * tensor.elements * 2 * 7 / 8 / 1.25e9
            assert made.wire_s_per_level * level == pytest.approx(sent, rel=1e-5)
            assert (made.encode_s, made.encode_s_per_level, made.curve.errors) == (0, 0, (0,))
        else:
            assert (made.encode_s > 0) == overlap
            assert len(made.curve.allowed) > 1


def test_bytes_of_a_level():
    p, q = 4096, 25088
    place = next(k for k, tensor in enumerate(TENSORS) if tensor.shape == (p, q))
    wire = {c: network(compressor=c, overlap=False).gradients[place] for c in ("powersgd", "top_k", "qsgd")}
    assert wire["powersgd"].wire_s_per_level == pytest.approx(4 * (p + q) * 2 * 7 / 8 / 1.25e9, rel=1e-5)
    assert wire["top_k"].wire_s_per_level == pytest.approx(8 * 7 / 1.25e9, rel=1e-5)
    assert wire["qsgd"].wire_s_per_level == pytest.approx(p * q * 7 / 8 / 1.25e9, rel=1e-5)
    assert wire["qsgd"].launch_s == pytest.approx(7 * (10e-6 + 4 * p * q / 512 / 1.25e9), rel=1e-5)
    assert wire["powersgd"].launch_s == pytest.approx(2 * 14 * 10e-6)
    slow = network(overlap=False, network_gigabit_per_s=1.0, workers=2).gradients[place]
    assert slow.wire_s_per_level == pytest.approx(4 * (p + q) / 1.25e8, rel=1e-5)


def test_energies_of_spectra_are_in_order():
    # The error of rank r is the tail of a power law: its share of the whole gives the exponent away, which must fit.
    for made in network(points=128, overlap=False).gradients:
        if len(made.curve.allowed) < 4:
            continue
        levels, errors = np.array(made.curve.levels), np.array(made.curve.errors)
        assert (levels[0], len(levels) > 8) == (1, True)
        rank = min(made.shape[0], math.prod(made.shape[1:]))
        energy = [each - after for each, after in itertools.pairwise(errors)]  # of singular values 2, 3, …
        decay = math.log(energy[0] / energy[1]) / math.log(3 / 2)
        assert 1.09 < decay < 1.91
        tails = np.array([math.fsum(j**-decay for j in range(level + 1, rank + 1)) for level in levels])
        np.testing.assert_allclose(errors / errors[0], tails / tails[0], rtol=2e-3, atol=1e-6)


def test_entries_lost_by_top_k_are_those_of_samples():
    rng = np.random.default_rng(5)
    made = next(each for each in network(compressor="top_k").gradients if len(each.curve.allowed) > 3)
    parts = np.array(made.curve.levels) / math.prod(made.shape)
    shares = np.array(made.curve.errors) / made.curve.errors[0]
    fits = []
    for beta in np.linspace(0.6, 1.4, 17):  # |x|^beta has a gamma distribution
        energies = np.sort(rng.gamma(1 / beta, size=400_000) ** (2 / beta))
        left = np.array([energies[: round(400_000 * (1 - part))].sum() for part in parts])
        fits.append(np.abs(left / left[0] - shares).max())
    assert min(fits) < 0.02
    assert max(fits) > 0.1


def test_the_bound_of_qsgd_holds_for_rounding_at_random():
    rng = np.random.default_rng(4)
    made = network(compressor="qsgd", overlap=False)
    graded = [each for each in made.gradients if len(each.curve.allowed) > 1]
    energy = [each.curve.scale / (min(512, math.prod(each.shape)) * 16 / 9) for each in graded]
    assert math.fsum(energy) == pytest.approx(1.0, rel=1e-5)
    for bits in (3, 5, 8):
        for vector in (rng.standard_normal(512), rng.laplace(size=512), np.full(512, 1.5)):
            step = np.linalg.norm(vector) / (2 ** (bits - 1) - 1)
            rest = vector / step - np.floor(vector / step)
            variance = float((step**2 * rest * (1 - rest)).sum())
            assert variance <= 16 / 9 * 512 * 4.0**-bits * float(vector @ vector)


def test_rounded_points_stay_convex():
    rng = np.random.default_rng(0)
    for _ in range(50):
        levels = np.cumsum(rng.integers(1, 5, 30))
        curve = _points(levels, 1000 / (levels + rng.uniform(0, 3)) ** rng.uniform(0.01, 2))
        points = [(level, Fraction(error)) for level, error in zip(curve.levels, curve.errors, strict=True)]
        slopes = [(f - e) / (b - a) for (a, e), (b, f) in itertools.pairwise(points)]
        assert slopes == sorted(slopes)
        assert len(set(slopes)) == len(slopes)
        assert (curve.levels[0], curve.levels[-1]) == (levels[0], levels[-1])


@pytest.mark.parametrize("goal", ["time", "error"])
def test_random_levels(goal):
    instance = generate("levels-random", 2, gradients=9, goal=goal, curved_part=0.3, name="mine")
    assert isinstance(instance, LevelInstance)
    assert (instance.name, instance.size, instance.goal) == ("mine", 9, goal)
