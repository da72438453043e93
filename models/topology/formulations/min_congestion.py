"""Links and routes for any traffic: the least possible load of the busiest link."""

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.tolerances import BOUND_MARGIN, RANGE_MARGIN
from ddlopt.models.topology.assembly import assemble, decompose
from ddlopt.models.topology.bounds import congestion_bounds
from ddlopt.models.topology.formulations.rows.hop_layers import Hops, add_hop_layers
from ddlopt.models.topology.formulations.rows.link_choice import add_links, most_link_directions, read_links
from ddlopt.models.topology.formulations.rows.numbering import add_numbering, renumbering
from ddlopt.models.topology.formulations.rows.throughput import refuses_achievable
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign

NEGLIGIBLE = 1e-6
"""Fewer units than this are no coefficient: solvers drop what is so small. Rows are weakened by it, never tightened."""
_FAINT = 1e-4
"""Traffic of fewer units may drown in a solver's tolerance, so that its paths are asked for apart."""


@dataclass(frozen=True)
class MinCongestion:
    r"""Which links to lay and how to route given traffic so that the busiest link carries least.

    The logical topology design problem, whose n = 8 and n = 24 cases are MIPLIB's ``danoint`` and ``dano3mip``. Let
    :math:`x_{ijc} = 1` if at least c links lead from i to j (c = 1 only, without parallel links), :math:`f^s_{ij}` the
    bytes from source s on them, :math:`g_{ijc}` the part of them on the c-th link, z the *congestion*, and
    :math:`F_{si} = \sum_t T_{st} - T_{si}`:

    .. math::
        \min\ & z \\
        & \textstyle\sum_{jc} x_{ijc} \le d,\quad \sum_{ic} x_{ijc} \le d,\quad x_{ij,c+1} \le x_{ijc} \in \{0, 1\} \\
        & \textstyle\sum_u f^s_{uv} - \sum_w f^s_{vw} = T_{sv} \qquad v \ne s \\
        & f^s_{ij} \le F_{si}\, x_{ij1},\qquad \textstyle\sum_s f^s_{ij} = \sum_c g_{ijc} \\
        & g_{ijc} \le \bar z\, x_{ijc},\qquad g_{ijc} \le z

    with any congestion :math:`\bar z` that some design has, and :math:`z \ge \underline z`, the best combinatorial
    bound or a better one that is known. Nothing multiplies z: a pair's load is split over unary copies of its link.
    Duplex optics have one x for both directions and :math:`\sum_c x_{ijc} = \sum_p y^p_{ij}` with every plane
    :math:`y^p` a matching, ordered by the partner of server 0. Without host forwarding the load of a pair is
    :math:`T_{ij}`. Degrees may stay below d, as the instance has it (``danoint`` itself wants equality).

    **Server cuts.** The at most d links out of a server carry at most d z: :math:`\sum_{js} f^s_{ij} \le d z`, and
    likewise in. A server that sends more than it gets cannot pass the difference on to others, so these add
    :math:`\sum_v |\mathrm{in}_v - \mathrm{out}_v| / 2` to the volume of all loads (2.8 on ``danoint``).
    All loads together are at most C z, with C directions of links: n d, or :math:`2 d \lfloor n/2 \rfloor` for duplex
    optics, whose planes leave one of an odd number of servers out.

    **Hops.** In a fractional x every pair has a bit of a direct link. Let :math:`n^1 = x`, and
    :math:`n^h_{st}` be 1 if t is exactly h hops from s, for h below the depth D at which degree d could have reached
    everybody (``moore``, with the hop-weighted Moore bound). A last hop from w makes it so, :math:`p^h_{swt}`
    (``between``):

    .. math::
        & \textstyle\sum_{h < D} n^h_{st} \le 1,\qquad
          \sum_{ij} f^s_{ij} \ge \sum_t T_{st} \bigl(D - \sum_{h < D} (D - h)\, n^h_{st}\bigr) \\
        & \textstyle\sum_t n^h_{st} \le d \sum_t n^{h-1}_{st},\qquad \sum_s n^h_{st} \le d \sum_s n^{h-1}_{st} \\
        & p^h_{swt} \le n^{h-1}_{sw},\quad p^h_{swt} \le x_{wt1},\quad
          \textstyle\sum_t p^h_{swt} \le d\, n^{h-1}_{sw},\quad \sum_s p^h_{swt} \le d^{h-1} x_{wt1},\quad
          n^h_{st} \le \sum_w p^h_{swt} .

    All these are continuous: true distances satisfy them for integer x. Duplex: d - 1 in place of d, and
    :math:`n^h_{st} = n^h_{ts}`.

    **Numbering.** Interchangeable servers are numbered breadth first if all are, or such that the neighbours of one
    server come first.

    Bytes are measured such that what the busiest server sends or receives, divided by d, is 10 units: z is at least
    10, large beside the absolute tolerances of solvers.

    *What a host must not couple to.* With ``numbering``, which of the servers that traffic does not tell apart have
    links, as prices of its own may; with ``ordered_planes``, which plane is which; with ``achievable_bytes``, designs
    that are worse.

    Parameters
    ----------
    hops : {"none", "moore", "between"}
        How much is known of distances; ``between`` takes n³ variables for a layer.
    numbering, ordered_planes : bool
        Whether to break the symmetry of interchangeable servers, and of planes.
    proven_bytes : float, optional
        A congestion that is known to be a lower bound. Default: the best combinatorial one.
    achievable_bytes : float, optional
        A congestion that some design is known to have; worse ones are excluded. Default: all bytes.

    Ports
    -----
    ``link[i, j, c]``
        1 if at least c links lead from i to j; for duplex i < j.
    ``links_between[i, j]``, ``joined[i, j]``
        Links from i to j, and whether there is one, for ordered pairs.
    ``mate[p, i, j]`` : duplex optics
        1 if plane p joins i and j.
    ``link_load[i, j]``
        Units on all links from i to j.
    ``flow[s, i, j]`` : with host forwarding
        Those from source s.
    ``congestion``, ``objective``
        z in units.

    References
    ----------
    R. Krishnaswamy, K. Sivarajan, "Design of logical topologies: a linear formulation for wavelength-routed optical
    networks with no wavelength changers", IEEE/ACM ToN 9(2), 2001 (source-aggregated flows, congestion). MIPLIB 3,
    ``danoint`` (D. Bienstock). Server cuts in this form, hop layers and the numbering are ours.
    """

    hops: Hops = "between"
    numbering: bool = True
    ordered_planes: bool = True
    proven_bytes: float | None = None
    achievable_bytes: float | None = None

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: TopologyInstance) -> str | None:
        """All-reduce groups; a congestion said to be achievable that is proven not to be."""
        if instance.allreduce_groups:
            return "it routes given traffic and chooses no rings for all-reduce groups; use rings-and-routes"
        return refuses_achievable(self.achievable_bytes, lambda: self._proven_bytes(instance))

    def scope(self, instance: TopologyInstance) -> str | None:
        """All designs."""
        return None

    def build(self, block: pyo.Block, instance: TopologyInstance) -> None:
        """Fill ``block`` with links, flows, loads and distances.

        Raises
        ------
        InfeasibleError
            If the degree leaves some server without a way to all those that it must reach.
        """
        unit = unit_bytes(instance)
        lowest = self._proven_bytes(instance) / unit
        highest = min(self.achievable_bytes or inf, float(instance.traffic_bytes.sum())) / unit
        # A margin on both sides: figures that come from solvers are right up to their tolerance.
        lowest, highest = lowest * (1 - BOUND_MARGIN), highest * (1 + RANGE_MARGIN)
        add_links(block, instance, self.ordered_planes)
        block.congestion = pyo.Var(bounds=(lowest, highest), doc="bytes on the busiest link, in units")
        block.objective = pyo.Expression(expr=block.congestion)
        if instance.host_forwarding:
            _add_flows(block, instance)
            _add_faint_paths(block, instance)
        else:
            _add_direct_loads(block, instance)
        _add_loads(block, instance, highest)
        _add_server_cuts(block, instance)
        if self.hops != "none" and instance.host_forwarding:
            add_hop_layers(block, instance, between=self.hops == "between")
            _add_volumes(block, instance)
        if self.numbering:
            add_numbering(block, instance)

    def start(self, block: pyo.Block, instance: TopologyInstance, solution: TopologyDesign) -> None:
        """Links and planes of a design, interchangeable servers renumbered; the rest follows."""
        counts = solution.link_counts(instance)
        number = renumbering(instance, counts) if self.numbering else list(range(instance.servers))
        laid = {(number[i], number[j]): count for (i, j), count in counts.items()}
        for i, j, c in block.link:
            block.link[i, j, c].set_value(int(laid.get((i, j), 0) >= c))
        if instance.optics == "duplex":
            planes = [{tuple(sorted((number[i], number[j]))) for i, j in plane} for plane in solution.planes]
            if self.ordered_planes:
                planes.sort(key=lambda plane: -max((j for i, j in plane if i == 0), default=0))
            for p, i, j in block.mate:
                block.mate[p, i, j].set_value(int(p < len(planes) and (i, j) in planes[p]))

    def read(self, block: pyo.Block, instance: TopologyInstance) -> TopologyDesign:
        """The design that the values describe.

        Raises
        ------
        SolverError
            If a link is laid in part, or traffic has no path.
        """
        links = read_links(block)
        joined = {pair for pair, count in links.items() if count}
        if instance.optics == "duplex":
            joined |= {(j, i) for i, j in joined}
        if not instance.host_forwarding:
            return assemble(instance, links, (), {})
        arcs = sorted(joined)
        flow = np.zeros((instance.servers, len(arcs)))
        for column, (i, j) in enumerate(arcs):
            for s in block.SOURCES:
                if s != j:
                    flow[s, column] = max(0.0, block.flow[s, i, j].value or 0.0)
        paths = decompose(arcs, flow, instance.traffic_bytes / unit_bytes(instance))
        return assemble(instance, links, (), paths)

    def objective_value(self, instance: TopologyInstance, value: float) -> float:
        """Iteration time in seconds for a congestion in units."""
        return instance.iteration_time_s(value * unit_bytes(instance))

    def _proven_bytes(self, instance: TopologyInstance) -> float:
        return max(self.proven_bytes or 0.0, *congestion_bounds(instance).values())


