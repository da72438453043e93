"""Simulated time: workers of different speeds that are slow now and then, links that take time, and who waits.

A worker computes a step, then sends what the policy has for its neighbours, one after the other, each as long as its
link takes. Before its next step it waits until it has sent, and until everything that was sent to it in that step has
come (``wait="neighbours"``: who sends nothing and is sent nothing waits for nobody) or, in a step in which anybody
sends, until all have got as far (``wait="all"``). With messages that come k steps late it is those of k steps ago that
are waited for. An all-reduce begins when all workers have computed, and takes as long as the slowest link of its ring.
Receiving costs nothing, and links that share no sender do not disturb each other.
"""

from collections import deque
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ddlopt.analysis.gossip_training.exchange import Floats, Sent
from ddlopt.models.errors import OptionError
from ddlopt.models.gossip.network import Network

_STREAM = 2
"""Of a seed's random numbers, for times; what is trained and what policies draw have streams 0 and 1."""


@dataclass(frozen=True)
class Timing:
    """How long things take.

    Parameters
    ----------
    compute_s : float
        A step of the fastest worker.
    uneven : float
        Worker i of n is slower by 1 + uneven · i / (n − 1); who is which is drawn.
    slow_chance, slow_factor : float
        A step of a worker takes ``slow_factor`` times as long with this probability, each by itself.
    message_s : float
        A model over a link.
    uneven_links : float
        The same for links, evenly over them; which is which is drawn.
    wait : {"neighbours", "all"}
        Whom a worker waits for.
    """

    compute_s: float = 1.0
    uneven: float = 0.0
    slow_chance: float = 0.0
    slow_factor: float = 1.0
    message_s: float = 1.0
    uneven_links: float = 0.0
    wait: Literal["neighbours", "all"] = "neighbours"

    def __post_init__(self) -> None:
        for name, low, high in (
            *((each, 0.0, np.inf) for each in ("compute_s", "uneven", "message_s", "uneven_links")),
            ("slow_chance", 0.0, 1.0),
            ("slow_factor", 1.0, np.inf),
        ):
            if not low <= getattr(self, name) <= high or getattr(self, name) == np.inf:
                top = f"..{high:g}" if high < np.inf else " or more"
                raise OptionError(f"{name} is {getattr(self, name):g}; expected {low:g}{top}")
        if self.wait not in ("neighbours", "all"):
            raise OptionError(f"wait is '{self.wait}'; expected neighbours or all")


class Clock:
    """The time of each worker in one training; the same seed has the same times under all policies.

    Parameters
    ----------
    timing : Timing
    network : Network
    steps : int
        Of the training.
    late : int
        Steps by which messages are late.
    seed : int
    """

    def __init__(self, timing: Timing, network: Network, steps: int, late: int = 0, seed: int = 0) -> None:
        n, rng = network.nodes, np.random.default_rng([seed, _STREAM])
        pace = rng.permutation(1.0 + timing.uneven * np.arange(n) / max(n - 1, 1))
        slow = rng.random((steps, n)) < timing.slow_chance
        self._computing = timing.compute_s * pace * np.where(slow, timing.slow_factor, 1.0)
        edges = len(network.edges)
        links = timing.message_s * rng.permutation(1.0 + timing.uneven_links * np.arange(edges) / max(edges - 1, 1))
        a, b = network.ends.T
        self._link_s = np.diag(np.full(n, timing.message_s))
        self._link_s[a, b] = self._link_s[b, a] = links
        self._slowest_s, self._together = float(links.max()), timing.wait == "all"
        self._late, self._step = late, 0
        self._due: deque[Floats] = deque()
        self._card = np.zeros(n)
        self.ready = np.zeros(n)

    @property
    def seconds(self) -> float:
        """When the last worker was ready."""
        return float(self.ready.max())

    def step(self, sent: Sent) -> None:
        """Another step of all workers, and what was sent in it."""
        ended = self.ready + self._computing[self._step]
        self._step += 1
        self._due.append(self._done(ended, sent))
        self.ready = ended if len(self._due) <= self._late else np.maximum(ended, self._due.popleft())

    def _done(self, ended: Floats, sent: Sent) -> Floats:
        """(n,) when each worker has sent and got what it is to have of a step."""
        if sent.together:
            last = max(float(ended.max()), float(self._card.max()))
            self._card[:] = last + self._slowest_s * float(sent.models.max())
            return self._card.copy()
        if not sent.links.any():
            return ended
        begin = np.maximum(ended, self._card)
        arrivals = begin[:, None] + np.cumsum(sent.links * self._link_s, axis=1)
        own = arrivals[:, -1]
        self._card = np.where(own > begin, own, self._card)
        heard = np.where(sent.links > 0, arrivals, 0.0).max(axis=0)
        done = np.maximum(np.where(own > begin, own, ended), heard)
        return np.full(len(done), done.max()) if self._together else done
