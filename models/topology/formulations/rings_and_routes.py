"""Links, rings and routes in one mixed-integer linear program."""

import itertools
from collections import Counter
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import OptionError
from ddlopt.models.tolerances import BOUND_MARGIN, RANGE_MARGIN
from ddlopt.models.topology.formulations.open_demand import Demand, add_open_demand
from ddlopt.models.topology.formulations.rows.hop_layers import Hops, add_hop_layers
from ddlopt.models.topology.formulations.rows.link_choice import (
    add_copies,
    add_given_links,
    add_joined,
    add_links,
    add_node_capacities,
    read_links,
)
from ddlopt.models.topology.formulations.rows.numbering import add_numbering, renumbering
from ddlopt.models.topology.formulations.rows.throughput import (
    Pair,
    RingChoice,
    add_demand,
    add_flows,
    all_bytes,
    orders_of,
    proven_bytes,
    read_design,
    refuses_achievable,
    refuses_faint_groups,
    refuses_faint_traffic,
    refuses_rings,
    unit_bytes,
)
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign

_NEGLIGIBLE = 1e-6
"""Fewer units than this are no coefficient: solvers drop what is so small. Rows are weakened by it, never tightened."""
_FAINT = 1e-5
"""Traffic of fewer units may drown in a solver's tolerance, so that links for it are asked for apart."""