def unit_bytes(instance: TopologyInstance) -> float:
    """A tenth of what the d links of the busiest server carry at least, each."""
    return float(instance.node_bytes.max()) / instance.degree / 10


def _add_flows(block: pyo.Block, instance: TopologyInstance) -> None:
    """``flow`` with its conservation, and ``link_load``."""
    n, traffic = instance.servers, instance.traffic_bytes / unit_bytes(instance)
    others = {v: [u for u in range(n) if u != v] for v in range(n)}
    sources = [s for s in range(n) if traffic[s].any()]
    block.SOURCES = pyo.Set(initialize=sources, doc="servers that send")
    block.FLOWS = pyo.Set(dimen=3, initialize=[(s, i, j) for s in sources for i, j in block.ARCS if j != s])
    block.ELSEWHERE = pyo.Set(dimen=2, initialize=[(s, v) for s in sources for v in others[s]])
    block.flow = pyo.Var(block.FLOWS, bounds=(0, None), doc="units from source s on the links from i to j")

    @block.Expression(block.ARCS, doc="units on the links from i to j")
    def link_load(b: Any, i: int, j: int) -> Any:
        return sum(b.flow[s, i, j] for s in b.SOURCES if s != j)

    @block.Constraint(block.ELSEWHERE, doc="what comes in and does not go on is delivered")
    def flow_is_conserved(b: Any, s: int, v: int) -> Any:
        arriving = sum(b.flow[s, u, v] for u in others[v])
        return arriving - sum(b.flow[s, v, w] for w in others[v] if w != s) == float(traffic[s, v])

    @block.Constraint(block.FLOWS, doc="flow takes links, and what is for i does not pass it")
    def flow_takes_links(b: Any, s: int, i: int, j: int) -> Any:
        return b.flow[s, i, j] <= max(float(traffic[s].sum() - traffic[s, i]), NEGLIGIBLE) * b.joined[i, j]


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
        return b.faint_flow[s, i, j] <= int(faint[s].sum()) * b.joined[i, j]


