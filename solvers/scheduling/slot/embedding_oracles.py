"""Oracles for a greedy over slots: which jobs run in one slot, how wide, where, and over which rings."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.models.scheduling.formulations.slot_embedding.widths import width_gains
from ddlopt.models.scheduling.instance import SchedulingInstance, ServerGroup, most_workers
from ddlopt.models.scheduling.network import Network
from ddlopt.models.scheduling.pool import Workers
from ddlopt.models.scheduling.rings.rings import Ring, ring_rate
from ddlopt.solvers.backends.contracts import Backend
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.certify import beside
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model

Floats = npt.NDArray[np.float64]

_TRICKLE = 1e-12
"""Part of its bandwidth that an arc without any left keeps, so that the network stays connected."""


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
    done: Floats
    gains: Mapping[int, Floats] | None = None
    held: Mapping[int, tuple[Workers, Ring]] = MappingProxyType({})


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
        What the choice adds to the sum of gains, less the energy that it costs.
    """

    workers: dict[int, Workers]
    rings: dict[int, Ring]
    bound: float | None
    gain: float


class Oracle(Protocol):
    """Chooses for one slot."""

    def choose(self, state: SlotState, rng: np.random.Generator, time_s: float | None) -> SlotChoice:
        """A choice that fits; ``time_s`` limits the search, and the answer is what was found by then."""


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

    @property
    def limit(self) -> float:
        """A bound that needs no model: every job at its best, without energy."""
        return sum(max(row) for row in self.gains)

    def gain(self, workers: Mapping[int, Workers]) -> float:
        """Gain of workers by job (of this problem), less the energy that they cost."""
        this = self.instance
        price = this.energy_price_per_j * this.slot_s
        awake = {server for there in workers.values() for server, _ in there}
        watts = sum(count * float(this.worker_w[server]) for there in workers.values() for server, count in there)
        watts += sum(float(this.idle_w[server]) for server in awake)
        widths = {job: sum(count for _, count in there) for job, there in workers.items()}
        return sum(self.gains[job][width] for job, width in widths.items()) - price * watts

    def choice(self, workers: Mapping[int, Workers], rings: Mapping[int, Ring], bound: float | None) -> SlotChoice:
        """The answer for workers and rings by job of this problem; none at all where that is better."""
        gain = self.gain(workers)
        if gain < 0:
            workers, rings, gain = {}, {}, 0.0
        return SlotChoice(
            {self.jobs[job]: there for job, there in workers.items()},
            {self.jobs[job]: ring for job, ring in rings.items() if ring},
            None
            if bound is None
            else beside(bound, gain, "maximize", "", f"one slot of '{self.instance.name}': bound"),
            gain,
        )


NOTHING = SlotChoice({}, {}, 0.0, 0.0)


def slot_problem(state: SlotState) -> SlotProblem | None:
    """The problem that a state poses; None where no job can gain anything."""
    instance, held = state.instance, state.held
    capacity = instance.capacity.copy()
    for job, (workers, _) in held.items():
        for server, count in workers:
            capacity[server] -= count * instance.demand[job]
    np.maximum(capacity, 0.0, out=capacity)
    jobs, places, gains = [], [], []
    room: dict[bytes, int] = {}
    for job in state.active:
        row = width_gains(instance, job, float(state.done[job])) if state.gains is None else state.gains[job]
        key = instance.demand[job].tobytes()
        if key not in room:
            room[key] = int(most_workers(capacity, instance.demand[job]).sum())
        this = instance.jobs[job]
        most = min(this.max_workers, room[key])
        if most >= this.min_workers and max(row[this.min_workers : most + 1]) > 0:
            jobs.append(this.model_copy(update={"arrival": 0, "deadline": None, "max_workers": most}))
            places.append(job)
            gains.append(tuple(map(float, row[: most + 1])))
    if not jobs:
        return None
    fields: dict[str, Any] = {"slots": 1, "jobs": tuple(jobs), "objective": "utility", "preemptive": True}
    if held:
        fields |= {"servers": _servers_left(instance, capacity, held), "network": _network_left(instance, held)}
    return SlotProblem(instance.changed(**fields), tuple(places), tuple(gains))


def _servers_left(
    instance: SchedulingInstance, capacity: Floats, held: Mapping[int, tuple[Workers, Ring]]
) -> tuple[ServerGroup, ...]:
    """Each server with what is left of it; those that are awake anyway cost nothing to wake."""
    awake = {server for workers, _ in held.values() for server, _ in workers}
    return tuple(
        ServerGroup(
            capacity=dict(zip(instance.resources, map(float, capacity[server]), strict=True)),
            idle_w=0.0 if server in awake else float(instance.idle_w[server]),
            worker_w=float(instance.worker_w[server]),
        )
        for server in range(instance.server_count)
    )


def _network_left(instance: SchedulingInstance, held: Mapping[int, tuple[Workers, Ring]]) -> Network | None:
    network = instance.network
    if network is None:
        return None
    used: Counter[tuple[int, int]] = Counter()
    for job, (_, ring) in held.items():
        rate = ring_rate(instance.jobs[job])
        for arc in pairwise((*ring, *ring[:1])):
            used[arc] += rate  # type: ignore[assignment]
    links = tuple((u, v, max(rate - used[u, v], rate * _TRICKLE)) for (u, v), rate in network.arcs.items())
    return Network(switches=network.switches, links=links, duplex=False)


@dataclass(frozen=True)
class EmbeddingOracle:
    """The optimum of a slot: :class:`~.SlotEmbedding`, solved as a MILP.

    Parameters
    ----------
    gap : float
        Relative gap at which a slot counts as solved.
    threads : int
    backend : Backend
    formulation : type
        The model: that one, or a subclass.
    """

    gap: float = 1e-4
    threads: int = 1
    backend: Backend = field(default_factory=Highs)
    formulation: type[SlotEmbedding] = SlotEmbedding

    def choose(self, state: SlotState, rng: np.random.Generator, time_s: float | None) -> SlotChoice:
        """Build and solve; without an incumbent in time nobody runs, and the bound says what is missed at most."""
        began = time.perf_counter()
        problem = slot_problem(state)
        if problem is None:
            return NOTHING
        nobody = SlotChoice({}, {}, problem.limit, 0.0)
        this = problem.instance
        formulation = self.formulation(gains=problem.gains)
        model = build_model(this.family, formulation, this)
        left = None if time_s is None else time_s - (time.perf_counter() - began)
        if left is not None and left <= 0:
            return nobody
        limits = Limits(time_s=left, gap=self.gap, threads=self.threads)
        outcome = self.backend.solve(model, limits, seed=int(rng.integers(2**31)))
        bound = problem.limit
        if outcome.bound is not None:
            bound = min(bound, formulation.objective_value(this, outcome.bound))
        if outcome.objective is None:
            return nobody._replace(bound=bound)
        runs = formulation.read(model.component(this.family), this).runs
        return problem.choice({run.job: run.workers for run in runs}, {run.job: run.ring for run in runs}, bound)
