"""Links, rings and routes in one mixed-integer linear program."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.errors import OptionError, SolverError
from ddlopt.models.tolerances import BOUND_MARGIN, RANGE_MARGIN
from ddlopt.models.topology.formulations.open_demand import Demand, add_open_demand, read_open_design, scale_bytes
from ddlopt.models.topology.formulations.rows.hop_layers import Hops, add_hop_layers
from ddlopt.models.topology.formulations.rows.link_choice import add_degrees
from ddlopt.models.topology.formulations.rows.throughput import (
    RingChoice,
    add_demand,
    add_flows,
    all_bytes,
    orders_of,
    proven_bytes,
    read_design,
    refuses_achievable,
    refuses_faint_traffic,
    refuses_rings,
    unit_bytes,
)
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign


@dataclass(frozen=True)
class RingsAndRoutes:
    r"""Which links to lay, which rings all-reduce over, and how to route, so that an iteration is shortest.

    Let :math:`z` be the bytes per link on the busiest link, U those of the busiest server divided by its d links, and
    :math:`\lambda = U / z \le U / \underline z \le 1` the *throughput*, with the best combinatorial lower bound
    :math:`\underline z` on z. All bytes are measured in U. Links :math:`x_{ij}` are integer; the
    flows :math:`f^s_{ij}` (aggregated by source) and the ring shares :math:`\beta_{kr}` are scaled by λ:

    .. math::
        \max\ & \lambda \\
        & \textstyle\sum_j x_{ij} \le d,\quad \sum_i x_{ij} \le d,\quad x_{ij} \in \{0, \dots, L\} \\
        & \textstyle\sum_r \beta_{kr} = \lambda
            \qquad h^k_{st} = \sum_{r:\ t = \mathrm{succ}_r(s)} \beta_{kr} \\
        & \textstyle\sum_u f^s_{uv} - \sum_w f^s_{vw} = \lambda T_{sv} + \sum_k c_k h^k_{sv} \qquad v \ne s \\
        & \textstyle\sum_s f^s_{ij} \le x_{ij}

    Duplex optics have one x for both directions and :math:`x_{ij} = \sum_p y^p_{ij}` with every plane
    :math:`y^p` a matching. (The planes are interchangeable; ordering them slowed the search down when it was
    tried.) Without host forwarding there are no flows: the demand of a pair is at most its links.

    **The scaling is exact.** ``load <= z x`` is bilinear where links are parallel; divided by z it reads
    ``load / z <= x``. Every design with congestion z gives a solution with λ = U / z and back, and no constraint needs
    a big-M. ``form="congestion"`` keeps z instead: the load of a pair is split over unary copies of its link,
    :math:`g_{ijc} \le z`, :math:`g_{ijc} \le \bar z\, x_{ijc}` with :math:`\bar z` an upper bound on z.

    **Fractional hops are realisable.** A hop's flow splits into paths; let every hop of a ring have such a distribution
    of its share over paths. Lay the distributions side by side over [0, 1] and cut wherever one changes path: on each
    piece every hop has one path, so that the piece is a ring of the design, and each hop keeps its distribution and
    each link its load (comonotone coupling).

    **No server sends more than its links carry.** Where z itself is the objective a fractional x spreads thin over all
    pairs, so the congestion form has :math:`\sum_j \sum_s f^s_{ij} \le d z`, likewise for what comes in. The throughput
    form implies both, and its relaxation is never weaker: it has ``load <= x``, for which the congestion form only
    knows :math:`\bar z`.

    **Hops.** Distances are those of :class:`~.min_congestion.MinCongestion`, times λ: :math:`n^1_{ij} \le x_{ij}` has
    :math:`\sum_j n^1_{ij} \le d \lambda`, likewise for what comes in, and with its :math:`n^h` and D

    .. math::
        \textstyle \sum_{ij} f^s_{ij} \ge \sum_t \bigl[ T_{st} \bigl(D \lambda - \sum_{h < D} (D - h)\, n^h_{st}\bigr)
        + \sum_k c_k h^k_{st} \bigr],\qquad f^s_{ij} \le F_{si}\, n^1_{ij}

    where :math:`F_{si}` is all that s sends but its traffic to i. An open demand has none of these.

    Parameters
    ----------
    rings : {"generators", "all", "relaxed"} or tuple of tuple of orders
        ``generators``: the rings "+p" of each group's member list, as in TopoOpt. ``all``: every Hamiltonian cycle, for
        groups of at most 7. ``relaxed``: any doubly stochastic hops in which no two members keep to themselves. That
        contains every mixture of rings, so that its bound holds for all; ``read`` fails if the hops are no mixture.
        Otherwise each group's candidate rings, as cyclic orders of its members.
    form : {"throughput", "congestion"}
    achievable_bytes : float, optional
        A congestion z that some solution in scope is known to have; worse ones are excluded. Default: all bytes.
    demand : {"fixed", "open"}
        ``open``: a host model decides what is sent, through the ports ``group_units`` and ``traffic_units``; the
        instance only says which groups and pairs there may be, and the most bytes of each. Then λ may exceed 1.
        ``read`` takes the instance of what is sent.
    least_bytes : float, optional
        With an open demand: a congestion that no choice of the host gets below, so that
        :math:`\lambda \le \bar\lambda` = U / least_bytes. Default 0: then the throughput has no upper bound.
    scale_bytes : float, optional
        With an open demand: U, best of the order of what the busiest link carries. Default:
        :func:`~ddlopt.models.topology.formulations.open_demand.scale_bytes`.
    hops : {"none", "moore", "between"}, optional
        How much is known of distances, where the demand is fixed; ``between`` takes n³ variables for a layer. Default:
        ``between`` where there are no all-reduce groups. Beside rings it raised no relaxation of a training job, which
        took three to ten times as long.

    Ports
    -----
    ``link[i, j]``
        Number of links from i to j; for duplex i < j and both directions.
    ``links_between[i, j]``
        The same for ordered pairs.
    ``mate[p, i, j]`` : duplex optics
        1 if plane p joins i and j.
    ``demand[s, t]``, ``load[i, j]``
        Units of U from s to t, and on all links from i to j, times λ (congestion form: times 1).
    ``flow[s, i, j]`` : with host forwarding
        Those of source s on the links from i to j, times λ (1).
    ``hop[k, s, t]``
        Part of group k's gradient on rings where t follows s, times λ (1).
    ``ring_share[k, r]`` : unless rings are ``relaxed``
        Part of group k's gradient on its r-th candidate ring, times λ (1).
    ``group_units[k]``, ``traffic_units[s, t]`` : with an open demand
        Hop bytes of group k, 2(k-1)/k of its gradient, and bytes of traffic, in units of U, times λ (1). Shares of
        rings and hops are in these units, too. ``unit_bytes`` is U.
    ``throughput`` : throughput form
        λ = U / z.
    ``congestion`` : congestion form
        z / U.
    ``objective``
        To be minimised: -λ, or z / U.

    References
    ----------
    W. Wang et al., "TopoOpt: Co-optimizing network topology and parallelization strategy for distributed training
    jobs", NSDI 2023 (the problem). R. Krishnaswamy, K. Sivarajan, "Design of logical topologies: a linear formulation
    for wavelength-routed optical networks with no wavelength changers", IEEE/ACM ToN 9(2), 2001 (source-aggregated
    flows, congestion). The throughput form and ring mixtures are ours.
    """

    rings: RingChoice = "generators"
    form: Literal["throughput", "congestion"] = "throughput"
    achievable_bytes: float | None = None
    demand: Demand = "fixed"
    least_bytes: float | None = None
    scale_bytes: float | None = None
    hops: Hops | None = None

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def __post_init__(self) -> None:
        if self.demand == "fixed" and (self.least_bytes, self.scale_bytes) != (None, None):
            raise OptionError(
                "least_bytes and scale_bytes are for demand='open'; a fixed demand has a bound of its own"
            )
        if not all(value is None or value > 0 for value in (self.least_bytes, self.scale_bytes)):
            raise OptionError("least_bytes and scale_bytes must be positive, or left out")

    def unit_bytes(self, instance: TopologyInstance) -> float:
        """U."""
        return unit_bytes(instance) if self.demand == "fixed" else self.scale_bytes or scale_bytes(instance)

    def refuses(self, instance: TopologyInstance) -> str | None:
        """Rings that do not fit the groups; a congestion said to be achievable that cannot be."""
        if self.demand == "open":
            return refuses_rings(instance, self.rings)
        return (
            refuses_rings(instance, self.rings)
            or refuses_faint_traffic(instance)
            or refuses_achievable(self.achievable_bytes, lambda: proven_bytes(instance))
        )

    def scope(self, instance: TopologyInstance) -> str | None:
        """What of all rings is searched; groups of at most 3 members have no others than the generators'."""
        if not isinstance(self.rings, str):
            return "given rings"
        small = all(len(group.members) <= 3 for group in instance.allreduce_groups)
        return "generator rings" if self.rings == "generators" and not small else None

    def build(self, block: pyo.Block, instance: TopologyInstance) -> None:
        """Fill ``block`` with links, rings and routes."""
        unit, is_open = self.unit_bytes(instance), self.demand == "open"
        worst = min(self.achievable_bytes or inf, all_bytes(instance)) / unit * (1 + RANGE_MARGIN)
        least = (self.least_bytes or 0.0) / unit if is_open else proven_bytes(instance) / unit * (1 - BOUND_MARGIN)
        most_rate = 1 / least if least else None
        orders = orders_of(instance, self.rings)
        _add_links(block, instance)
        if self.form == "throughput":
            block.throughput = pyo.Var(
                bounds=(1 / worst, most_rate), doc="what links of the busiest server carry over busiest link's load"
            )
            block.objective = pyo.Expression(expr=-block.throughput)
            rate: Any = block.throughput
        else:
            block.congestion = pyo.Var(bounds=(least, worst), doc="busiest link's load, in units")
            block.objective = pyo.Expression(expr=block.congestion)
            rate = most_rate = 1.0
        if is_open:
            add_open_demand(block, instance, orders, unit, most_rate)
        else:
            add_demand(block, instance, orders, rate, most_rate)
        pairs = list(itertools.permutations(range(instance.servers), 2))
        if instance.host_forwarding:
            add_flows(block, pairs)
        else:
            _add_direct_loads(block, instance, is_open)
        if self.form == "throughput":

            @block.Constraint(block.ARCS, doc="links carry their load")
            def links_carry_their_load(b: Any, i: int, j: int) -> Any:
                return b.load[i, j] <= b.links_between[i, j]

        else:
            _add_copies(block, instance, worst)
            _add_node_capacities(block, instance)
        hops = self.hops or ("none" if instance.allreduce_groups else "between")
        if hops != "none" and instance.host_forwarding and not is_open:
            _add_distances(block, instance, rate, most_rate or 1.0, between=hops == "between")

    def start(self, block: pyo.Block, instance: TopologyInstance, solution: TopologyDesign) -> None:
        """Links, planes and copies of a design; the rest follows from them."""
        counts: dict[tuple[int, int], int] = dict.fromkeys(block.LINKS, 0)
        for i, j, count in solution.links:
            counts[i, j] += count
        for pair, count in counts.items():
            block.link[pair].set_value(count)
        if instance.optics == "duplex":
            planes = [{(min(pair), max(pair)) for pair in plane} for plane in solution.planes]
            for p, i, j in block.MATES:
                block.mate[p, i, j].set_value(int(p < len(planes) and (i, j) in planes[p]))
        if self.form == "congestion":
            for i, j, c in block.COPIES:
                block.copy[i, j, c].set_value(int(counts[i, j] >= c))

    def read(self, block: pyo.Block, instance: TopologyInstance) -> TopologyDesign:
        """The design that the values describe.

        Raises
        ------
        SolverError
            If a number of links is not integral, or relaxed hops are no mixture of rings.
        """
        links = {}
        for pair in block.LINKS:
            laid = pyo.value(block.link[pair])
            links[pair] = round(laid)
            if abs(laid - links[pair]) > 1e-4:
                raise SolverError(f"link[{pair[0]}, {pair[1]}] = {laid:.6g} is not integral; solve to integrality")
        if self.demand == "open":
            return read_open_design(block, instance, links)
        rate = pyo.value(block.throughput) if self.form == "throughput" else 1.0
        return read_design(block, instance, links, orders_of(instance, self.rings), rate)

    def objective_value(self, instance: TopologyInstance, value: float) -> float:
        """Iteration time in seconds for -λ, or for z / U."""
        if self.form == "congestion":
            return instance.iteration_time_s(self.unit_bytes(instance) * value)
        return instance.iteration_time_s(self.unit_bytes(instance) / -value) if value < 0 else inf