def _add_direct_loads(block: pyo.Block, instance: TopologyInstance) -> None:
    """``link_load`` where nobody forwards: what the pair itself has to send, over a link of its own."""
    traffic = instance.traffic_bytes / unit_bytes(instance)
    wanted = [(i, j) for i, j in block.ARCS if traffic[i, j] > 0]
    block.WANTED = pyo.Set(dimen=2, initialize=wanted, doc="pairs with traffic")

    @block.Expression(block.ARCS, doc="units from i to j")
    def link_load(b: Any, i: int, j: int) -> Any:
        return float(traffic[i, j])

    @block.Constraint(block.WANTED, doc="traffic that nobody forwards has a link")
    def traffic_has_a_link(b: Any, i: int, j: int) -> Any:
        return b.joined[i, j] >= 1


def _add_loads(block: pyo.Block, instance: TopologyInstance, highest: float) -> None:
    """No link carries more than the congestion; a pair's load is split over its links."""
    if instance.most_links_of_a_pair == 1:

        @block.Constraint(block.ARCS, doc="congestion covers the load of a link")
        def pair_is_within_congestion(b: Any, i: int, j: int) -> Any:
            return b.link_load[i, j] <= b.congestion

        return

    block.copy_load = pyo.Var(block.ARCS, block.COPIES, bounds=(0, None), doc="units on the c-th link from i to j")

    @block.Constraint(block.ARCS, doc="links carry the load of their pair")
    def links_carry_the_load(b: Any, i: int, j: int) -> Any:
        return sum(b.copy_load[i, j, c] for c in b.COPIES) == b.link_load[i, j]

    @block.Constraint(block.ARCS, block.COPIES, doc="only links that are laid carry")
    def only_laid_links_carry(b: Any, i: int, j: int, c: int) -> Any:
        return b.copy_load[i, j, c] <= highest * b.laid[i, j, c]

    @block.Constraint(block.ARCS, block.COPIES, doc="congestion covers the load of a link")
    def load_is_within_congestion(b: Any, i: int, j: int, c: int) -> Any:
        return b.copy_load[i, j, c] <= b.congestion


