"""What the throughput forms share: ring shares, hops, flows, and reading them back as a design.

Every figure in a block is in units of :func:`unit_bytes` and scaled by ``rate``: the throughput variable λ = unit / z,
or the constant 1 where a formulation keeps the congestion z.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyomo.environ as pyo
from scipy.optimize import nnls

from ddlopt.models.errors import InfeasibleError, SolverError
from ddlopt.models.tolerances import BOUND_MARGIN, INTEGRALITY_TOL, NEGLIGIBLE_COEFFICIENT
from ddlopt.models.topology.assembly import assemble, decompose
from ddlopt.models.topology.bounds import congestion_bounds
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.permutations import hops_of, ring, totients
from ddlopt.models.topology.solution import TopologyDesign

Pair = tuple[int, int]
Order = tuple[int, ...]
RingChoice = Literal["generators", "all", "relaxed"] | tuple[tuple[Order, ...], ...]
"""Which rings a group may use: a rule, or for each group the candidates themselves."""

LARGEST_ENUMERATED_GROUP = 7
"""Groups up to this size have few enough Hamiltonian cycles, (k - 1)!, to list."""
FAINT = 1e-6
"""Traffic below this part of the node bound is not modelled."""
# Of a member, residual of the least squares: solvers hold rows to ``SOLVER_TOL``.
_HULL_TOLERANCE = 1e-6
# Flow of a unit demand that is none; where a path is needed nevertheless, what it is found with.
_NOTHING = 1e-12


def unit_bytes(instance: TopologyInstance) -> float:
    """What the d links of the busiest server carry at least, each: λ = unit / z is at most 1.

    Of the data alone, not the best bound that is known (:func:`proven_bytes`): hosts rely on what λ means.
    """
    return float(instance.node_bytes.max()) / instance.degree


def proven_bytes(instance: TopologyInstance) -> float:
    """The best combinatorial lower bound on the busiest link's load; at least the unit.

    Raises
    ------
    InfeasibleError
        If no design serves the instance.
    """
    return max(unit_bytes(instance), *congestion_bounds(instance).values())


def all_bytes(instance: TopologyInstance) -> float:
    """Everything that is sent in an iteration: no link of a design with simple paths ever carries more."""
    return float(instance.node_bytes[0].sum())


def refuses_achievable(achievable_bytes: float | None, proven_bytes: Callable[[], float]) -> str | None:
    """Why a congestion that is said to be achievable is not; nothing where no design serves the instance at all.

    That is no matter of options: building tells of it with the proof.
    """
    if achievable_bytes is None:
        return None
    try:
        proven = proven_bytes()
    except InfeasibleError:
        return None
    if achievable_bytes < proven * (1 - BOUND_MARGIN):
        return f"achievable_bytes is {achievable_bytes:g}, but no design gets below {proven:g}"
    return None


def refuses_faint_groups(instance: TopologyInstance) -> str | None:
    """Why an all-reduce group reduces too little beside the rest: its bytes are no coefficients."""
    carried = unit_bytes(instance)
    for k, group in enumerate(instance.allreduce_groups):
        if group.hop_bytes < NEGLIGIBLE_COEFFICIENT * carried:
            return (
                f"allreduce_groups[{k}].gradient_bytes = {group.gradient_bytes:g} is no coefficient beside the "
                f"{carried:g} bytes that some link must carry; raise it or leave the group out"
            )
    return None


def refuses_faint_traffic(instance: TopologyInstance) -> str | None:
    """Why traffic or a group is too little beside the rest: within a solver's tolerances it would need no links."""
    groups = refuses_faint_groups(instance)
    if groups is not None:
        return groups
    traffic, carried = instance.traffic_bytes, unit_bytes(instance)
    faint = (traffic > 0) & (traffic < FAINT * carried)
    if not faint.any():
        return None
    s, t = (int(index) for index in np.argwhere(faint)[0])
    return (
        f"traffic_bytes[{s}][{t}] = {traffic[s, t]:g} drowns in the tolerances of solvers beside the {carried:g} bytes "
        f"that some link must carry; raise it to {FAINT * carried:g} or set it to 0"
    )


def generator_orders(members: Sequence[int]) -> list[Order]:
    """The "+p" rings of TopoOpt on the member list; all rings there are for at most 3 members."""
    return [ring(members, p) for p in totients(len(members))]


def all_orders(members: Sequence[int]) -> list[Order]:
    """Every Hamiltonian cycle of a group, each once."""
    return [(members[0], *rest) for rest in itertools.permutations(members[1:])]


