"""Ways to place one job in one slot, and the best of them at given prices of servers and links."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from ddlopt.frontier.scheduling.slot_rounding.mapping_kernels import best_places
from ddlopt.models.scheduling.formulations.slot_embedding.widths import SlotData
from ddlopt.models.scheduling.formulations.tree_cuts import nested_cuts, scarce_cuts
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Workers, pool
from ddlopt.models.scheduling.rings.rings import Ring, find_ring, tree_ring
from ddlopt.models.tolerances import FEASIBILITY_TOL

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SEEDS = 4
"""Servers from which places on a general network are grown."""
_HOP = 1e-6
"""What a hop costs besides, in parts of the mean price of an arc: of equal prices the shorter way."""


class Mapping(NamedTuple):
    """One way to run a job: its width, where, over which ring, and what it takes.

    ``workers`` is empty where widths alone decide. ``gain`` is net of the energy of the workers, not of servers that
    they wake. ``rows`` and ``parts`` are the rows of the :class:`Mapper` that it takes of, and which part of each.
    """

    job: int
    width: int
    workers: Workers
    ring: Ring
    gain: float
    rows: tuple[int, ...]
    parts: tuple[float, ...]


class Mapper(Protocol):
    """What the linear relaxation over mappings knows of a cluster: resources of servers and links, a row each."""

    exact: bool
    """Whether ``best`` finds the best of all mappings, so that prices give a bound."""
    servers: Ints
    """(rows,) the server of each row; -1 for links, and where widths alone decide."""

    def best(self, prices: Floats) -> tuple[list[Mapping], float]:
        """For each job the mapping of largest gain less price, if that is positive, and the sum of these differences.

        Parameters
        ----------
        prices : (rows,) array
            At least 0, each of the whole of a row.
        """


def mapper_of(instance: SchedulingInstance, data: SlotData) -> Mapper:
    """Exact for pools, servers without a network, and trees; a heuristic for other networks."""
    network = instance.network
    if instance.needs_rings and network is not None and not network.is_tree(instance.server_count):
        return GraphMapper(instance, data)
    return NestedMapper(instance, data)


class _Servers:
    """Rows of the servers' resources, and prices of workers."""

    def __init__(self, instance: SchedulingInstance, data: SlotData, pooled: bool) -> None:
        self.instance, self.data = instance, data
        self.jobs = list(data.gains)
        cluster = pool(instance)
        capacity = cluster.capacity[None, :] if pooled else instance.capacity
        demand = (cluster.demand if pooled else instance.demand)[self.jobs]
        where = np.argwhere(capacity > 0)
        self.servers: Ints = where[:, 0]
        self._parts = demand[:, where[:, 1]] / capacity[where[:, 0], where[:, 1]]
        """(J, rows) part of a row that a worker takes."""
        self.cost: Floats = data.worker_cost[:1] if pooled else data.worker_cost
        self.room: Ints = data.room[self.jobs]
        if pooled:
            self.room = np.array([[data.most(job)] for job in self.jobs])

    def worker_prices(self, prices: Floats) -> Floats:
        """(J, S) price of a worker on each server, its energy included."""
        found = np.tile(self.cost, (len(self.jobs), 1))
        paid = self._parts * prices[: len(self.servers)]
        for row, server in enumerate(self.servers.tolist()):
            found[:, server] += paid[:, row]
        return found

    def taken(self, place: int, counts: Sequence[tuple[int, int]]) -> dict[int, float]:
        """Part of each row that workers of the job in this place take."""
        number = dict(counts)
        return {
            row: number[server] * float(self._parts[place, row])
            for row, server in enumerate(self.servers.tolist())
            if server in number and self._parts[place, row]
        }

    def mapping(
        self, place: int, counts: Sequence[tuple[int, int]], ring: Ring, taken: dict[int, float], workers: bool = True
    ) -> Mapping:
        """The mapping of the job in this place with these workers."""
        job, width = self.jobs[place], sum(count for _, count in counts)
        gain = self.data.gains[job][width] - sum(count * float(self.cost[server]) for server, count in counts)
        placed = tuple(counts) if workers else ()
        return Mapping(job, width, placed, ring, gain, tuple(taken), tuple(taken.values()))


class NestedMapper:
    """Exact prices of mappings on a tree, on servers without a network, and in a pool where widths alone decide."""

    exact = True

    def __init__(self, instance: SchedulingInstance, data: SlotData) -> None:
        self._pooled = pool(instance).exact
        self._own = _Servers(instance, data, self._pooled)
        self._instance = instance
        count = 1 if self._pooled else instance.server_count
        wanted = sum(float(data.rate[i]) for i in data.gains if data.most(i) > 1)
        self._cuts = scarce_cuts(instance, wanted) if instance.needs_rings else nested_cuts({}, count)
        links = len(self._cuts) - 1
        self.servers: Ints = np.concatenate((self._own.servers, np.full(links, -1)))
        if self._pooled and instance.server_count > 1:
            self.servers = np.full(len(self.servers), -1)
        jobs = self._own.jobs
        width = max(data.most(job) for job in jobs)
        self._gains = np.full((len(jobs), width + 1), -np.inf)
        for place, job in enumerate(jobs):
            for w, gain in data.gains[job].items():
                self._gains[place, w] = gain
        self._load = np.zeros((len(jobs), links + 1))
        for u, cut in enumerate(self._cuts[:-1]):
            self._load[:, u] = data.rate[jobs] / cut.bandwidth_bytes_per_s
        inside = [[*cut.own, *(count + inner for inner in cut.inner)] for cut in self._cuts]
        self._items: Ints = np.array([item for items in inside for item in items], dtype=np.int64)
        self._starts: Ints = np.concatenate(([0], np.cumsum([len(items) for items in inside])))

    def best(self, prices: Floats) -> tuple[list[Mapping], float]:
        """See :class:`Mapper`."""
        own, links = self._own, prices[len(self._own.servers) :]
        cut_prices = self._load * np.concatenate((links, [0.0]))
        cut_prices[self._load > 1 + FEASIBILITY_TOL] = np.inf
        value, _, places = best_places(
            self._gains, own.worker_prices(prices), cut_prices, own.room, self._starts, self._items
        )
        return [self._mapping(place, places[place]) for place in np.flatnonzero(value).tolist()], float(value.sum())

    def _mapping(self, place: int, here: Ints) -> Mapping:
        counts = [(server, int(here[server])) for server in np.flatnonzero(here).tolist()]
        taken = self._own.taken(place, counts)
        used = {server for server, _ in counts}
        for u, cut in enumerate(self._cuts[:-1]):
            if self._load[place, u] and used & set(cut.servers) and used - set(cut.servers):
                taken[len(self._own.servers) + u] = float(self._load[place, u])
        ring = tree_ring(self._instance, used) if self._instance.needs_rings else ()
        return self._own.mapping(place, counts, ring, taken, workers=not self._pooled)


