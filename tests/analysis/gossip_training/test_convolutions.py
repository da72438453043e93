"""Convolutional networks against finite differences and a network that goes pixel by pixel."""

import numpy as np
import pytest
from refusals import one_line

from ddlopt.analysis.gossip_training.convolutions import Convolutions
from ddlopt.analysis.gossip_training.data import data_of
from ddlopt.analysis.gossip_training.policies import policy_of
from ddlopt.analysis.gossip_training.training import Training, train
from ddlopt.instances.generators.gossip.graphs import network_of
from ddlopt.models.errors import OptionError


def drawn(network, workers=3, batch=4, seed=1):
    rng = np.random.default_rng(seed)
    models = np.stack([network.fresh(rng) for _ in range(workers)]) + 0.05 * rng.standard_normal(
        (workers, network.size)
    )
    return models, rng.standard_normal((workers, batch, network.side**2)), rng.integers(0, 3, (workers, batch))


def test_gradients_are_those_of_finite_differences():
    network = Convolutions(4, 2, (5,), 3)
    models, samples, classes = drawn(network)
    found = network.gradients(models, samples, classes)
    assert network.size == 9 * 2 + 2 + 4 * 2 * 5 + 5 + 5 * 3 + 3 == network.tensors[-1].stop
    for k in range(network.size):
        move = np.zeros(network.size)
        move[k] = 1e-6
        ahead, behind = (network.loss(models + s * move, samples, classes) for s in (1, -1))
        assert found[:, k] == pytest.approx((ahead - behind) / 2e-6, abs=1e-7)


def recognised(network, model, image):
    """The class of one image, filter by filter and pixel by pixel."""
    side, half = network.side, network.side // 2
    filters, biases, *rest = (model[part] for part in network.tensors)
    filters, padded = filters.reshape(3, 3, -1), np.pad(image.reshape(side, side), 1)
    seen = []
    for row, column in np.ndindex(half, half):
        for channel in range(network.channels):
            places = [(2 * row + i, 2 * column + j) for i in (0, 1) for j in (0, 1)]
            scores = [(padded[i : i + 3, j : j + 3] * filters[:, :, channel]).sum() for i, j in places]
            seen.append(max(0.0, max(scores) + biases[channel]))
    hidden = np.maximum(0.0, np.array(seen) @ rest[0].reshape(len(seen), -1) + rest[1])
    return (hidden @ rest[2].reshape(len(hidden), -1) + rest[3]).argmax()


def test_classes_are_those_of_one_image_after_the_other():
    network = Convolutions(6, 3, (5,), 3)
    models, samples, _ = drawn(network, batch=30)
    for model in models:
        wanted = np.array([recognised(network, model, image) for image in samples[0]])
        assert network.accuracies(model[None], samples[0], wanted).tolist() == [1.0]
        assert network.accuracies(model[None], samples[0], (wanted + 1) % 3).tolist() == [0.0]
    assert len(set(wanted)) > 1


@pytest.mark.slow
def test_workers_train_convolutional_networks():
    """A step of an all-reduce is one of the mean gradient: all models stay equal, and they learn."""
    training = Training(
        network_of(np.random.default_rng(0), "cycle", 4, 2), epochs=2, channels=4, hidden=(16,), batch=8
    )
    run = train(training, policy_of("all-reduce"), moments=2)
    assert run.model_bytes == 4 * (40 + 64 * 16 + 16 + 160 + 10)
    assert run.end.distance < 1e-9
    assert 0.5 < run.end.averaged > run.moments[0].averaged
    assert training.learners.widths == (data_of("digits")[0].shape[1], 64, 16, 10)


def test_filters_need_images():
    network = network_of(np.random.default_rng(0), "cycle", 4, 2)
    with one_line(OptionError, "channels is 4, but 'wine' has no images; take the digits"):
        Training(network, data="wine", batch=8, channels=4)
    with one_line(OptionError, "channels is -1; expected 0 or more"):
        Training(network, channels=-1)
