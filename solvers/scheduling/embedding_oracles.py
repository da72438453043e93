"""Oracles for a greedy over slots: which jobs run in one slot, how wide, where, and over which rings."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Workers


class SlotState(NamedTuple):
    """What an oracle is asked: the best use of one slot, given what has been done before.

    Parameters
    ----------
    instance : SchedulingInstance
    slot : int
    active : list of int
        Jobs that may run in the slot.
    done : (I,) array
        Mini-batches that each job of the instance has done so far.
    gains : mapping, optional
        What each of the active jobs gains by width, (N + 1,) with -inf where it may not have a width; default: what its
        utility grows by. Energy is subtracted either way.
    held : mapping, optional
        Workers and ring of jobs that run in the slot whatever is chosen.
    """

    instance: SchedulingInstance
    slot: int
    active: list[int]
    done: npt.NDArray[np.float64]
    gains: Mapping[int, npt.NDArray[np.float64]] | None = None
    held: Mapping[int, tuple[Workers, tuple[int, ...]]] = MappingProxyType({})


class SlotChoice(NamedTuple):
    """What an oracle answers.

    Parameters
    ----------
    workers : dict
        (server, number of workers) by server, for every job that runs.
    rings : dict
        Nodes of the ring of every job on several servers, where there is a network.
    bound : float or None
        No choice gains more in this slot; None if that is not known.
    gain : float
        What the choice adds to the sum of utilities, less the energy that it costs.
    """

    workers: dict[int, Workers]
    rings: dict[int, tuple[int, ...]]
    bound: float | None
    gain: float


class Oracle(Protocol):
    """Chooses for one slot."""

    @property
    def name(self) -> str:
        """Kebab-case name."""

    @property
    def factor(self) -> float | None:
        """The part of the best gain that every answer has, if it was given enough time; None where none is known."""

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Why the oracle does not cover the instance; None if it does."""

    def choose(self, state: SlotState, rng: np.random.Generator, time_s: float | None) -> SlotChoice:
        """A choice that fits; ``time_s`` limits the search, and the answer is what was found by then."""
