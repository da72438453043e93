r"""Gossip by pushing: a worker sends its model to one random neighbour, who averages it into its own.

A receiver takes the mean of its model and of those that arrive in the same step (P. Jin, Q. Yuan, F. Iandola,
K. Keutzer, "How to scale distributed deep learning?", 2016, in spirit: papers differ in details). Policies differ in
when.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.analysis.gossip_training.exchange import Exchange, Floats, Ints, Place, Policy, Sent

NORMS = ("l2", "max")
REFERENCES = ("model", "absolute", "rate")


def push(models: Floats, senders: Ints, peers: Ints, weights: Floats) -> Floats:
    """(n,) sum of weights at each worker, after models of ``senders`` were averaged into those of their ``peers``.

    Parameters
    ----------
    models : (n, d) array
        Changed in place.
    senders : (s,) array
        Numbers of workers.
    peers : (n,) array
        Whom each would send to.
    weights : (n,) array
        Of each model in weighted means.
    """
    taken = np.diag(weights)
    taken[peers[senders], senders] += weights[senders]
    total: Floats = taken.sum(axis=1)
    models[:] = (taken @ models) / total[:, None]
    return total


def to_peers(senders: npt.NDArray[np.bool_], peers: Ints) -> Sent:
    """A whole model from each of the (n,) senders to its peer."""
    one, links = senders.astype(float), np.zeros((len(peers), len(peers)))
    links[np.arange(len(peers)), peers] = one
    return Sent(one, one, links)


@dataclass(frozen=True)
class Alone(Policy):
    """Every worker trains on its own shard."""

    name: ClassVar[str] = "none"

    def begin(self, place: Place) -> Exchange:
        """Nothing, always."""
        return lambda models, step, rate: place.nothing()


@dataclass(frozen=True)
class Period(Policy):
    """Gossiping SGD: every worker pushes every ``every`` steps.

    Parameters
    ----------
    every : int
    spread : bool
        Worker i of n is i / n of a period ahead, so that pushes are spread over it; else all push in the same step.
    """

    every: int = 1
    spread: bool = False

    name: ClassVar[str] = "period"

    def __post_init__(self) -> None:
        self._at_least("every", 1)

    def begin(self, place: Place) -> Exchange:
        """After a fixed number of steps, again and again."""
        ahead, ones = self._ahead(place.workers), np.ones(place.workers)

        def exchange(models: Floats, step: int, rate: float) -> Sent:
            due = (step + 1 + ahead) % self.every == 0
            if not due.any():
                return place.nothing()
            peers = place.peers()
            push(models, np.flatnonzero(due), peers, ones)
            return to_peers(due, peers)

        return exchange

    def sent(self, workers: int, steps: int) -> float:
        """Models that a worker sends in a number of steps, on average."""
        return float(np.mean((steps + self._ahead(workers)) // self.every))

    def _ahead(self, workers: int) -> Ints:
        found: Ints = np.arange(workers) * self.every // workers * self.spread
        return found


@dataclass(frozen=True)
class Adaptive(Policy):
    r"""Push when the model has changed: :math:`\lVert x_i - \hat x_i \rVert > \theta r_i`.

    :math:`\hat x_i` is the model that i sent last. This is a reconstruction of "adaptive gossip", of which the abstract
    alone is public: the rule, its norm and its reference are ours.

    Parameters
    ----------
    threshold : float
        θ.
    norm : {"l2", "max"}
    relative : {"model", "absolute", "rate"}
        What :math:`r_i` is: :math:`\lVert \hat x_i \rVert`, 1, or the learning rate.
    per_layer : bool
        Every weight matrix and bias vector has a trigger of its own, and is sent alone.
    check_every : int
        Steps between two looks at the trigger.

    References
    ----------
    "Adaptive communication for distributed deep learning on commodity GPU cluster", IEEE/ACM CCGRID 2018,
    DOI 10.1109/CCGRID.2018.00043, for the idea.
    """

    threshold: float = 0.03
    norm: str = "l2"
    relative: str = "model"
    per_layer: bool = False
    check_every: int = 1

    name: ClassVar[str] = "adaptive"

    def __post_init__(self) -> None:
        self._at_least("threshold", 0.0)
        self._at_least("check_every", 1)
        self._one_of("norm", NORMS)
        self._one_of("relative", REFERENCES)

    def begin(self, place: Place) -> Exchange:
        """Nobody has to send the model that all begin with."""
        last, ones = place.first.copy(), np.ones(place.workers)
        whole = slice(0, last.shape[1])
        parts = place.tensors if self.per_layer else (whole,)

        def exchange(models: Floats, step: int, rate: float) -> Sent:
            sent, peers = place.nothing(), place.peers()
            if (step + 1) % self.check_every:
                return sent
            for part in parts:
                own, known = models[:, part], last[:, part]
                senders = np.flatnonzero(self._length(own - known) > self.threshold * self._reference(known, rate))
                if len(senders):
                    known[senders] = own[senders]
                    push(own, senders, peers, ones)
                    share = (part.stop - part.start) / whole.stop
                    sent.messages[senders] += 1
                    sent.models[senders] += share
                    sent.links[senders, peers[senders]] += share
            return sent

        return exchange

    def _length(self, vectors: Floats) -> Floats:
        found: Floats = np.linalg.norm(vectors, axis=1, ord=2 if self.norm == "l2" else np.inf)
        return found

    def _reference(self, known: Floats, rate: float) -> Floats | float:
        if self.relative == "model":
            return self._length(known)
        return rate if self.relative == "rate" else 1.0


@dataclass(frozen=True)
class GoSgd(Policy):
    """GoSGD: every worker pushes with a probability; models have weights, which are halved and sent along.

    Parameters
    ----------
    probability : float

    References
    ----------
    M. Blot, D. Picard, M. Cord, N. Thome, "Gossip training for deep learning", 2016.
    """

    probability: float = 0.1

    name: ClassVar[str] = "gosgd"

    def __post_init__(self) -> None:
        self._within("probability", 0.0, 1.0)

    def begin(self, place: Place) -> Exchange:
        """Weights are 1 at first."""
        weights = np.ones(place.workers)

        def exchange(models: Floats, step: int, rate: float) -> Sent:
            drawn, peers = place.rng.random(place.workers) < self.probability, place.peers()
            if not drawn.any():
                return place.nothing()
            weights[drawn] /= 2
            weights[:] = push(models, np.flatnonzero(drawn), peers, weights)
            return to_peers(drawn, peers)

        return exchange
