"""Gavel's rounds on several types of accelerators: jobs in the order of share over time had, type after type."""

import numpy as np

from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.models.tolerances import TINY
from ddlopt.solvers.scheduling.online.engine import State
from ddlopt.solvers.scheduling.online.time_shares import (
    cost_shares,
    finish_time_shares,
    makespan_shares,
    max_min_shares,
)
from ddlopt.solvers.scheduling.slot.packing import Place
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints

RESET_S = 1920.0
"""Seconds between two allocations at least, as in Gavel's scheduler."""
_FIRST = 1e9
"""A share is multiplied by it where nothing was had yet, as there."""


class TypedRounds:
    """The mechanism of one simulation.

    In every round and for one type after the other, in the order of the servers, jobs are ranked by their share of the
    type over the part of all jobs' time on it that they have had, ties by what they should have had and had not, then
    by share; each that fits runs at its full width. Jobs without a share come last, as long as there is room. Shares
    are new when a job comes or goes, but not within ``reset_s``; then every job is taken to have had half a round on
    every type. That is the mechanism of Gavel's ``scheduler.py`` (MIT) for simulations.

    Parameters
    ----------
    instance : SchedulingInstance
    goal : {"max_min", "makespan", "finish_time", "cost"}
        Of the shares; see :mod:`~ddlopt.solvers.scheduling.online.time_shares`.
    reset_s : float
    """

    def __init__(self, instance: SchedulingInstance, goal: str, reset_s: float = RESET_S) -> None:
        self._goal, self._reset_s = goal, reset_s
        self._known: Ints | None = None
        self._since = 0
        self._shares: Floats = np.empty(0)
        self._had: Floats = np.empty(0)
        self._deficits: Floats = np.empty(0)
        # What jobs have done in slots of their part of the cluster, and how fast they are there.
        self._alone, self._isolated = np.zeros(len(instance.jobs)), np.zeros(len(instance.jobs))
        self._done = np.zeros(len(instance.jobs))

    def choose(self, state: State) -> dict[int, Place]:
        """Places by rank."""
        types, jobs = state.types, state.active
        assert types is not None
        if not len(self._had):
            shape = len(state.wanted), len(types.names)
            self._shares, self._had, self._deficits = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        elapsed_s = (state.slot - self._since) * state.instance.slot_s
        if self._known is None or (not np.array_equal(jobs, self._known) and elapsed_s >= self._reset_s):
            self._reset(state)
        part = self._had / np.maximum(self._had.sum(axis=0), TINY)
        ranks = np.where(part > 0, self._shares / np.maximum(part, TINY), self._shares * _FIRST)
        queue = []
        for k in range(len(types.names)):
            order = np.lexsort((jobs, -self._shares[jobs, k], -self._deficits[jobs, k], -ranks[jobs, k]))
            queue += [(int(job), k) for job in jobs[order]]
        chosen = types.admit(queue, state.held)
        for job, place in chosen.items():
            self._had[job, state.instance.accelerators.of_server[place.workers[0][0]]] += 1
        return chosen

    def _reset(self, state: State) -> None:
        """New shares of the active jobs, from here on."""
        jobs, types = state.active, state.types
        assert types is not None
        should = self._shares * (state.slot - self._since)
        self._deficits += np.where(self._shares > 0, should - np.maximum(0.0, self._had - 0.5), 0.0)
        self._shares = np.zeros_like(self._shares)
        self._shares[jobs] = self._shares_of(state)
        self._had = np.zeros_like(self._had)
        self._had[jobs] = 0.5
        self._known, self._since = jobs.copy(), state.slot

    def _shares_of(self, state: State) -> Floats:
        """(A, K) part of the time of every active job on every type."""
        jobs, types = state.active, state.types
        assert types is not None
        widest = state.rates.widest[jobs]
        throughputs = state.rates(jobs, widest)[:, None] * types.paces[jobs]
        sizes, accelerators = widest * state.instance.demand[jobs, 0], types.accelerators[:, 0]
        match self._goal:
            case "makespan":
                return makespan_shares(throughputs, sizes, accelerators, state.left).shares
            case "max_min":
                weights = np.array([state.instance.jobs[job].utility.value for job in jobs])
                return max_min_shares(throughputs, sizes, accelerators, weights).shares
            case "cost":
                return cost_shares(throughputs, sizes, accelerators, _costs(state)).shares
        # All in slots.
        isolated = (throughputs * isolated_shares(sizes, accelerators)).sum(axis=1)
        ran = self._isolated > 0
        self._alone[ran] += (state.done[ran] - self._done[ran]) / self._isolated[ran]
        self._done, self._isolated = state.done.copy(), np.zeros_like(self._isolated)
        self._isolated[jobs] = isolated
        waited = (state.slot - state.arrival[jobs]).astype(float)
        alone = self._alone[jobs] + state.left / isolated
        return finish_time_shares(throughputs, sizes, accelerators, state.left, waited, alone).shares


def _costs(state: State) -> Floats:
    """(K,) what a worker costs on each type in a slot, by the price of its energy."""
    instance, types = state.instance, state.types
    assert types is not None
    power = [instance.worker_w[instance.accelerators.of_server == k].mean() for k in range(len(types.names))]
    return np.array(power) * instance.energy_price_per_j * instance.slot_s


def isolated_shares(sizes: Floats, accelerators: Floats) -> Floats:
    """(I, K) of the time of jobs that each have the same part of every type of accelerators by themselves."""
    shares = accelerators[None, :] / len(sizes) / sizes[:, None]
    found: Floats = shares / np.maximum(1.0, shares.sum(axis=1))[:, None]
    return found