def _add_links(block: pyo.Block, instance: TopologyInstance) -> None:
    """``link``, degrees and planes; ``links_between[i, j]`` for ordered pairs."""
    n, d, duplex = instance.servers, instance.degree, instance.optics == "duplex"
    block.SERVERS = pyo.RangeSet(0, n - 1, doc="servers")
    ends = itertools.combinations(range(n), 2) if duplex else itertools.permutations(range(n), 2)
    block.LINKS = pyo.Set(dimen=2, initialize=list(ends), doc="pairs that a link may join")
    block.link = pyo.Var(block.LINKS, domain=pyo.Integers, bounds=(0, instance.most_links_of_a_pair), doc="links laid")

    @block.Expression(list(itertools.permutations(range(n), 2)), doc="links from i to j")
    def links_between(b: Any, i: int, j: int) -> Any:
        return b.link[min(i, j), max(i, j)] if duplex else b.link[i, j]

    others = {i: [j for j in range(n) if j != i] for i in range(n)}

    add_degrees(block, instance)
    if not duplex:
        return

    block.PLANES = pyo.RangeSet(0, d - 1, doc="optical planes")
    block.MATES = pyo.Set(dimen=3, initialize=[(p, i, j) for p in range(d) for i, j in block.LINKS])
    block.mate = pyo.Var(block.MATES, domain=pyo.Binary, doc="plane p joins i and j")

    @block.Constraint(block.LINKS, doc="links lie on planes")
    def links_lie_on_planes(b: Any, i: int, j: int) -> Any:
        return b.link[i, j] == sum(b.mate[p, i, j] for p in b.PLANES)

    @block.Constraint(block.PLANES, block.SERVERS, doc="each plane is a matching")
    def planes_are_matchings(b: Any, p: int, i: int) -> Any:
        return sum(b.mate[p, min(i, j), max(i, j)] for j in others[i]) <= 1

    if n % 2:

        @block.Constraint(doc="every plane leaves a server out where their number is odd")
        def planes_leave_one_out(b: Any) -> Any:
            return sum(b.link[pair] for pair in b.LINKS) <= d * (n // 2)


def _add_distances(block: pyo.Block, instance: TopologyInstance, rate: Any, most_rate: float, between: bool) -> None:
    """Distances in hops, times rate, and the volume that they cost each source."""
    n, d, unit = instance.servers, instance.degree, unit_bytes(instance)
    traffic, sends = instance.traffic_bytes / unit, instance.node_bytes[0] / unit
    others = {i: [j for j in range(n) if j != i] for i in range(n)}
    block.joined = pyo.Var(block.ARCS, bounds=(0, most_rate), doc="rate if there is a link from i to j")

    @block.Constraint(block.ARCS, doc="who is joined has a link")
    def links_join(b: Any, i: int, j: int) -> Any:
        return b.joined[i, j] <= most_rate * b.links_between[i, j]

    @block.Constraint(block.SERVERS, doc="at most d servers are one hop away")
    def neighbours_out_are_few(b: Any, i: int) -> Any:
        return sum(b.joined[i, j] for j in others[i]) <= d * rate

    @block.Constraint(block.SERVERS, doc="the same seen from the target")
    def neighbours_in_are_few(b: Any, j: int) -> Any:
        return sum(b.joined[i, j] for i in others[j]) <= d * rate

    add_hop_layers(block, instance, between, rate, most_rate)
    targets = {s: [t for t in others[s] if (s, t) in block.DEMANDS] for s in {s for s, _ in block.DEMANDS}}
    block.SOURCES = pyo.Set(initialize=sorted(targets), doc="servers that send")

    @block.Constraint(block.FLOWS, doc="flow takes links, and traffic for i does not pass it")
    def flow_takes_links(b: Any, s: int, i: int, j: int) -> Any:
        return b.flow[s, i, j] <= float(sends[s] - traffic[s, i]) * b.joined[i, j]

    @block.Constraint(block.SOURCES, doc="a source's flow takes bytes times distance at least")
    def volume_covers_distance(b: Any, s: int) -> Any:
        volume = sum(b.flow[s, i, j] for i, j in b.ARCS if j != s)
        further = sum(float(traffic[s, t]) * (b.hops_at_least[s, t] - rate) for t in targets[s])
        return volume >= sum(b.demand[s, t] for t in targets[s]) + further


def _add_direct_loads(block: pyo.Block, instance: TopologyInstance, is_open: bool) -> None:
    """Without host forwarding the load of a pair is its own demand, and traffic needs a link."""
    block.ARCS = pyo.Set(dimen=2, initialize=list(block.DEMANDS))
    needed = [] if is_open else [(s, t) for s, t in block.DEMANDS if instance.traffic_bytes[s, t] > 0]
    block.NEEDED = pyo.Set(dimen=2, initialize=needed)

    @block.Expression(block.ARCS, doc="units on the links from i to j, times rate")
    def load(b: Any, i: int, j: int) -> Any:
        return b.demand[i, j]

    @block.Constraint(block.NEEDED, doc="traffic that nobody forwards has a link")
    def traffic_has_a_link(b: Any, i: int, j: int) -> Any:
        return b.links_between[i, j] >= 1


def _add_copies(block: pyo.Block, instance: TopologyInstance, worst: float) -> None:
    """Unary copies of each link, the load of a pair split over them, each at most the congestion."""
    most = range(1, instance.most_links_of_a_pair + 1)
    block.COPIES = pyo.Set(dimen=3, initialize=[(i, j, c) for i, j in block.LINKS for c in most])
    block.copy = pyo.Var(block.COPIES, domain=pyo.Binary, doc="at least c links join i and j")
    block.LOADED = pyo.Set(dimen=3, initialize=[(i, j, c) for i, j in block.ARCS for c in most])
    block.copy_load = pyo.Var(block.LOADED, bounds=(0, None), doc="units on the c-th link from i to j")
    block.LATER = pyo.Set(dimen=3, initialize=[(i, j, c) for i, j, c in block.COPIES if c > 1])
    copy_of: Callable[[Any, int, int, int], Any] = lambda b, i, j, c: (  # noqa: E731
        b.copy[i, j, c] if (i, j, c) in b.COPIES else b.copy[j, i, c]
    )

    @block.Constraint(block.LINKS, doc="copies count the links")
    def copies_count_links(b: Any, i: int, j: int) -> Any:
        return b.link[i, j] == sum(b.copy[i, j, c] for c in most)

    @block.Constraint(block.LATER, doc="copies are laid in order")
    def copies_are_ordered(b: Any, i: int, j: int, c: int) -> Any:
        return b.copy[i, j, c] <= b.copy[i, j, c - 1]

    @block.Constraint(block.ARCS, doc="copies carry the load")
    def copies_carry_the_load(b: Any, i: int, j: int) -> Any:
        return b.load[i, j] == sum(b.copy_load[i, j, c] for c in most)

    @block.Constraint(block.LOADED, doc="no copy carries more than the congestion")
    def copies_are_within_congestion(b: Any, i: int, j: int, c: int) -> Any:
        return b.copy_load[i, j, c] <= b.congestion

    @block.Constraint(block.LOADED, doc="only copies that are laid carry")
    def only_laid_copies_carry(b: Any, i: int, j: int, c: int) -> Any:
        return b.copy_load[i, j, c] <= worst * copy_of(b, i, j, c)


def _add_node_capacities(block: pyo.Block, instance: TopologyInstance) -> None:
    """What the links of a server carry together: without it a fractional solution spreads thin over all pairs."""
    touched = {v: [arc for arc in block.ARCS if v in arc] for v in block.SERVERS}
    block.USED = pyo.Set(initialize=[v for v in block.SERVERS if touched[v]])

    @block.Constraint(block.USED, [0, 1], doc="d links out (in) carry d times the congestion at most")
    def server_is_within_congestion(b: Any, v: int, end: int) -> Any:
        arcs = [arc for arc in touched[v] if arc[end] == v]
        return sum(b.load[arc] for arc in arcs) <= instance.degree * b.congestion if arcs else pyo.Constraint.Skip
