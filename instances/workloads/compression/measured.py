"""Errors of compressors on the gradients of a network that is really trained, and a plan run for real.

Errors are relative: squared distance of what the workers get from the mean of their gradients, divided by the squared
norm of the whole mean gradient (all parameters) of that step. So they add up over gradients, and 1 means that as much
is lost as there was.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.instances.workloads.compression.numpy_compressors import Setting, averaged, squared_error
from ddlopt.instances.workloads.digits import Perceptron, Training, images

Floats = npt.NDArray[np.float64]


class Sample(NamedTuple):
    """Gradients of one step in backward order, (D, …) each, and the squared norm of their means together."""

    gradients: list[Floats]
    energy: float


def samples(training: Training, first: int, count: int, every: int = 1) -> list[Sample]:
    """Gradients of ``count`` steps from step ``first`` on, ``every`` steps apart, of training without compression."""
    network = Perceptron.fresh(np.random.default_rng(training.seed))
    found = []
    for step, (pixels, digits) in enumerate(training.batches(first + (count - 1) * every + 1)):
        gradients = training.gradients(network, pixels, digits)
        means = [each.mean(axis=0) for each in gradients]
        if step >= first and (step - first) % every == 0:
            found.append(Sample(gradients, float(sum((mean**2).sum() for mean in means))))
        network.step(means[::-1], training.rate)
    return found


def mean_error(setting: Setting, place: int, taken: Sequence[Sample], seed: int = 0) -> float:
    """Mean relative error of a compressor on the gradient at ``place`` of the backward order."""
    rng = np.random.default_rng(seed)
    return float(np.mean([squared_error(setting, each.gradients[place], rng) / each.energy for each in taken]))


def tail_energies(place: int, taken: Sequence[Sample]) -> Floats:
    """(n + 1,) mean relative energy that is lost when every worker keeps its k largest entries, for k = 0..n.

    The error of the workers' mean is at most that, as a squared norm is convex; and the tail is convex in k.
    """
    tails = []
    for each in taken:
        squares = np.sort(each.gradients[place].reshape(len(each.gradients[place]), -1) ** 2, axis=1)
        rising = np.concatenate((np.zeros((len(squares), 1)), np.cumsum(squares, axis=1)), axis=1)
        tails.append(rising[:, ::-1].mean(axis=0) / each.energy)
    mean: Floats = np.mean(tails, axis=0)
    return mean


def spectral_tails(place: int, taken: Sequence[Sample]) -> Floats:
    """(min(p, q) + 1,) mean relative energy of the singular values beyond the r largest, of the mean gradient."""
    tails = []
    for each in taken:
        mean = each.gradients[place].mean(axis=0)
        values = np.linalg.svd(mean.reshape(mean.shape[0], -1), compute_uv=False) ** 2
        tails.append(np.concatenate((np.cumsum(values[::-1])[::-1], [0.0])) / each.energy)
    found: Floats = np.mean(tails, axis=0)
    return found


@dataclass(frozen=True)
class Run:
    """What became of a plan.

    Parameters
    ----------
    errors : (steps, n) array
        Relative error of every gradient in every step.
    accuracy : float
        On the held-out images, after the last step.
    """

    errors: Floats
    accuracy: float

    @property
    def error(self) -> float:
        """Mean over the steps of the error of the whole gradient."""
        return float(self.errors.sum(axis=1).mean())


def run_plan(settings: Sequence[Setting], training: Training, first: int, steps: int, feedback: bool = False) -> Run:
    """Train ``first`` steps without compression and ``steps`` with it; the error of each compressed step.

    With ``feedback`` what is lost of the mean is added to all workers' next gradients, and the error is that of the
    sum. The settings are in backward order.
    """
    network = Perceptron.fresh(np.random.default_rng(training.seed))
    rng = np.random.default_rng(training.seed + 2)
    errors, memory = [], [0.0] * len(settings)
    for step, (pixels, digits) in enumerate(training.batches(first + steps)):
        gradients = training.gradients(network, pixels, digits)
        means = [each.mean(axis=0) for each in gradients]
        if step >= first:
            wanted = [mean + kept for mean, kept in zip(means, memory, strict=True)]
            energy = sum(float((each**2).sum()) for each in wanted)
            got = [
                averaged(setting, each + kept, rng)
                for setting, each, kept in zip(settings, gradients, memory, strict=True)
            ]
            lost = [each - instead for each, instead in zip(wanted, got, strict=True)]
            errors.append([float((each**2).sum()) / energy for each in lost])
            memory = lost if feedback else memory
            means = got
        network.step(means[::-1], training.rate)
    _, _, pixels, digits = images()
    return Run(np.array(errors), network.accuracy(pixels, digits))