def orders_of(instance: TopologyInstance, rings: RingChoice) -> list[list[Order]] | None:
    """Candidate rings of each group; None for ``relaxed``, which has no list."""
    if rings == "relaxed":
        return None
    if not isinstance(rings, str):
        return [list(listed) for listed in rings]
    orders = generator_orders if rings == "generators" else all_orders
    return [orders(group.members) for group in instance.allreduce_groups]


def refuses_rings(instance: TopologyInstance, rings: RingChoice) -> str | None:
    """Why the rings do not fit the groups: too many to list, or candidates that are no orders of the members."""
    groups = instance.allreduce_groups
    if not isinstance(rings, str):
        if len(rings) != len(groups):
            return f"candidate rings are given for {len(rings)} all-reduce groups, but it has {len(groups)}"
        for k, (listed, group) in enumerate(zip(rings, groups, strict=True)):
            if not listed or any(tuple(sorted(order)) != group.members for order in listed):
                return f"the candidate rings of allreduce_groups[{k}] must be orders of its members, at least one"
        return None
    largest = max((len(group.members) for group in groups), default=0)
    if rings == "all" and largest > LARGEST_ENUMERATED_GROUP:
        return (
            f"rings='all' lists every ring of groups up to {LARGEST_ENUMERATED_GROUP} members, "
            f"but a group has {largest}; use rings='generators', or 'relaxed' for a bound"
        )
    return None


def add_demand(
    block: pyo.Block,
    instance: TopologyInstance,
    orders: Sequence[Sequence[Order]] | None,
    rate: Any,
    most_rate: float | None = 1.0,
) -> None:
    """Add ``ring_share[k, r]``, ``hop[k, s, t]`` and ``demand[s, t]``, all scaled by ``rate``.

    ``hop[k, s, t]`` is the part of group k's gradient whose ring has t after s. Without ``orders`` the hops of a group
    need only form a doubly stochastic matrix that leaves no pair of members to itself: a relaxation of all rings.
    """
    groups = instance.allreduce_groups
    block.GROUPS = pyo.RangeSet(0, len(groups) - 1, doc="all-reduce groups")
    add_hops(block, instance, orders, [rate] * len(groups), [most_rate] * len(groups))
    unit = unit_bytes(instance)
    traffic = instance.traffic_bytes / unit
    traffic[traffic < NEGLIGIBLE_COEFFICIENT] = 0.0  # no coefficient of a solver; whoever allows it asks for paths
    groups_of = add_pairs(block, instance)

    @block.Expression(block.DEMANDS, doc="units to send from s to t, times rate")
    def demand(b: Any, s: int, t: int) -> Any:
        return float(traffic[s, t]) * rate + sum(groups[k].hop_bytes / unit * b.hop[k, s, t] for k in groups_of[s, t])


def add_pairs(block: pyo.Block, instance: TopologyInstance) -> dict[Pair, list[int]]:
    """Add ``DEMANDS``, and return the groups that have a pair among their ``HOPS``."""
    groups_of: dict[Pair, list[int]] = defaultdict(list)
    for k, s, t in sorted(block.HOPS):
        groups_of[s, t].append(k)
    sending = {(int(s), int(t)) for s, t in zip(*np.nonzero(instance.traffic_bytes), strict=True)}
    pairs = sorted(sending | set(groups_of))
    block.DEMANDS = pyo.Set(dimen=2, initialize=pairs, doc="pairs that may have something to send")
    return groups_of


