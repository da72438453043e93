"""Distances in a mixed-integer model: who is how many hops away, and what volume of flow that costs.

The mathematics is in :class:`~ddlopt.models.topology.formulations.rings_and_routes.RingsAndRoutes`.
"""

import itertools
from typing import Any

import pyomo.environ as pyo

from ddlopt.models.topology.bounds import level_sizes
from ddlopt.models.topology.formulations.open_demand import add_open_volumes
from ddlopt.models.topology.formulations.rows.throughput import unit_bytes
from ddlopt.models.topology.instance import TopologyInstance


def add_levels(block: pyo.Block, instance: TopologyInstance, rate: Any, most_rate: float = 1.0) -> None:
    """``near[s, t, l]``: rate if t is exactly l hops from s; the volume of each source's flow follows.

    ``most_rate`` is an upper bound on the rate: 1 unless the demand is open.
    """
    n, d, duplex = instance.servers, instance.degree, instance.optics == "duplex"
    depth = len(list(level_sizes(n - 1, d, duplex)))
    pairs = list(itertools.permutations(range(n), 2))
    others = {s: [t for t in range(n) if t != s] for s in range(n)}
    growth = d - 1 if duplex else d
    is_open = hasattr(block, "group_units")
    block.PAIRS = pyo.Set(dimen=2, initialize=pairs)
    block.LEVELS = pyo.RangeSet(1, depth)
    block.DEEPER = pyo.RangeSet(2, depth)
    block.near = pyo.Var(block.PAIRS, block.LEVELS, bounds=(0, most_rate), doc="rate if t is exactly l hops from s")
    if not is_open:
        block.near_hop = pyo.Var(block.HOPS, block.LEVELS, bounds=(0, 1), doc="share of a hop that l links can serve")

    @block.Constraint(block.PAIRS, doc="neighbours are joined by a link")
    def neighbours_have_a_link(b: Any, s: int, t: int) -> Any:
        return b.near[s, t, 1] <= most_rate * b.links_between[s, t]

    @block.Constraint(block.SERVERS, doc="at most d neighbours out")
    def neighbours_out(b: Any, s: int) -> Any:
        return sum(b.near[s, t, 1] for t in others[s]) <= d * rate

    @block.Constraint(block.SERVERS, doc="at most d neighbours in")
    def neighbours_in(b: Any, t: int) -> Any:
        return sum(b.near[s, t, 1] for s in others[t]) <= d * rate

    @block.Constraint(block.SERVERS, block.DEEPER, doc="a level is at most growth times the one before")
    def levels_grow_out(b: Any, s: int, level: int) -> Any:
        return sum(b.near[s, t, level] - growth * b.near[s, t, level - 1] for t in others[s]) <= 0

    @block.Constraint(block.SERVERS, block.DEEPER, doc="the same towards a target")
    def levels_grow_in(b: Any, t: int, level: int) -> Any:
        return sum(b.near[s, t, level] - growth * b.near[s, t, level - 1] for s in others[t]) <= 0

    @block.Constraint(block.PAIRS, doc="a pair has one distance")
    def one_distance(b: Any, s: int, t: int) -> Any:
        return sum(b.near[s, t, level] for level in b.LEVELS) <= rate

    if duplex:

        @block.Constraint(block.LINKS, block.LEVELS, doc="duplex distances are symmetric")
        def near_is_mutual(b: Any, s: int, t: int, level: int) -> Any:
            return b.near[s, t, level] == b.near[t, s, level]

    if is_open:
        add_open_volumes(block, instance, depth)
    else:
        _add_volumes(block, instance, depth)


