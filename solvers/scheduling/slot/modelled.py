"""The best choice for one slot by a model of widths, places and rings, next to jobs that run on."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.models.scheduling.instance import SchedulingInstance, ServerGroup, most_workers
from ddlopt.models.scheduling.network import Network
from ddlopt.models.scheduling.pool import Workers
from ddlopt.models.scheduling.rings.rings import Ring, ring_rate
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.certify import beside
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.online.engine import State
from ddlopt.solvers.scheduling.slot.oracles import Answer, Packing, PoolBound
from ddlopt.solvers.scheduling.slot.packing import Place
from ddlopt.solvers.scheduling.slot.worth import Gains

Floats = npt.NDArray[np.float64]
Held = Mapping[int, Place]
"""Places of jobs that run in the slot whatever is chosen."""

_TRICKLE = 1e-12
"""Part of its bandwidth that an arc without any left keeps, so that the network stays connected."""
_GAP = 1e-4
"""Relative gap at which a slot counts as solved where gains are those of utilities."""
_FINE_GAP = 1e-8
"""The same where gains stand for another objective: those of jobs that are far behind hide all others."""
_PROVEN = 1e-3
"""Part of its bound within which an answer needs no other beside it."""


@dataclass(frozen=True)
class SlotProblem:
    """The problem of one slot as an instance of its own: what held jobs leave, and the jobs that can gain something.

    Parameters
    ----------
    instance : SchedulingInstance
        One slot; its objective is the sum of ``gains`` less the energy.
    jobs : tuple of int
        Place of each of its jobs in the whole instance.
    gains : tuple of tuples of float
        By width 0..N of each of its jobs.
    """

    instance: SchedulingInstance
    jobs: tuple[int, ...]
    gains: tuple[tuple[float, ...], ...]

    def answer(self, workers: Mapping[int, Workers], rings: Mapping[int, Ring], bound: float) -> Answer:
        """The answer for workers and rings by job of this problem; nobody runs where that is better."""
        this = self.instance
        price = this.energy_price_per_j * this.slot_s
        awake = {server for there in workers.values() for server, _ in there}
        watts = sum(count * float(this.worker_w[server]) for there in workers.values() for server, count in there)
        watts += sum(float(this.idle_w[server]) for server in awake)
        widths = {job: sum(count for _, count in there) for job, there in workers.items()}
        gain = sum(self.gains[job][width] for job, width in widths.items()) - price * watts
        if gain < 0:
            workers, gain = {}, 0.0
        places = {self.jobs[job]: Place(there, rings.get(job, ())) for job, there in workers.items()}
        return Answer(places, gain, beside(bound, gain, "maximize", "", f"one slot of '{this.name}': bound"))

    def solve(
        self, formulation: Callable[..., SlotEmbedding], time_s: float | None, seed: int, gap: float = _GAP
    ) -> Answer:
        """The best choice that a model of the slot has found by then: nobody runs without one, and the bound holds."""
        began = time.perf_counter()
        bound = sum(map(max, self.gains))  # every job at its best, without energy
        embedding = formulation(gains=self.gains)
        model = build_model(self.instance.family, embedding, self.instance)
        left = None if time_s is None else time_s - (time.perf_counter() - began)
        if left is not None and left <= 0:
            return Answer({}, 0.0, bound)
        outcome = Highs().solve(model, Limits(time_s=left, gap=gap, threads=1), seed=seed)
        if outcome.bound is not None:
            bound = min(bound, embedding.objective_value(self.instance, outcome.bound))
        if outcome.objective is None:
            return Answer({}, 0.0, bound)
        runs = embedding.read(model.component(self.instance.family), self.instance).runs
        return self.answer({run.job: run.workers for run in runs}, {run.job: run.ring for run in runs}, bound)


def slot_problem(instance: SchedulingInstance, gains: Gains, held: Held) -> SlotProblem | None:
    """The problem of a slot; None where no job can gain anything."""
    capacity = instance.capacity.copy()
    for job, place in held.items():
        for server, count in place.workers:
            capacity[server] -= count * instance.demand[job]
    np.maximum(capacity, 0.0, out=capacity)
    jobs, places, rows = [], [], []
    room: dict[bytes, int] = {}
    for number, job in enumerate(gains.jobs.tolist()):
        row, key = gains.row(number), instance.demand[job].tobytes()
        if key not in room:
            room[key] = int(most_workers(capacity, instance.demand[job]).sum())
        this = instance.jobs[job]
        most = min(this.max_workers, room[key])
        if most >= this.min_workers and max(row[this.min_workers : most + 1]) > 0:
            jobs.append(this.model_copy(update={"arrival": 0, "deadline": None, "max_workers": most}))
            places.append(job)
            rows.append(tuple(map(float, row[: most + 1])))
    if not jobs:
        return None
    fields: dict[str, Any] = {"slots": 1, "jobs": tuple(jobs), "objective": "utility", "preemptive": True}
    if held:
        fields |= {"servers": _servers_left(instance, capacity, held), "network": _network_left(instance, held)}
    return SlotProblem(instance.changed(**fields), tuple(places), tuple(rows))


def _servers_left(instance: SchedulingInstance, capacity: Floats, held: Held) -> tuple[ServerGroup, ...]:
    """Each server with what is left of it; those that are awake anyway cost nothing to wake."""
    awake = {server for place in held.values() for server, _ in place.workers}
    return tuple(
        ServerGroup(
            capacity=dict(zip(instance.resources, map(float, capacity[server]), strict=True)),
            idle_w=0.0 if server in awake else float(instance.idle_w[server]),
            worker_w=float(instance.worker_w[server]),
        )
        for server in range(instance.server_count)
    )


def _network_left(instance: SchedulingInstance, held: Held) -> Network | None:
    network = instance.network
    if network is None:
        return None
    used: Counter[tuple[int, int]] = Counter()
    for job, place in held.items():
        rate = ring_rate(instance.jobs[job])
        for arc in pairwise((*place.ring, *place.ring[:1])):
            used[arc] += rate  # type: ignore[assignment]
    links = tuple((u, v, max(rate - used[u, v], rate * _TRICKLE)) for (u, v), rate in network.arcs.items())
    return Network(switches=network.switches, links=links, duplex=False)


class Modelled:
    """An oracle that models places and rings, in its part of the time that is left.

    Where that proves no optimum the greedy packing is asked, too, and the best answer counts.

    Parameters
    ----------
    instance : SchedulingInstance
    formulation : callable
        :class:`~ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding.SlotEmbedding`, or one like it.
    rng : Generator
    clock : Clock
    slot_s : float
        Most seconds for one slot.
    """

    def __init__(
        self,
        instance: SchedulingInstance,
        formulation: Callable[..., SlotEmbedding],
        rng: np.random.Generator,
        clock: Clock,
        slot_s: float,
    ) -> None:
        self.instance, self.formulation, self.rng, self.clock = instance, formulation, rng, clock
        self._slot_s = slot_s
        self._packing = Packing(instance)
        self._bound = PoolBound(instance)

    def best(self, state: State, gains: Gains) -> Answer:
        """The answer of the model, or a better one."""
        running = np.fromiter(state.held, dtype=np.int64, count=len(state.held))
        answer = Answer({}, 0.0, self._bound.best(gains, running, state.width[running])[0])
        problem = slot_problem(self.instance, gains, state.held)
        if problem is None:
            return Answer({}, 0.0, 0.0)
        time_s = min(self._slot_s, 0.9 * self.clock.left_s / (self.instance.slots - state.slot))
        gap = _GAP if self.instance.goal.counts_utilities else _FINE_GAP
        answer = _better(answer, problem.solve(self.formulation, time_s, int(self.rng.integers(2**31)), gap))
        if answer.gain >= answer.bound * (1 - _PROVEN):
            return answer
        return _better(answer, self._packing.best(state, gains))


def _better(one: Answer, other: Answer) -> Answer:
    """The larger gain under the smaller bound."""
    best = other if other.gain >= one.gain else one
    return Answer(best.choice, best.gain, min(one.bound, other.bound))