def add_hops(
    block: pyo.Block,
    instance: TopologyInstance,
    orders: Sequence[Sequence[Order]] | None,
    amounts: Sequence[Any],
    most: Sequence[float | None],
) -> None:
    """Add ``ring_share`` and ``hop``: those of group k make up ``amounts[k]``, which is at most ``most[k]``."""
    groups = instance.allreduce_groups
    block.members_of_groups, block.candidate_rings = tuple(group.members for group in groups), orders
    members = {(k, s) for k, group in enumerate(groups) for s in group.members}
    if orders is None:
        hops = {(k, s, t) for k, group in enumerate(groups) for s, t in itertools.permutations(group.members, 2)}
    else:
        hops = {(k, s, t) for k, listed in enumerate(orders) for order in listed for s, t in hops_of(order)}
    block.HOPS = pyo.Set(dimen=3, initialize=sorted(hops), doc="(group, member, successor) of some ring")

    def limits(_: Any, k: int, *rest: int) -> tuple[float, float | None]:
        return 0, most[k]

    block.hop = pyo.Var(block.HOPS, bounds=limits, doc="share of the group's gradient that takes the hop, times rate")
    after, before = defaultdict(list), defaultdict(list)
    for k, s, t in sorted(hops):
        after[k, s].append(t)
        before[k, t].append(s)

    if orders is None:
        block.MEMBERS = pyo.Set(dimen=2, initialize=sorted(members))
        block.ISOLATED = pyo.Set(
            dimen=3, initialize=sorted(h for h in hops if h[1] < h[2] and len(groups[h[0]].members) > 2)
        )

        @block.Constraint(block.MEMBERS, doc="each member sends its whole share")
        def every_member_sends(b: Any, k: int, s: int) -> Any:
            return sum(b.hop[k, s, t] for t in after[k, s]) == amounts[k]

        @block.Constraint(block.MEMBERS, doc="each member receives its whole share")
        def every_member_receives(b: Any, k: int, t: int) -> Any:
            return sum(b.hop[k, s, t] for s in before[k, t]) == amounts[k]

        @block.Constraint(block.ISOLATED, doc="no two members exchange among themselves alone")
        def pairs_are_left(b: Any, k: int, s: int, t: int) -> Any:
            return b.hop[k, s, t] + b.hop[k, t, s] <= amounts[k]

        return

    block.RINGS = pyo.Set(dimen=2, initialize=[(k, r) for k, listed in enumerate(orders) for r in range(len(listed))])
    block.ring_share = pyo.Var(block.RINGS, bounds=limits, doc="share of the group's gradient on the ring, times rate")
    using = defaultdict(list)
    for k, listed in enumerate(orders):
        for r, order in enumerate(listed):
            for s, t in hops_of(order):
                using[k, s, t].append(r)

    @block.Constraint(block.GROUPS, doc="the rings of a group carry its gradient")
    def gradient_is_carried(b: Any, k: int) -> Any:
        return sum(b.ring_share[k, r] for r in range(len(orders[k]))) == amounts[k]

    @block.Constraint(block.HOPS, doc="a hop serves the rings that take it")
    def hops_make_rings(b: Any, k: int, s: int, t: int) -> Any:
        return b.hop[k, s, t] == sum(b.ring_share[k, r] for r in using[k, s, t])


def add_flows(block: pyo.Block, arcs: Sequence[Pair]) -> None:
    """Add ``flow[s, i, j]``, units from source s on arc (i, j), its conservation, and ``link_load[i, j]``."""
    sources = sorted({s for s, _ in block.DEMANDS})
    servers = sorted({v for arc in arcs for v in arc} | {v for pair in block.DEMANDS for v in pair})
    into: dict[int, list[int]] = defaultdict(list)
    out_of: dict[int, list[int]] = defaultdict(list)
    for i, j in arcs:
        into[j].append(i)
        out_of[i].append(j)
    block.FLOWS = pyo.Set(dimen=3, initialize=[(s, i, j) for s in sources for i, j in arcs if j != s])
    block.ELSEWHERE = pyo.Set(dimen=2, initialize=[(s, v) for s in sources for v in servers if v != s])
    block.flow = pyo.Var(block.FLOWS, bounds=(0, None), doc="units from source s on arc (i, j), times rate")

    @block.Constraint(block.ELSEWHERE, doc="what comes in and does not go on is delivered")
    def flow_is_conserved(b: Any, s: int, v: int) -> Any:
        arriving = sum(b.flow[s, u, v] for u in into[v])
        leaving = sum(b.flow[s, v, w] for w in out_of[v] if w != s)
        wanted = b.demand[s, v] if (s, v) in b.DEMANDS else 0
        if not into[v] and not out_of[v]:
            return pyo.Constraint.Skip if (s, v) not in b.DEMANDS else wanted == 0
        return arriving - leaving == wanted

    block.ARCS = pyo.Set(dimen=2, initialize=list(arcs))

    @block.Expression(block.ARCS, doc="units on arc (i, j), times rate")
    def link_load(b: Any, i: int, j: int) -> Any:
        return sum(b.flow[s, i, j] for s in sources if s != j)


