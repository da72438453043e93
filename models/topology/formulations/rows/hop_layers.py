"""Who is how many hops away, as constraints.

The mathematics is in :class:`~ddlopt.models.topology.formulations.rings_and_routes.RingsAndRoutes`.
"""

import itertools
from typing import Any, Literal

import pyomo.environ as pyo

from ddlopt.models.topology.hop_bytes import level_sizes
from ddlopt.models.topology.instance import TopologyInstance

Hops = Literal["none", "moore", "between"]

_FARTHEST_BETWEEN = 3
"""Layers beyond this only have their growth bounded: n³ more variables for each would buy little."""


def moore_depth(instance: TopologyInstance) -> int:
    """Fewest hops within which links of this degree could reach everybody from anywhere."""
    return len(list(level_sizes(instance.servers - 1, instance.degree, instance.optics == "duplex")))


def add_hop_layers(
    block: pyo.Block, instance: TopologyInstance, between: bool, rate: Any = 1.0, most_rate: float = 1.0
) -> None:
    """Add ``near[s, t, h]`` for 2 <= h < depth: ``rate`` only if the shortest path from s to t has exactly h links.

    Needs ``joined[i, j]`` for ordered pairs ``ARCS``, at most ``rate``, which is at most ``most_rate``; adds the
    expression ``hops_at_least[s, t]``, times rate.
    """
    n, duplex = instance.servers, instance.optics == "duplex"
    growth = instance.degree - 1 if duplex else instance.degree
    depth = moore_depth(instance)
    others = {s: [t for t in range(n) if t != s] for s in range(n)}
    block.LAYERS = pyo.Set(initialize=range(2, depth), doc="numbers of hops between one and the depth")
    block.near = pyo.Var(block.ARCS, block.LAYERS, bounds=(0, most_rate), doc="t is exactly h hops from s")

    @block.Expression(block.ARCS, range(1, max(2, depth)), doc="t is exactly h hops from s, one included")
    def reached(b: Any, s: int, t: int, h: int) -> Any:
        return b.joined[s, t] if h == 1 else b.near[s, t, h]

    @block.Expression(block.ARCS, doc="hops that a path from s to t has at least")
    def hops_at_least(b: Any, s: int, t: int) -> Any:
        return depth * rate - (depth - 1) * b.joined[s, t] - sum((depth - h) * b.near[s, t, h] for h in b.LAYERS)

    @block.Constraint(block.ARCS, doc="a pair has one distance")
    def distance_is_unique(b: Any, s: int, t: int) -> Any:
        return b.joined[s, t] + sum(b.near[s, t, h] for h in b.LAYERS) <= rate

    if duplex:
        block.BACKWARD = pyo.Set(dimen=2, initialize=[(s, t) for s, t in block.ARCS if s > t])

        @block.Constraint(block.BACKWARD, block.LAYERS, doc="duplex distances are the same both ways")
        def distance_is_mutual(b: Any, s: int, t: int, h: int) -> Any:
            return b.near[s, t, h] == b.near[t, s, h]

    farthest = min(_FARTHEST_BETWEEN, depth - 1) if between else 1
    block.GROWING = pyo.Set(initialize=range(farthest + 1, depth), doc="layers of which only the size is known")
    if farthest > 1:
        _add_servers_between(block, instance, growth, farthest, most_rate)

    @block.Constraint(block.SERVERS, block.GROWING, doc="a layer is at most a multiple of the one before")
    def layers_grow_outwards(b: Any, s: int, h: int) -> Any:
        return sum(b.near[s, t, h] for t in others[s]) <= growth * sum(b.reached[s, t, h - 1] for t in others[s])

    @block.Constraint(block.SERVERS, block.GROWING, doc="the same seen from the target")
    def layers_grow_inwards(b: Any, t: int, h: int) -> Any:
        return sum(b.near[s, t, h] for s in others[t]) <= growth * sum(b.reached[s, t, h - 1] for s in others[t])


def _add_servers_between(
    block: pyo.Block, instance: TopologyInstance, growth: int, farthest: int, most_rate: float
) -> None:
    """``between[s, w, t, h]``: w is h - 1 hops from s and a link leads on to t."""
    n = instance.servers
    rest = {(s, t): [w for w in range(n) if w not in (s, t)] for s, t in block.ARCS}
    block.FOLLOWED = pyo.Set(initialize=range(2, farthest + 1), doc="layers of which the last hop is known")
    block.TRIPLES = pyo.Set(dimen=3, initialize=list(itertools.permutations(range(n), 3)))
    block.between = pyo.Var(
        block.TRIPLES, block.FOLLOWED, bounds=(0, most_rate), doc="s reaches t in h hops, the last from w"
    )

    @block.Constraint(block.TRIPLES, block.FOLLOWED, doc="the server before the last hop is one hop nearer")
    def server_between_is_nearer(b: Any, s: int, w: int, t: int, h: int) -> Any:
        return b.between[s, w, t, h] <= b.reached[s, w, h - 1]

    @block.Constraint(block.TRIPLES, block.FOLLOWED, doc="the last hop has a link")
    def last_hop_has_a_link(b: Any, s: int, w: int, t: int, h: int) -> Any:
        return b.between[s, w, t, h] <= b.joined[w, t]

    @block.Constraint(block.ARCS, block.FOLLOWED, doc="a server leads on to a limited number of others")
    def servers_lead_on(b: Any, s: int, w: int, h: int) -> Any:
        return sum(b.between[s, w, t, h] for t in rest[s, w]) <= growth * b.reached[s, w, h - 1]

    @block.Constraint(block.ARCS, block.FOLLOWED, doc="a link is the last hop of a limited number of pairs")
    def last_hops_are_shared(b: Any, w: int, t: int, h: int) -> Any:
        return sum(b.between[s, w, t, h] for s in rest[w, t]) <= growth ** (h - 1) * b.joined[w, t]

    @block.Constraint(block.ARCS, block.FOLLOWED, doc="who is h hops away has a server before the last hop")
    def layers_have_servers_between(b: Any, s: int, t: int, h: int) -> Any:
        return b.near[s, t, h] <= sum(b.between[s, w, t, h] for w in rest[s, t])
