"""Two ways to model where workers are: not at all, or server by server."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, Protocol

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.errors import SolverError
from ddlopt.models.linear import linear
from ddlopt.models.scheduling.formulations.slot_embedding.circulations import (
    Core,
    add_circulations,
    core_of,
    scarce_leaf_links,
    start_circulations,
)
from ddlopt.models.scheduling.formulations.slot_embedding.widths import SlotData
from ddlopt.models.scheduling.formulations.tree_cuts import Cut, TreeCuts, nested_cuts, scarce_cuts
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Placer, Workers, pool
from ddlopt.models.scheduling.rings.rings import Ring
from ddlopt.models.tolerances import INTEGRALITY_TOL

Routing = Literal["none", "cuts", "circulation"]
PlacesOption = Literal["auto", "servers"]


class Places(Protocol):
    """Adds what says where workers are to a block that has ``width[i, w]`` and ``runs[i]``."""

    def add(self, block: pyo.Block) -> list[tuple[float, Any]]:
        """Fill the block; returns the terms of the cost of energy."""

    def start(self, block: pyo.Block, workers: Mapping[int, Workers], rings: Mapping[int, Ring]) -> None:
        """Give variables the values of workers and rings by job."""

    def workers(self, block: pyo.Block) -> dict[int, Workers]:
        """What the values say."""


def places_of(instance: SchedulingInstance, data: SlotData, routing: Routing, option: PlacesOption) -> Places:
    """The smallest way that covers the instance; with ``servers`` always server by server.

    Raises
    ------
    NotApplicableError
        If cuts are asked for, but the network is no tree.
    """
    links = Links.of(instance, data, routing)
    if option == "auto" and links.core is None and len(links.cuts) == 1 and widths_decide(instance):
        return Pooled(instance, data)
    return ServerByServer(instance, data, links)


def widths_decide(instance: SchedulingInstance) -> bool:
    """Whether widths alone decide what fits and what it costs, links apart."""
    cost = instance.energy_price_per_j * instance.worker_w
    if instance.energy_price_per_j and instance.idle_w.any():
        return False
    identical = bool((instance.demand == instance.demand[0]).all()) and not np.ptp(cost)
    return identical or instance.server_count == 1


@dataclass(frozen=True)
class Links:
    """Cuts that may run short, in a tree; or the core and its stations, with the leaf links that may run short.

    ``station`` is the place of each station's servers among the cuts, if there are several stations.
    """

    cuts: list[Cut]
    core: Core | None
    station: Mapping[int, int]

    @staticmethod
    def of(instance: SchedulingInstance, data: SlotData, routing: Routing) -> "Links":
        """Those that a routing models."""
        if routing == "cuts":
            wanted = sum(float(data.rate[i]) for i in data.gains if data.most(i) > 1)
            return Links(scarce_cuts(instance, wanted), None, {})
        if routing == "none":
            return Links(nested_cuts({}, instance.server_count), None, {})
        core = core_of(instance)
        bandwidth: dict[tuple[int, ...], float] = {(s,): rate for s, rate in scarce_leaf_links(core, data).items()}
        if len(core.stations) > 1:
            bandwidth = {servers: bandwidth.get(servers, inf) for servers in core.stations.values()} | bandwidth
        cuts = nested_cuts(bandwidth, instance.server_count)
        place = {cut.servers: u for u, cut in enumerate(cuts[:-1])}
        return Links(cuts, core, {v: place[servers] for v, servers in core.stations.items() if servers in place})

    def add(self, block: pyo.Block, data: SlotData) -> None:
        """Add cut indicators, and circulations in the core."""
        self._tree_cuts(data).add(block, lambda i, w, _: block.width[i, w])
        if self.core is not None:
            add_circulations(block, data, self.core, self.station)

    def _tree_cuts(self, data: SlotData) -> TreeCuts:
        ringed = [i for i in data.gains if data.rate[i] > 0 and data.most(i) > 1]
        rates = {i: float(data.rate[i]) for i in ringed}
        return TreeCuts(
            self.cuts, rates, data.room, {i: list(data.gains[i]) for i in ringed}, {i: [()] for i in ringed}
        )

    def start(self, block: pyo.Block, data: SlotData, used: Mapping[int, list[int]], rings: Mapping[int, Ring]) -> None:
        """Give them the values of these servers and rings by job."""
        self._tree_cuts(data).start(block, {(i,): servers for i, servers in used.items()})
        if self.core is not None:
            start_circulations(block, rings)


@dataclass(frozen=True)
class Pooled:
    """Widths alone: one row for each resource of the pool."""

    instance: SchedulingInstance
    data: SlotData

    def add(self, block: pyo.Block) -> list[tuple[float, Any]]:
        """See :class:`Places`."""
        cluster = pool(self.instance)
        block.RESOURCES = pyo.RangeSet(0, len(cluster.capacity) - 1, doc="resources of the pool")

        @block.Constraint(block.RESOURCES, doc="the pool gives no more than it has")
        def pool_is_respected(b: Any, r: int) -> Any:
            terms = [(w * float(cluster.demand[i, r]), b.width[i, w]) for i, w in b.WIDTHS if cluster.demand[i, r]]
            return linear(terms) <= float(cluster.capacity[r]) if terms else pyo.Constraint.Skip

        cost = float(self.data.worker_cost[0])
        return [(cost * w, block.width[i, w]) for i, w in block.WIDTHS] if cost else []

    def start(self, block: pyo.Block, workers: Mapping[int, Workers], rings: Mapping[int, Ring]) -> None:
        """See :class:`Places`; widths say it all."""

    def workers(self, block: pyo.Block) -> dict[int, Workers]:
        """See :class:`Places`."""
        return Placer(self.instance).place({i: w for i, w in block.WIDTHS if whole(block.width[i, w])})


@dataclass(frozen=True)
class ServerByServer:
    """The workers of every job on every server."""

    instance: SchedulingInstance
    data: SlotData
    links: Links

    def add(self, block: pyo.Block) -> list[tuple[float, Any]]:
        """See :class:`Places`."""
        instance, data = self.instance, self.data
        servers, resources = range(instance.server_count), range(len(instance.resources))
        places = [(i, s) for i in data.gains for s in servers if data.room[i, s]]
        block.PLACES = pyo.Set(dimen=2, initialize=places, doc="job, server that holds a worker of it")
        block.workers = pyo.Var(
            block.PLACES,
            domain=pyo.NonNegativeIntegers,
            bounds=lambda _, i, s: (0, int(data.room[i, s])),
            doc="workers of the job on the server",
        )
        block.CAPACITIES = pyo.Set(
            dimen=2, initialize=[(s, r) for s in servers for r in resources], doc="server, resource"
        )

        @block.Constraint(block.JOBS, doc="as many workers as the job is wide")
        def workers_make_the_width(b: Any, i: int) -> Any:
            placed = [(1.0, b.workers[i, s]) for s in servers if data.room[i, s]]
            return linear([*placed, *((-float(w), b.width[i, w]) for w in data.gains[i])]) == 0

        @block.Constraint(block.CAPACITIES, doc="a server gives no more than it has")
        def capacity_is_respected(b: Any, s: int, r: int) -> Any:
            amounts = instance.demand[:, r]
            terms = [(float(amounts[i]), b.workers[i, s]) for i in data.gains if data.room[i, s] and amounts[i]]
            return linear(terms) <= float(instance.capacity[s, r]) if terms else pyo.Constraint.Skip

        self.links.add(block, data)
        return self._add_energy(block)

    def _add_energy(self, block: pyo.Block) -> list[tuple[float, Any]]:
        data = self.data
        costs = [(float(data.worker_cost[s]), block.workers[i, s]) for i, s in block.PLACES if data.worker_cost[s]]
        if not data.idle_cost.any():
            return costs
        paid = np.flatnonzero(data.idle_cost).tolist()
        block.awake = pyo.Var(paid, domain=pyo.Binary, doc="somebody is on the server")
        block.PAID_PLACES = pyo.Set(dimen=2, initialize=[(i, s) for i, s in block.PLACES if data.idle_cost[s]])

        @block.Constraint(block.PAID_PLACES, doc="workers keep their server awake")
        def workers_wake_the_server(b: Any, i: int, s: int) -> Any:
            return b.workers[i, s] <= int(data.room[i, s]) * b.awake[s]

        return costs + [(float(data.idle_cost[s]), block.awake[s]) for s in paid]

    def start(self, block: pyo.Block, workers: Mapping[int, Workers], rings: Mapping[int, Ring]) -> None:
        """See :class:`Places`."""
        placed = {(i, s): count for i, there in workers.items() for s, count in there}
        for i, s in block.PLACES:
            block.workers[i, s].set_value(placed.get((i, s), 0))
        used = {i: [s for s, _ in there] for i, there in workers.items()}
        for s in block.component("awake") or ():
            block.awake[s].set_value(int(any(s in servers for servers in used.values())))
        self.links.start(block, self.data, used, rings)

    def workers(self, block: pyo.Block) -> dict[int, Workers]:
        """See :class:`Places`."""
        counts: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for i, s in block.PLACES:
            if count := whole(block.workers[i, s]):
                counts[i].append((s, count))
        return {i: tuple(there) for i, there in counts.items()}


def whole(variable: Any) -> int:
    """The whole number that a variable has.

    Raises
    ------
    SolverError
        If it has none.
    """
    value = variable.value or 0.0
    if abs(value - round(value)) > INTEGRALITY_TOL:
        raise SolverError(f"variable '{variable.name}' is {value}, which is not whole")
    return round(value)