def _add_server_cuts(block: pyo.Block, instance: TopologyInstance) -> None:
    degree = instance.degree

    @block.Constraint(block.SERVERS, doc="d links out carry d times the congestion at most")
    def server_sends_within_congestion(b: Any, i: int) -> Any:
        return sum(b.link_load[i, j] for j in b.SERVERS if j != i) <= degree * b.congestion

    @block.Constraint(block.SERVERS, doc="d links in carry d times the congestion at most")
    def server_receives_within_congestion(b: Any, j: int) -> Any:
        return sum(b.link_load[i, j] for i in b.SERVERS if i != j) <= degree * b.congestion

    @block.Constraint(doc="all links carry as many times the congestion as there are directions at most")
    def loads_are_within_congestion(b: Any) -> Any:
        return sum(b.link_load[i, j] for i, j in b.ARCS) <= most_link_directions(instance) * b.congestion


def _add_volumes(block: pyo.Block, instance: TopologyInstance) -> None:
    traffic = instance.traffic_bytes / unit_bytes(instance)
    targets = {s: [t for t in range(instance.servers) if traffic[s, t] > NEGLIGIBLE] for s in block.SOURCES}

    @block.Constraint(block.SOURCES, doc="a source's flow takes bytes times distance at least")
    def volume_covers_distance(b: Any, s: int) -> Any:
        volume = sum(b.flow[s, i, j] for i, j in b.ARCS if j != s)
        return volume >= sum(float(traffic[s, t]) * b.hops_at_least[s, t] for t in targets[s])