class GraphMapper:
    """Good mappings on any network: places grown from cheap servers, and rings over cheap paths."""

    exact = False

    def __init__(self, instance: SchedulingInstance, data: SlotData) -> None:
        assert instance.network is not None
        self._own = _Servers(instance, data, pooled=False)
        self._instance = instance
        self._arcs = dict(sorted(instance.network.arcs.items()))
        self.servers: Ints = np.concatenate((self._own.servers, np.full(len(self._arcs), -1)))
        self._row = {arc: len(self._own.servers) + place for place, arc in enumerate(self._arcs)}

    def best(self, prices: Floats) -> tuple[list[Mapping], float]:
        """See :class:`Mapper`."""
        links = prices[len(self._own.servers) :] / np.array(list(self._arcs.values()))
        tails, heads = np.array(list(self._arcs)).T
        nodes = 1 + int(max(tails.max(), heads.max()))
        cost = links + _HOP * (float(links.mean()) or 1.0)
        length, before = dijkstra(csr_array((cost, (tails, heads)), shape=(nodes, nodes)), return_predecessors=True)
        worker_prices = self._own.worker_prices(prices)
        found, total = [], 0.0
        for place in range(len(self._own.jobs)):
            grown = [
                one
                for seed in np.argsort(np.where(self._own.room[place], worker_prices[place], np.inf))[:_SEEDS].tolist()
                for one in self._grow(place, seed, worker_prices[place], length, before)
            ]
            values = [one.gain - float(prices[list(one.rows)] @ one.parts) for one in grown]
            if values and max(values) > 0:
                found.append(grown[int(np.argmax(values))])
                total += max(values)
        return found, total

    def _grow(self, place: int, seed: int, price: Floats, length: Floats, before: Ints) -> list[Mapping]:
        """Mappings on more and more servers, each time that which is cheapest to add."""
        data, room, job = self._own.data, self._own.room[place], self._own.jobs[place]
        rate, order, holds, found = float(data.rate[job]), [seed], int(room[seed]), []
        if not holds:
            return []
        widths = sorted(data.gains[job])
        while True:
            fitting = [w for w in widths if w <= holds]
            if fitting:
                found += self._mappings(place, order, fitting[-1], price, before)
                widths = [w for w in widths if w > holds]
            if not widths or len(order) == np.count_nonzero(room):
                return found
            _, server, at = min(
                (price[new] + rate * (length[u, new] + length[new, v] - length[u, v]) / room[new], new, k + 1)
                for k, (u, v) in enumerate(zip(order, (*order[1:], order[0]), strict=True))
                for new in np.flatnonzero(room).tolist()
                if new not in order
            )
            order.insert(at, server)
            holds += int(room[server])

    def _mappings(self, place: int, order: list[int], width: int, price: Floats, before: Ints) -> list[Mapping]:
        """The mapping on servers in this order with the cheapest of them full; none where its ring does not fit."""
        counts: dict[int, int] = {}
        for server in sorted(order, key=lambda server: price[server]):
            counts[server] = min(int(self._own.room[place, server]), width - sum(counts.values()))
        used = [server for server in order if counts[server]]
        workers = sorted((server, counts[server]) for server in used)
        taken = self._own.taken(place, workers)
        if len(used) == 1:
            return [self._own.mapping(place, workers, (), taken)]
        rate = float(self._own.data.rate[self._own.jobs[place]])
        ring: Ring | None = tuple(node for u, v in pairwise((*used, used[0])) for node in _way(before, u, v))
        if ring is None or not self._fits(ring, rate):
            ring = find_ring(self._instance, used, self._arcs, rate)
        if ring is None:
            return []
        for arc, times in _passes(ring).items():
            taken[self._row[arc]] = times * rate / self._arcs[arc]
        return [self._own.mapping(place, workers, ring, taken)]

    def _fits(self, ring: Ring, rate: float) -> bool:
        return all(times * rate <= self._arcs[arc] * (1 + FEASIBILITY_TOL) for arc, times in _passes(ring).items())


def _passes(ring: Ring) -> Counter[tuple[int, int]]:
    return Counter(pairwise((*ring, ring[0])))


def _way(before: Ints, start: int, end: int) -> list[int]:
    """Nodes of the shortest path, without the last."""
    path: list[int] = []
    node = end
    while node != start:
        node = int(before[start, node])
        path.append(node)
    return path[::-1]
