"""Bytes that are sent window by window over circuits set anew for what is left."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Serve = Callable[[Floats], tuple[Floats, int]]
"""From the (n, n) bytes left: seconds that each pair takes on the circuits set for them, and windows they are kept."""

# So that a demand that is far too large for the windows ends.
_PATIENCE = 1_000_000


@dataclass(frozen=True)
class Delivery:
    """How long all bytes took, pauses included, and how often circuits were set."""

    seconds: float
    settings: int


@dataclass(frozen=True)
class Windows:
    """Circuits live for ``live_s``, then all pause for ``pause_s`` while they are set anew, and so on.

    The first circuits are set before anything is sent.
    """

    live_s: float
    pause_s: float

    def deliver(self, demand: Floats, serve: Serve, expired: Callable[[], bool]) -> Delivery:
        """Send the (n, n) bytes of ``demand``; every pair at a constant rate while circuits are kept.

        Raises
        ------
        NoSolutionError
            If time is up before all is sent.
        """
        left = demand.copy()
        seconds, settings = 0.0, 0
        while left.any():
            if expired() or settings == _PATIENCE:
                raise NoSolutionError(f"{left.sum():.6g} of {demand.sum():.6g} bytes are left after {settings} windows")
            times, kept = serve(left)
            settings += 1
            last = float(times[left > 0].max())
            if last <= kept * self.live_s * (1 + ROUNDING):
                pauses = math.ceil(last / self.live_s * (1 - ROUNDING)) - 1
                return Delivery(seconds + last + pauses * self.pause_s, settings)
            waiting = left > 0
            left[waiting] *= np.maximum(0.0, 1 - kept * self.live_s / times[waiting])
            left[left <= ROUNDING * demand] = 0.0
            seconds += kept * (self.live_s + self.pause_s)
        return Delivery(seconds, settings)


def greedy_circuits(demand: Floats, degree: int, rng: np.random.Generator) -> Ints:
    """Two-way circuits by demand: the pair with most gets one and counts half from then on, as long as ports last.

    Parameters
    ----------
    demand : (n, n) array
        Symmetric, zero diagonal.
    degree : int
        Ports of each server.
    rng : Generator
        Breaks ties.

    Returns
    -------
    (n, n) array
        Symmetric numbers of circuits, at most ``degree`` in a row.
    """
    n = len(demand)
    names = rng.permutation(n)
    waiting = np.triu(demand[np.ix_(names, names)])
    circuits = np.zeros((n, n), dtype=np.int64)
    free = np.full(n, degree)
    while True:
        i, j = divmod(int(waiting.argmax()), n)
        if waiting[i, j] <= 0:
            break
        waiting[i, j] /= 2
        circuits[i, j] += 1
        circuits[j, i] += 1
        free[[i, j]] -= 1
        full = [v for v in (i, j) if not free[v]]
        waiting[full, :] = waiting[:, full] = 0.0
    back = np.argsort(names)
    return circuits[np.ix_(back, back)]
