"""Decentralised SGD that is really run: workers on shards of real data, under a policy of exchange.

In every step each worker goes down the gradient of a batch of its own; then the policy moves models. For the same seed
policies see the same held-out samples, first model, shards and batches.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ddlopt.analysis.gossip_training.convolutions import Convolutions
from ddlopt.analysis.gossip_training.data import (
    Floats,
    Shards,
    Split,
    batches,
    data_of,
    held_out_of,
    shards_of,
    split_of,
)
from ddlopt.analysis.gossip_training.exchange import Place, Policy, Sent
from ddlopt.analysis.gossip_training.learners import Learners
from ddlopt.models.errors import OptionError
from ddlopt.models.gossip.network import Network


@dataclass(frozen=True)
class Training:
    """What is trained, by whom; the policy of exchange aside.

    Parameters
    ----------
    network : Network
        Who can talk to whom.
    data : str
        A name of ``DATA`` of ``gossip_data``.
    shards : {"iid", "sorted"}
    epochs, batch : int
    hidden : tuple of int
        Widths of hidden layers.
    rate, decay : float
        The learning rate of step t is rate / (1 + t / decay).
    channels : int
        Of a layer of filters before the perceptron, for the digits; none by default.
    late : int
        Steps by which messages are late: what the exchange of models after step t moves is added after step t + late.
    """

    network: Network
    data: str = "digits"
    shards: Shards = "iid"
    epochs: int = 120
    batch: int = 16
    hidden: tuple[int, ...] = (32,)
    rate: float = 0.3
    decay: float = 200.0
    late: int = 0
    channels: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "rate", "decay"):
            if not 0 < getattr(self, name) < np.inf:
                raise OptionError(f"{name} is {getattr(self, name):g}; expected a number above 0")
        if self.channels < 0:
            raise OptionError(f"channels is {self.channels}; expected 0 or more")
        if self.channels and self.data != "digits":
            raise OptionError(f"channels is {self.channels}, but '{self.data}' has no images; take the digits")
        if self.late < 0:
            raise OptionError(f"late is {self.late}; expected 0 or more steps")
        if self.shards not in ("iid", "sorted"):
            raise OptionError(f"shards is '{self.shards}'; expected iid or sorted")
        if not self.hidden or min(self.hidden) < 1:
            raise OptionError(f"hidden is {self.hidden}; expected the widths of one or more hidden layers")
        if self._each < self.batch:
            raise OptionError(
                f"{self.network.nodes} workers have {self._each} samples of '{self.data}' each, fewer than the batch, "
                f"{self.batch}"
            )

    @cached_property
    def learners(self) -> Learners | Convolutions:
        """The perceptrons, or convolutional networks."""
        samples, classes = data_of(self.data)
        if self.channels:
            return Convolutions(math.isqrt(samples.shape[1]), self.channels, self.hidden, int(classes.max()) + 1)
        return Learners((samples.shape[1], *self.hidden, int(classes.max()) + 1))

    @cached_property
    def _each(self) -> int:
        """Samples of a worker."""
        samples = len(data_of(self.data)[1])
        return (samples - held_out_of(samples)) // self.network.nodes

    @property
    def steps(self) -> int:
        """Of a whole training."""
        return self.epochs * (self._each // self.batch)

    def rate_at(self, step: int) -> float:
        """The learning rate of a step."""
        return self.rate / (1.0 + step / self.decay)


class Moment(NamedTuple):
    """What was reached after ``steps`` steps.

    ``models``: models that a worker has sent so far, on average. ``worker``: mean accuracy of the workers' models on
    held-out samples, ``averaged``: that of the mean of their models. ``distance``: root mean square distance of the
    workers' models from their mean.
    """

    steps: int
    models: float
    worker: float
    averaged: float
    distance: float


@dataclass(frozen=True)
class Run:
    """One training.

    Parameters
    ----------
    policy : Policy
    seed : int
    steps : int
    messages : float
        Of a worker, on average.
    models : float
        The same in models' worth of numbers.
    longest : float
        Sum over steps of the most that a worker sent in it.
    model_bytes : int
        Of a model, four to a number.
    moments : list of Moment
        The last one is the end.
    """

    policy: Policy
    seed: int
    steps: int
    messages: float
    models: float
    longest: float
    model_bytes: int
    moments: list[Moment] = field(default_factory=list)

    @property
    def end(self) -> Moment:
        """The last moment."""
        return self.moments[-1]

    @property
    def traffic(self) -> float:
        """Models that a worker sends in a step, on average; gossip in every step has 1."""
        return self.models / self.steps

    def time(self, ratio: float, barrier: bool = False) -> float:
        """Time over that of gossip in every step.

        Parameters
        ----------
        ratio : float
            Time to send a model over that of a step's computation; one follows the other.
        barrier : bool
            Workers wait in every step for the one that sends most; else for nobody.
        """
        sent = self.longest if barrier else self.models
        return (self.steps + ratio * sent) / (self.steps * (1.0 + ratio))


def ratio_of(traffic_saved: float, time_saved: float) -> float:
    """Communication over computation c / y at which less traffic saves as much time, with as many steps.

    A step takes y + c with full traffic and y + c (1 − s) without a part s of it, so a part s c / (y + c) of the time
    is saved.
    """
    if not 0 < time_saved < traffic_saved <= 1:
        raise OptionError(f"{time_saved:g} of the time cannot be saved by {traffic_saved:g} of the traffic")
    return time_saved / (traffic_saved - time_saved)


def train(
    training: Training,
    policy: Policy,
    seed: int = 0,
    moments: int = 20,
    on_step: Callable[[Sent], None] = lambda sent: None,
    until: Callable[[Moment], bool] = lambda moment: False,
) -> Run:
    """Train once.

    Parameters
    ----------
    training : Training
    policy : Policy
    seed : int
    moments : int
        How often to measure, at equal distances.
    on_step : callable
        Told after every step what was sent in it.
    until : callable
        Told every moment as it is measured; the training ends where it says so.
    """
    # What is trained and what the policy draws come from streams of their own: policies differ in nothing else.
    rng, drawn = (np.random.default_rng([seed, stream]) for stream in (0, 1))
    split, learners = split_of(training.data, rng), training.learners
    shards = shards_of(split.classes, training.network.nodes, training.shards, rng)
    models = np.tile(learners.fresh(rng), (training.network.nodes, 1))
    exchange = policy.begin(Place(training.network, models.copy(), learners.tensors, drawn))
    steps, messages, sent_models, longest = training.steps, 0.0, 0.0, 0.0
    waiting: deque[Floats] = deque()
    measured = {round(steps * (k + 1) / moments) for k in range(moments)}
    found = []
    for step, chosen in enumerate(batches(shards, training.batch, training.epochs, rng)):
        rate = training.rate_at(step)
        models -= rate * learners.gradients(models, split.samples[chosen], split.classes[chosen])
        if training.late:
            moved = models.copy()
            sent = exchange(moved, step, rate)
            waiting.append(moved - models)
            if len(waiting) > training.late:
                models += waiting.popleft()
        else:
            sent = exchange(models, step, rate)
        messages += float(sent.messages.mean())
        sent_models += float(sent.models.mean())
        longest += float(sent.models.max())
        on_step(sent)
        if step + 1 in measured:
            found.append(Moment(step + 1, sent_models, *measure(learners, split, models)))
            if until(found[-1]):
                break
    return Run(policy, seed, step + 1, messages, sent_models, longest, 4 * learners.size, found)


def measure(learners: Learners | Convolutions, split: Split, models: Floats) -> tuple[float, float, float]:
    """Accuracy of workers and of the mean of their models on held-out samples, and the distance from that mean."""
    mean = models.mean(axis=0)
    accuracies = learners.accuracies(np.vstack([models, mean]), split.held_out, split.held_out_classes)
    distance = float(np.sqrt(((models - mean) ** 2).sum(axis=1).mean()))
    return float(accuracies[:-1].mean()), float(accuracies[-1]), distance