def read_design(
    block: pyo.Block, instance: TopologyInstance, links: Mapping[Pair, int], rate: float | None = None
) -> TopologyDesign:
    """The design of given links whose rings and routes are the values in ``block``.

    With an open demand, which has no ``rate``, ``instance`` has the bytes that the host chose, and no group that is not
    in the block.

    Raises
    ------
    SolverError
        If the rate is zero, a pair has no path, or relaxed hops are no mixture of rings.
    """
    if rate is not None and not rate > 0:
        raise SolverError(f"'{instance.name}': the throughput is {rate:g}, so the values describe no design")
    rings = _laid(instance, links, _rings(block, instance, rate))
    # A hop of a ring with a share of 1e-8 has bytes that no solver tells from none, and needs a path nevertheless.
    used = [hop for _, order, _ in rings for hop in hops_of(order)]
    sending = [(int(s), int(t)) for s, t in np.argwhere(instance.traffic_bytes > 0)]
    return assemble(instance, links, rings, read_paths(block, instance, links, [*sending, *used]))


def read_paths(
    block: pyo.Block, instance: TopologyInstance, links: Mapping[Pair, int], needed: Sequence[Pair] = ()
) -> Mapping[Pair, list[tuple[tuple[int, ...], float]]]:
    """Paths with amounts of every pair with a demand in ``block``; none where nobody forwards.

    Pairs that are ``needed`` have a path even where their demand was lost in a solver's tolerance.
    """
    if not instance.host_forwarding:
        return {}
    n = instance.servers
    demand = np.zeros((n, n))
    for s, t in block.DEMANDS:
        demand[s, t] = max(0.0, pyo.value(block.demand[s, t]))
    joined = {pair for pair, count in links.items() if count > 0}
    if instance.optics == "duplex":
        joined |= {(j, i) for i, j in joined}
    arcs = sorted(joined)
    place = {arc: a for a, arc in enumerate(arcs)}
    flow = np.zeros((n, len(arcs)))
    for (s, i, j), variable in block.flow.items():
        if (i, j) in place:
            flow[s, place[i, j]] = max(0.0, variable.value or 0.0)
    demand[demand <= _NOTHING] = 0.0
    for pair in needed:
        demand[pair] = max(demand[pair], _NOTHING)
    return decompose(arcs, flow, demand)


def _rings(block: pyo.Block, instance: TopologyInstance, rate: float | None) -> list[tuple[int, Order, float]]:
    """(group, order, share) of the rings in use."""
    place = {members: k for k, members in enumerate(block.members_of_groups)}
    rings = []
    for number, group in enumerate(instance.allreduce_groups):
        k = place[group.members] if rate is None else number
        if block.candidate_rings is None:
            amount = pyo.value(block.group_units[k]) if rate is None else rate
            hops = {(s, t): pyo.value(block.hop[g, s, t]) / amount for g, s, t in block.HOPS if g == k}
            rings += [(number, order, share) for order, share in mixture_of_rings(number, group.members, hops)]
            continue
        orders = block.candidate_rings[k]
        shares = np.array([max(0.0, pyo.value(block.ring_share[k, r])) for r in range(len(orders))])
        if not shares.any():  # what there is to reduce drowned in the solver's tolerance: any ring will do
            shares[0] = 1.0
        shares /= shares.sum()
        rings += [(number, order, share) for order, share in zip(orders, shares.tolist(), strict=True) if share > 0]
    return rings


def _laid(
    instance: TopologyInstance, links: Mapping[Pair, int], rings: list[tuple[int, Order, float]]
) -> list[tuple[int, Order, float]]:
    """The rings without faint ones over links that are whole numbers in a solver's tolerance only, and then none."""
    if instance.host_forwarding:
        return rings
    joined = {pair for pair, count in links.items() if count > 0}
    if instance.optics == "duplex":
        joined |= {(j, i) for i, j in joined}
    return [
        (k, order, share)
        for k, order, share in rings
        if share > INTEGRALITY_TOL or all(hop in joined for hop in hops_of(order))
    ]


def mixture_of_rings(k: int, members: Order, hops: Mapping[Pair, float]) -> list[tuple[Order, float]]:
    """Rings with shares that make up the hops, by non-negative least squares over all of them or the generators."""
    small = len(members) <= LARGEST_ENUMERATED_GROUP
    orders = all_orders(members) if small else generator_orders(members)
    place = {hop: row for row, hop in enumerate(hops)}
    columns = np.zeros((len(hops), len(orders)))
    for column, order in enumerate(orders):
        for hop in hops_of(order):
            columns[place[hop], column] = 1.0
    shares, residual = nnls(columns, np.array(list(hops.values())))
    if residual > _HULL_TOLERANCE * len(members):
        what = "any rings" if small else "its generator rings"
        raise SolverError(
            f"the relaxed hops of allreduce_groups[{k}] are no mixture of {what} (residual {residual:.2g})"
        )
    return [(order, float(share)) for order, share in zip(orders, shares, strict=True) if share > 0]
