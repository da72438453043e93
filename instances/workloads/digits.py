"""A network that is really trained: handwritten digits, a multi-layer perceptron in NumPy, data-parallel workers.

The data ship with scikit-learn (``pip install 'ddlopt[train]'``): 1797 images of 8 x 8, the UCI "Optical recognition of
handwritten digits" test set.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import OptionError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

WIDTHS = (64, 1024, 512, 256, 10)
"""Inputs, hidden layers, classes."""
# A fifth of the 1797 images, as is usual.
_HELD_OUT = 360


@cache
def images() -> tuple[Floats, Ints, Floats, Ints]:
    """Training images (1437, 64) in 0..1 with their digits, and 360 held-out ones; shuffled once and for all.

    Raises
    ------
    OptionError
        If scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError:
        raise OptionError("the digits come with scikit-learn, which is missing; pip install 'ddlopt[train]'") from None
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    pixels, digits = data.data[order] / 16.0, data.target[order].astype(np.int64)
    return pixels[_HELD_OUT:], digits[_HELD_OUT:], pixels[:_HELD_OUT], digits[:_HELD_OUT]


@dataclass
class Perceptron:
    """A multi-layer perceptron with ReLUs and a softmax; ``parameters`` are weights (out, in) and biases in turn."""

    parameters: list[Floats] = field(default_factory=list)

    @classmethod
    def fresh(cls, rng: np.random.Generator, widths: Sequence[int] = WIDTHS) -> "Perceptron":
        """Random weights of variance 2 / inputs (He et al. 2015)."""
        parameters = []
        for inputs, outputs in itertools.pairwise(widths):
            parameters += [rng.standard_normal((outputs, inputs)) * np.sqrt(2 / inputs), np.zeros(outputs)]
        return cls(parameters)

    @property
    def layers(self) -> int:
        """Number of layers with weights."""
        return len(self.parameters) // 2

    def forward(self, pixels: Floats) -> list[Floats]:
        """What goes into every layer, and the scores that come out of the last, for a batch (b, 64)."""
        values = [pixels]
        for layer in range(self.layers):
            scores = values[-1] @ self.parameters[2 * layer].T + self.parameters[2 * layer + 1]
            values.append(np.maximum(scores, 0) if layer < self.layers - 1 else scores)
        return values

    def gradients(self, pixels: Floats, digits: Ints) -> list[Floats]:
        """Gradients of the mean cross-entropy in the order of ``parameters``."""
        values = self.forward(pixels)
        scores = np.exp(values[-1] - values[-1].max(axis=1, keepdims=True))
        error = scores / scores.sum(axis=1, keepdims=True)
        error[np.arange(len(digits)), digits] -= 1
        error /= len(digits)
        found: list[Floats] = [np.empty(0)] * len(self.parameters)
        for layer in reversed(range(self.layers)):
            found[2 * layer], found[2 * layer + 1] = error.T @ values[layer], error.sum(axis=0)
            error = (error @ self.parameters[2 * layer]) * (values[layer] > 0)
        return found

    def accuracy(self, pixels: Floats, digits: Ints) -> float:
        """Part of the images that are recognised."""
        return float((self.forward(pixels)[-1].argmax(axis=1) == digits).mean())

    def step(self, gradients: Sequence[Floats], rate: float) -> None:
        """Go a step down the gradients."""
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter -= rate * gradient


@dataclass(frozen=True)
class Training:
    """Data-parallel SGD: every step each worker takes ``batch`` images of its own.

    Parameters
    ----------
    workers, batch : int
    rate : float
        Learning rate.
    seed : int
    """

    workers: int = 8
    batch: int = 16
    rate: float = 0.1
    seed: int = 0

    def batches(self, steps: int) -> Iterator[tuple[Floats, Ints]]:
        """Images (D, b, 64) and digits (D, b) of every step."""
        pixels, digits, _, _ = images()
        rng = np.random.default_rng(self.seed + 1)
        for _ in range(steps):
            drawn = rng.choice(len(digits), (self.workers, self.batch), replace=False)
            yield pixels[drawn], digits[drawn]

    def gradients(self, network: Perceptron, pixels: Floats, digits: Ints) -> list[Floats]:
        """Gradients of all workers, (D, *shape) each, in *backward* order: the last layer's bias and weight first."""
        each = [network.gradients(x, y) for x, y in zip(pixels, digits, strict=True)]
        return [np.stack([found[place] for found in each]) for place in reversed(range(len(network.parameters)))]
