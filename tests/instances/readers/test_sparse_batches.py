"""Batches of a sparse model: the stated probabilities, and the sample that the model is fitted to."""

import numpy as np
import pytest

from ddlopt.instances.workloads.sparse_batches import (
    CRITEO_SAMPLE,
    ZipfField,
    ZipfModel,
    zipf_batches,
    zipf_frequencies,
)
from ddlopt.models.errors import OptionError


def test_a_field_follows_zipfs_law() -> None:
    assert ZipfField(3, 1.0).probabilities == pytest.approx([6 / 11, 3 / 11, 2 / 11])


@pytest.mark.parametrize(
    "model", [CRITEO_SAMPLE, ZipfModel(CRITEO_SAMPLE.fields, buckets=500, salt=3), CRITEO_SAMPLE.of_size(300)]
)
def test_batches_touch_parameters_as_often_as_stated(model: ZipfModel) -> None:
    count = 3000
    batches = zipf_batches(np.random.default_rng(1), count, 10, model)
    stated = zipf_frequencies(10, model)
    seen = np.bincount(np.concatenate(batches), minlength=model.parameters) / count
    deviation = np.sqrt(stated * (1 - stated) / count)
    assert (np.abs(seen - stated) <= 5 * deviation + 2.5 / count).all()
    assert len(stated) == model.parameters
    assert all((np.diff(batch) > 0).all() for batch in batches)


def test_frequencies_of_two_fields_that_share_a_bucket() -> None:
    model = ZipfModel((ZipfField(1, 0.0), ZipfField(2, 0.0)), buckets=1)
    assert zipf_frequencies(1, model) == pytest.approx([1.0])
    halves = ZipfModel((ZipfField(2, 0.0), ZipfField(2, 0.0)))
    assert zipf_frequencies(2, halves) == pytest.approx([0.75] * 4)


def test_the_fitted_model_is_as_skewed_as_the_public_sample() -> None:
    totals, shares = [], []
    for seed in range(20):
        rows = zipf_batches(np.random.default_rng(seed), 400, 1)
        touched = np.sort(np.bincount(np.concatenate(rows)))[::-1]
        totals.append(np.count_nonzero(touched))
        shares.append([touched[:top].sum() / touched.sum() for top in (10, 20, 32, 64)])
    assert np.mean(totals) == pytest.approx(876, rel=0.02)
    assert np.mean(shares, axis=0) == pytest.approx([0.402, 0.581, 0.650, 0.737], abs=0.03)


def test_a_model_of_another_size_has_that_many_parameters() -> None:
    for parameters in (17, 1000, 123_457):
        assert CRITEO_SAMPLE.of_size(parameters).parameters == parameters


def test_odd_sizes_are_refused() -> None:
    with pytest.raises(OptionError, match="parameters is 16"):
        CRITEO_SAMPLE.of_size(16)
    with pytest.raises(OptionError, match=r"fields\[1\] has vocabulary 0"):
        ZipfModel((ZipfField(1, 1.0), ZipfField(0, 1.0)))
    with pytest.raises(OptionError, match="rows is 0"):
        zipf_batches(np.random.default_rng(0), 1, 0)
    with pytest.raises(OptionError, match="rows is 0"):
        zipf_frequencies(0)
