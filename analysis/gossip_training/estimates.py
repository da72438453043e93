"""Exchange by estimates: neighbours keep what they know of each other's models, and hear of changes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ddlopt.analysis.gossip_training.exchange import Exchange, Floats, Place, Policy, Sent
from ddlopt.analysis.gossip_training.mixing import RULES, mixing_matrix

COMPRESSIONS = ("none", "top", "sign")
_BYTES = 4
"""Of a number, and of the number of a place."""


@dataclass(frozen=True)
class Choco(Policy):
    r"""CHOCO-SGD: differences from estimates are compressed and sent to all neighbours.

    .. math:: q_i = C(x_i - \hat x_i), \quad \hat x_i \mathrel{+}= q_i, \quad
        x_i \mathrel{+}= \gamma \sum_j w_{ij} (\hat x_j - \hat x_i).

    Parameters
    ----------
    compress : {"sign", "top", "none"}
        Signs times the mean size of entries, the largest entries (a number and its place are sent), or everything.
    keep : float
        Part of the entries that ``top`` sends.
    step : float
        γ.
    weights : str
        A rule of ``RULES`` of ``gossip_mixing``.

    References
    ----------
    A. Koloskova, S. Stich, M. Jaggi, "Decentralized stochastic optimization and gossip algorithms with compressed
    communication", ICML 2019, algorithm 2.
    """

    compress: str = "sign"
    keep: float = 0.1
    step: float = 0.3
    weights: str = "equal"

    name: ClassVar[str] = "choco"

    def __post_init__(self) -> None:
        self._one_of("compress", COMPRESSIONS)
        self._within("keep", 0.0, 1.0)
        self._within("step", 0.0, 1.0)
        self._one_of("weights", RULES)

    def begin(self, place: Place) -> Exchange:
        """Estimates are right at first, as all begin with models that all know."""
        pull = mixing_matrix(place.network, self.weights) - np.eye(place.workers)
        known, degrees = place.first.copy(), place.network.degrees
        share = self._share(known.shape[1])

        def exchange(models: Floats, step: int, rate: float) -> Sent:
            if not self._now(step):
                return place.nothing()
            missing = models - known
            senders = self._senders(missing, rate)
            if senders.any():
                known[senders] += self._compressed(missing[senders])
            models += self.step * (pull @ known)
            messages = np.where(senders, degrees, 0.0)
            return place.to_neighbours(messages, messages * share)

        return exchange

    def _now(self, step: int) -> bool:
        return True

    def _senders(self, missing: Floats, rate: float) -> Floats:
        return np.ones(len(missing), dtype=bool)

    def _kept(self, size: int) -> int:
        return max(1, round(self.keep * size))

    def _share(self, size: int) -> float:
        """Of a model's bytes, in a message."""
        if self.compress == "top":
            return min(1.0, 2.0 * self._kept(size) / size)
        return (size / 8 + _BYTES) / (_BYTES * size) if self.compress == "sign" else 1.0

    def _compressed(self, missing: Floats) -> Floats:
        if self.compress == "none":
            return missing
        sizes = np.abs(missing)
        if self.compress == "sign":
            signs: Floats = np.sign(missing) * sizes.mean(axis=1, keepdims=True)
            return signs
        kept = self._kept(missing.shape[1])
        places = np.argpartition(sizes, -kept, axis=1)[:, -kept:]
        found = np.zeros_like(missing)
        np.put_along_axis(found, places, np.take_along_axis(missing, places, axis=1), axis=1)
        return found


@dataclass(frozen=True)
class Sparq(Choco):
    r"""SPARQ-SGD: as CHOCO-SGD, but who has changed little is silent.

    i sends if :math:`\lVert x_i - \hat x_i \rVert > \theta \eta_t`, with the learning rate :math:`\eta_t`; the paper
    lets θ grow slowly, here it is constant.

    Parameters
    ----------
    threshold : float
        θ.
    every : int
        Steps between two looks at it.

    References
    ----------
    N. Singh, D. Data, J. George, S. Diggavi, "SPARQ-SGD: event-triggered and compressed communication in decentralized
    optimization", 2019.
    """

    threshold: float = 16.0
    every: int = 5

    name: ClassVar[str] = "sparq"
    main: ClassVar[str | None] = "threshold"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._at_least("threshold", 0.0)
        self._at_least("every", 1)

    def _now(self, step: int) -> bool:
        return (step + 1) % self.every == 0

    def _senders(self, missing: Floats, rate: float) -> Floats:
        found: Floats = np.linalg.norm(missing, axis=1) > self.threshold * rate
        return found


@dataclass(frozen=True)
class EventGrad(Policy):
    r"""EventGraD: a tensor is sent to all neighbours when its *norm* has changed by a threshold that adapts.

    The threshold of a tensor is the mean of its last two slopes, changes of norm for each step between messages, times
    ``horizon`` for each step since. Models are averaged in every step, with the tensors that came last. Weights of any
    graph and the default of ``horizon`` are ours.

    Parameters
    ----------
    horizon : float
    warm : int
        First steps, in which everything is sent.
    weights : str
        A rule of ``RULES`` of ``gossip_mixing``.

    References
    ----------
    S. Ghosh, V. Gupta, "EventGraD: event-triggered communication in parallel stochastic gradient descent", MLHPC 2020,
    and its released code.
    """

    horizon: float = 1.0
    warm: int = 30
    weights: str = "equal"

    name: ClassVar[str] = "eventgrad"

    def __post_init__(self) -> None:
        self._within("horizon", 0.0, np.inf)
        self._at_least("warm", 0)
        self._one_of("weights", RULES)

    def begin(self, place: Place) -> Exchange:
        """Thresholds are 0 at first."""
        matrix = mixing_matrix(place.network, self.weights)
        own, others = np.diag(matrix)[:, None], matrix - np.diag(np.diag(matrix))
        known, tensors, degrees = place.first.copy(), place.tensors, place.network.degrees
        begins = [tensor.start for tensor in tensors]
        parts = np.diff([*begins, known.shape[1]]) / known.shape[1]
        shape = (place.workers, len(tensors))
        thresholds, slopes, sent_at = np.zeros(shape), np.zeros((2, *shape)), np.full(shape, -1)
        sent_norms = np.sqrt(np.add.reduceat(known**2, begins, axis=1))

        def exchange(models: Floats, step: int, rate: float) -> Sent:
            norms = np.sqrt(np.add.reduceat(models**2, begins, axis=1))
            thresholds[:] *= self.horizon
            changes = np.abs(norms - sent_norms)
            fired = (changes >= thresholds) | (step < self.warm)
            slopes[0] = np.where(fired, slopes[1], slopes[0])
            slopes[1] = np.where(fired, changes / (step - sent_at), slopes[1])
            thresholds[fired] = slopes.mean(axis=0)[fired]
            sent_norms[fired], sent_at[fired] = norms[fired], step
            for place_of, tensor in enumerate(tensors):
                who = fired[:, place_of]
                known[who, tensor] = models[who, tensor]
            models[:] = own * models + others @ known
            return place.to_neighbours(degrees * fired.sum(axis=1), degrees * (fired @ parts))

        return exchange
