"""Small convolutional networks of many workers at once, in NumPy: models are the rows of one array."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ddlopt.analysis.gossip_training.learners import Floats, Ints, Learners

_SIDE = 3
"""Of a filter, the usual one."""


@dataclass(frozen=True)
class Convolutions:
    """A layer of 3 x 3 filters with ReLUs, the largest of each 2 x 2 places, then a perceptron over all that is left.

    A model is a vector: filters (9, channels) by rows, a bias of each channel, then the perceptron's numbers. Functions
    are those of :class:`~ddlopt.analysis.gossip_training.learners.Learners`.

    Parameters
    ----------
    side : int
        Of the square images, an even number.
    channels : int
    hidden : tuple of int
        Widths of the perceptron's hidden layers.
    classes : int
    """

    side: int
    channels: int
    hidden: tuple[int, ...]
    classes: int

    @cached_property
    def _after(self) -> Learners:
        """The perceptron."""
        return Learners(((self.side // 2) ** 2 * self.channels, *self.hidden, self.classes))

    @property
    def widths(self) -> tuple[int, ...]:
        """Inputs, what the filters leave, hidden layers, classes."""
        return (self.side**2, *self._after.widths)

    @cached_property
    def _first(self) -> int:
        """Numbers of the filters and their biases."""
        return (_SIDE**2 + 1) * self.channels

    @cached_property
    def tensors(self) -> tuple[slice, ...]:
        """Where filters, their biases, and weights and biases of each layer are in a model."""
        own = (slice(0, _SIDE**2 * self.channels), slice(_SIDE**2 * self.channels, self._first))
        return (*own, *(slice(part.start + self._first, part.stop + self._first) for part in self._after.tensors))

    @property
    def size(self) -> int:
        """Numbers d of a model."""
        return self._first + self._after.size

    def fresh(self, rng: np.random.Generator) -> Floats:
        """(d,) a model with random weights of variance 2 / inputs (He et al. 2015)."""
        filters = rng.standard_normal(_SIDE**2 * self.channels) * np.sqrt(2 / _SIDE**2)
        return np.concatenate([filters, np.zeros(self.channels), self._after.fresh(rng)])

    def _patches(self, samples: Floats) -> Floats:
        """(n, b, 2 x 2 places in a square, squares, 9) surroundings of each pixel, with zeros beyond the edge."""
        n, batch = samples.shape[:2]
        images = np.pad(samples.reshape(n, batch, self.side, self.side), ((0, 0), (0, 0), (1, 1), (1, 1)))
        found = np.lib.stride_tricks.sliding_window_view(images, (_SIDE, _SIDE), axis=(2, 3))
        half = self.side // 2
        squares = found.reshape(n, batch, half, 2, half, 2, _SIDE**2).transpose(0, 1, 3, 5, 2, 4, 6)
        return squares.reshape(n, batch, 4, half**2, _SIDE**2)

    def _filtered(self, models: Floats, patches: Floats) -> tuple[Floats, Ints]:
        """(n, b, squares · channels) what the perceptron sees, and (n, b, 1, squares, channels) where it is from."""
        n, batch = patches.shape[:2]
        filters, biases = (models[:, part] for part in self.tensors[:2])
        scores = patches.reshape(n, -1, _SIDE**2) @ filters.reshape(n, _SIDE**2, self.channels) + biases[:, None]
        scores = scores.reshape(n, batch, 4, -1, self.channels)
        where = scores.argmax(axis=2)[:, :, None]
        largest = np.take_along_axis(scores, where, axis=2)
        return np.maximum(largest, 0.0).reshape(n, batch, -1), where

    def loss(self, models: Floats, samples: Floats, classes: Ints) -> Floats:
        """(n,) mean cross-entropy of samples (n, b, f) with classes (n, b)."""
        seen, _ = self._filtered(models, self._patches(samples))
        return self._after.loss(models[:, self._first :], seen, classes)

    def gradients(self, models: Floats, samples: Floats, classes: Ints) -> Floats:
        """(n, d) gradients of the mean cross-entropy of samples (n, b, f) with classes (n, b)."""
        patches = self._patches(samples)
        seen, where = self._filtered(models, patches)
        n, batch = classes.shape
        after, error = self._after.with_inputs(models[:, self._first :], seen, classes)
        squares = np.where(seen > 0, error, 0.0).reshape(n, batch, 1, -1, self.channels)
        scores = np.zeros((n, batch, 4, *squares.shape[3:]))
        np.put_along_axis(scores, where, squares, axis=2)
        scores = scores.reshape(n, -1, self.channels)
        filters = patches.reshape(n, -1, _SIDE**2).transpose(0, 2, 1) @ scores
        return np.concatenate([filters.reshape(n, -1), scores.sum(axis=1), after], axis=1)

    def accuracies(self, models: Floats, samples: Floats, classes: Ints) -> Floats:
        """(n,) parts of the samples (s, f) that each model recognises."""
        patches = self._patches(samples[None])
        found = [self._of_one(model[None], patches, classes) for model in models]  # all at once take much memory
        return np.array(found)

    def _of_one(self, model: Floats, patches: Floats, classes: Ints) -> float:
        seen, _ = self._filtered(model, patches)
        return float(self._after.accuracies(model[:, self._first :], seen[0], classes)[0])
