"""Compressors lose what theory says that they lose."""

import numpy as np
import pytest
from volume import for_each

from ddlopt.instances.workloads.compression.numpy_compressors import BUCKET, Setting, averaged, squared_error
from ddlopt.models.errors import OptionError

RNG = np.random.default_rng(5)
GRADIENTS = RNG.standard_normal((4, 40, 30)) * RNG.random((1, 40, 30)) ** 3
MEAN = GRADIENTS.mean(axis=0)


def error(setting, gradients=GRADIENTS, seed=0):
    return squared_error(setting, gradients, np.random.default_rng(seed))


def test_nothing_is_lost_where_everything_is_sent():
    for setting in (
        Setting("none"), Setting("top_k", ratio=1.0), Setting("random_k", ratio=1.0), Setting("powersgd", rank=30)
    ):  # fmt: skip
        assert error(setting) < 1e-24


def test_fp16_rounds_to_eleven_bits():
    assert 0 < error(Setting("fp16")) <= 2.0**-22 * (GRADIENTS**2).sum(axis=0).sum()


@pytest.mark.parametrize("ratio", [0.01, 0.1, 0.5])
def test_top_k_of_one_worker_loses_the_smallest(ratio):
    one = GRADIENTS[:1]
    kept = round(ratio * one.size)
    assert error(Setting("top_k", ratio=ratio), one) == pytest.approx(
        np.sort(one.ravel() ** 2)[: one.size - kept].sum()
    )
    assert error(Setting("dgc", ratio=ratio), one) == pytest.approx(error(Setting("top_k", ratio=ratio), one), rel=0.4)


def test_random_k_loses_its_part_on_average():
    lost = np.mean([error(Setting("random_k", ratio=0.25), seed=seed) for seed in range(300)])
    assert lost == pytest.approx(0.75 * (MEAN**2).sum(), rel=0.05)


def test_qsgd_is_unbiased_and_within_its_variance():
    setting = Setting("qsgd", levels=16)
    drawn = [averaged(setting, GRADIENTS[:1], np.random.default_rng(seed)) for seed in range(400)]
    spread = np.std(drawn, axis=0) / np.sqrt(len(drawn))
    assert np.abs(np.mean(drawn, axis=0) - GRADIENTS[0]).max() < 6 * spread.max()
    energy = (GRADIENTS[0] ** 2).sum()
    assert np.mean([((each - GRADIENTS[0]) ** 2).sum() for each in drawn]) <= energy * BUCKET / 16**2


def test_sign_of_one_worker():
    one = GRADIENTS[:1]
    size = one.size
    exact = (one**2).sum() - np.abs(one).sum() ** 2 / size
    assert error(Setting("sign"), one) == pytest.approx(exact)
    assert error(Setting("onebit"), one) <= exact  # each sign has its own mean


def test_powersgd_is_near_the_best_of_its_rank():
    values = np.linalg.svd(MEAN, compute_uv=False) ** 2
    for rank in (1, 4, 10):
        best = values[rank:].sum()
        assert best * (1 - 1e-12) <= error(Setting("powersgd", rank=rank)) <= 1.5 * best


@for_each(
    ("setting", "line"),
    [
        (Setting("zip"), "there is no compressor 'zip' to measure; there are: dgc, fp16"),
        (Setting("top_k"), "'top_k' needs a ratio"),
        (Setting("qsgd"), "'qsgd' needs levels"),
        (Setting("powersgd"), "'powersgd' needs a rank"),
    ],
)
def test_bad_settings(setting, line):
    with pytest.raises(OptionError, match=line):
        error(setting)