@dataclass(frozen=True)
class RingsAndRoutes(FormulationBase):
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

    Without all-reduce groups this is the logical topology design problem, whose n = 8 and n = 24 cases are MIPLIB's
    ``danoint`` and ``dano3mip``. Duplex optics have one x for both directions and :math:`x_{ij} = \sum_p y^p_{ij}` with
    every plane :math:`y^p` a matching. Without host forwarding there are no flows: the demand of a pair is at most its
    links. Where ``links`` are given, the :math:`x_{ij}` are constants, and the program is linear.

    **The scaling is exact.** ``link_load <= z x`` is bilinear where links are parallel; divided by z it reads
    ``link_load / z <= x``. Every design with congestion z gives a solution with λ = U / z and back, and no constraint
    needs a big-M. ``form="congestion"`` keeps z instead: the load of a pair is split over unary copies of its link,
    :math:`g_{ijc} \le z`, :math:`g_{ijc} \le \bar z\, x_{ijc}` with :math:`\bar z` an upper bound on z.

    **Fractional hops are realisable.** A hop's flow splits into paths; let every hop of a ring have such a distribution
    of its share over paths. Lay the distributions side by side over [0, 1] and cut wherever one changes path: on each
    piece every hop has one path, so that the piece is a ring of the design, and each hop keeps its distribution and
    each link its load (comonotone coupling).

    **No server sends more than its links carry.** Where z itself is the objective a fractional x spreads thin over all
    pairs, so the congestion form has :math:`\sum_j \sum_s f^s_{ij} \le d z`, likewise for what comes in. The throughput
    form implies both, and its relaxation is never weaker: it has ``link_load <= x``, for which the congestion form only
    knows :math:`\bar z`.

    **Hops.** In a fractional x every pair has a bit of a direct link. Let :math:`n^1_{ij} \le x_{ij}` be λ if there is
    a link, and :math:`n^h_{st}` if t is exactly h hops from s, for h below the depth D at which degree d could have
    reached everybody (``moore``, with the hop-weighted Moore bound). A last hop from w makes it so,
    :math:`p^h_{swt}` (``between``):

    .. math::
        & \textstyle\sum_{h < D} n^h_{st} \le \lambda,\qquad \sum_t n^1_{st} \le d \lambda,\qquad
          \sum_s n^1_{st} \le d \lambda \\
        & \textstyle\sum_t n^h_{st} \le d \sum_t n^{h-1}_{st},\qquad \sum_s n^h_{st} \le d \sum_s n^{h-1}_{st} \\
        & p^h_{swt} \le n^{h-1}_{sw},\quad p^h_{swt} \le n^1_{wt},\quad
          \textstyle\sum_t p^h_{swt} \le d\, n^{h-1}_{sw},\quad \sum_s p^h_{swt} \le d^{h-1} n^1_{wt},\quad
          n^h_{st} \le \sum_w p^h_{swt} \\
        & \textstyle \sum_{ij} f^s_{ij} \ge \sum_t \bigl[ T_{st} \bigl(D \lambda - \sum_{h < D} (D - h)\, n^h_{st}\bigr)
          + \sum_k c_k h^k_{st} \bigr],\qquad f^s_{ij} \le F_{si}\, n^1_{ij}

    where :math:`F_{si}` is all that s sends but its traffic to i. All these are continuous: true distances satisfy them
    for integer x. Duplex: d - 1 in place of d beyond the first hop, and :math:`n^h_{st} = n^h_{ts}`. An open demand has
    none of these.

    Parameters
    ----------
    rings : {"generators", "all", "relaxed"} or tuple of tuple of orders
        ``generators``: the rings "+p" of each group's member list, as in TopoOpt. ``all``: every Hamiltonian cycle, for
        groups of at most 7. ``relaxed``: any doubly stochastic hops in which no two members keep to themselves. That
        contains every mixture of rings, so that its bound holds for all; ``read`` fails if the hops are no mixture.
        Otherwise each group's candidate rings, as cyclic orders of its members.
    form : {"throughput", "congestion"}
    links : tuple of (int, int, int), optional
        Links that are laid already, as in :class:`~ddlopt.models.topology.solution.TopologyDesign`. Only these have
        flows, about n² d of them: it polishes what heuristics find for a few dozen servers.
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
        With an open demand: U, best of the order of what the busiest link carries. Default: that
        of a fixed demand.
    hops : {"none", "moore", "between"}, optional
        How much is known of distances, where the demand is fixed; ``between`` takes n³ variables for a layer. Default:
        ``between`` where there are no all-reduce groups. Beside rings it raised no relaxation of a training job, which
        took three to ten times as long.
    numbering : bool
        Where servers forward and are all interchangeable, only number them breadth first. A host must not ask for it
        that tells servers apart, as prices of its own may.

    Ports
    -----
    ``link[i, j]`` : unless links are given
        Number of links from i to j; for duplex i < j and both directions.
    ``links_between[i, j]`` : unless links are given
        The same for ordered pairs.
    ``mate[p, i, j]`` : duplex optics, unless links are given
        1 if plane p joins i and j.
    ``demand[s, t]``, ``link_load[i, j]``
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
    ``links_carry_their_load[i, j]`` : throughput form, or links are given
        A constraint; its dual is the worth of one more link from i to j.
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
    flows, congestion). MIPLIB 3, ``danoint`` (D. Bienstock). The throughput form, ring mixtures, hop layers and
    the numbering are ours.
    """

    rings: RingChoice = "generators"
    form: Literal["throughput", "congestion"] = "throughput"
    achievable_bytes: float | None = None
    demand: Demand = "fixed"
    least_bytes: float | None = None
    scale_bytes: float | None = None
    hops: Hops | None = None
    links: tuple[tuple[int, int, int], ...] | None = None
    numbering: bool = False

    covers: ClassVar[type[Instance]] = TopologyInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.demand == "fixed" and (self.least_bytes, self.scale_bytes) != (None, None):
            raise OptionError(
                "least_bytes and scale_bytes are for demand='open'; a fixed demand has a bound of its own"
            )
        if not all(value is None or value > 0 for value in (self.least_bytes, self.scale_bytes)):
            raise OptionError("least_bytes and scale_bytes must be positive, or left out")

    def unit_bytes(self, instance: TopologyInstance) -> float:
        """U."""
        return self.scale_bytes or unit_bytes(instance)

    def refuses(self, instance: TopologyInstance) -> str | None:
        """Rings or links that are not of this instance; bytes that drown; a congestion that cannot be achieved."""
        for i, j, _ in self.links or ():
            if not (0 <= i < instance.servers and 0 <= j < instance.servers and i != j):
                return f"the given link ({i}, {j}) joins no two of its {instance.servers} servers"
        if self.demand == "open":
            return refuses_rings(instance, self.rings)
        faint = refuses_faint_groups if self.links is None else refuses_faint_traffic
        return (
            refuses_rings(instance, self.rings)
            or faint(instance)
            or refuses_achievable(self.achievable_bytes, lambda: proven_bytes(instance))
        )

    def scope(self, instance: TopologyInstance) -> str | None:
        """What of all links and rings is searched; groups of at most 3 members have no rings but the generators'."""
        if self.links is not None:
            return "fixed links"
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
        if self.links is None:
            add_links(block, instance)
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
        given = None if self.links is None else self._counts(instance)
        pairs = list(itertools.permutations(range(instance.servers), 2)) if given is None else sorted(given)
        if instance.host_forwarding:
            add_flows(block, pairs)
        else:
            _add_direct_loads(block, instance, is_open or given is not None)
        if given is not None:
            add_given_links(block, instance, given, None if self.form == "throughput" else block.congestion, is_open)
            return
        if self.form == "throughput":

            @block.Constraint(block.ARCS, doc="links carry their load")
            def links_carry_their_load(b: Any, i: int, j: int) -> Any:
                return b.link_load[i, j] <= b.links_between[i, j]

        else:
            add_copies(block, instance, worst)
            add_node_capacities(block, instance)
        if is_open or not instance.host_forwarding:
            return
        _add_faint_paths(block, instance)
        if self._is_numbered(instance):
            add_numbering(block, instance)
        hops = self.hops or ("none" if instance.allreduce_groups else "between")
        if hops != "none":
            _add_distances(block, instance, rate, most_rate or 1.0, between=hops == "between")

    def start(self, block: pyo.Block, instance: TopologyInstance, solution: TopologyDesign) -> None:
        """Links, planes and copies of a design; the rest follows from them."""
        if self.links is not None:
            return
        laid, number = solution.link_counts(instance), list(range(instance.servers))
        if self._is_numbered(instance):
            number = renumbering(instance.servers, laid)
        counts = {(number[i], number[j]): count for (i, j), count in laid.items()}
        counts = {pair: counts.get(pair, 0) for pair in block.LINKS}
        for pair, count in counts.items():
            block.link[pair].set_value(count)
        if instance.optics == "duplex":
            planes = [{tuple(sorted((number[i], number[j]))) for i, j in plane} for plane in solution.planes]
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
            If a number of links is not integral, relaxed hops are no mixture of rings, a pair has no path, or given
            duplex links cannot be spread over planes.
        """
        if self.links is None:
            links = read_links(block)
        else:
            links = Counter[Pair]()
            for i, j, count in self.links:
                links[i, j] += count
        if self.demand == "open":
            return read_design(block, instance, links)
        return read_design(block, instance, links, pyo.value(block.throughput) if self.form == "throughput" else 1.0)

    def objective_value(self, instance: TopologyInstance, value: float) -> float:
        """Iteration time in seconds for -λ, or for z / U."""
        if self.form == "congestion":
            return instance.iteration_time_s(self.unit_bytes(instance) * value)
        return instance.iteration_time_s(self.unit_bytes(instance) / -value) if value < 0 else inf

    def _is_numbered(self, instance: TopologyInstance) -> bool:
        free = self.links is None and self.demand == "fixed" and instance.host_forwarding
        return self.numbering and free and instance.servers_are_interchangeable

    def _counts(self, instance: TopologyInstance) -> dict[Pair, int]:
        """Given links by ordered pair."""
        return TopologyDesign(instance=instance.name, links=self.links or ()).link_counts(instance)


def _add_distances(block: pyo.Block, instance: TopologyInstance, rate: Any, most_rate: float, between: bool) -> None:
    """Distances in hops, times rate, and the volume that they cost each source."""
    unit = unit_bytes(instance)
    traffic, sends = instance.traffic_bytes / unit, instance.node_bytes[0] / unit
    add_joined(block, instance, rate, most_rate)
    add_hop_layers(block, instance, between, rate, most_rate)
    targets = {s: [t for first, t in block.DEMANDS if first == s] for s, _ in block.DEMANDS}
    block.SOURCES = pyo.Set(initialize=sorted(targets), doc="servers that send")

    @block.Constraint(block.FLOWS, doc="flow takes links, and traffic for i does not pass it")
    def flow_takes_links(b: Any, s: int, i: int, j: int) -> Any:
        return b.flow[s, i, j] <= max(float(sends[s] - traffic[s, i]), _NEGLIGIBLE) * b.joined[i, j]

    @block.Constraint(block.SOURCES, doc="a source's flow takes bytes times distance at least")
    def volume_covers_distance(b: Any, s: int) -> Any:
        volume = sum(b.flow[s, i, j] for i, j in b.ARCS if j != s)
        heavy = [t for t in targets[s] if traffic[s, t] > _NEGLIGIBLE]
        further = sum(float(traffic[s, t]) * (b.hops_at_least[s, t] - rate) for t in heavy)
        return volume >= sum(b.demand[s, t] for t in targets[s]) + further


def _add_direct_loads(block: pyo.Block, instance: TopologyInstance, is_open: bool) -> None:
    """Without host forwarding the load of a pair is its own demand, and traffic needs a link."""
    block.ARCS = pyo.Set(dimen=2, initialize=list(block.DEMANDS))
    needed = [] if is_open else [(s, t) for s, t in block.DEMANDS if instance.traffic_bytes[s, t] > 0]
    block.NEEDED = pyo.Set(dimen=2, initialize=needed)

    @block.Expression(block.ARCS, doc="units on the links from i to j, times rate")
    def link_load(b: Any, i: int, j: int) -> Any:
        return b.demand[i, j]

    @block.Constraint(block.NEEDED, doc="traffic that nobody forwards has a link")
    def traffic_has_a_link(b: Any, i: int, j: int) -> Any:
        return b.links_between[i, j] >= 1


def _add_faint_paths(block: pyo.Block, instance: TopologyInstance) -> None:
    """Links lead to the targets of faint traffic: one more flow for each source that has such, a unit a target."""
    n, traffic = instance.servers, instance.traffic_bytes / unit_bytes(instance)
    faint = (traffic > 0) & (traffic < _FAINT)
    sources = [s for s in range(n) if faint[s].any()]
    block.FAINT_FLOWS = pyo.Set(dimen=3, initialize=[(s, i, j) for s, i, j in block.FLOWS if s in sources])
    block.FAINT_ELSEWHERE = pyo.Set(dimen=2, initialize=[(s, v) for s, v in block.ELSEWHERE if s in sources])
    block.faint_flow = pyo.Var(block.FAINT_FLOWS, bounds=(0, None), doc="targets of s reached over links from i to j")

    @block.Constraint(block.FAINT_ELSEWHERE, doc="each target of faint traffic is reached once")
    def faint_flow_is_conserved(b: Any, s: int, v: int) -> Any:
        arriving = sum(b.faint_flow[s, u, v] for u in range(n) if u != v)
        return arriving - sum(b.faint_flow[s, v, w] for w in range(n) if w not in (s, v)) == int(faint[s, v])

    @block.Constraint(block.FAINT_FLOWS, doc="paths of faint traffic take links")
    def faint_flow_takes_links(b: Any, s: int, i: int, j: int) -> Any:
        return b.faint_flow[s, i, j] <= int(faint[s].sum()) * b.links_between[i, j]
