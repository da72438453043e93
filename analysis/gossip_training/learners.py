"""Multi-layer perceptrons of many workers at once: models are the rows of one array."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Learners:
    """Perceptrons with ReLUs and a softmax.

    A model is a vector of d numbers: for each layer its weights (inputs, outputs) by rows, then its biases. Functions
    take the models of n workers as an array (n, d).

    Parameters
    ----------
    widths : tuple of int
        Inputs, hidden layers, classes.
    """

    widths: tuple[int, ...]

    @cached_property
    def tensors(self) -> tuple[slice, ...]:
        """Where weights and biases of each layer are in a model."""
        found: list[slice] = []
        for inputs, outputs in pairwise(self.widths):
            for size in (inputs * outputs, outputs):
                begin = found[-1].stop if found else 0
                found.append(slice(begin, begin + size))
        return tuple(found)

    @property
    def size(self) -> int:
        """Numbers d of a model."""
        return int(self.tensors[-1].stop)

    def fresh(self, rng: np.random.Generator) -> Floats:
        """(d,) a model with random weights of variance 2 / inputs (He et al. 2015)."""
        model = np.zeros(self.size)
        for inputs, weights in zip(self.widths, self.tensors[::2], strict=False):
            model[weights] = rng.standard_normal(weights.stop - weights.start) * np.sqrt(2 / inputs)
        return model

    def _layers(self, models: Floats) -> list[tuple[Floats, Floats]]:
        """Views: (n, inputs, outputs) weights and (n, 1, outputs) biases of each layer."""
        found = []
        for place, (inputs, outputs) in enumerate(pairwise(self.widths)):
            weights, biases = self.tensors[2 * place], self.tensors[2 * place + 1]
            found.append((models[:, weights].reshape(-1, inputs, outputs), models[:, None, biases]))
        return found

    def _forward(self, models: Floats, samples: Floats) -> list[Floats]:
        """What goes into every layer, and the scores that come out of the last."""
        layers = self._layers(models)
        values = [samples]
        for place, (weights, biases) in enumerate(layers):
            scores = values[-1] @ weights
            scores += biases
            values.append(np.maximum(scores, 0.0, out=scores) if place < len(layers) - 1 else scores)
        return values

    def loss(self, models: Floats, samples: Floats, classes: Ints) -> Floats:
        """(n,) mean cross-entropy of samples (n, b, f) with classes (n, b)."""
        scores = self._forward(models, samples)[-1]
        scores = scores - scores.max(axis=2, keepdims=True)
        own = np.take_along_axis(scores, classes[:, :, None], axis=2)[:, :, 0]
        found: Floats = (np.log(np.exp(scores).sum(axis=2)) - own).mean(axis=1)
        return found

    def gradients(self, models: Floats, samples: Floats, classes: Ints) -> Floats:
        """(n, d) gradients of the mean cross-entropy of samples (n, b, f) with classes (n, b)."""
        return self._backward(models, samples, classes)[0]

    def with_inputs(self, models: Floats, samples: Floats, classes: Ints) -> tuple[Floats, Floats]:
        """The gradients by the models, and those by the samples (n, b, f)."""
        found, error = self._backward(models, samples, classes)
        return found, error @ self._layers(models)[0][0].transpose(0, 2, 1)

    def _backward(self, models: Floats, samples: Floats, classes: Ints) -> tuple[Floats, Floats]:
        """(n, d) gradients by the models, and (n, b, outputs) those by the scores of the first layer."""
        values, layers = self._forward(models, samples), self._layers(models)
        workers, batch = classes.shape
        error = values[-1]
        error -= error.max(axis=2, keepdims=True)
        np.exp(error, out=error)
        error /= error.sum(axis=2, keepdims=True)
        error[np.arange(workers)[:, None], np.arange(batch), classes] -= 1.0
        error /= batch
        found = np.empty_like(models)
        for place in reversed(range(len(layers))):
            weights, biases = self.tensors[2 * place], self.tensors[2 * place + 1]
            found[:, weights] = (values[place].transpose(0, 2, 1) @ error).reshape(workers, -1)
            found[:, biases] = error.sum(axis=1)
            if place:
                error = (error @ layers[place][0].transpose(0, 2, 1)) * (values[place] > 0)
        return found, error

    def accuracies(self, models: Floats, samples: Floats, classes: Ints) -> Floats:
        """(n,) parts of the samples (s, f) that each model recognises."""
        scores = self._forward(models, np.broadcast_to(samples, (len(models), *samples.shape)))[-1]
        found: Floats = (scores.argmax(axis=2) == classes).mean(axis=1)
        return found