def _add_volumes(block: pyo.Block, instance: TopologyInstance, depth: int) -> None:
    """The volume of each source's flow where the bytes are those of the instance."""
    unit = unit_bytes(instance)
    others = {s: [t for t in range(instance.servers) if t != s] for s in range(instance.servers)}
    traffic = instance.traffic_bytes / unit
    weight = {(k, s, t): instance.allreduce_groups[k].hop_bytes / unit for k, s, t in block.HOPS}

    @block.Constraint(block.HOPS, block.LEVELS, doc="hops are short where members are near")
    def hops_are_near(b: Any, k: int, s: int, t: int, level: int) -> Any:
        return b.near_hop[k, s, t, level] <= b.near[s, t, level]

    @block.Constraint(block.HOPS, doc="a hop has one distance")
    def hop_has_one_distance(b: Any, k: int, s: int, t: int) -> Any:
        return sum(b.near_hop[k, s, t, level] for level in b.LEVELS) <= b.hop[k, s, t]

    sends = instance.node_bytes[0] / unit

    @block.Constraint(block.FLOWS, doc="flow takes links, and what is for i does not pass it")
    def flow_takes_links(b: Any, s: int, i: int, j: int) -> Any:
        return b.flow[s, i, j] <= float(sends[s] - (traffic[s, i] if i != s else 0)) * b.near[i, j, 1]

    block.SOURCES = pyo.Set(initialize=sorted({s for s, _ in block.DEMANDS}))
    targets = {s: [t for t in others[s] if (s, t) in block.DEMANDS] for s in block.SOURCES}
    hops = {s: [(k, t) for k, i, t in block.HOPS if i == s] for s in block.SOURCES}

    @block.Constraint(block.SOURCES, doc="volume of a source's flow is at least bytes times distance")
    def volume_covers_distance(b: Any, s: int) -> Any:
        volume = sum(b.flow[s, i, j] for i, j in b.ARCS if j != s)
        saved = sum(
            (depth + 1 - level)
            * (
                sum(float(traffic[s, t]) * b.near[s, t, level] for t in targets[s])
                + sum(weight[k, s, t] * b.near_hop[k, s, t, level] for k, t in hops[s])
            )
            for level in b.LEVELS
        )
        return volume + saved >= (depth + 1) * sum(b.demand[s, t] for t in targets[s])


def add_servers_between(block: pyo.Block, instance: TopologyInstance, most_rate: float = 1.0) -> None:
    """``between[s, w, t]``: rate, at most ``most_rate``, if links lead from s to w and from w to t."""
    if len(block.LEVELS) < 2:
        return
    n, d = instance.servers, instance.degree
    growth = d - 1 if instance.optics == "duplex" else d
    others = {(s, t): [w for w in range(n) if w not in (s, t)] for s, t in block.PAIRS}
    block.TRIPLES = pyo.Set(dimen=3, initialize=list(itertools.permutations(range(n), 3)))
    block.between = pyo.Var(block.TRIPLES, bounds=(0, most_rate), doc="rate if links lead from s over w to t")

    @block.Constraint(block.TRIPLES, doc="a link leads to the server between")
    def first_link_is_laid(b: Any, s: int, w: int, t: int) -> Any:
        return b.between[s, w, t] <= b.near[s, w, 1]

    @block.Constraint(block.TRIPLES, doc="a link leads on from the server between")
    def second_link_is_laid(b: Any, s: int, w: int, t: int) -> Any:
        return b.between[s, w, t] <= b.near[w, t, 1]

    @block.Constraint(block.PAIRS, doc="a neighbour has a limited number of other neighbours")
    def neighbours_lead_on(b: Any, s: int, w: int) -> Any:
        return sum(b.between[s, w, t] for t in others[s, w]) <= growth * b.near[s, w, 1]

    @block.Constraint(block.PAIRS, doc="the same towards a target")
    def neighbours_are_led_to(b: Any, w: int, t: int) -> Any:
        return sum(b.between[s, w, t] for s in others[w, t]) <= growth * b.near[w, t, 1]

    @block.Constraint(block.PAIRS, doc="two hops have a server between")
    def two_hops_have_a_server_between(b: Any, s: int, t: int) -> Any:
        return b.near[s, t, 2] <= sum(b.between[s, w, t] for w in others[s, t])
