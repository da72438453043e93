"""Two ways to model where workers are: not at all, or server by server."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, Protocol

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.linear import linear
from ddlopt.models.scheduling.formulations.on_servers import OnServers, whole
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
from ddlopt.models.tolerances import let_pass

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
        capacity = let_pass(cluster.capacity).tolist()
        block.RESOURCES = pyo.RangeSet(0, len(capacity) - 1, doc="resources of the pool")

        @block.Constraint(block.RESOURCES, doc="the pool gives no more than it has")
        def pool_is_respected(b: Any, r: int) -> Any:
            terms = [(w * float(cluster.demand[i, r]), b.width[i, w]) for i, w in b.WIDTHS if cluster.demand[i, r]]
            return linear(terms) <= capacity[r] if terms else pyo.Constraint.Skip

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

    @property
    def _servers(self) -> OnServers:
        return OnServers(self.instance, self.data.room, {i: [()] for i in self.data.gains})

    def add(self, block: pyo.Block) -> list[tuple[float, Any]]:
        """See :class:`Places`."""
        gains = self.data.gains
        self._servers.add_workers(block, lambda i, _, factor: [(factor * w, block.width[i, w]) for w in gains[i]])
        costs = self._servers.add_limits(block)
        self.links.add(block, self.data)
        return costs

    def start(self, block: pyo.Block, workers: Mapping[int, Workers], rings: Mapping[int, Ring]) -> None:
        """See :class:`Places`."""
        self._servers.start(block, {(i,): dict(there) for i, there in workers.items()})
        self.links.start(block, self.data, {i: [s for s, _ in there] for i, there in workers.items()}, rings)

    def workers(self, block: pyo.Block) -> dict[int, Workers]:
        """See :class:`Places`."""
        return {i: there for (i,), there in self._servers.read(block).items()}
