"""Real data for networks that workers train together: what ships with scikit-learn, split among the workers."""

import math
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.instances.workloads import digits
from ddlopt.models.errors import OptionError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Shards = Literal["iid", "sorted"]

_LOADERS: Mapping[str, str] = {"breast_cancer": "load_breast_cancer", "wine": "load_wine", "iris": "load_iris"}
DATA = ("digits", *_LOADERS)
# A fifth, as is usual; the same part as of ``workloads.digits``.
_HELD_OUT = 0.2


class Split(NamedTuple):
    """Samples to train on (s, f) with their classes (s,), and held-out ones."""

    samples: Floats
    classes: Ints
    held_out: Floats
    held_out_classes: Ints


@cache
def data_of(name: str) -> tuple[Floats, Ints]:
    """All samples (s, f) of a data set with their classes (s,).

    Raises
    ------
    OptionError
        If there is no such data set, or scikit-learn is not installed.
    """
    if name not in DATA:
        raise OptionError(f"there is no data set '{name}'; expected one of {', '.join(DATA)}")
    if name == "digits":
        pixels, classes, more_pixels, more_classes = digits.images()
        return np.vstack([pixels, more_pixels]), np.concatenate([classes, more_classes])
    try:
        loaded = getattr(import_module("sklearn.datasets"), _LOADERS[name])()
    except ModuleNotFoundError:
        raise OptionError(
            f"the data '{name}' come with scikit-learn, which is missing; pip install 'ddlopt[train]'"
        ) from None
    return loaded.data.astype(np.float64), loaded.target.astype(np.int64)


def split_of(name: str, rng: np.random.Generator) -> Split:
    """A fifth held out at random; features of all but the digits get mean 0 and variance 1 where they train."""
    samples, classes = data_of(name)
    held_out, kept = np.split(rng.permutation(len(classes)), [held_out_of(len(classes))])
    if name != "digits":
        centre, scale = samples[kept].mean(axis=0), samples[kept].std(axis=0)
        samples = (samples - centre) / np.where(scale > 0, scale, 1.0)
    return Split(samples[kept], classes[kept], samples[held_out], classes[held_out])


def held_out_of(samples: int) -> int:
    """How many of ``samples`` samples are held out."""
    return math.ceil(_HELD_OUT * samples)


def shards_of(classes: Ints, workers: int, shards: Shards, rng: np.random.Generator) -> Ints:
    """(n, s) numbers of the samples of each worker, as many for each; those that are left over are dropped.

    ``iid``: at random. ``sorted``: by class, so that a worker knows one or two classes if there are many workers.
    """
    each = len(classes) // workers
    order = rng.permutation(len(classes))
    if shards == "sorted":
        order = order[np.argsort(classes[order], kind="stable")]
    return order[: workers * each].reshape(workers, each)


def batches(shards: Ints, batch: int, epochs: int, rng: np.random.Generator) -> Iterator[Ints]:
    """(n, b) numbers of samples of each step; every worker goes through its shard in a new order each epoch.

    What is left of a shard after whole batches waits for another epoch.
    """
    for _ in range(epochs):
        order = rng.permuted(shards, axis=1)
        for step in range(shards.shape[1] // batch):
            yield order[:, step * batch : (step + 1) * batch]
