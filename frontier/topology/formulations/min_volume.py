"""A bound on congestion from links and distances alone, without routes."""

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.models.covering import FormulationBase
from ddlopt.models.tolerances import BOUND_MARGIN
from ddlopt.models.topology.bounds import directions_of_links
from ddlopt.models.topology.formulations.rows.hop_layers import add_hop_layers
from ddlopt.models.topology.formulations.rows.link_choice import add_joined, add_links
from ddlopt.models.topology.formulations.rows.throughput import unit_bytes
from ddlopt.models.topology.instance import TopologyInstance

_NEGLIGIBLE = 1e-6
"""Traffic of fewer units is left out: solvers drop coefficients that small, and the bound only falls."""


@dataclass(frozen=True)
class MinVolume(FormulationBase):
    r"""The links for which bytes times hops, spread as evenly as servers allow, load them least.

    A relaxation of :class:`~ddlopt.models.topology.formulations.rings_and_routes.RingsAndRoutes`: of the flows only the
    bytes :math:`\tau_v` that server v forwards for others are left. With :math:`x`, :math:`n^h` and the
    rows about hops as there, for λ = 1:

    .. math::
        \min\ z \quad \text{s.t.} \quad
        d z \ge \max(\mathrm{out}_v, \mathrm{in}_v) + \tau_v,\qquad
        \textstyle\sum_v \tau_v = \sum_{st} T_{st} \bigl(D - 1 - \sum_{h < D} (D - h)\, n^h_{st}\bigr),\qquad
        \tau \ge 0 .

    For what flows would need n³ variables and rows it needs n, and its optimum is close to that of the whole problem:
    64.69 for the 65.67 of ``danoint``; its linear relaxation, 63.58, takes a tenth of a second.

    Parameters
    ----------
    hops : {"moore", "between"}
        As in ``RingsAndRoutes``.

    Ports
    -----
    ``link[i, j]``, ``links_between[i, j]``
        As in ``RingsAndRoutes``.
    ``joined[i, j]``
        1 if there is a link from i to j.
    ``mate[p, i, j]`` : duplex optics
        As in ``RingsAndRoutes``.
    ``forwarded[v]``
        Units that server v forwards.
    ``congestion``, ``objective``
        A lower bound on that of the links, in units.

    Notes
    -----
    It describes links, not a design, so that it is a source of bounds and no :class:`Formulation`.
    """

    hops: Literal["moore", "between"] = "between"

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: TopologyInstance) -> str | None:
        """All-reduce groups; servers that forward nothing."""
        if instance.allreduce_groups:
            return "it knows no rings for all-reduce groups"
        return None if instance.host_forwarding else "without host forwarding no bytes take more than one hop"

    def build(self, block: pyo.Block, instance: TopologyInstance) -> None:
        """Fill ``block`` with links, distances and what servers forward."""
        unit, degree = unit_bytes(instance), instance.degree
        traffic, own = instance.traffic_bytes / unit, instance.node_bytes.max(axis=0) / unit
        add_links(block, instance)
        block.ARCS = pyo.Set(dimen=2, initialize=list(itertools.permutations(range(instance.servers), 2)))
        add_joined(block, instance)
        lowest = max(congestion_bounds(instance).values()) / unit
        block.congestion = pyo.Var(
            bounds=(lowest * (1 - BOUND_MARGIN), None), doc="bytes on the busiest link at least, in units"
        )
        block.objective = pyo.Expression(expr=block.congestion)
        add_hop_layers(block, instance, between=self.hops == "between")
        block.forwarded = pyo.Var(block.SERVERS, bounds=(0, None), doc="units that the server forwards")
        block.SERVED = pyo.Set(dimen=2, initialize=[(s, t) for s, t in block.ARCS if traffic[s, t] > _NEGLIGIBLE])

        @block.Constraint(block.SERVERS, doc="d links carry what a server sends or receives and what it forwards")
        def servers_are_within_congestion(b: Any, v: int) -> Any:
            return float(own[v]) + b.forwarded[v] <= degree * b.congestion

        @block.Constraint(doc="all hops but the first are forwarded by somebody")
        def later_hops_are_forwarded(b: Any) -> Any:
            volume = sum(float(traffic[s, t]) * b.hops_at_least[s, t] for s, t in b.SERVED)
            served = sum(float(traffic[s, t]) for s, t in b.SERVED)
            return sum(b.forwarded[v] for v in b.SERVERS) >= volume - served

        @block.Constraint(doc="all links carry as many times the congestion as there are directions at most")
        def volume_is_within_congestion(b: Any) -> Any:
            volume = float(traffic.sum()) + sum(b.forwarded[v] for v in b.SERVERS)
            return volume <= directions_of_links(instance) * b.congestion

    def objective_value(self, instance: TopologyInstance, value: float) -> float:
        """Iteration time in seconds for a congestion in units: a lower bound."""
        return instance.iteration_time_s(value * unit_bytes(instance))
